//! Buckets that speak S3.

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{ObjectStore, RetryConfig};

use super::check;
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
    let value = |key: AmazonS3ConfigKey| builder.get_config_value(&key);
    check::urls([
        ("aws_endpoint_url", value(AmazonS3ConfigKey::Endpoint)),
        ("aws_endpoint_url_s3", value(AmazonS3ConfigKey::S3Endpoint)),
        (
            "aws_endpoint_url_sts",
            value(AmazonS3ConfigKey::StsEndpoint),
        ),
        (
            "aws_metadata_endpoint",
            value(AmazonS3ConfigKey::MetadataEndpoint),
        ),
        (
            "aws_container_credentials_full_uri",
            value(AmazonS3ConfigKey::ContainerCredentialsFullUri),
        ),
    ])?;
    check::words([
        ("aws_access_key_id", value(AmazonS3ConfigKey::AccessKeyId)),
        ("aws_session_token", value(AmazonS3ConfigKey::Token)),
        ("aws_region", value(AmazonS3ConfigKey::Region)),
        (
            "aws_container_credentials_relative_uri",
            value(AmazonS3ConfigKey::ContainerCredentialsRelativeUri),
        ),
    ])?;
    let client = builder
        .with_bucket_name(bucket)
        .with_retry(retry)
        .with_http_connector(Connector::default())
        .build();
    Ok(Box::new(client.map_err(Unbuilt::Client)?))
}
