"""Storage options: their names, and that no value is ever printed."""

from __future__ import annotations

import base64
import pickle

import pytest

import pyhudi
from pyhudi.errors import ConfigError, StorageError, UnsupportedTableFeature
from pyhudi.storage.option_names import AZURE, GCS, S3
from pyhudi.storage.options import check_no_credentials, check_storage_options, mask_credentials
from pyhudi.storage.storage import Storage

URI = "s3://bucket/table"
ACCOUNT = "abfss://container@account.dfs.core.windows.net/table"
KEY = base64.b64encode(bytes(32)).decode()
VALUES = {
    "aws_checksum_algorithm": "SHA256",
    "aws_server_side_encryption": "AES256",
    "aws_sse_customer_key_base64": KEY,
    "azure_storage_account_key": KEY,
    "azure_storage_account_name": "account",
    "azure_storage_authority_host": "https://login.example",
    "azure_storage_encryption_key": KEY,
    "azure_storage_endpoint": "https://account.example",
    "azure_storage_sas_key": "sv=1&sig=2",
    "azure_credential_type": "bearer_token",
    **dict.fromkeys(
        (
            "aws_container_credentials_full_uri",
            "aws_endpoint_url",
            "aws_endpoint_url_s3",
            "aws_endpoint_url_sts",
            "aws_metadata_endpoint",
            "azure_fabric_token_service_url",
            "azure_msi_endpoint",
        ),
        "http://localhost:1",
    ),
    "google_base_url": "https://storage.example",
    "max_retries": "3",
    "retry_timeout": "5",
    "proxy_url": "http://127.0.0.1:1",
    "pool_max_idle_per_host": "2",
}
OF_FILES = {"proxy_ca_certificate", "google_service_account", "google_application_credentials"}
"""What a client reads when it is made."""
NAMES = [
    (uri, name)
    for uri, names in ((URI, S3), ("gs://bucket/table", GCS), (ACCOUNT, AZURE))
    for name in sorted(names.full - OF_FILES)
]


@pytest.mark.parametrize(("uri", "name"), NAMES)
def test_storage_options_are_known_to_core(
    uri: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    is_time = "timeout" in name and name != "retry_timeout"
    switches = ("allow", "disable", "only", "enabled", "style", "skip", "unsigned", "fallback")
    is_switch = any(part in name for part in (*switches, "use_")) or name == "aws_s3_express"
    plain = "requester" if name == "aws_request_payer" else "text"
    if name == "google_service_account_key":
        plain = (
            '{"private_key": "", "private_key_id": "", "client_email": "", "disable_oauth": true}'
        )
    value = VALUES.get(name, "5s" if is_time else "false" if is_switch else plain)
    others = {
        URI: {"aws_access_key_id": "a", "aws_secret_access_key": "b"},
        ACCOUNT: {"azure_storage_token": "a"},
    }.get(uri, {})
    if name.startswith("aws_sse"):
        others["aws_server_side_encryption"] = "sse-c" if "customer" in name else "aws:kms"
    assert Storage(uri, {**others, name: value}).native.uri == uri


def test_short_and_large_names_are_the_same() -> None:
    given = {"AWS_ACCESS_KEY_ID": "a", "region": "r", "AWS_ALLOW_HTTP": True, "endpoint": "e"}
    assert dict(check_storage_options(URI, given)) == {
        "aws_access_key_id": "a",
        "aws_region": "r",
        "aws_allow_http": "true",
        "aws_endpoint_url": "e",
    }


def test_storage_providers_have_own_option_names() -> None:
    google = {"GOOGLE_SERVICE_ACCOUNT_PATH": "f", "token": "t", "allow_http": False}
    assert dict(check_storage_options("gs://b/t", google)) == {
        "google_service_account": "f",
        "google_bearer_token": "t",
        "google_allow_http": "false",
    }
    azure = {"access_key": "k", "AZURE_CLIENT_ID": "i", "azure_storage_skip_signature": True}
    assert dict(check_storage_options("az://c/t", azure)) == {
        "azure_storage_account_key": "k",
        "azure_storage_client_id": "i",
        "azure_skip_signature": "true",
    }
    for uri, near in (("gs://b/t", "google_base_url"), (ACCOUNT, "azure_storage_sas_key")):
        wrong = {f"{near[:-1]}x": "hidden"}
        with pytest.raises(ConfigError, match=near) as caught:
            Storage(uri, wrong)
        assert "hidden" not in str(caught.value)
    with pytest.raises(ConfigError, match="URI names the container"):
        Storage(ACCOUNT, {"azure_container_name": "c"})


def test_unknown_options_name_the_nearest() -> None:
    with pytest.raises(ConfigError, match="aws_secret_access_key") as caught:
        Storage("s3a://b/t", {"aws_secret_acces_key": "hidden"})
    assert "hidden" not in str(caught.value)
    with pytest.raises(ConfigError, match="retry_timeout"):
        Storage(URI, {"retry_timeouts": "1"})
    with pytest.raises(ConfigError, match="URI names the bucket"):
        Storage(URI, {"aws_bucket": "b"})
    with pytest.raises(ConfigError, match="twice"):
        Storage(URI, {"region": "a", "AWS_REGION": "b"})


def test_option_values_are_never_printed() -> None:
    storage = Storage(URI, {"aws_secret_access_key": "hidden", "aws_session_token": "hidden"})
    copy = pickle.loads(pickle.dumps(storage))  # noqa: S301
    assert dict(copy.options) == dict(storage.options)
    for one in (storage, copy):
        assert "hidden" not in f"{one!r}{one.options!r}{one.options}{vars(one)}"


def test_secret_value_is_hidden_in_parse_error() -> None:
    for uri, name in (
        (URI, "proxy_url"),
        ("gs://b/t", "service_account_key"),
        (ACCOUNT, "account_key"),
        (ACCOUNT, "sas_key"),
    ):
        with pytest.raises(ConfigError) as caught:
            Storage(uri, {name: "no value with hidden:hidden"}).native  # noqa: B018
        assert "hidden" not in str(caught.value)


def test_hadoop_properties_are_passed_unchanged() -> None:
    given = {
        "USER": "ada",
        "config_dir": "/etc",
        "dfs.client.socketTimeout": True,
        "max_retries": 1,
    }
    assert Storage("hdfs://name:1/t", given).options == {
        "hadoop_user_name": "ada",
        "hadoop_conf_dir": "/etc",
        "dfs.client.socketTimeout": "true",
        "max_retries": "1",
    }
    with pytest.raises(ConfigError, match="is unknown"):
        Storage("s3://bucket/t", {"dfs.client.x": "1"})


@pytest.mark.parametrize("scheme", ["gcs", "adl", "viewfs", "http"])
def test_unsupported_scheme_raises(scheme: str) -> None:
    with pytest.raises(UnsupportedTableFeature, match=f"'{scheme}'"):
        pyhudi.open_table(f"{scheme}://bucket/table")


@pytest.mark.parametrize("uri", ["s3://", "s3:///table", "s3:/bucket/table", "gs:///t", "az:///t"])
def test_uri_without_bucket_raises(uri: str) -> None:
    with pytest.raises(ConfigError, match="names no bucket"):
        pyhudi.open_table(uri)


def test_local_path_refuses_options() -> None:
    with pytest.raises(UnsupportedTableFeature, match="'aws_region'") as raised:
        pyhudi.open_table("/no/table", storage_options={"aws_region": "r"})
    assert raised.value.hint == "Leave storage_options out for local paths."


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("s3://AKIA:sec/r+et=@bucket/t", "s3://***@bucket/t"),
        ("S3A://AKIA:secret@bucket/t", "S3A://***@bucket/t"),
        ("gs://secret@bucket/t", "gs://***@bucket/t"),
        ("hdfs://me:secret@nn:8020/t", "hdfs://***@nn:8020/t"),
        ("https://me:secret@host/t", "https://***@host/t"),
    ],
)
def test_credentials_in_uri_raise_and_are_masked(uri: str, shown: str) -> None:
    with pytest.raises(ConfigError) as caught:
        pyhudi.open_table(uri)
    assert shown in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "sec/r" not in str(caught.value)
    assert mask_credentials(f"{uri},{uri}: lost") == f"{shown},{shown}: lost"


@pytest.mark.parametrize(
    "uri",
    [
        "abfss://container@account.dfs.core.windows.net/a:b@c",
        "hdfs://nn:8020/x@y/t",
        "hdfs://me@nn/t",
        "s3://bucket/a:b@c",
        "s3://arn:aws:s3:us-west-2:123456789012:accesspoint/p/t",
        "/data/a:b@c",
    ],
)
def test_credentials_check_accepts_other_uris(uri: str) -> None:
    assert mask_credentials(uri) == uri
    check_no_credentials(uri)


def test_credentials_in_endpoint_raise_and_are_masked() -> None:
    options = {"endpoint": "http://me:secret@127.0.0.1:1"}
    with pytest.raises(ConfigError, match=r"aws_endpoint.* contains credentials") as caught:
        Storage(URI, options)
    assert "secret" not in str(caught.value)
    Storage(URI, {"proxy_url": "http://me:secret@127.0.0.1:1"})


NO_URLS = ["localhost:9000", "http://localhost:99999", "http://host:x", "http://", "http:// x", ""]
SERVERS = [
    (URI, "aws_endpoint_url"),
    (URI, "aws_endpoint_url_s3"),
    (URI, "aws_endpoint_url_sts"),
    (URI, "aws_metadata_endpoint"),
    (URI, "aws_container_credentials_full_uri"),
    ("gs://bucket/table", "google_base_url"),
    (ACCOUNT, "azure_storage_endpoint"),
    (ACCOUNT, "azure_msi_endpoint"),
    (ACCOUNT, "azure_storage_authority_host"),
]


@pytest.mark.parametrize("value", NO_URLS)
@pytest.mark.parametrize(("uri", "name"), SERVERS)
def test_endpoint_without_url_raises(uri: str, name: str, value: str) -> None:
    """The clients accept any string, and panicked at the first request."""
    with pytest.raises(ConfigError, match=f"'{name}' is no URL: .*like http://localhost:9000"):
        _ = Storage(uri, {name: value}).native


def test_endpoint_of_the_environment_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "localhost:9000")
    with pytest.raises(ConfigError, match="'aws_endpoint_url' is no URL"):
        pyhudi.open_table(URI)


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        (URI, "aws_access_key_id"),
        (URI, "aws_session_token"),
        (URI, "aws_region"),
        ("gs://bucket/table", "google_bearer_token"),
        (ACCOUNT, "azure_storage_token"),
    ],
)
def test_value_with_line_break_raises(uri: str, name: str) -> None:
    """As of a secret that was read from a file with the end of its line."""
    with pytest.raises(ConfigError, match=f"'{name}' has a blank, a line break") as caught:
        _ = Storage(uri, {name: "hidden\n"}).native
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("bucket", ["a b", "a\n"])
def test_bucket_with_blank_raises(bucket: str) -> None:
    with pytest.raises(ConfigError, match="no name of a bucket"):
        _ = Storage(f"s3://{bucket}/table").native


def test_client_failure_raises_storage_error() -> None:
    """What no check of options knows ends in an error of the tree, too."""
    key = '{"private_key":"x","private_key_id":"y","client_email":"z","disable_oauth":true,%s}'
    given = {"service_account_key": key % '"gcs_base_url":"localhost:9000"', "max_retries": "0"}
    with pytest.raises(StorageError):
        pyhudi.open_table("gs://bucket/table", storage_options=given)
