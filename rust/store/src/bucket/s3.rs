//! Buckets that speak S3.

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{ObjectStore, RetryConfig};

use super::kind::{Kind, Unbuilt, Version};
use super::service::Connector;

pub(super) const KIND: Kind = Kind {
    name: "s3",
    schemes: &["s3", "s3a"],
    environment: &["AWS_"],
    token: "pyhudi-put",
    if_absent: "If-None-Match",
    version: Version::Tag,
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
    let mut builder = AmazonS3Builder::from_env();
    for (name, value) in options {
        let key: AmazonS3ConfigKey = name.parse().map_err(|_| Unbuilt::Option(name.clone()))?;
        builder = builder.with_config(key, value);
    }
    let client = builder
        .with_bucket_name(bucket)
        .with_retry(retry)
        .with_http_connector(Connector::default())
        .build();
    Ok(Box::new(client.map_err(Unbuilt::Client)?))
}
