"""Expression indexes that pyhudi makes or keeps up: Hudi finds all rows by them, and goes on."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from tests.compat.test_alternating_writers import hudi_options
from tests.compat.test_metadata_writes import METADATA
from tests.compat.test_secondary_index import LOCK
from tests.helpers.oracle.client import HudiOracle

Row = dict[str, Any]
Kind = Literal["cow", "mor"]
SCHEMA = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("name", pa.string()), ("ts", pa.int64())]
)
DDL = "id string, city string, name string, ts long"
START, DAYS = 1_700_000_000, 5 * 86_400
MADE: dict[str, tuple[str, str, str, dict[str, str]]] = {
    "by_day": ("column_stats", "ts", "from_unixtime", {"format": "yyyy-MM-dd"}),
    "by_low": ("bloom_filters", "name", "lower", {}),
    "by_bounds": ("column_stats", "name", "lower", {}),
}
VERSION_8 = {
    "hoodie.write.table.version": "8",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.embed.timeline.server": "true",  # Hudi 1.2.0 fails without it under such an index.
}
ZONES = {"Pacific/Kiritimati": 14, "Pacific/Pago_Pago": -11}


def rows(*numbers: int, name: str | None = None, later: int = 0) -> list[Row]:
    return [
        {
            "id": f"k{n:03}",
            "city": ("oslo", "lima")[n % 2],
            "name": name or f"N{n}",
            "ts": START + n * DAYS + later,
        }
        for n in numbers
    ]


def upsert(base: Path, model: dict[str, Row], batch: list[Row]) -> None:
    pyhudi.open_table(str(base)).upsert(pa.Table.from_pylist(batch, SCHEMA))
    model.update({row["id"]: row for row in batch})


def day(row: Row, hours: int) -> str:
    moment = datetime.fromtimestamp(row["ts"], timezone.utc) + timedelta(hours=hours)
    return moment.strftime("%Y-%m-%d")


def asked(hudi: HudiOracle, base: Path, condition: str, zone: str) -> list[str]:
    conf = {
        "spark.sql.session.timeZone": zone,
        "hoodie.metadata.enable": "true",
        "hoodie.enable.data.skipping": "true",
    }
    answer = hudi.sql(base, f"SELECT id FROM {{table}} WHERE {condition}", conf)
    return sorted(row["id"] for row in answer["rows"])


def check(hudi: HudiOracle, base: Path, model: dict[str, Row], zone: str) -> None:
    """All rows by pyhudi; by Hudi those of some days and some names."""
    read = pyhudi.open_table(str(base)).scan().to_arrow().to_pylist()
    ordered = sorted(model.values(), key=lambda row: str(row["id"]))
    assert sorted(read, key=lambda row: str(row["id"])) == ordered
    for row in ordered[:8:3]:
        wanted = day(row, ZONES[zone])
        condition = f"from_unixtime(ts, 'yyyy-MM-dd') = '{wanted}'"
        same = [one["id"] for one in ordered if day(one, ZONES[zone]) == wanted]
        assert asked(hudi, base, condition, zone) == same, condition
    for name in ("n3", "upd", "ünï"):
        same = [one["id"] for one in ordered if one["name"].lower() == name]
        assert asked(hudi, base, f"lower(name) = '{name}'", zone) == same, name
    verdict = hudi.validate(base)
    assert verdict["ok"], verdict


def created(base: Path, model: dict[str, Row], version: int, kind: Kind) -> None:
    table = pyhudi.create_table(
        str(base),
        pa.Table.from_pylist(list(model.values()), SCHEMA),
        key="id",
        partition_by="city",
        order_by="ts",
        type=kind,
        version=version,
        options={"hoodie.table.name": "trips", "hoodie.metadata.enable": "false"},
    )
    table = pyhudi.open_table(table.uri)
    for name, (form, column, function, options) in MADE.items():
        if kind == "mor" and form == "bloom_filters":
            continue  # Hudi's own writes fail on log files then.
        table.create_index(form, [column], name=name, function=function, options=options)


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(("version", "hudi"), [(8, "1.0.2"), (9, "1.2.0")], indirect=["hudi"])
@pytest.mark.timeout(600)
def test_made_by_pyhudi(tmp_path: Path, hudi: HudiOracle, version: int, kind: Kind) -> None:
    base = tmp_path / "trips"
    model = {row["id"]: row for row in rows(*range(8))}
    created(base, model, version, kind)
    check(hudi, base, model, "Pacific/Kiritimati")
    upsert(base, model, [*rows(3, 12, name="Upd", later=7), *rows(5, name="ÜNÏ", later=9)])
    pyhudi.open_table(str(base)).delete(pc.field("id") == "k004")
    del model["k004"]
    check(hudi, base, model, "Pacific/Pago_Pago")


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("hudi", ["1.2.0"], indirect=["hudi"])
@pytest.mark.timeout(600)
def test_version_8_written_by_hudi_1_2(tmp_path: Path, hudi: HudiOracle, kind: Kind) -> None:
    """Hudi 1.2.0 needs the version of an index, which 1.0.2 does not store."""
    base = tmp_path / "trips"
    model = {row["id"]: row for row in rows(*range(8))}
    created(base, model, 8, kind)
    options = {**hudi_options(kind, partitioned=True), **METADATA, **VERSION_8}
    batch = rows(1, 14, name="Last", later=20)
    hudi.write(base, rows=batch, schema=DDL, operation="upsert", options=options)
    model.update({row["id"]: row for row in batch})
    upsert(base, model, rows(2, 15, name="Upd", later=30))
    check(hudi, base, model, "Pacific/Kiritimati")


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("hudi", ["1.0.2"], indirect=["hudi"])
@pytest.mark.timeout(600)
def test_made_by_hudi_and_written_in_turn(tmp_path: Path, hudi: HudiOracle, kind: Kind) -> None:
    base = tmp_path / "trips"
    model = {row["id"]: row for row in rows(*range(8))}
    options = {**hudi_options(kind, partitioned=True), **METADATA}
    first = list(model.values())
    hudi.write(base, rows=first, schema=DDL, options=options, mode="overwrite")
    create = (
        "CREATE INDEX by_day ON {table} USING column_stats(ts) "
        "OPTIONS (expr='from_unixtime', format='yyyy-MM-dd')"
    )
    hudi.sql(base, create, LOCK)
    upsert(base, model, rows(3, 12, name="Upd", later=7))
    batch = rows(1, 14, name="Last", later=20)
    hudi.write(base, rows=batch, schema=DDL, operation="upsert", options=options)
    model.update({row["id"]: row for row in batch})
    upsert(base, model, rows(2, 15, name="Upd", later=30))
    check(hudi, base, model, "Pacific/Kiritimati")
    assert "expr_index_by_day" in pyhudi.open_table(base).config.metadata_partitions
