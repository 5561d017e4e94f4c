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
    absolute
        .into_os_string()
        .into_string()
        .map_err(|_| StoreError::Config {
            what: format!("{uri}: the working directory is not UTF-8"),
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
    let (scheme, rest) = uri.split_once(':')?;
    let named = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    (named && rest.starts_with('/')).then_some((scheme, rest))
}

/// Absolute, without `.`, `..` and doubled slashes. Symbolic links keep the user's spelling, which
/// may be the only one that holds on every machine; only a `..` after a link resolves it, because
/// the directory above the link's target is meant.
fn normalise(path: &str) -> io::Result<PathBuf> {
    let path = Path::new(path);
    let mut out = if path.is_absolute() {
        PathBuf::from("/")
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
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Ok(out)
}
