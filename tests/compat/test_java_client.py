"""pyhudi and Hudi's Java client write one table in turn; Hudi on Spark reads it, too."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.errors import MetadataTableWarning
from tests.helpers.java_client.client import RELEASES, JavaClient
from tests.helpers.java_lines import JavaError
from tests.helpers.oracle.client import HudiOracle

Model = dict[str, int]
"""Key to value."""

FIELDS = {"id": "string", "city": "string", "v": "int", "ts": "long", "note": "string"}
TAGS = {"type": "array", "items": ["null", "string"]}
SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "trip",
        "fields": [
            {"name": name, "type": ["null", kind], "default": None}
            for name, kind in [*FIELDS.items(), ("tags", TAGS)]
        ],
    }
)
INDEXED = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
}

pytestmark = [
    pytest.mark.hudi("1.2.0"),
    pytest.mark.parametrize("client", RELEASES, indirect=True),
    pytest.mark.parametrize("version", [6, 8, 9]),
    pytest.mark.parametrize("kind", ["cow", "mor"]),
]


@pytest.fixture(scope="module")
def client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[JavaClient]:
    client = JavaClient(request.param, tmp_path_factory.mktemp("java_client"))
    yield client
    client.close()


def rows(numbers: Sequence[int], v: int) -> pa.Table:
    """Rows of value `v`, ordered by it."""
    return pa.table(
        {
            "id": [f"k{number:02}" for number in numbers],
            "city": [("oslo", "rome")[number % 2] for number in numbers],
            "v": pa.array([v] * len(numbers), pa.int32()),
            "ts": pa.array([v] * len(numbers), pa.int64()),
            "note": [None if number % 3 == 0 else "ü" for number in numbers],
            "tags": [["a", "b"][: number % 3] for number in numbers],
        }
    )


def create(base: Path, version: int, kind: Any) -> HudiTable:
    """A table of pyhudi's defaults: its metadata table has a record index."""
    return pyhudi.create_table(
        base,
        rows(range(8), 1),
        key="id",
        partition_by="city",
        order_by="ts",
        type=kind,
        version=version,
    )


def values(numbers: Sequence[int], v: int) -> Model:
    return {f"k{number:02}": v for number in numbers}


def check(table: HudiTable, model: Model) -> None:
    """The model's rows; their other columns follow from the key and the value."""
    read = table.refresh().to_arrow().sort_by("id").to_pylist()
    numbers = {key: int(key[1:]) for key in model}
    expected = [rows([numbers[key]], model[key]).to_pylist()[0] for key in sorted(model)]
    assert read == expected


def compare(table: HudiTable, hudi: HudiOracle) -> None:
    """Hudi on Spark and pyhudi read the same rows, and files and metadata table agree."""
    result = table.check(deep=True)
    assert result.ok, result
    theirs = hudi.read(table.uri, meta=True)["rows"]
    ours = table.scan(meta_fields=True).to_arrow().sort_by("id").to_pylist()
    # In version 6, Hudi 1.x slices log files by modification times, and names other files.
    for row in (*theirs, *ours):
        row.pop("_hoodie_file_name")
    assert sorted(theirs, key=lambda row: str(row["id"])) == ours


def test_java_client_writes_between_writes_of_pyhudi(
    version: int, kind: Any, client: JavaClient, hudi: HudiOracle, tmp_path: Path
) -> None:
    table = create(tmp_path / "t", version, kind)
    partitions = table.config.metadata_partitions
    table.upsert(rows([1, 2, 8], 2))
    model = values(range(8), 1) | values([1, 2, 8], 2)

    assert client.upsert(table, rows([2, 3, 20], 3))
    check(table, model := model | values([2, 3, 20], 3))
    assert client.upsert(table, rows([2, 9], 1))  # k02 is late
    check(table, model := model | values([9], 1))
    assert client.delete(table, rows([4, 20], 4))
    del model["k04"], model["k20"]
    check(table, model)
    assert client.insert(table, rows([21], 4))
    check(table, model := model | values([21], 4))

    table.upsert(rows([3, 5, 21, 30], 5))
    table.delete("id = 'k06'")
    del model["k06"]
    check(table, model := model | values([3, 5, 21, 30], 5))

    if kind == "mor":
        (planned,) = table.compact(execute=False).scheduled
        table.upsert(rows([5, 31], 6))
        model |= values([5, 31], 6)
        assert client.run_compaction(table, planned) == planned
        check(table, model)
        assert client.compact(table)
        check(table, model)
    assert client.cluster(table)
    check(table, model)
    table.upsert(rows([1, 32], 7))
    assert client.clean(table)
    check(table, model := model | values([1, 32], 7))
    assert client.upsert(table, rows([32, 33], 8))
    check(table, model | values([32, 33], 8))
    assert table.config.metadata_partitions == partitions
    compare(table, hudi)


@pytest.mark.parametrize("indexed", [False, True])
def test_java_client_creates_table_that_pyhudi_writes(
    version: int,
    kind: str,
    indexed: bool,
    client: JavaClient,
    hudi: HudiOracle,
    tmp_path: Path,
) -> None:
    table = client.create(
        tmp_path / "t",
        SCHEMA,
        {
            "hoodie.table.name": "t",
            "hoodie.table.type": {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}[kind],
            "hoodie.table.version": str(version),
            "hoodie.table.recordkey.fields": "id",
            "hoodie.table.partition.fields": "city",
            "hoodie.table.ordering.fields": "ts",
            "hoodie.table.keygenerator.type": "SIMPLE",
            "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
        },
    )
    assert client.insert(table, rows(range(8), 1), INDEXED if indexed else {})
    check(table, model := values(range(8), 1))
    assert table.version == version
    assert ("record_index" in table.config.metadata_partitions) == indexed

    table.upsert(rows([1, 2, 8], 2))
    check(table, model := model | values([1, 2, 8], 2))
    assert client.upsert(table, rows([2, 3, 20], 3))
    table.delete("id = 'k06'")
    del model["k06"]
    check(table, model := model | values([2, 3, 20], 3))
    table.cluster()
    table.upsert(rows([2], 1))  # late
    assert client.upsert(table, rows([20], 2))
    check(table, model)
    compare(table, hudi)
    # The client writes no statistics of two of the meta columns of version 6.
    for row in table.scan(meta_fields=True).to_arrow().to_pylist():
        for column in ("_hoodie_file_name", "_hoodie_commit_seqno", "_hoodie_commit_time"):
            where = f"{column} = '{row[column]}'"
            assert row in table.scan(where=where, meta_fields=True).to_arrow().to_pylist()


def test_java_client_without_metadata_options_leaves_metadata_table_stale(
    version: int, kind: Any, client: JavaClient, hudi: HudiOracle, tmp_path: Path
) -> None:
    """A client of that default updates no metadata table; `hudi-java-client.md` documents this."""
    table = create(tmp_path / "t", version, kind)
    assert client.upsert(table, rows([1, 20], 2), {})
    with pytest.warns(MetadataTableWarning, match="out of date"):
        check(table, model := values(range(8), 1) | values([1, 20], 2))
    keys = {row["id"]: row["v"] for row in hudi.read(table.uri, metadata=True)["rows"]}
    assert keys == values(range(8), 1)
    assert "metadata_commit_missing" in {finding.kind for finding in table.check()}
    with pytest.warns(MetadataTableWarning, match="out of date"):
        table.upsert(rows([2], 3))
    check(table, model := model | values([2], 3))
    compare(table, hudi)

    for v in (4, 5):
        table.upsert(rows([1, 2], v))
        if kind == "mor":
            table.compact()
    table.upsert(rows([1, 2], 6))
    assert client.clean(table, {})
    check(table, model := model | values([1, 2], 6))
    assert {finding.kind for finding in table.check()} == {"metadata_extra_file"}
    table.rebuild_metadata()
    check(table, model)
    compare(table, hudi)


def test_java_client_upsert_into_small_file_drops_log_records(
    version: int, kind: Any, client: JavaClient, hudi: HudiOracle, tmp_path: Path
) -> None:
    """It writes a base file from the older one without its log files; so Hudi reads it, too."""
    table = create(tmp_path / "t", version, kind)
    table.upsert(rows([1], 2))
    assert client.upsert(table, rows([9], 3), options={"hoodie.parquet.small.file.limit": "100000"})
    model = values(range(8), 1) | values([9], 3)
    check(table, model if kind == "mor" else model | values([1], 2))
    theirs = hudi.read(table.uri)["rows"]
    assert (
        sorted(theirs, key=lambda row: str(row["id"])) == table.to_arrow().sort_by("id").to_pylist()
    )


def test_java_client_that_names_no_index_fails_once_and_drops_it(
    version: int, kind: Any, client: JavaClient, hudi: HudiOracle, tmp_path: Path
) -> None:
    """`hudi-java-client.md` documents this, too."""
    table = create(tmp_path / "t", version, kind)
    files_only = {"hoodie.metadata.enable": "true"}
    failure = "inflight metadata partitions|Number of file slices for partition column_stats"
    with pytest.raises(JavaError, match=failure):
        client.upsert(table, rows([1, 20], 2), files_only)
    check(table, values(range(8), 1))
    assert client.upsert(table, rows([1, 20], 2), files_only)
    check(table, values(range(8), 1) | values([1, 20], 2))
    assert table.config.metadata_partitions == ("files",)
    compare(table, hudi)
