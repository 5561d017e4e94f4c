//! Names of base files and log files (`FSUtils`, `HoodieBaseFile`, `HoodieLogFile`, Hudi 1.2.0).
//!
//! `config/file_names.py` parses single names by the same rules; a test compares the two.

/// The format of base files, by the extension of their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extension {
    /// Parquet.
    Parquet,
    /// ORC.
    Orc,
    /// HFile, of the metadata table.
    HFile,
}

impl Extension {
    /// The extension as a name has it.
    pub fn text(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Orc => "orc",
            Self::HFile => "hfile",
        }
    }

    /// The extension of a text; none for one of another format.
    pub fn of(text: &str) -> Option<Self> {
        [Self::Parquet, Self::Orc, Self::HFile]
            .into_iter()
            .find(|extension| extension.text() == text)
    }
}

/// The parts of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileName<'a> {
    /// `<file id>_<write token>_<instant>.<extension>`
    Base {
        /// File group.
        file_id: &'a str,
        /// Write token.
        token: &'a str,
        /// Instant of the commit.
        instant: &'a str,
        /// Format.
        extension: Extension,
    },
    /// `.<file id>_<instant>.log.<version>[_<write token>[.cdc]]`
    Log {
        /// File group.
        file_id: &'a str,
        /// Base instant of the slice up to table version 6, later that of the delta commit.
        instant: &'a str,
        /// Version in digits.
        version: &'a str,
        /// Write token, empty if the name has none.
        token: &'a str,
        /// Whether it is a change log.
        is_change_log: bool,
    },
    /// No data file.
    Other,
    /// A base file of another format, or a file that Hudi did not write.
    Unsupported,
}

const EXTERNAL_SUFFIX: &str = "_hudiext";
const BASE_EXTENSIONS: [&str; 4] = ["parquet", "orc", "hfile", "lance"];

/// Parses a name. extension: that of the table's base files; none for any format of data tables.
pub fn parse_name(name: &str, extension: Option<Extension>) -> FileName<'_> {
    if name.ends_with(EXTERNAL_SUFFIX) {
        return FileName::Unsupported;
    }
    if let Some((file_id, token, instant, text)) = base_parts(name, extension) {
        let own = Extension::of(text).filter(|own| match extension {
            Some(extension) => *own == extension,
            None => *own != Extension::HFile,
        });
        if let Some(extension) = own {
            return FileName::Base {
                file_id,
                token,
                instant,
                extension,
            };
        }
        let lower = text.to_ascii_lowercase();
        let supported = match extension {
            Some(extension) => lower == extension.text(),
            None => lower == "parquet" || lower == "orc",
        };
        if BASE_EXTENSIONS.contains(&lower.as_str()) && !supported {
            return FileName::Unsupported;
        }
        return FileName::Other;
    }
    log_parts(name).unwrap_or(FileName::Other)
}

fn base_parts(name: &str, extension: Option<Extension>) -> Option<(&str, &str, &str, &str)> {
    let (file_id, rest) = name.split_once('_')?;
    let (token, rest) = rest.split_once('_')?;
    let (instant, text) = rest.split_once('.')?;
    let is_id = if extension == Some(Extension::HFile) {
        // File ids of a record index by data partition contain the partition's path.
        text == "hfile" && !file_id.starts_with('.') && !file_id.contains('/')
    } else {
        file_id.bytes().all(is_word)
    };
    let is_base = is_id
        && ![file_id, token, instant, text].contains(&"")
        && token.bytes().all(is_word)
        && instant.bytes().all(|byte| byte.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_base.then_some((file_id, token, instant, text))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

fn log_parts(name: &str) -> Option<FileName<'_>> {
    let (file_id, rest) = name.strip_prefix('.')?.split_once('_')?;
    let (instant, rest) = rest.split_once('.')?;
    let rest = rest.strip_prefix("log.")?;
    let (version, rest) = match rest.split_once('_') {
        Some((version, rest)) => (version, Some(rest)),
        None => (rest, None),
    };
    let (token, is_change_log) = match rest {
        None => ("", false),
        Some(rest) => match rest.strip_suffix(".cdc") {
            Some(token) => (token, true),
            None => (rest, false),
        },
    };
    let is_log = !file_id.is_empty()
        && !file_id.contains('/')
        && !instant.contains(['_', '/'])
        && is_number(version)
        && (rest.is_none() || is_log_token(token));
    is_log.then_some(FileName::Log {
        file_id,
        instant,
        version,
        token,
        is_change_log,
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_log_token(token: &str) -> bool {
    let mut parts = token.split('-');
    parts
        .by_ref()
        .take(3)
        .filter(|part| is_number(part))
        .count()
        == 3
        && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str) -> FileName<'_> {
        parse_name(name, Some(Extension::Parquet))
    }

    #[test]
    fn base_file_names_have_id_token_and_instant() {
        assert_eq!(
            parsed("f1-0_0-1-2_20240101000000000.parquet"),
            FileName::Base {
                file_id: "f1-0",
                token: "0-1-2",
                instant: "20240101000000000",
                extension: Extension::Parquet,
            }
        );
        for other in [
            "f1_0_2.crc",
            "f1_0_2.PARQUET",
            ".f1_0_2.parquet",
            "f 1_0_2.parquet",
            "f1_2.parquet",
            "f1_0_x.parquet",
            "f1_0_2.parquet.crc",
            "",
            "_0_2.parquet",
        ] {
            assert_eq!(parsed(other), FileName::Other, "{other}");
        }
        for unsupported in ["f1_0_2.orc", "f1_0_2.HFile", "f1_0_2.lance", "x_hudiext"] {
            assert_eq!(parsed(unsupported), FileName::Unsupported, "{unsupported}");
        }
        assert!(matches!(
            parse_name("f1_0_2.orc", None),
            FileName::Base { .. }
        ));
        assert_eq!(parse_name("f1_0_2.hfile", None), FileName::Unsupported);
    }

    #[test]
    fn log_file_names_may_have_a_token_and_a_suffix() {
        let log = |token, is_change_log| FileName::Log {
            file_id: "f1",
            instant: "2",
            version: "10",
            token,
            is_change_log,
        };
        assert_eq!(parsed(".f1_2.log.10"), log("", false));
        assert_eq!(parsed(".f1_2.log.10_0-1-2"), log("0-1-2", false));
        assert_eq!(parsed(".f1_2.log.10_0-1-2.cdc"), log("0-1-2", true));
        for other in [
            ".f1_2.log.10_0-1",
            ".f1_2.log.10.cdc",
            ".f1_2.log.",
            ".f1_2.log.1_0-1-2-3",
            "._2.log.1",
            ".f1_2_3.log.1",
        ] {
            assert_eq!(parsed(other), FileName::Other, "{other}");
        }
    }

    #[test]
    fn hfile_names_may_have_any_id() {
        let name = "record-index-a%3Db c-0000-0_0-1-2_2.hfile";
        assert!(matches!(
            parse_name(name, Some(Extension::HFile)),
            FileName::Base { .. }
        ));
        assert_eq!(
            parse_name("f_0_2.parquet", Some(Extension::HFile)),
            FileName::Other
        );
    }
}
