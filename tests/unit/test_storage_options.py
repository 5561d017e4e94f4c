"""Options of storage: their names, and that no value is ever shown."""

from __future__ import annotations

import base64
import pickle

import pytest

import pyhudi
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.storage.options import S3_OPTIONS, check_storage_options
from pyhudi.storage.storage import Storage

URI = "s3://bucket/table"
VALUES = {
    "aws_checksum_algorithm": "SHA256",
    "aws_server_side_encryption": "AES256",
    "aws_sse_customer_key_base64": base64.b64encode(bytes(32)).decode(),
    "max_retries": "3",
    "retry_timeout": "5",
    "proxy_url": "http://127.0.0.1:1",
    "pool_max_idle_per_host": "2",
}


@pytest.mark.parametrize("name", sorted(S3_OPTIONS - {"proxy_ca_certificate"}))
def test_the_core_knows_every_option(name: str) -> None:
    is_time = "timeout" in name and name != "retry_timeout"
    switches = ("allow", "disable", "only", "enabled", "style", "skip", "unsigned", "fallback")
    is_switch = any(part in name for part in switches) or name == "aws_s3_express"
    plain = "requester" if name == "aws_request_payer" else "text"
    value = VALUES.get(name, "5s" if is_time else "false" if is_switch else plain)
    others = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    if name.startswith("aws_sse"):
        others["aws_server_side_encryption"] = "sse-c" if "customer" in name else "aws:kms"
    assert Storage(URI, {**others, name: value}).native.uri == URI


def test_short_and_large_names_are_the_same() -> None:
    given = {"AWS_ACCESS_KEY_ID": "a", "region": "r", "AWS_ALLOW_HTTP": True, "endpoint": "e"}
    assert dict(check_storage_options(URI, given)) == {
        "aws_access_key_id": "a",
        "aws_region": "r",
        "aws_allow_http": "true",
        "aws_endpoint_url": "e",
    }


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


def test_values_are_never_shown() -> None:
    storage = Storage(URI, {"aws_secret_access_key": "hidden", "aws_session_token": "hidden"})
    copy = pickle.loads(pickle.dumps(storage))  # noqa: S301
    assert dict(copy.options) == dict(storage.options)
    for one in (storage, copy):
        assert "hidden" not in f"{one!r}{one.options!r}{one.options}{vars(one)}"


def test_a_value_that_cannot_be_parsed_is_not_told_when_it_is_secret() -> None:
    with pytest.raises(ConfigError) as caught:
        Storage(URI, {"proxy_url": "no url with hidden:hidden"}).native  # noqa: B018
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["gs", "az", "abfss", "hdfs", "http"])
def test_other_schemes_are_refused_by_name(scheme: str) -> None:
    with pytest.raises(UnsupportedTableFeature, match=f"'{scheme}'"):
        pyhudi.open_table(f"{scheme}://bucket/table")


@pytest.mark.parametrize("uri", ["s3://", "s3:///table", "s3:/bucket/table"])
def test_a_uri_without_a_bucket_is_refused(uri: str) -> None:
    with pytest.raises(ConfigError, match="names no bucket"):
        pyhudi.open_table(uri)


def test_a_local_path_has_no_options() -> None:
    with pytest.raises(UnsupportedTableFeature, match="'aws_region'"):
        pyhudi.open_table("/no/table", storage_options={"aws_region": "r"})
