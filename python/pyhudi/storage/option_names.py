"""The names of storage options by type of storage, as in `object_store` and Hadoop.

This module knows only names and their aliases; the Rust core interprets the values.
"""

from __future__ import annotations

from dataclasses import dataclass

_CLIENT = (
    "allow_invalid_certificates",
    "connect_timeout",
    "timeout",
    "read_timeout",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_url",
    "proxy_ca_certificate",
    "proxy_excludes",
    "http1_only",
    "user_agent",
    "max_retries",
    "retry_timeout",
)
_AWS = (
    "access_key_id",
    "secret_access_key",
    "session_token",
    "region",
    "default_region",
    "endpoint_url",
    "endpoint_url_s3",
    "virtual_hosted_style_request",
    "skip_signature",
    "unsigned_payload",
    "checksum_algorithm",
    "disable_tagging",
    "disable_bulk_delete",
    "request_payer",
    "s3_express",
    "imdsv1_fallback",
    "metadata_endpoint",
    "container_credentials_relative_uri",
    "container_credentials_full_uri",
    "container_authorization_token_file",
    "web_identity_token_file",
    "role_arn",
    "role_session_name",
    "endpoint_url_sts",
    "server_side_encryption",
    "sse_kms_key_id",
    "sse_bucket_key_enabled",
    "sse_customer_key_base64",
    "allow_http",
)
_GOOGLE = (
    "service_account",
    "service_account_key",
    "application_credentials",
    "bearer_token",
    "skip_signature",
    "base_url",
    "allow_http",
)
_AZURE_STORAGE = (
    "account_name",
    "account_key",
    "sas_key",
    "token",
    "client_id",
    "client_secret",
    "tenant_id",
    "authority_host",
    "endpoint",
    "use_emulator",
    "encryption_key",
)
_AZURE = (
    "federated_token_file",
    "msi_endpoint",
    "object_id",
    "msi_resource_id",
    "use_azure_cli",
    "credential_type",
    "skip_signature",
    "use_fabric_endpoint",
    "fabric_token_service_url",
    "fabric_workload_host",
    "fabric_session_token",
    "fabric_cluster_identifier",
    "disable_tagging",
    "allow_http",
)


@dataclass(frozen=True)
class Names:
    """The options of one type of storage."""

    full: frozenset[str]
    """The names that the core accepts."""
    prefixes: tuple[str, ...]
    """Optional prefixes of a name, the longest first."""
    others: dict[str, str]
    """Aliases without a prefix, to the accepted names."""
    in_uri: frozenset[str]
    """Names of parts of the table's URI, without a prefix."""
    properties: tuple[str, ...] = ()
    """Prefixes of names that are passed unchanged: properties of Hadoop."""

    def find(self, name: str) -> str | None:
        """Return the full name, None for an unknown option."""
        if name.startswith(self.properties):
            return name
        short = self.short(name)
        short = self.others.get(short, short)
        spellings = (*(f"{prefix}{short}" for prefix in self.prefixes), short)
        return next((full for full in spellings if full in self.full), None)

    def short(self, name: str) -> str:
        """Return the name in lower case, without a prefix."""
        short = name.lower()
        for prefix in self.prefixes:
            if short.startswith(prefix):
                return short.removeprefix(prefix)
        return short


S3 = Names(
    frozenset((*(f"aws_{name}" for name in _AWS), *_CLIENT)),
    ("aws_",),
    {"endpoint": "endpoint_url", "token": "session_token"},
    frozenset(("bucket", "bucket_name")),
)
GCS = Names(
    frozenset((*(f"google_{name}" for name in _GOOGLE), *_CLIENT)),
    ("google_",),
    {
        "service_account_path": "service_account",
        "token": "bearer_token",
        "endpoint": "base_url",
        "endpoint_url": "base_url",
    },
    frozenset(("bucket", "bucket_name")),
)
AZURE = Names(
    frozenset(
        (
            *(f"azure_storage_{name}" for name in _AZURE_STORAGE),
            *(f"azure_{name}" for name in _AZURE),
            *_CLIENT,
        )
    ),
    ("azure_storage_", "azure_"),
    {
        "access_key": "account_key",
        "master_key": "account_key",
        "sas_token": "sas_key",
        "bearer_token": "token",
        "authority_id": "tenant_id",
        "endpoint_url": "endpoint",
        "identity_endpoint": "msi_endpoint",
    },
    frozenset(("container", "container_name")),
)
HDFS = Names(
    frozenset(("hadoop_user_name", "hadoop_conf_dir", "max_retries", "retry_timeout")),
    ("hadoop_",),
    {"user": "user_name", "config_dir": "conf_dir"},
    frozenset(("namenode", "nameservice", "host", "port")),
    ("dfs.", "fs.", "hadoop."),
)

BY_SCHEME = {
    **dict.fromkeys(("s3", "s3a"), S3),
    "gs": GCS,
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs", "az", "azure"), AZURE),
    "hdfs": HDFS,
}
"""The schemes of object stores and of HDFS, each with its options."""
