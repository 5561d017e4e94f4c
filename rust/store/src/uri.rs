//! What a user calls a table, to the absolute path of its base.

use std::path::{Component, Path, PathBuf};
use std::{env, fs, io};

use crate::{Result, StoreError};

/// The absolute, normalised path that `uri` names.
///
/// Percent signs of a `file:` URI are literal, as in Hadoop's `Path`: what Java wrote under
/// `file:///t/a%20b` is found under that name.
pub(crate) fn local_base(uri: &str) -> Result<String> {
    let path = local_path(uri)?;
    if path.is_empty() {
        let what = "the table's URI is empty".to_owned();
        return Err(StoreError::Config { what });
    }
    let absolute = normalise(path).map_err(|source| StoreError::around(Path::new(uri), source))?;
    let base = absolute.into_os_string().into_string();
    let base = base.map_err(|_| StoreError::Config {
        what: format!("{uri}: the working directory is not UTF-8"),
    })?;
    Ok(if cfg!(windows) {
        base.replace('\\', "/")
    } else {
        base
    })
}

fn local_path(uri: &str) -> Result<&str> {
    let Some((scheme, rest)) = split_scheme(uri) else {
        return Ok(uri);
    };
    if !scheme.eq_ignore_ascii_case("file") {
        return Err(StoreError::Unsupported {
            what: format!("storage scheme '{scheme}' of {uri}"),
        });
    }
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if let Some(drive) = path
        .strip_prefix('/')
        .filter(|path| begins_with_drive(path))
    {
        return Ok(drive);
    }
    if path.starts_with('/') {
        Ok(path)
    } else {
        Err(StoreError::Unsupported {
            what: format!("a file URI with a host: {uri}"),
        })
    }
}

/// `scheme:/rest`; without the slash it is a relative path that happens to hold a colon.
pub(crate) fn split_scheme(uri: &str) -> Option<(&str, &str)> {
    if begins_with_drive(uri) {
        return None;
    }
    let (scheme, rest) = uri.split_once(':')?;
    let named = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    (named && rest.starts_with('/')).then_some((scheme, rest))
}

/// Whether it is `C:\…` or the like, which there is on Windows alone.
fn begins_with_drive(path: &str) -> bool {
    let mut letters = path.chars();
    let drive = letters
        .next()
        .is_some_and(|letter| letter.is_ascii_alphabetic());
    cfg!(windows) && drive && letters.next() == Some(':')
}

/// Absolute, without `.`, `..` and doubled slashes. Symbolic links keep the user's spelling, which
/// may be the only one that holds on every machine; only a `..` after a link resolves it, because
/// the directory above the link's target is meant.
fn normalise(path: &str) -> io::Result<PathBuf> {
    let path = Path::new(path);
    let is_absolute = path.is_absolute();
    let mut out = if is_absolute {
        PathBuf::new()
    } else {
        env::current_dir()?
    };
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                if out.is_symlink() {
                    out = fs::canonicalize(&out)?;
                }
                out.pop();
            }
            Component::RootDir | Component::Prefix(_) if is_absolute => out.push(part),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Ok(out)
}
