//! Names of data files over generated parts.
#![cfg(test)]

use proptest::option;
use proptest::prelude::*;
use pyhudi_files::{Extension, FileName, parse_name};

proptest! {
    #[test]
    fn base_file_names_come_apart(
        file_id in "[A-Za-z0-9-]{1,40}",
        token in "[0-9]{1,3}-[0-9]{1,3}-[0-9]{1,4}",
        instant in "[0-9]{14}([0-9]{3})?",
        extension in prop::sample::select(vec![Extension::Parquet, Extension::Orc, Extension::HFile]),
    ) {
        let name = format!("{file_id}_{token}_{instant}.{}", extension.text());
        let parts = FileName::Base {
            file_id: &file_id,
            token: &token,
            instant: &instant,
            extension,
        };
        prop_assert_eq!(parse_name(&name, Some(extension)), parts);
    }

    /// File ids of a record index by data partition have the path of the partition in them.
    #[test]
    fn log_file_names_come_apart(
        file_id in "[^_/]{1,40}",
        instant in "[0-9]{14}([0-9]{3})?",
        version in "[0-9]{1,6}",
        token in option::of("[0-9]{1,3}-[0-9]{1,3}-[0-9]{1,4}"),
        is_change_log in any::<bool>(),
    ) {
        let is_change_log = is_change_log && token.is_some();
        let suffix = token
            .as_ref()
            .map_or(String::new(), |token| format!("_{token}"));
        let cdc = if is_change_log { ".cdc" } else { "" };
        let name = format!(".{file_id}_{instant}.log.{version}{suffix}{cdc}");
        let token = token.as_deref().unwrap_or("");
        let parts = FileName::Log {
            file_id: &file_id,
            instant: &instant,
            version: &version,
            token,
            is_change_log,
        };
        prop_assert_eq!(parse_name(&name, Some(Extension::Parquet)), parts);
    }

    /// What is told of a name makes the same name.
    #[test]
    fn any_name_is_its_parts_or_no_data_file(
        name in prop_oneof![any::<String>(), "[.a_0-]{0,12}(\\.log\\.|\\.)[a-z0-9_.-]{0,12}"],
    ) {
        for extension in [None, Some(Extension::Parquet), Some(Extension::HFile)] {
            let made = match parse_name(&name, extension) {
                FileName::Base {
                    file_id,
                    token,
                    instant,
                    extension,
                } => {
                    format!("{file_id}_{token}_{instant}.{}", extension.text())
                }
                FileName::Log {
                    file_id,
                    instant,
                    version,
                    token,
                    is_change_log,
                } => {
                    let separator = if token.is_empty() { "" } else { "_" };
                    let cdc = if is_change_log { ".cdc" } else { "" };
                    format!(".{file_id}_{instant}.log.{version}{separator}{token}{cdc}")
                }
                FileName::Other | FileName::Unsupported => continue,
            };
            prop_assert_eq!(&made, &name);
        }
    }
}
