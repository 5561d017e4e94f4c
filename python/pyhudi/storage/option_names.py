"""The names of storage options by type of storage, as in `object_store` and Hadoop.

This module knows only names, their aliases and meanings; the Rust core interprets the values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Meanings: TypeAlias = Mapping[tuple[str, ...], str]
"""Options of one purpose, with what they mean. The reference page lists them in this order."""

CLIENT_MEANINGS: Meanings = {
    ("timeout", "connect_timeout", "read_timeout", "pool_idle_timeout"): "durations such as `30s`",
    ("retry_timeout", "max_retries"): (
        "how many seconds, and how many times at most, pyhudi retries a request: 180, and as often "
        "as fits. `0` retries nothing"
    ),
    (
        "proxy_url",
        "proxy_ca_certificate",
        "proxy_excludes",
        "allow_invalid_certificates",
        "http1_only",
        "pool_max_idle_per_host",
        "user_agent",
    ): "the connection",
}
_AWS: Meanings = {
    ("access_key_id", "secret_access_key", "session_token"): "the credentials",
    ("region", "default_region"): "default `us-east-1`",
    ("endpoint_url", "endpoint_url_s3"): (
        "the server, if it is not AWS: `https://minio.example:9000`"
    ),
    ("allow_http",): "`true` for a server without TLS",
    ("virtual_hosted_style_request",): "`true` if the bucket is part of the host name",
    ("skip_signature",): "`true` for a public bucket",
    ("role_arn", "role_session_name", "web_identity_token_file", "endpoint_url_sts"): (
        "a role by web identity, as on Kubernetes"
    ),
    (
        "container_credentials_relative_uri",
        "container_credentials_full_uri",
        "container_authorization_token_file",
        "metadata_endpoint",
        "imdsv1_fallback",
    ): "credentials of the container or the machine",
    (
        "server_side_encryption",
        "sse_kms_key_id",
        "sse_bucket_key_enabled",
        "sse_customer_key_base64",
    ): "encryption at rest",
    (
        "unsigned_payload",
        "checksum_algorithm",
        "disable_tagging",
        "disable_bulk_delete",
        "request_payer",
        "s3_express",
    ): "requirements of a particular server",
}
_GOOGLE: Meanings = {
    ("service_account",): "the file of a service account",
    ("service_account_key",): "the content of that file",
    ("application_credentials",): (
        "a credentials file of either type, such as that of `gcloud auth application-default login`"
    ),
    ("bearer_token",): "a token; pyhudi does not renew it",
    ("skip_signature",): "`true` to read a public bucket",
    ("base_url",): "the address of an emulator, without TLS",
    ("allow_http",): "`false` if the emulator uses TLS",
}
_AZURE: Meanings = {
    ("storage_account_name",): (
        "the account. You must pass it if the location does not name it. You get an error if the "
        "location names another one"
    ),
    ("storage_account_key",): "the account's key (`access_key`)",
    ("storage_sas_key",): "a shared access signature (`sas_token`)",
    ("storage_token",): "a bearer token; pyhudi does not renew it",
    (
        "storage_client_id",
        "storage_client_secret",
        "storage_tenant_id",
        "storage_authority_host",
    ): "a service principal",
    ("federated_token_file",): "a workload identity, as on Kubernetes; with client and tenant",
    ("msi_endpoint", "object_id", "msi_resource_id"): "the machine's managed identity",
    ("use_azure_cli",): "`true` to ask the program `az`",
    ("credential_type",): (
        "which credentials to use if several are present: `access_key`, `sas_token`, "
        "`client_secret`, …"
    ),
    ("skip_signature",): "`true` to read a public container",
    ("storage_endpoint", "allow_http", "storage_use_emulator"): (
        "the server, if it is not the account's own: a proxy, Azurite"
    ),
    ("storage_encryption_key",): "a customer-managed encryption key",
    (
        "use_fabric_endpoint",
        "fabric_token_service_url",
        "fabric_workload_host",
        "fabric_session_token",
        "fabric_cluster_identifier",
    ): "OneLake, if the location does not say so",
    ("disable_tagging",): "requirements of a particular server",
}
_HADOOP: Meanings = {
    ("user_name",): (
        "the user (`user`), on a cluster without Kerberos; default: the user of the system"
    ),
    ("conf_dir",): (
        "the directory of `core-site.xml` and `hdfs-site.xml`; default: `etc/hadoop` in "
        "`HADOOP_HOME`"
    ),
}


def _with_prefix(meanings: Meanings, prefix: str) -> dict[tuple[str, ...], str]:
    """Return the options by their full names."""
    return {tuple(prefix + name for name in names): text for names, text in meanings.items()}


AWS_MEANINGS, GOOGLE_MEANINGS = _with_prefix(_AWS, "aws_"), _with_prefix(_GOOGLE, "google_")
AZURE_MEANINGS, HADOOP_MEANINGS = _with_prefix(_AZURE, "azure_"), _with_prefix(_HADOOP, "hadoop_")


def _names(*groups: Meanings) -> Iterator[str]:
    for group in groups:
        for names in group:
            yield from names


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
    frozenset(_names(AWS_MEANINGS, CLIENT_MEANINGS)),
    ("aws_",),
    {"endpoint": "endpoint_url", "token": "session_token"},
    frozenset(("bucket", "bucket_name")),
)
GCS = Names(
    frozenset(_names(GOOGLE_MEANINGS, CLIENT_MEANINGS)),
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
    frozenset(_names(AZURE_MEANINGS, CLIENT_MEANINGS)),
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
    frozenset((*_names(HADOOP_MEANINGS), "max_retries", "retry_timeout")),
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
