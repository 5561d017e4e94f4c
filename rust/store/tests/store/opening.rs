use std::env;
use std::os::unix::fs::symlink;

use bytes::Bytes;
use pyhudi_store::{Store, StoreError};

use crate::helpers::TempDir;

fn uri_of(uri: &str) -> String {
    Store::open(uri, &[]).unwrap().uri().to_owned()
}

#[test]
fn every_spelling_of_an_absolute_path_is_one_uri() {
    for uri in [
        "/no/such/table",
        "/no//such/./table/",
        "/no/such/other/../table",
        "file:///no/such/table",
        "file:/no/such/table/",
        "FILE:///no/such/table",
    ] {
        assert_eq!(uri_of(uri), "/no/such/table", "{uri}");
    }
}

#[test]
fn the_uri_opens_the_same_table_again() {
    let uri = uri_of("file:///t/a%20b c#d?e");
    assert_eq!(uri, "/t/a%20b c#d?e");
    assert_eq!(uri_of(&uri), uri);
}

#[test]
fn a_relative_uri_is_below_the_working_directory() {
    let here = env::current_dir().unwrap();
    let here = here.to_str().unwrap();
    assert_eq!(uri_of("some/table"), format!("{here}/some/table"));
    assert_eq!(uri_of("./c:olon"), format!("{here}/c:olon"));
    assert_eq!(uri_of("c:olon"), format!("{here}/c:olon"));
    assert_eq!(uri_of("."), here);
}

#[test]
fn a_relative_uri_reads_what_is_there() {
    // Cargo runs tests in the package's directory.
    let store = Store::open("../store/src", &[]).unwrap();
    assert!(store.head("lib.rs").unwrap().is_some());
}

#[test]
fn a_symlinked_base_keeps_its_spelling_and_works() {
    let dir = TempDir::new();
    dir.write("real/a/x", "1");
    symlink(dir.join("real"), dir.join("link")).unwrap();
    let link = dir.join("link");
    let store = Store::open(link.to_str().unwrap(), &[]).unwrap();

    assert_eq!(store.uri(), link.to_str().unwrap());
    assert_eq!(store.list("").unwrap()[0].path, "a/x");
    store.put("a/y", Bytes::from_static(b"2")).unwrap();
    assert!(
        store
            .put_if_absent("b/z", Bytes::from_static(b"3"))
            .unwrap()
    );
    assert_eq!(dir.names("real"), ["a", "b"]);
    assert_eq!(dir.names("real/a"), ["x", "y"]);
}

#[test]
fn dots_after_a_link_go_above_its_target() {
    let dir = TempDir::new();
    dir.write("deep/real/x", "1");
    symlink(dir.join("deep/real"), dir.join("link")).unwrap();
    let uri = format!("{}/link/../real", dir.path().to_str().unwrap());
    let store = Store::open(&uri, &[]).unwrap();
    assert_eq!(store.read("x").unwrap(), "1");
}

#[test]
fn other_schemes_are_named_in_the_error() {
    for scheme in ["s3n", "gcs", "adl", "viewfs"] {
        let error = Store::open(&format!("{scheme}://bucket/t"), &[]).unwrap_err();
        assert!(matches!(error, StoreError::Unsupported { .. }));
        assert!(
            error.to_string().contains(&format!("'{scheme}'")),
            "{error}"
        );
    }
    for uri in ["file://host/t", "file://"] {
        assert!(matches!(
            Store::open(uri, &[]).unwrap_err(),
            StoreError::Unsupported { .. }
        ));
    }
    Store::open("", &[]).unwrap_err();
}

#[test]
fn every_spelling_of_a_place_in_a_bucket_is_one_uri() {
    for uri in [
        "s3a://b/t/x",
        "s3a://b/t/x/",
        "S3A://b//t/x",
        "s3a://b/t//x//",
    ] {
        assert_eq!(uri_of(uri), "s3a://b/t/x", "{uri}");
    }
    for uri in ["s3://b", "s3://b/", "s3://b//"] {
        assert_eq!(uri_of(uri), "s3://b", "{uri}");
    }
    assert_eq!(uri_of("s3://b/a%20b c#d?e"), "s3://b/a%20b c#d?e");
    assert_eq!(
        uri_of("ABFSS://c@acc.dfs.core.windows.net//t/"),
        "abfss://c@acc.dfs.core.windows.net/t"
    );
}

#[test]
fn the_account_of_a_container_is_named_once() {
    let open = |uri: &str, account: Option<&str>| {
        let named = account.map(|name| ("azure_storage_account_name".to_owned(), name.to_owned()));
        Store::open(uri, &Vec::from_iter(named)).map(|store| store.uri().to_owned())
    };
    let hadoop = "wasbs://c@acc.blob.core.windows.net/t";
    for (uri, account) in [
        (hadoop, None),
        (hadoop, Some("acc")),
        ("az://c/t", Some("acc")),
    ] {
        assert_eq!(open(uri, account).unwrap(), uri);
    }
    for (uri, account, said) in [
        ("az://c/t", None, "of which account"),
        (hadoop, Some("other"), "names the account acc"),
        ("abfss://c@acc/t", None, "names no account"),
        (
            "abfss://@acc.dfs.core.windows.net/t",
            None,
            "names no container",
        ),
    ] {
        let error = open(uri, account).unwrap_err();
        assert!(matches!(error, StoreError::Config { .. }), "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn a_bucket_must_be_named_and_dots_lead_nowhere() {
    for uri in ["s3://", "s3:///t", "s3:/b/t", "s3a:/", "gs:///t"] {
        let error = Store::open(uri, &[]).unwrap_err();
        assert!(matches!(error, StoreError::Config { .. }), "{uri}");
        assert!(error.to_string().contains("names no bucket"), "{error}");
    }
    Store::open("s3://b/../t", &[]).unwrap_err();
}

#[test]
fn an_option_that_a_bucket_does_not_have_is_named() {
    let open = |key: &str, value: &str| {
        let options = [(key.to_owned(), value.to_owned())];
        Store::open("s3://b/t", &options).unwrap_err().to_string()
    };
    assert!(open("regon", "hidden").contains("'regon'"));
    assert!(!open("regon", "hidden").contains("hidden"));
    assert!(open("max_retries", "many").contains("whole number"));
    let options = [("aws_region".to_owned(), "hidden".to_owned())];
    for uri in ["gs://b/t", "abfss://c@acc.dfs.core.windows.net/t"] {
        let error = Store::open(uri, &options).unwrap_err().to_string();
        assert!(
            error.contains("'aws_region'") && !error.contains("hidden"),
            "{error}"
        );
    }
}

#[test]
fn an_unknown_option_is_named_in_the_error() {
    let options = [("region".to_owned(), "x".to_owned())];
    let error = Store::open("/t", &options).unwrap_err();
    assert!(matches!(error, StoreError::Unsupported { .. }));
    assert!(error.to_string().contains("'region'"), "{error}");
}

#[test]
fn the_store_crosses_threads() {
    fn crosses<T: Clone + Send + Sync + 'static>() {}
    fn moves<T: Send + 'static>() {}
    crosses::<Store>();
    crosses::<pyhudi_store::StoreFile>();
    moves::<pyhudi_store::StoreWriter>();
}
