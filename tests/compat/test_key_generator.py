"""Keys and partition paths as Apache Hudi makes them, for every generator and type.

Hudi writes a table; pyhudi makes the keys of the same rows again, and upserts them: no key may be
there twice, and Hudi's next upsert must find the rows, too. What Spark's row writer (`bulk_insert`)
renders otherwise than the record writers is left to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi.config.meta_columns import META_COLUMNS, PARTITION_PATH, RECORD_KEY
from pyhudi.config.table_config import TableConfig
from pyhudi.schema import key_generator
from pyhudi.schema.key_generator import add_keys, key_spec
from pyhudi.storage.storage import Storage
from tests.helpers.oracle.client import HudiOracle

DDL = (
    "id string, b boolean, i8 tinyint, i16 smallint, i int, l bigint, f float, d double, "
    "dec decimal(20,8), money decimal(5,2), dt date, ts timestamp, s string, "
    "nest struct<a:int,t:timestamp,d:date,s:string>, sec bigint, ms bigint, us bigint, day int, "
    "iso string, mix string, ord int"
)
PLAIN: dict[str, Any] = {
    "id": "k1",
    "b": True,
    "i8": -8,
    "i16": 300,
    "i": 7,
    "l": 1234567890123,
    "f": 1.1,
    "d": 1e10,
    "dec": "1.50000000",
    "money": "5.50",
    "dt": "2024-02-29",
    "ts": "2020-01-02T03:04:05.678901Z",
    "s": "x y/z:é",
    "nest": {"a": 1, "t": "2021-05-06T07:08:09.000000Z", "d": "1969-12-31", "s": "n"},
    "sec": 1578283932,
    "ms": 1578283932123,
    "us": 1578283932123456,
    "day": 18267,
    "iso": "2020-01-06T12:12:12.123+02:00",
    "mix": "2020-01-06",
    "ord": 1,
}
ROWS = [
    PLAIN,
    # A null struct is refused by Hudi where a key field lies in it.
    {"id": "k2", "ord": 1, "nest": {}},
    {
        **PLAIN,
        "id": "k3",
        "b": False,
        "i": -1,
        "l": 0,
        "f": 1e-5,
        "d": 0.001,
        "dec": "0.00000001",
        "money": "0.00",
        "dt": "1969-12-31",
        "ts": "1969-12-31T23:59:59.999999Z",
        "s": "",
        "nest": {"a": None, "t": None, "d": None, "s": ""},
        "sec": 0,
        "ms": -1,
        "us": -1,
        "day": 0,
        "iso": "1999-12-31T23:00:00Z",
        "mix": "20200107",
    },
    {
        **PLAIN,
        "id": "k4",
        "f": 3.4e38,
        "d": -123456789.125,
        "dec": "-12.34567890",
        "money": "-999.99",
        "dt": "9999-12-31",
        "ts": "2024-12-31T22:30:00.000000Z",
        "sec": 1735684200,
        "ms": 1735684200000,
        "us": 1735684200000000,
        "iso": "2024-12-31T22:30:00.000-0300",
        "mix": "2024-12-31",
    },
]
ALL = "b,i8,i16,i,l,f,d,dec,money,dt,ts,s,nest.a,nest.t,nest.d,nest.s"
TIME = "hoodie.keygen.timebased."
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
URL = {"hoodie.datasource.write.partitionpath.urlencode": "true"}


def timed(kind: str, output: str = "yyyy/MM/dd", **more: str) -> dict[str, str]:
    named = {TIME + name.replace("_", "."): value for name, value in more.items()}
    return {TIME + "timestamp.type": kind, TIME + "output.dateformat": output, **named}


@dataclass(frozen=True)
class Case:
    """A key generator with its fields."""

    generator: str
    key: str
    partition: str
    options: Mapping[str, str] = field(default_factory=dict)
    only: str = ""
    """The one release that has it; "" for all."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Without the row of nulls where the key would be null."""
        return [row for row in ROWS if all(row.get(name) for name in self.key.split(",")[:1])]


ISO = "yyyy-MM-dd'T'HH:mm:ssZ,yyyy-MM-dd'T'HH:mm:ss.SSSZ"
CASES = {
    "complex": Case("Complex", f"id,{ALL}", ALL, URL),
    "hive": Case("Complex", "id,s", "s,dt,money", {**HIVE, **URL}),
    "simple": Case("Simple", "money", "dt", HIVE),
    "flat": Case("Nonpartitioned", "id,l", ""),
    "seconds": Case(
        "TimestampBased",
        "id",
        "sec",
        timed("UNIX_TIMESTAMP", "yyyy-MM-dd HH", timezone="GMT+8:00"),
    ),
    "millis": Case(
        "TimestampBased",
        "id",
        "ms",
        timed("EPOCHMILLISECONDS", "yyyyMMdd HHmmss.SSS", output_timezone="America/New_York"),
    ),
    "days": Case(
        "TimestampBased",
        "id",
        "day",
        {**HIVE, **timed("SCALAR", timestamp_scalar_time_unit="days", timezone="UTC")},
    ),
    "texts": Case(
        "TimestampBased",
        "id",
        "iso",
        {
            **HIVE,
            **timed("DATE_STRING", "yyyyMMddHH", input_dateformat=ISO, output_timezone="GMT"),
        },
    ),
    "patterns": Case(
        "TimestampBased",
        "id",
        "mix",
        timed(
            "DATE_STRING",
            "yyyy/MM/dd HH",
            input_dateformat="yyyy-MM-dd,yyyyMMdd",
            input_timezone="Asia/Kolkata",
            output_timezone="UTC",
        ),
    ),
    "custom": Case(
        "Custom",
        "id",
        "s:SIMPLE,ms:TIMESTAMP,dt:simple",
        {**URL, **HIVE, **timed("EPOCHMILLISECONDS", timezone="UTC")},
    ),
    "slashes": Case(
        "Simple",
        "id",
        "dt",
        {"hoodie.datasource.write.slash.separated.date.partitioning": "true"},
        only="1.2.0",
    ),
}


def written_by_hudi(hudi: HudiOracle, base: Path, case: Case, version: int) -> dict[str, str]:
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": case.key,
        "hoodie.datasource.write.partitionpath.field": case.partition,
        "hoodie.datasource.write.precombine.field": "ord",
        "hoodie.datasource.write.keygenerator.class": (
            f"org.apache.hudi.keygen.{case.generator}KeyGenerator"
        ),
        "hoodie.index.type": "SIMPLE",
        "hoodie.metadata.enable": "false",
        "hoodie.embed.timeline.server": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.insert.shuffle.parallelism": "1",
        "hoodie.upsert.shuffle.parallelism": "1",
        "hoodie.write.auto.upgrade": "false",
        **case.options,
    }
    if hudi.hudi != "0.15.0":
        options["hoodie.write.table.version"] = str(version)
    hudi.write(base, rows=case.rows, schema=DDL, operation="insert", options=options)
    return options


def stored(base: Path) -> pa.Table:
    rows = pyhudi.open_table(str(base)).scan(meta_fields=True).to_arrow()
    return rows.sort_by("id")


def in_files(base: Path) -> pa.Table:
    """The rows as they lie in base files: reads take some partition columns from the path."""
    files = [path for path in base.rglob("*.parquet") if ".hoodie" not in path.parts]
    tables = [pq.ParquetFile(path).read() for path in files]
    return pa.concat_tables(tables).sort_by("id")


def keys_of(rows: pa.Table) -> list[tuple[str, str, str]]:
    columns = (rows.column(name).to_pylist() for name in ("id", RECORD_KEY, PARTITION_PATH))
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize(
    ("version", "hudi"), [(6, "0.15.0"), (8, "1.0.2"), (9, "1.2.0")], indirect=["hudi"]
)
@pytest.mark.timeout(900)
def test_keys_and_paths_are_those_of_hudi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, hudi: HudiOracle
) -> None:
    """Also of empty texts, which pyhudi refuses in partition columns: they are read as null."""
    monkeypatch.setattr(key_generator, "_check_not_null_path", lambda *_: None)
    for name, case in CASES.items():
        if case.only not in ("", hudi.hudi):
            continue
        base = tmp_path / name
        options = written_by_hudi(hudi, base, case, version)
        theirs = in_files(base)
        config = TableConfig.load(Storage(str(base)))
        given = {
            key: value
            for key, value in case.options.items()
            if key.startswith(TIME) or "slash" in key
        }
        if ":" in case.partition:
            given["hoodie.datasource.write.partitionpath.field"] = case.partition
        prefixed = theirs.column(RECORD_KEY)[0].as_py().startswith("id:")
        spec = key_spec(config, prefixed=prefixed, options=given)
        data = theirs.drop_columns(list(META_COLUMNS))
        assert keys_of(add_keys(data, spec)) == keys_of(theirs), name

        result = pyhudi.open_table(str(base), options=given).upsert(data)
        assert (result.rows_updated, result.rows_inserted) == (len(case.rows), 0), name
        if name in ("complex", "custom"):
            hudi.write(base, rows=case.rows, schema=DDL, operation="upsert", options=options)
        assert keys_of(stored(base)) == keys_of(theirs), name


@pytest.mark.parametrize(
    ("version", "hudi"), [(6, "0.15.0"), (8, "1.0.2"), (9, "1.2.0")], indirect=["hudi"]
)
@pytest.mark.timeout(900)
def test_tables_that_pyhudi_makes_are_written_on(
    tmp_path: Path, version: int, hudi: HudiOracle
) -> None:
    # 0.15.0 orders by `ts` unless told otherwise.
    rows = pa.table(
        {"id": ["a", "b"], "ms": [0, 1709209800000], "city": ["x y", None], "ts": [1, 1]}
    )
    ddl = "id string, ms bigint, city string, ts bigint"
    common = {
        "hoodie.index.type": "SIMPLE",
        "hoodie.metadata.enable": "false",
        "hoodie.embed.timeline.server": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.write.auto.upgrade": "false",
        "hoodie.table.name": "t",
    }
    # A slash within one of several partition values is more than Hudi can read.
    time = timed("EPOCHMILLISECONDS", "yyyyMMdd", timezone="UTC")

    base = tmp_path / "custom" / "t"
    pyhudi.create_table(
        str(base),
        rows,
        key="id",
        partition_by=["city:simple", "ms:timestamp"],
        version=version,
        options=time,
    )
    options = {
        **common,
        **time,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city:SIMPLE,ms:TIMESTAMP",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
    }
    mine = keys_of(stored(base))
    hudi.write(base, rows=rows.to_pylist(), schema=ddl, operation="upsert", options=options)
    assert keys_of(stored(base)) == mine
    assert hudi.read(base, metadata=False)["count"] == 2

    base = tmp_path / "generated" / "t"
    pyhudi.create_table(str(base), rows, key=None, partition_by="city", version=version)
    generated = {**common, "hoodie.datasource.write.partitionpath.field": "city"}
    hudi.write(base, rows=rows.to_pylist(), schema=ddl, operation="insert", options=generated)
    pyhudi.open_table(str(base)).insert(rows)
    keys = stored(base).column(RECORD_KEY).to_pylist()
    assert len(keys) == len(set(keys)) == 6
    assert all(key.count("_") == 2 for key in keys)
    assert hudi.read(base, metadata=False)["count"] == 6
