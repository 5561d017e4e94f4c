"""Storage options of filesystem objects that implementations of fsspec make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import adlfs
import gcsfs
import pyarrow as pa
import pyarrow.fs
import pytest
import s3fs
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

import pyhudi
from pyhudi.storage.filesystems import with_filesystem

KEYS = {"aws_access_key_id": "k", "aws_secret_access_key": "s", "aws_region": "eu-west-1"}


def s3() -> Any:
    return s3fs.S3FileSystem(key="k", secret="s", client_kwargs={"region_name": "eu-west-1"})


def test_with_filesystem_takes_settings_of_fsspec() -> None:
    handler = pyarrow.fs.FSSpecHandler(s3())
    for filesystem in (s3(), pyarrow.fs.PyFileSystem(handler)):
        assert with_filesystem("b/t", None, filesystem) == ("s3://b/t", KEYS)
    below = DirFileSystem(path="b/lake", fs=s3())
    assert with_filesystem("t", None, below) == ("s3://b/lake/t", KEYS)
    azure = adlfs.AzureBlobFileSystem(account_name="a", account_key="a2V5")
    account = {"azure_storage_account_name": "a", "azure_storage_account_key": "a2V5"}
    assert with_filesystem("c/t", None, azure) == ("az://c/t", account)
    public = gcsfs.GCSFileSystem(token="anon")
    assert with_filesystem("b/t", None, public) == ("gs://b/t", {"google_skip_signature": "true"})
    with pytest.raises(pyhudi.ConfigError, match="MemoryFileSystem"):
        with_filesystem("t", None, MemoryFileSystem())


def test_open_table_takes_local_filesystem_of_fsspec(tmp_path: Path) -> None:
    local = LocalFileSystem()
    pyhudi.create_table(tmp_path / "t", pa.table({"id": ["a"]}), key="id", filesystem=local)
    below = DirFileSystem(path=str(tmp_path), fs=local)
    assert pyhudi.open_table("t", filesystem=below).count() == 1
