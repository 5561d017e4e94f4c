"""ORC files of another writer, column by column; and those of ours, as two readers read them.

That of pyarrow, in C++, has both versions of runs. What Java's writer makes, golden tables show.
"""

from __future__ import annotations

import datetime as dt
import itertools
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from pyhudi import _native
from pyhudi.errors import CorruptTable, SchemaMismatch, UnsupportedTableFeature

UTC = dt.timezone.utc


def read(file: Path, schema: pa.Schema, **spec: Any) -> pa.Table:
    store = _native.Store(str(file.parent))
    reader, _ = _native.read_slice(
        store,
        base=file.name,
        logs=[],
        schema=schema.append(pa.field("key", pa.string())),
        merge_mode="COMMIT_TIME_ORDERING",
        key_fields=["key"],
        **{"columns": schema.names, **spec},
    )
    columns = spec.get("columns", schema.names)
    return pa.Table.from_batches(list(reader), pa.schema([schema.field(name) for name in columns]))


def longs(rng: random.Random, rows: int) -> list[int]:
    """Numbers of all kinds of runs: repeated, steady, rising, wide, and wide among small ones."""
    found: list[int] = []
    while len(found) < rows:
        start, count = rng.randrange(-(2 ** rng.randrange(1, 63)), 2**62), rng.randrange(1, 700)
        kind = rng.randrange(6)
        if kind == 0:
            found += [start] * count
        elif kind == 1:
            found += [start + step * rng.randrange(-9, 9) for step in range(count)][:count]
        elif kind == 2:
            step = rng.choice([1, -1, 3])
            found += [start // 4 + step * at for at in range(count)]
        elif kind == 3:
            at = start // 2
            for _ in range(count):
                at += rng.randrange(1000)
                found.append(at)
        elif kind == 4:
            found += [rng.randrange(-(2**63), 2**63) for _ in range(count)]
        else:
            found += [2**40 if rng.random() < 0.03 else rng.randrange(100) for _ in range(count)]
    return found[:rows]


def holes(rng: random.Random, values: list[Any], share: float) -> list[Any]:
    return [None if rng.random() < share else value for value in values]


def table_of(rng: random.Random, rows: int) -> pa.Table:
    share = rng.choice([0.0, 0.1, 0.9])
    wide = [longs(rng, rows), longs(rng, rows)]

    def of(kind: pa.DataType, make: Any) -> pa.Array[Any]:
        return pa.array(holes(rng, [make(at) for at in range(rows)], share), kind)

    text = [f"text {rng.randrange(10**6)}" for _ in range(rows)]
    # Its writer loses values beside nulls in a struct of a struct; Hudi's tables show those.
    nested = pa.struct(
        [("a", pa.int32()), ("b", pa.list_(pa.string())), ("c", pa.struct([("d", pa.float64())]))]
    )
    columns = {
        "flag": of(pa.bool_(), lambda _: rng.random() < 0.5),
        "tiny": of(pa.int8(), lambda at: wide[0][at] % 256 - 128),
        "small": of(pa.int16(), lambda at: wide[0][at] % 65536 - 32768),
        "i": of(pa.int32(), lambda at: wide[0][at] % 2**32 - 2**31),
        "l": of(pa.int64(), lambda at: wide[1][at]),
        "f": of(pa.float32(), lambda at: float(at) / 4),
        "d": of(pa.float64(), lambda _: rng.uniform(-1e9, 1e9)),
        "few": of(pa.string(), lambda at: ["", "é", "same"][at % 3]),
        "many": of(pa.string(), lambda at: text[at]),
        "bin": of(pa.binary(), lambda at: bytes([at % 256]) * (at % 5)),
        "day": of(pa.date32(), lambda at: wide[0][at] % 60000 - 30000),
        "dec": of(pa.decimal128(18, 3), lambda at: Decimal(wide[1][at] % 10**17).scaleb(-3)),
        "wide": of(pa.decimal128(38, 10), lambda at: Decimal(wide[1][at] * 10**9).scaleb(-10)),
        "at": of(pa.timestamp("us", "UTC"), lambda at: wide[1][at] % (2 * 10**15) + 10**9),
        "list": of(pa.list_(pa.int64()), lambda at: [at, None, wide[1][at]][: at % 4]),
        "map": of(pa.map_(pa.string(), pa.int32()), lambda at: [("k", at), ("l", None)][: at % 3]),
        "st": of(nested, lambda at: {"a": at, "b": ["x", None][: at % 3], "c": {"d": at / 8}}),
    }
    return pa.table(columns)


def as_read(table: pa.Table) -> pa.Table:
    """The table with whole numbers as Avro has them."""
    narrow = (pa.int8(), pa.int16())
    fields = [f.with_type(pa.int32()) if f.type in narrow else f for f in table.schema]
    return table.cast(pa.schema(fields))


@pytest.mark.parametrize("version", ["0.11", "0.12"])
@pytest.mark.parametrize("packed", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_orc_decodes_every_type_and_encoding(tmp_path: Path, version: str, packed: str) -> None:
    rng = random.Random(f"{version} {packed}")
    for number, rows in enumerate((1, 3000, 7001)):
        table = table_of(rng, rows)
        file = tmp_path / f"f{number}.orc"
        orc.write_table(
            table,
            file,
            file_version=version,
            compression=packed,
            compression_block_size=rng.choice([1 << 16, 1 << 18]),
            stripe_size=rng.choice([1 << 16, 1 << 26]),
            batch_size=512,
            dictionary_key_size_threshold=rng.choice([0.0, 0.8]),
        )
        expected = as_read(table)
        found = read(file, expected.schema, batch_rows=rng.choice([64, 4096]))
        for name in expected.column_names:
            assert found[name].to_pylist() == expected[name].to_pylist(), (name, rows)
        assert _native.base_file_rows(_native.Store(str(tmp_path)), file.name) == rows


def test_orc_reads_requested_columns_only(tmp_path: Path) -> None:
    table = as_read(table_of(random.Random(7), 500))
    file = tmp_path / "f.orc"
    orc.write_table(table, file)
    schema = table.schema.append(pa.field("new", pa.string()))
    found = read(file, schema, columns=["st", "new", "i"])
    assert found["st"].to_pylist() == table["st"].to_pylist()
    assert found["new"].null_count == 500
    assert found.column_names == ["st", "new", "i"]


def test_parts_are_all_rows_once(tmp_path: Path) -> None:
    table = pa.table({"n": pa.array(longs(random.Random(3), 200_000), pa.int64())})
    file = tmp_path / "f.orc"
    orc.write_table(table, file, stripe_size=1 << 16, compression="uncompressed", batch_size=1024)
    assert orc.ORCFile(file).nstripes > 3
    size, found = file.stat().st_size, []
    bounds = [0, size // 3, size // 2, None]
    for start, end in itertools.pairwise(bounds):
        found += read(file, table.schema, base_part=(start, end))["n"].to_pylist()
    assert found == table["n"].to_pylist()


TIMES = [
    "1900-01-01T00:00:00.000001",
    "1969-12-31T23:59:58",
    "1969-12-31T23:59:58.250000",
    "1970-01-01T00:00:00",
    "2014-12-31T23:59:59.999999",
    "2015-01-01T00:00:00.500000",
    "2262-01-01T00:00:00.123456",
]


def test_times_before_and_after_the_epochs(tmp_path: Path) -> None:
    times = [dt.datetime.fromisoformat(text).replace(tzinfo=UTC) for text in TIMES]
    table = pa.table({"at": pa.array(times, pa.timestamp("us", "UTC"))})
    orc.write_table(table, tmp_path / "f.orc")
    assert read(tmp_path / "f.orc", table.schema)["at"].to_pylist() == times


def test_damage_is_an_error_and_no_panic(tmp_path: Path) -> None:
    rng = random.Random(11)
    table = table_of(rng, 300)
    file = tmp_path / "f.orc"
    orc.write_table(table, file, compression="zlib")
    whole, schema = file.read_bytes(), as_read(table).schema
    unread = 0
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        if rng.random() < 0.1:
            del damaged[rng.randrange(len(damaged)) :]
        file.write_bytes(damaged)
        try:
            read(file, schema)
        except (CorruptTable, UnsupportedTableFeature) as error:
            unread += 1
            assert "f.orc" in str(error)  # noqa: PT017 - either outcome will do
    assert unread > 100


# --- written --------------------------------------------------------------------------------------

LEAF = pa.struct([("d", pa.float64()), ("e", pa.list_(pa.struct([("f", pa.string())])))])
DEEP = pa.struct([("a", pa.int32()), ("c", LEAF), ("m", pa.map_(pa.string(), LEAF))])


def stored_table(rng: random.Random, rows: int) -> pa.Table:
    """Of all types that are written; nulls at every level, runs and none."""
    table = as_read(table_of(rng, rows)).drop_columns(["at"])

    def leaf(at: int) -> Any:
        some = [None, {"f": None}, {"f": f"{at}"}, {"f": ""}]
        value = {"d": at / 4, "e": rng.choice([None, [], some[: at % 5]])}
        return rng.choice([None, value, value])

    def deep(at: int) -> Any:
        value = {"a": at, "c": leaf(at), "m": [(f"k{n}", leaf(n)) for n in range(at % 3)]}
        return rng.choice([None, value, value])

    more = {
        "deep": pa.array([deep(at) for at in range(rows)], DEEP),
        "lists": pa.array(
            [[None, [], [at, None]][: at % 4] for at in range(rows)], pa.list_(pa.list_(pa.int64()))
        ),
        "fixed": pa.array([bytes([at % 256] * 3) for at in range(rows)], pa.binary(3)),
        "none": pa.nulls(rows, pa.string()),
        "long": pa.array(
            [f"{at}" * (rng.randrange(9) == 0 and 90) for at in range(rows)], pa.string()
        ),
    }
    for name, column in more.items():
        table = table.append_column(name, column)
    return table


def write(file: Path, table: pa.Table, **spec: Any) -> _native.BaseFile:
    store = _native.Store(str(file.parent))
    return _native.write_base_file(
        store,
        file.name,
        table,
        **{
            "avro_schema": _native.avro_schema(table.schema, "r", "n"),
            "key_column": None,
            "codec": "gzip",
            "row_group_bytes": 1 << 26,
            "page_bytes": 1,
            "dictionary": False,
            "bloom_type": None,
            "bloom_entries": 64,
            "bloom_by_keys": True,
            "bloom_fpp": 1e-9,
            "bloom_max_entries": 1000,
            **spec,
        },
    )


@pytest.mark.parametrize("packed", ["uncompressed", "gzip", "snappy", "lz4_raw", "zstd"])
def test_orc_files_read_alike_in_two_readers(tmp_path: Path, packed: str) -> None:
    rng = random.Random(packed)
    for number, (rows, stripe) in enumerate([(0, 1), (1, 1), (3001, 1 << 15), (5000, 1 << 26)]):
        table, file = stored_table(rng, rows), tmp_path / f"f{number}.orc"
        # Slices of a table have offsets of their own.
        cut = pa.concat_tables([table.slice(0, rows // 3), table.slice(rows // 3)])
        written = write(file, cut, codec=packed, row_group_bytes=stripe)
        assert (written.rows, written.size) == (rows, file.stat().st_size)
        mine = read(file, table.schema, batch_rows=rng.choice([64, 4096]))
        opened = orc.ORCFile(file)
        theirs = opened.read()
        for name in table.column_names:
            expected = table[name].to_pylist()
            assert mine[name].to_pylist() == expected, (name, rows)
            assert theirs[name].to_pylist() == expected, (name, rows)
        assert opened.nrows == rows
        stripes = {0: opened.nstripes == 0, 1: opened.nstripes == 1, 3001: opened.nstripes > 3}
        assert stripes.get(rows, opened.nstripes == 1)
        assert opened.file_version == "0.12"


def test_runs_of_every_kind(tmp_path: Path) -> None:
    rng = random.Random(5)
    for rows in (1, 2, 3, 127, 128, 129, 130, 131, 1024, 1025, 20_000):
        numbers = longs(rng, rows)
        bits = list(itertools.islice(itertools.cycle([True] * 700 + [False, True] * 300), rows))
        columns = {"l": pa.array(numbers, pa.int64()), "flag": pa.array(bits)}
        table, file = pa.table(columns), tmp_path / f"f{rows}.orc"
        write(file, table)
        assert read(file, table.schema).to_pydict() == table.to_pydict()
        assert orc.read_table(file).to_pydict() == table.to_pydict()


def test_orc_metadata_of_hudi_is_written(tmp_path: Path) -> None:
    table = pa.table({"k": pa.array(["b", "a", "c"])})
    write(tmp_path / "f.orc", table, key_column="k", bloom_type="DYNAMIC_V0")
    kept = orc.ORCFile(tmp_path / "f.orc").metadata
    assert kept is not None
    assert kept[b"orc.avro.schema"] == _native.avro_schema(table.schema, "r", "n").encode()
    assert (kept[b"hoodie_min_record_key"], kept[b"hoodie_max_record_key"]) == (b"a", b"c")
    assert kept[b"hoodie_bloom_filter_type_code"] == b"DYNAMIC_V0"
    store = _native.Store(str(tmp_path))
    keys = pa.array(["a", "aa", "d"])
    assert _native.footer_candidates(store, "f.orc", keys).to_pylist() == [True, False, False]


def test_times_are_refused_by_name(tmp_path: Path) -> None:
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("ms"), pa.time64("us")):
        table = pa.table({"st": pa.nulls(1, pa.struct([("at", kind)]))})
        with pytest.raises(UnsupportedTableFeature, match=r"base\.file\.format ORC: column at"):
            write(tmp_path / "f.orc", table)
    assert not list(tmp_path.iterdir())


def test_orc_refuses_null_without_room(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    avro = _native.avro_schema(schema, "r", "n")
    with pytest.raises(SchemaMismatch, match="column n must not be null"):
        write(tmp_path / "f.orc", pa.table({"n": pa.nulls(1, pa.int64())}), avro_schema=avro)
    assert not list(tmp_path.iterdir())
