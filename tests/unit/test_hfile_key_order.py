"""Keys of the metadata table that bytes and UTF-16 units put in different orders.

`hfile_order_of_keys.zip` holds tables that Apache Hudi 1.2.0 wrote, whose HFiles are in the order
of UTF-16 units; pyhudi's are in that of bytes.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.api.table import HudiTable

OF_HUDI = Path(__file__).parents[1] / "fixtures" / "hfile_order_of_keys.zip"
KEYS = ["\uff21", "\U0001f600", "\uff22", "\U0001f601", "a", "b"]
"""Full-width letters, which come after emoji by UTF-16 units, and before them by bytes."""
COMPACTED = {"hoodie.metadata.compact.max.delta.commits": "1"}
ONE_GROUP = {
    "hoodie.metadata.record.index.min.filegroup.count": "1",
    "hoodie.metadata.record.index.max.filegroup.count": "1",
}


@pytest.fixture
def of_hudi(tmp_path: Path) -> Path:
    """The folder with Hudi's tables."""
    zipfile.ZipFile(OF_HUDI).extractall(tmp_path)
    return tmp_path


def listed(uri: Path) -> list[dict[str, Any]]:
    """The rows, without the metadata table."""
    table = pyhudi.open_table(uri, options={"hoodie.metadata.enable": "false"})
    rows: list[dict[str, Any]] = table.to_arrow().to_pylist()
    return rows


def check_look_ups(uri: Path, column: str) -> None:
    """Filters on a column give the rows that a scan without the metadata table has."""
    table, rows = pyhudi.open_table(uri), listed(uri)
    assert table.count() == len(rows)
    for row in rows:
        found = table.scan(where=[(column, "=", row[column])]).to_arrow()["k"].to_pylist()
        assert found == [row["k"]], f"{column} = {row[column]!r}"
    assert table.scan(where=[(column, "in", [row[column] for row in rows])]).count() == len(rows)


def orders(table: HudiTable) -> set[str]:
    """The orders of the base files of its metadata table, where they matter."""
    folder = Path(table.uri) / ".hoodie" / "metadata"
    found: set[str] = set()
    for path in folder.glob("*/*.hfile"):
        store = _native.Store(str(path.parent), {})
        found.add(_native.hfile_order(store, path.name) or "")
    return found - {""}


def kinds(table: HudiTable) -> dict[str, str]:
    return {finding.kind: finding.severity for finding in table.check(deep=True)}


@pytest.mark.parametrize(
    ("name", "column"),
    [("keys_v6", "k"), ("keys_v9", "k"), ("parts_v6", "p"), ("parts_v6", "k"), ("titles_v9", "t")],
)
def test_hfile_lookups_in_tables_of_hudi(of_hudi: Path, name: str, column: str) -> None:
    check_look_ups(of_hudi / name, column)


@pytest.mark.parametrize("name", ["keys_v6", "keys_v9"])
def test_hfile_lookups_of_writes_in_hudis_record_index(of_hudi: Path, name: str) -> None:
    uri = of_hudi / name
    pyhudi.open_table(uri).delete_keys(["\uff21"])
    pyhudi.open_table(uri).delete("k = '\uff22'")
    pyhudi.open_table(uri).upsert(
        pa.table({"k": ["\U0001f600", "b"], "n": pa.array([7, 7], pa.int32())})
    )
    rows = sorted((row["k"], row["n"]) for row in listed(uri))
    assert rows == [("a", 1), ("b", 7), ("\U0001f600", 7), ("\U0001f601", 1)]


def test_check_reports_files_in_which_hudi_misses_keys(of_hudi: Path) -> None:
    table = pyhudi.open_table(of_hudi / "keys_v9")
    (finding,) = table.check(deep=True)
    assert (finding.kind, finding.severity) == ("metadata_key_order", "warning")
    assert finding.item.startswith("record_index/record-index-0000-0_")
    assert finding.found == "the order of UTF-16"
    assert table.check().ok


@pytest.mark.parametrize(("name", "column"), [("keys_v9", "k"), ("parts_v6", "p")])
def test_compaction_merges_what_hudi_wrote(of_hudi: Path, name: str, column: str) -> None:
    uri = of_hudi / name
    for number in range(3):
        row = {**listed(uri)[0], "n": number}
        new = {name: f"{value}\U0001f603{number}" for name, value in row.items() if name != "n"}
        types = pa.schema([(name, pa.int32() if name == "n" else pa.string()) for name in row])
        table = pyhudi.open_table(uri, options=COMPACTED)
        table.upsert(pa.Table.from_pylist([row, {**new, "n": number}], types))
    check_look_ups(uri, column)
    assert "bytes" in orders(pyhudi.open_table(uri))
    assert "error" not in kinds(pyhudi.open_table(uri)).values()


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("column", ["k", "p", "t"])
def test_hfile_lookups_in_compacted_tables_of_pyhudi(
    tmp_path: Path, version: int, column: str
) -> None:
    options = {**COMPACTED, **ONE_GROUP, "hoodie.metadata.record.index.enable": "true"}
    rows = {"k": KEYS, "n": pa.array([1] * len(KEYS), pa.int32())}
    rows |= dict.fromkeys({"p", "t"} & {column}, KEYS)
    table = pyhudi.create_table(
        tmp_path / "t",
        pa.table(rows),
        key="k",
        partition_by="p" if column == "p" else None,
        version=version,
        options=options,
    )
    if column == "t" and version > 6:
        table.create_index("secondary_index", ["t"], name="by_t")
    for n in (2, 3):
        last: dict[str, Sequence[Any]] = {name: values[-1:] for name, values in rows.items()}
        table.upsert(pa.table({**last, "n": pa.array([n], pa.int32())}))
    check_look_ups(tmp_path / "t", column)
    assert orders(table) == {"bytes"}
    assert set(kinds(table).items()) == {("metadata_key_order", "warning")}
