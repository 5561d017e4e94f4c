"""Storage options and locations that pyhudi takes from filesystem objects."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pytest

import pyhudi
from pyhudi.storage.filesystems import with_filesystem


def options(filesystem: Any, path: str = "bucket/trips") -> tuple[object, object]:
    return with_filesystem(path, None, filesystem)


def fsspec(name: str, *arguments: object, **settings: object) -> Any:
    """Return an object of the class of an fsspec implementation, which is not installed here.

    `make test-engines` checks the same settings with the implementations themselves.
    """
    module, _, kind = name.rpartition(".")
    made = type(kind, (SimpleNamespace,), {"__module__": module})
    return made(storage_args=arguments, storage_options=settings)


def test_open_table_takes_local_filesystems(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"]})
    local = pyarrow.fs.LocalFileSystem()
    pyhudi.create_table(tmp_path / "trips", rows, key="id", filesystem=local)
    below = pyarrow.fs.SubTreeFileSystem(str(tmp_path), local)
    assert pyhudi.open_table("trips", filesystem=below).count() == 1
    assert pyhudi.open_table((tmp_path / "trips").as_uri(), filesystem=local).count() == 1
    with pytest.raises(pyhudi.ConfigError, match="not a path below"):
        pyhudi.open_table("s3://bucket/trips", filesystem=below)
    with pytest.raises(pyhudi.ConfigError, match="not a location of pyarrow"):
        pyhudi.open_table("s3://bucket/trips", filesystem=local)
    with pytest.raises(pyhudi.ConfigError, match="both set"):
        pyhudi.open_table("trips", filesystem=local, storage_options={"region": "x"})


def test_with_filesystem_reads_pyarrow_objects() -> None:
    s3 = pyarrow.fs.S3FileSystem(
        access_key="k",
        secret_key="s",
        session_token="t",
        region="eu-west-1",
        endpoint_override="127.0.0.1:9000",
        scheme="http",
    )
    assert options(s3) == (
        "s3://bucket/trips",
        {
            "aws_access_key_id": "k",
            "aws_secret_access_key": "s",
            "aws_session_token": "t",
            "aws_region": "eu-west-1",
            "aws_endpoint_url": "http://127.0.0.1:9000",
            "aws_allow_http": "true",
        },
    )
    public = pyarrow.fs.S3FileSystem(anonymous=True, region="us-east-1")
    assert options(public)[1] == {"aws_skip_signature": "true", "aws_region": "us-east-1"}
    gcs = pyarrow.fs.GcsFileSystem(anonymous=True, scheme="http", endpoint_override="h:1")
    assert options(gcs) == (
        "gs://bucket/trips",
        {
            "google_skip_signature": "true",
            "google_base_url": "http://h:1",
            "google_allow_http": "true",
        },
    )


@pytest.mark.skipif(not hasattr(pyarrow.fs, "AzureFileSystem"), reason="not in this wheel")
def test_with_filesystem_reads_azure_of_pyarrow() -> None:
    azure = pyarrow.fs.AzureFileSystem("account", account_key="a2V5")
    assert options(azure) == (
        "az://bucket/trips",
        {"azure_storage_account_name": "account", "azure_storage_account_key": "a2V5"},
    )
    other = pyarrow.fs.AzureFileSystem(
        "account", account_key="a2V5", blob_storage_authority="127.0.0.1:10000"
    )
    with pytest.raises(pyhudi.ConfigError, match="'blob_storage_authority'"):
        options(other)


def test_with_filesystem_refuses_what_it_cannot_take() -> None:
    role = pyarrow.fs.S3FileSystem(role_arn="arn:aws:iam::1:role/r", region="us-east-1")
    with pytest.raises(pyhudi.ConfigError, match=r"(?s)setting 'role_arn'.*Pass storage_options"):
        options(role)
    proxied = pyarrow.fs.S3FileSystem(
        access_key="k", secret_key="s", region="x", proxy_options="http://proxy:8080"
    )
    with pytest.raises(pyhudi.ConfigError, match="'proxy_options'"):
        options(proxied)
    for other in (pyarrow.fs._MockFileSystem(), object(), "s3"):
        with pytest.raises(pyhudi.ConfigError, match="cannot use a filesystem of the class"):
            options(other)


S3FS = "s3fs.core.S3FileSystem"
GCSFS = "gcsfs.core.GCSFileSystem"
ADLFS = "adlfs.spec.AzureBlobFileSystem"


def test_with_filesystem_reads_fsspec_objects(tmp_path: Path) -> None:
    own = {"region_name": "eu-west-1"}
    s3 = fsspec(S3FS, key="k", secret="s", client_kwargs=own, use_listings_cache=False, token=None)
    keys = {"aws_access_key_id": "k", "aws_secret_access_key": "s", "aws_region": "eu-west-1"}
    assert options(s3) == ("s3://bucket/trips", keys)
    assert options(fsspec(S3FS, anon=True))[1] == {"aws_skip_signature": "true"}
    assert options(fsspec(S3FS))[1] is None
    account = {"type": "service_account", "project_id": "p"}
    gcs = fsspec(GCSFS, token=account, project="p")
    assert options(gcs) == (
        "gs://bucket/trips",
        {"google_service_account_key": json.dumps(account)},
    )
    file = tmp_path / "key.json"
    file.touch()
    assert options(fsspec(GCSFS, token=str(file)))[1] == {
        "google_application_credentials": str(file)
    }
    azure = fsspec(ADLFS, account_name="a", sas_token="t")
    assert options(azure, "abfs://container/trips") == (
        "abfs://container/trips",
        {"azure_storage_account_name": "a", "azure_storage_sas_key": "t"},
    )
    folder = fsspec("fsspec.implementations.dirfs.DirFileSystem")
    folder.path, folder.fs = "bucket/lake/", s3
    assert options(folder, "trips") == ("s3://bucket/lake/trips", keys)


@pytest.mark.parametrize(
    ("name", "settings", "setting"),
    [
        (S3FS, {"config_kwargs": {"read_timeout": 1}}, "config_kwargs"),
        (S3FS, {"profile": "dev"}, "profile"),
        (S3FS, {"client_kwargs": {"verify": False}}, "verify"),
        (GCSFS, {"token": object()}, "a token of this type"),
        (GCSFS, {"token": "browser"}, "a token of this type"),
        (ADLFS, {"connection_string": "secret"}, "connection_string"),
        (ADLFS, {"credential": object()}, "credential"),
    ],
)
def test_with_filesystem_names_settings_of_fsspec_without_an_option(
    name: str, settings: dict[str, object], setting: str
) -> None:
    with pytest.raises(pyhudi.ConfigError, match=setting) as caught:
        options(fsspec(name, **settings))
    assert "secret" not in str(caught.value)
    with pytest.raises(pyhudi.ConfigError, match="arguments without a name"):
        options(fsspec(name, "positional"))
