"""Column names are case-sensitive, and the error of another case names the column that is meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.errors import HudiError

ROWS = pa.table({"Id": ["a", "b"], "Fare": [1.0, 2.0], "ts": [1, 1], "City": ["x", "y"]})
OTHER_CASE = ROWS.rename_columns(["Id", "fare", "ts", "City"])
KEY_CASE = ROWS.rename_columns(["id", "Fare", "ts", "City"])

CALLS: dict[str, tuple[Callable[[HudiTable], Any], str]] = {
    "upsert": (lambda table: table.upsert(OTHER_CASE), "Fare"),
    "upsert_dicts": (lambda table: table.upsert(OTHER_CASE.to_pylist()), "Fare"),
    "upsert_merge": (lambda table: table.upsert(OTHER_CASE, schema_mode="merge"), "Fare"),
    "partial": (lambda table: table.upsert(OTHER_CASE, partial=True), "Fare"),
    "insert": (lambda table: table.insert(OTHER_CASE), "Fare"),
    "bulk_insert": (lambda table: table.bulk_insert(OTHER_CASE), "Fare"),
    "sort_columns": (
        lambda table: table.bulk_insert(ROWS, sort="global", sort_columns=["fare"]),
        "Fare",
    ),
    "overwrite": (lambda table: table.overwrite(OTHER_CASE), "Fare"),
    "overwrite_partitions": (lambda table: table.overwrite_partitions(OTHER_CASE), "Fare"),
    "delete_keys": (lambda table: table.delete_keys(KEY_CASE.select(["id"])), "Id"),
    "delete_partitions": (lambda table: table.delete_partitions([{"city": "x"}]), "City"),
    "delete": (lambda table: table.delete("fare > 1"), "Fare"),
    "update": (lambda table: table.update("Id = 'a'", {"fare": 1.0}), "Fare"),
    "merge": (lambda table: table.merge(KEY_CASE).when_matched_delete().execute(), "id"),
    "scan_columns": (lambda table: table.scan(columns=["fare"]), "Fare"),
    "scan_where": (lambda table: table.scan(where="fare > 1"), "Fare"),
    "alter": (lambda table: table.alter().drop_column("fare").execute(), "Fare"),
    "cluster": (lambda table: table.cluster(sort_by="fare"), "Fare"),
    "create_key": (lambda table: create(table, key="id"), "Id"),
    "create_partition": (lambda table: create(table, key="Id", partition_by="city"), "City"),
    "create_order": (lambda table: create(table, key="Id", order_by="TS"), "ts"),
}


def create(table: HudiTable, **arguments: Any) -> HudiTable:
    return pyhudi.create_table(f"{table.uri}_2", ROWS, **arguments)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> HudiTable:
    base: Path = tmp_path_factory.mktemp("case") / "t"
    return pyhudi.create_table(base, ROWS, key="Id", order_by="ts", partition_by="City")


@pytest.mark.parametrize("call", CALLS)
def test_error_of_another_case_names_the_column(table: HudiTable, call: str) -> None:
    run, column = CALLS[call]
    with pytest.raises(HudiError) as error:
        run(table)
    assert f"'{column}'" in error.value.hint
    assert len(table.history()) == 1
