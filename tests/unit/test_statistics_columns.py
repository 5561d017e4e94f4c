"""Which columns have statistics: those that were chosen, and no reader takes wrongly."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import UnsupportedTableFeature
from pyhudi.metadata.index_definitions import DEFAULT_PATH, index_definitions
from pyhudi.metadata.statistics_columns import columns_of_any_definition

ON = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
}
COLUMN_LIST = "hoodie.metadata.index.column.stats.column.list"
MOST = "hoodie.metadata.index.column.stats.max.columns.to.index"
UTC = dt.timezone.utc
ODD = pa.schema(
    {
        "id": pa.string(),
        "wide": pa.decimal128(18, 2),
        "deep": pa.decimal128(20, 16),
        "fits": pa.decimal128(17, 2),
        "ms": pa.timestamp("ms", "UTC"),
        "us": pa.timestamp("us", "UTC"),
        "city": pa.string(),
    }
)
UNTOLD = {"wide", "deep", "ms"}
"""Columns that statistics without types tell wrongly, or not at all."""
TOLD = {*ODD.names} - UNTOLD


def rows(key: str) -> pa.Table:
    at, one = dt.datetime(2024, 5, 5, tzinfo=UTC), Decimal(1)
    row = {"id": key, "wide": one, "deep": one, "fits": one, "ms": at, "us": at, "city": "x"}
    return pa.Table.from_pylist([row], ODD)


def made(path: Path, version: int, schema: pa.Schema = ODD, **options: str) -> pyhudi.HudiTable:
    named = {MOST if name == "most" else COLUMN_LIST: text for name, text in options.items()}
    return pyhudi.create_table(
        path, schema, key="id", partition_by="city", version=version, options={**ON, **named}
    )


def listed(table: pyhudi.HudiTable) -> set[str]:
    """The columns of the definition, as another handle finds them."""
    table = pyhudi.open_table(table.uri)
    columns = index_definitions(table.storage, table.config)["column_stats"].columns
    return {name for name in columns if not name.startswith("_hoodie_")}


def told(table: pyhudi.HudiTable) -> set[str]:
    """The columns of the table's schema that some file has statistics of."""
    table = pyhudi.open_table(table.uri)
    inspect = table.inspect
    return {n for n in table.schema.names if inspect.metadata("column_stats", n).num_rows}


# --- statistics that name no types ----------------------------------------------------------------


@pytest.mark.parametrize("version", [6, 8, 9])
def test_untyped_statistics_skip_unsupported_columns(tmp_path: Path, version: int) -> None:
    table = made(tmp_path / "t", version)
    table.insert(rows("a"))
    assert told(table) == ({*ODD.names} if version == 9 else TOLD)
    if version > 6:
        assert listed(table) == told(table)
    assert table.check(deep=True).findings == ()


@pytest.mark.parametrize("column", sorted(UNTOLD))
def test_untyped_statistics_refuse_named_unsupported_columns(tmp_path: Path, column: str) -> None:
    with pytest.raises(UnsupportedTableFeature, match=column) as raised:
        made(tmp_path / "t", 8, columns=column)
    assert "version 9" in raised.value.hint
    assert listed(made(tmp_path / "t", 9, columns=column)) == {column}


def test_versions_change_what_can_have_statistics(tmp_path: Path) -> None:
    table = made(tmp_path / "t", 6)
    table.insert(rows("a"))
    for to, columns in ((8, TOLD), (9, {*ODD.names}), (8, TOLD)):
        opened = pyhudi.open_table(table.uri)
        _ = opened.downgrade(to) if opened.config.version.code > to else opened.upgrade(to)
        assert listed(table) == columns
        pyhudi.open_table(table.uri).upsert(rows(f"b{to}"))
        assert told(table) == columns
        assert pyhudi.open_table(table.uri).check(deep=True).findings == ()


def test_columns_that_were_named_stay_so_in_another_version(tmp_path: Path) -> None:
    table = made(tmp_path / "t", 9, columns="id,wide,ms")
    table.insert(rows("a"))
    pyhudi.open_table(table.uri).downgrade(8)
    assert listed(table) == {"id"}
    pyhudi.open_table(table.uri).upsert(rows("b"))
    assert told(table) == {"id"}


def test_column_stats_definition_ignores_unsupported_columns(
    tmp_path: Path,
) -> None:
    """Hudi 1.0.2 lists times of milliseconds, and writes statistics of them."""
    table = made(tmp_path / "t", 8)
    definitions = json.loads(table.storage.read(DEFAULT_PATH))
    of_stats = definitions["indexDefinitions"]["column_stats"]
    of_stats["sourceFields"] = [*of_stats["sourceFields"][:3], *ODD.names]
    table.storage.put(DEFAULT_PATH, json.dumps(definitions).encode())
    table = pyhudi.open_table(table.uri)
    late = rows("a").append_column("tip", pa.array([1.0]))
    table.insert(late, schema_mode="merge")
    assert told(table) == {*TOLD, "ms", "tip"}
    assert table.check(deep=True).findings == ()
    table.rebuild_metadata()
    assert listed(table) == told(table) == {*TOLD, "tip"}


def test_statistics_that_hudi_wrote_go_with_their_file() -> None:
    assert columns_of_any_definition({}, ODD) == tuple(ODD.names)


# --- those that were chosen -----------------------------------------------------------------------

PLAIN = pa.schema({"id": pa.string(), "n": pa.int64(), "x": pa.float64(), "city": pa.string()})


def plain(key: str, **more: Any) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "n": 1, "x": 1.0, "city": "x", **more}])


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("options", [{"columns": "id,n"}, {"most": "2"}], ids=str)
def test_first_columns_that_were_chosen_are_all(
    tmp_path: Path, version: int, options: dict[str, str]
) -> None:
    table = made(tmp_path / "t", version, PLAIN, **options)
    table.insert(plain("a"))
    table = pyhudi.open_table(table.uri)
    table.upsert(plain("b", tip=1.0), schema_mode="merge")
    table.rebuild_metadata()
    table.upsert(plain("c", tip=1.0))
    assert listed(table) == told(table) == {"id", "n"}
    assert table.check(deep=True).findings == ()
    other = 17 - version
    _ = table.downgrade(other) if version > other else table.upgrade(other)
    pyhudi.open_table(table.uri).upsert(plain("d", tip=1.0))
    assert listed(table) == told(table) == {"id", "n"}


def test_index_over_first_columns_excludes_others(tmp_path: Path) -> None:
    table = made(tmp_path / "t", 9, PLAIN)
    table.drop_index("column_stats")
    table.create_index("column_stats", ["id"])
    table.insert(plain("a"))
    assert told(table) == {"id"}


def test_first_columns_of_definition_may_grow(tmp_path: Path) -> None:
    table = made(tmp_path / "t", 9, PLAIN, most="5")
    table.insert(plain("a"))
    table.upsert(plain("b", tip=1.0, tax=1.0), schema_mode="merge")
    assert told(table) == {*PLAIN.names, "tip"}


def test_first_columns_of_hudi_are_followed_by_others(tmp_path: Path) -> None:
    """Its definition does not say how they were chosen, and its next writer may list more."""
    table = made(tmp_path / "t", 9, PLAIN, columns="id,n")
    definitions = json.loads(table.storage.read(DEFAULT_PATH))
    definitions["indexDefinitions"]["column_stats"]["indexOptions"] = {}
    table.storage.put(DEFAULT_PATH, json.dumps(definitions).encode())
    pyhudi.open_table(table.uri).insert(plain("a"))
    assert told(table) == {*PLAIN.names}
