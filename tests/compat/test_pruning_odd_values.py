"""Filters over values with odd statistics: pyhudi and Hudi, each with indexes and without.

The two write in turn, so statistics of both are met.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from tests.compat.test_alternating_writers import hudi_options
from tests.compat.test_metadata_writes import METADATA, STATISTICS
from tests.compat.test_write_base_float_bounds import READER
from tests.helpers.odd_values import (
    DDL,
    FILTERS,
    SCHEMA,
    Row,
    expected,
    first_rows,
    second_rows,
)
from tests.helpers.oracle.client import HudiOracle

Kind = Literal["cow", "mor"]
Found = dict[str, list[str]]
LETTERS = next(where for where in FILTERS if where.startswith("name <="))
ASKED = (
    "name LIKE 'a%'",
    LETTERS,
    "name >= 'zz'",
    "name IS NULL",
    "at < TIMESTAMP '1970-01-01 00:00:00'",
    "at >= TIMESTAMP '1970-01-01 00:00:00.001001'",
    "day = DATE '1969-12-31'",
    "ms = TIMESTAMP '1969-12-31 23:59:59.999'",
    "ms > TIMESTAMP '1970-01-01 00:00:00.001'",
    "price = -37037036.73",
    "price < 0",
    "nothing IS NULL",
    "nothing > 'a'",
    "f > 1",
    "f = 'NaN'",
    "f = 0",
    "f < 0",
)
"""Filters that Hudi is asked, too: each takes it a while."""
PLAIN = {"hoodie.parquet.dictionary.enabled": "false"}
"""Spark loses a -0.0 that is without 0.0 in a dictionary, of Hudi's files as well."""
WITHOUT = {"hoodie.metadata.enable": "false", "hoodie.enable.data.skipping": "false"}
WITH = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}


def by_pyhudi(base: Path, kind: Kind, batch: list[Row], schema: pa.Schema = SCHEMA) -> None:
    if not base.exists():
        pyhudi.create_table(
            base,
            schema,
            key="id",
            partition_by="city",
            order_by="ts",
            type=kind,
            options={"hoodie.table.name": "trips"},
        )
    pyhudi.open_table(base, options=PLAIN).upsert(pa.Table.from_pylist(batch, schema))


def by_hudi(hudi: HudiOracle, base: Path, kind: Kind, batch: list[Row]) -> None:
    options = {**hudi_options(kind, partitioned=True), **METADATA, **STATISTICS}
    how: dict[str, Any] = {"operation": "upsert"} if base.exists() else {"mode": "overwrite"}
    rows = [{name: _text(value) for name, value in one.items()} for one in batch]
    hudi.write(base, rows=rows, schema=DDL, options=options, **how)


def _text(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def of_pyhudi(base: Path, options: Mapping[str, str]) -> Found:
    found = {}
    for where in FILTERS:
        rows = pyhudi.open_table(base, options=options).scan(["id"], where=where).to_arrow()
        found[where] = sorted(rows["id"].to_pylist())
    return found


def of_hudi(hudi: HudiOracle, base: Path, options: Mapping[str, str]) -> Found:
    """By one query, in which each filter is pushed down by itself."""
    queries = [
        f"SELECT {number} AS q, id FROM {{table}} WHERE {where}"
        for number, where in enumerate(ASKED)
    ]
    conf = {"spark.sql.session.timeZone": "UTC", **READER, **options}
    found = hudi.sql(base, " UNION ALL ".join(queries), conf)["rows"]
    return {
        where: sorted(one["id"] for one in found if one["q"] == number)
        for number, where in enumerate(ASKED)
    }


def differing(found: Found, wanted: Found) -> dict[str, tuple[list[str], list[str]]]:
    return {where: (ids, wanted[where]) for where, ids in found.items() if ids != wanted[where]}


def known_of_hudi(where: str) -> bool:
    """Filters by which Hudi's data skipping loses rows: those of prefixes and of NaN."""
    return "LIKE" in where or where.startswith(("f ", "NOT (f "))


def check(hudi: HudiOracle, base: Path, rows: Mapping[str, Row]) -> dict[str, Any]:
    """All four ways; what Hudi loses by its data skipping."""
    wanted = expected(dict(rows))
    assert "column_stats" in pyhudi.open_table(base).config.metadata_partitions
    for options in (WITH, WITHOUT):
        assert differing(of_pyhudi(base, options), wanted) == {}
    assert differing(of_hudi(hudi, base, WITHOUT), wanted) == {}
    lost = differing(of_hudi(hudi, base, WITH), wanted)
    assert [where for where in lost if not known_of_hudi(where)] == []
    assert all(set(found) < set(ids) for found, ids in lost.values())
    return lost


@pytest.mark.hudi("1.2.0")
@pytest.mark.timeout(600)
def test_tables_of_pyhudi(tmp_path: Path, hudi: HudiOracle) -> None:
    base = tmp_path / "trips"
    rows = {}
    for batch in (first_rows(), second_rows()):
        by_pyhudi(base, "cow", batch)
        rows.update({one["id"]: one for one in batch})
    check(hudi, base, rows)


@pytest.mark.hudi("1.2.0")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", ["pyhudi", "hudi"])
def test_tables_of_both(tmp_path: Path, hudi: HudiOracle, first: str) -> None:
    """What Hudi loses it loses of a table that it wrote alone, too."""
    base = tmp_path / "trips"
    # Spark writes microseconds alone, and Hudi takes none for a column of milliseconds.
    at = SCHEMA.get_field_index("ms")
    micros = SCHEMA.set(at, SCHEMA.field(at).with_type(pa.timestamp("us", "UTC")))
    rows = {one["id"]: one for one in first_rows()}
    if first == "hudi":
        by_hudi(hudi, base, "cow", first_rows())
        lost = check(hudi, base, rows)
        assert lost["name LIKE 'a%'"] == (["k04", "k06"], ["k00", "k01", "k04", "k06"])
        assert {"f > 1", "f = 'NaN'"} <= set(lost)
        by_pyhudi(base, "cow", second_rows(), micros)
    else:
        by_pyhudi(base, "mor", first_rows(), micros)
        by_hudi(hudi, base, "mor", second_rows())
    check(hudi, base, rows | {one["id"]: one for one in second_rows()})
