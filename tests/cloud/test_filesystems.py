"""Tables of an S3 server that are opened with a filesystem object."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.fs
import pytest

import pyhudi
from tests.cloud.conftest import Bucket
from tests.helpers.s3.server import S3Server

ROWS = pa.table({"id": ["a", "b"], "fare": [1.0, 2.0]})


@pytest.mark.parametrize("bucket", ["s3"], indirect=True)
def test_open_table_takes_filesystems_of_pyarrow(bucket: Bucket) -> None:
    assert isinstance(bucket.server, S3Server)
    client = bucket.server.client
    path = f"{bucket.name}/trips"
    assert not pyhudi.table_exists(path, filesystem=client)
    table = pyhudi.create_table(path, ROWS, key="id", filesystem=client)
    assert table.uri == f"s3://{path}"
    table.upsert(pa.table({"id": ["b"], "fare": [3.0]}))
    below = pyarrow.fs.SubTreeFileSystem(bucket.name, client)
    for uri, filesystem in ((f"s3a://{path}", client), ("trips", below)):
        rows = pyhudi.open_table(uri, filesystem=filesystem).to_arrow().sort_by("id")
        assert rows["fare"].to_pylist() == [1.0, 3.0]
    wrong = pyarrow.fs.S3FileSystem(
        access_key="tests",
        secret_key="another",
        region="us-east-1",
        endpoint_override=bucket.server.url,
    )
    with pytest.raises(pyhudi.StorageError):
        pyhudi.open_table(path, filesystem=wrong)
    pyhudi.drop_table("trips", filesystem=below)
    assert not pyhudi.table_exists(path, filesystem=client)
