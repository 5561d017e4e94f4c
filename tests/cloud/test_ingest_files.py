"""`pyhudi.ingest` of files in a bucket, into a table in it."""

from __future__ import annotations

import gzip
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq

import pyhudi
from pyhudi import FileSource, ingest
from tests.cloud.conftest import Bucket


def test_ingest_reads_files_of_bucket(bucket: Bucket) -> None:
    landing = bucket.storage("landing")
    parquet = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2], "v": ["a", "b"]}), parquet)
    landing.put("one.parquet", parquet.getvalue())
    landing.put("day/two.json.gz", gzip.compress(b'{"id": 3, "v": "c"}\noops\n'))
    landing.put("_ignored.json", b'{"id": 9}')
    table = bucket.uri("table")
    source = FileSource(bucket.uri("landing"), storage_options=bucket.options)
    result = ingest(
        table,
        source,
        key="id",
        operation="insert",
        bad_records=bucket.uri("bad"),
        max_bad_records=1,
        storage_options=bucket.options,
    )
    assert (result.rows, result.bad_records) == (3, 1)
    landing.put("three.csv", b"id,v\n4,d\n")
    again = ingest(table, source, operation="insert", storage_options=bucket.options)
    assert again.rows == 1
    assert ingest(table, source, operation="insert", storage_options=bucket.options).rows == 0
    rows = pyhudi.open_table(table, storage_options=bucket.options).to_arrow().sort_by("id")
    assert rows["v"].to_pylist() == ["a", "b", "c", "d"]
    (bad,) = bucket.storage("bad").list()
    assert json.loads(bucket.storage("bad").read(bad.path))["record"] == "oops"
