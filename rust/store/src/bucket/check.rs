//! Values of options, before a client is made of them: clients take any, and panic at the first request.

use super::kind::Unbuilt;

/// An option that a client reads: its name, and its value where there is one.
pub(super) type Given<'n> = (&'n str, Option<String>);

/// Checks addresses of servers.
pub(super) fn urls<'n>(given: impl IntoIterator<Item = Given<'n>>) -> Result<(), Unbuilt> {
    for (name, value) in given {
        if let Some(fault) = value.and_then(|value| fault_of_url(&value)) {
            return Err(Unbuilt::Place(format!(
                "storage option '{name}' is no URL: {fault}; give one like http://localhost:9000 \
                 or https://host (also where the environment has it)"
            )));
        }
    }
    Ok(())
}

/// Checks what becomes a part of addresses and headers.
pub(super) fn words<'n>(given: impl IntoIterator<Item = Given<'n>>) -> Result<(), Unbuilt> {
    let is_odd = |value: String| value.contains(|c: char| c.is_whitespace() || c.is_control());
    for (name, value) in given {
        if value.is_some_and(is_odd) {
            return Err(Unbuilt::Place(format!(
                "storage option '{name}' has a blank, a line break or a control character; \
                 take it out (also where the environment has it)"
            )));
        }
    }
    Ok(())
}

fn fault_of_url(value: &str) -> Option<String> {
    let lower = value.to_ascii_lowercase();
    if !["http://", "https://"]
        .iter()
        .any(|scheme| lower.starts_with(scheme))
    {
        return Some("it does not begin with http:// or https://".to_owned());
    }
    if !value.chars().all(|c| c.is_ascii_graphic()) {
        return Some("it has a blank or another character that URLs cannot have".to_owned());
    }
    // Which has a host then.
    let fault = reqwest::Url::parse(value).err();
    fault.map(|cause| cause.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_whole() {
        for good in [
            "http://localhost:9000",
            "https://host/path/",
            "HTTP://127.0.0.1",
            "http://[::1]:9000",
        ] {
            assert_eq!(fault_of_url(good), None, "{good}");
        }
        for bad in [
            "localhost:9000",
            "127.0.0.1:9000",
            "9000",
            "",
            "//host:1",
            "ftp://host",
            "http://",
            "http:// host",
            "http://host:99999",
            "http://host:port",
            "http://[::1",
            "http://host:1\n",
            "http://\u{f6}:1",
        ] {
            assert!(fault_of_url(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn values_are_not_told() {
        let given = [("token", Some("se cret".to_owned()))];
        for checked in [words(given.clone()), urls(given)] {
            let Err(Unbuilt::Place(text)) = checked else {
                panic!("not refused")
            };
            assert!(text.contains("'token'") && !text.contains("cret"), "{text}");
        }
    }
}
