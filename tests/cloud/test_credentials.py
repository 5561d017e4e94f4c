"""Who a request is from, beyond one secret: files, the machine, and what goes out of date."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from pathlib import Path
from urllib.parse import urlencode

import pytest

import pyhudi
from pyhudi.errors import ConfigError, StorageError
from pyhudi.storage.storage import Storage
from tests.cloud.conftest import Bucket
from tests.helpers.azure import server as azure
from tests.helpers.gcs.server import GcsServer

gcs = pytest.mark.parametrize("bucket", ["gcs"], indirect=True)
of_azure = pytest.mark.parametrize("bucket", ["azure"], indirect=True)


def reads(uri: str, options: dict[str, str]) -> None:
    """Writes and reads a file."""
    storage = Storage(uri, options)
    storage.put("a", b"1")
    assert storage.read("a") == b"1"


@gcs
def test_gcs_service_account_opens_table(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(bucket.server, GcsServer)
    file = bucket.server.account
    reads(bucket.uri("t"), {"google_service_account": str(file)})
    reads(bucket.uri("t"), {"service_account_key": file.read_text()})
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    reads(bucket.uri("t"), {"google_base_url": bucket.server.url})
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", f"{file}.not-there")
    with pytest.raises(ConfigError, match="not-there"):
        Storage(bucket.uri("t")).list()


def test_tokens_of_a_machine_are_asked_for_anew(
    tmp_path: Path, no_variables: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = GcsServer(tmp_path, lifetime="1s")
    try:
        server.make_bucket("bucket")
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("GCE_METADATA_HOST", server.url.removeprefix("http://"))
        storage = Storage("gs://bucket/t", {"google_base_url": server.url})
        storage.put("a", b"1")
        time.sleep(1.1)
        assert storage.read("a") == b"1"
    finally:
        server.close()


def signature(container: str) -> str:
    """A shared access signature for all in a container, for an hour."""
    end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    version, rights = "2020-12-06", "racwdl"
    resource = f"/blob/{azure.ACCOUNT}/{container}"
    signed = [rights, "", end, resource, "", "", "", version, "c", *[""] * 7]
    digest = hmac.digest(base64.b64decode(azure.KEY), "\n".join(signed).encode(), hashlib.sha256)
    facts = {"sp": rights, "se": end, "sv": version, "sr": "c"}
    return urlencode({**facts, "sig": base64.b64encode(digest).decode()})


@of_azure
def test_azure_shared_access_signature_opens_table(bucket: Bucket) -> None:
    options = {**bucket.options, "azure_storage_sas_token": signature(bucket.name)}
    del options["azure_storage_account_key"]
    reads(bucket.uri("t"), options)
    storage = bucket.storage("t")
    storage.put("b/c", b"1")
    Storage(bucket.uri("t"), options).delete_dir("b")
    assert [file.path for file in storage.list()] == ["a"]
    wrong = {**options, "azure_storage_sas_token": signature("another")}
    with pytest.raises(StorageError) as caught:
        Storage(bucket.uri("t"), wrong).read("a")
    assert "sig=" not in str(caught.value)


@of_azure
def test_azure_container_names_mean_one_location(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.storage("t").put("a", b"1")
    account = f"{bucket.name}@{azure.ACCOUNT}"
    for uri in (
        f"abfs://{account}.dfs.core.windows.net/t",
        f"wasb://{account}.blob.core.windows.net/t",
        f"abfss://{account}.dfs.core.chinacloudapi.cn/t",
        f"az://{bucket.name}/t",
        f"abfss://{bucket.name}/t",
    ):
        assert Storage(uri, bucket.options).read("a") == b"1"
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "another")
    options = {name: value for name, value in bucket.options.items() if "name" not in name}
    assert Storage(bucket.uri("t"), options).read("a") == b"1"
    with pytest.raises(ConfigError, match="account lake"):
        pyhudi.open_table(bucket.uri("t"), storage_options={**options, "account_name": "another"})


@of_azure
def test_azure_emulator_opens_by_name(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.storage("t").put("a", b"1")
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", bucket.server.url.rpartition("/")[0])
    options = {"use_emulator": True, "account_key": azure.KEY, "account_name": azure.ACCOUNT}
    assert Storage(f"az://{bucket.name}/t", options).read("a") == b"1"
    # Without a name it is the emulator's own account.
    uri = f"az://{bucket.name}/t"
    assert Storage(uri, {"use_emulator": "yes"}).native.uri == uri
