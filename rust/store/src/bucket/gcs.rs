//! Google Cloud Storage.

use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{ObjectStore, RetryConfig};

use super::check;
use super::kind::{Kind, Unbuilt, Version};
use super::service::Connector;

pub(super) const KIND: Kind = Kind {
    name: "gcs",
    schemes: &["gs"],
    environment: &["GOOGLE_", "SERVICE_ACCOUNT", "GCE_METADATA_"],
    token: "pyhudi-put",
    if_absent: "x-goog-if-generation-match",
    version: Version::Generation,
    has_suffixes: true,
    has_named_dirs: false,
    mistaken: None,
    build,
};

fn build(
    bucket: &str,
    options: &[(String, String)],
    retry: RetryConfig,
) -> Result<Box<dyn ObjectStore>, Unbuilt> {
    let mut builder = GoogleCloudStorageBuilder::from_env();
    for (name, value) in options {
        let key: GoogleConfigKey = name.parse().map_err(|_| Unbuilt::Option(name.clone()))?;
        builder = builder.with_config(key, value);
    }
    let value = |key: GoogleConfigKey| builder.get_config_value(&key);
    check::urls([("google_base_url", value(GoogleConfigKey::BaseUrl))])?;
    check::words([("google_bearer_token", value(GoogleConfigKey::BearerToken))])?;
    let client = builder
        .with_bucket_name(bucket)
        .with_retry(retry)
        .with_http_connector(Connector::default())
        .build();
    Ok(Box::new(client.map_err(Unbuilt::Client)?))
}
