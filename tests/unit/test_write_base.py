"""Base files follow the write options: Bloom filter, key range, sizes, old calendar dates."""

from __future__ import annotations

import datetime
import io
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi.errors import UnsupportedTableFeature


def written(base: Path, **options: str) -> pq.FileMetaData:
    data = pa.table({"id": [f"k{i:05}" for i in range(20000)], "city": ["oslo"] * 20000})
    named = {key.replace("_", "."): value for key, value in options.items()}
    pyhudi.create_table(base, data, key="id", options=named)
    (file,) = base.glob("*.parquet")
    return pq.read_metadata(file)


@pytest.mark.parametrize("kind", ["SIMPLE", "DYNAMIC_V0"])
def test_kind_of_bloom_filter_and_key_range(tmp_path: Path, kind: str) -> None:
    footer = written(tmp_path / "t", hoodie_bloom_index_filter_type=kind).metadata or {}
    assert footer[b"hoodie_bloom_filter_type_code"] == kind.encode()
    assert footer[b"hoodie_min_record_key"] == b"k00000"
    assert footer[b"hoodie_max_record_key"] == b"k19999"


@pytest.mark.parametrize("on", ["true", "false"])
def test_dictionary_encoding(tmp_path: Path, on: str) -> None:
    metadata = written(tmp_path / "t", hoodie_parquet_dictionary_enabled=on)
    columns = [metadata.row_group(0).column(at) for at in range(metadata.num_columns)]
    city = next(column for column in columns if column.path_in_schema == "city")
    assert ("RLE_DICTIONARY" in city.encodings) == (on == "true")


@pytest.mark.parametrize(("codec", "shown"), [("zstd", "ZSTD"), ("snappy", "SNAPPY")])
def test_codec(tmp_path: Path, codec: str, shown: str) -> None:
    metadata = written(tmp_path / "t", hoodie_parquet_compression_codec=codec)
    assert metadata.row_group(0).column(0).compression == shown


def test_page_size(tmp_path: Path) -> None:
    sizes = {}
    for pages in ("1000", "1000000"):
        table = tmp_path / pages
        written(table, hoodie_parquet_page_size=pages, hoodie_parquet_dictionary_enabled="false")
        (file,) = table.glob("*.parquet")
        sizes[pages] = file.stat().st_size
    assert sizes["1000"] > sizes["1000000"]


def old_file(base: Path, rows: pa.Table, mark: str = "legacyDateTime", **how: Any) -> None:
    """Has the table's only base file be one of Spark 2."""
    (path,) = base.glob("*.parquet")
    stored, footer = pq.read_table(path), dict(pq.read_metadata(path).metadata or {})
    for name in rows.column_names:
        at = stored.schema.get_field_index(name)
        field = stored.schema.field(at)
        stored = stored.set_column(at, field, rows.column(name).cast(field.type))
    with pq.ParquetWriter(path, stored.schema, store_schema=False, **how) as writer:
        writer.write_table(stored)
        writer.add_key_value_metadata({**footer, f"org.apache.spark.{mark}".encode(): b""})


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_days_by_the_old_calendar_keep_their_names(tmp_path: Path, kind: Any) -> None:
    """As Spark reads them; a rewrite has them as everybody else counts them."""
    base = tmp_path / "t"
    days = pa.array([-719_164, -171_655, -141_428, -141_427, 0], pa.int32()).cast(pa.date32())
    rows = pa.table({"id": list("abcde"), "day": days})
    options = {"pyhudi.read.check.file.sizes": "false"}
    pyhudi.create_table(base, rows, key="id", type=kind)
    old_file(base, rows)
    wanted = [
        datetime.date(1, 1, 1),
        datetime.date(1500, 1, 1),
        datetime.date(1582, 10, 4),
        datetime.date(1582, 10, 15),
        datetime.date(1970, 1, 1),
    ]
    table = pyhudi.open_table(base, options=options)
    assert table.scan().to_arrow().sort_by("id")["day"].to_pylist() == wanted
    assert table.scan(where="day = DATE '1500-01-01'").to_arrow()["id"].to_pylist() == ["b"]
    table.upsert(pa.table({"id": ["e"], "day": pa.array([1], pa.int32()).cast(pa.date32())}))
    if kind == "mor":
        pyhudi.open_table(base, options=options).compact()
    newest = max(base.glob("*.parquet"), key=lambda path: path.name.rsplit("_", 1)[1])
    stored = pq.read_table(newest, columns=["id", "day"]).sort_by("id")["day"].to_pylist()
    assert stored[:4] == wanted[:4]


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (pa.array([-2_208_988_800_000_001], pa.timestamp("us", "UTC")), "times before 1900"),
        (pa.array([[-141_428]], pa.list_(pa.int32())).cast(pa.list_(pa.date32())), "nested"),
        (pa.array([-719_165], pa.int32()).cast(pa.date32()), "the year 1"),
    ],
)
def test_julian_dates_are_refused_where_ambiguous(
    tmp_path: Path, value: pa.Array[Any], what: str
) -> None:
    base = tmp_path / "t"
    rows = pa.table({"id": ["a"], "x": value, "n": [1]})
    pyhudi.create_table(base, rows, key="id")
    old_file(base, rows)
    table = pyhudi.open_table(base, options={"pyhudi.read.check.file.sizes": "false"})
    assert table.scan(columns=["n"]).to_arrow().num_rows == 1
    with pytest.raises(UnsupportedTableFeature, match=rf"legacyDateTime.*parquet.*{what}"):
        table.scan().to_arrow()


@pytest.mark.parametrize("rebuilt", [False, True], ids=["told by others", "made anew"])
def test_statistics_of_the_old_calendar_leave_no_row_out(tmp_path: Path, rebuilt: bool) -> None:
    """Hudi's have the days that are stored, which are not those that are read."""
    base = tmp_path / "t"
    days = pa.array([-171_655, -171_655], pa.int32()).cast(pa.date32())
    rows = pa.table({"id": ["a", "b"], "day": days})
    pyhudi.create_table(base, rows, key="id")
    old_file(base, rows)
    table = pyhudi.open_table(base, options={"pyhudi.read.check.file.sizes": "false"})
    if rebuilt:
        table.rebuild_metadata()
    day = datetime.date(1500, 1, 1)
    assert table.scan(where="day = DATE '1500-01-01'").count() == 2
    assert table.scan(where="day > DATE '1500-01-05'").count() == 0
    assert table.scan().bounds("day") == (day, day)


def test_old_times_of_96_bits_have_a_mark_of_their_own(tmp_path: Path) -> None:
    times = pa.array([-2_208_988_800_000_001], pa.timestamp("us", "UTC"))
    rows = pa.table({"id": ["a"], "x": times})
    for mark, refused in (("legacyINT96", True), ("legacyDateTime", False)):
        base = tmp_path / mark
        pyhudi.create_table(base, rows, key="id")
        old_file(base, rows, mark, use_deprecated_int96_timestamps=True)
        table = pyhudi.open_table(base, options={"pyhudi.read.check.file.sizes": "false"})
        if refused:
            with pytest.raises(UnsupportedTableFeature, match=r"legacyINT96.*times before 1900"):
                table.scan().to_arrow()
        else:
            assert table.scan().to_arrow()["x"].to_pylist() == rows["x"].to_pylist()


def test_days_of_the_old_calendar_in_log_blocks(tmp_path: Path) -> None:
    options = {"hoodie.logfile.data.block.format": "parquet", "hoodie.metadata.enable": "false"}
    days = pa.array([0], pa.int32()).cast(pa.date32())
    table = pyhudi.create_table(
        tmp_path, pa.table({"id": ["a"], "day": days}), key="id", type="mor", options=options
    )
    old = pa.array([-171_655], pa.int32()).cast(pa.date32())
    table.upsert(pa.table({"id": ["a"], "day": old}))
    (log,) = tmp_path.glob(".*.log.*")
    data = log.read_bytes()
    at = data.index(b"PAR1")
    (size,) = struct.unpack(">q", data[at - 8 : at])
    block = pa.BufferReader(data[at : at + size])
    rows, footer = pq.read_table(block), dict(pq.read_metadata(block).metadata or {})
    marked = io.BytesIO()
    with pq.ParquetWriter(marked, rows.schema, store_schema=False) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({**footer, b"org.apache.spark.legacyDateTime": b""})
    content = marked.getvalue()
    more = len(content) - size
    length = struct.pack(">q", struct.unpack(">q", data[6:14])[0] + more)
    total = struct.pack(">q", struct.unpack(">q", data[-8:])[0] + more)
    head, tail = data[14 : at - 8], data[at + size : -8]
    parts = [data[:6], length, head, struct.pack(">q", len(content)), content, tail, total]
    log.write_bytes(b"".join(parts))
    found = pyhudi.open_table(tmp_path, options={"pyhudi.read.check.file.sizes": "false"})
    assert found.scan().to_arrow()["day"].to_pylist() == [datetime.date(1500, 1, 1)]


def test_bounds_of_numbers_are_none_of_their_texts(tmp_path: Path) -> None:
    """Of a file from before the column became text."""
    rows = pa.table({"id": ["a", "b", "c"], "x": ["9", "10", "55"]})
    pyhudi.create_table(tmp_path, rows, key="id")
    (path,) = tmp_path.glob("*.parquet")
    stored = pq.read_table(path)
    at = stored.schema.get_field_index("x")
    stored = stored.set_column(at, "x", stored["x"].cast(pa.int64()))
    footer = {
        key: text
        for key, text in (pq.read_metadata(path).metadata or {}).items()
        if b"hoodie" in key
    }
    with pq.ParquetWriter(path, stored.schema.remove_metadata(), store_schema=False) as writer:
        writer.write_table(stored)
        writer.add_key_value_metadata(footer)
    table = pyhudi.open_table(tmp_path, options={"pyhudi.read.check.file.sizes": "false"})
    table.rebuild_metadata()
    for text in ("9", "10", "55"):
        assert table.scan(where=f"x = '{text}'").count() == 1
    assert table.scan(where="x > '6'").count() == 1


def test_key_range_in_byte_order_keeps_every_key(tmp_path: Path) -> None:
    """As Hudi's row writer notes it, where others order keys as Java does."""
    base = tmp_path / "t"
    options = {"hoodie.index.type": "BLOOM", "hoodie.parquet.small.file.limit": "0"}
    options |= {"hoodie.metadata.enable": "false", "pyhudi.read.check.file.sizes": "false"}
    rows = pa.table({"id": ["\uff5e", "\U0001f600"], "n": [1, 2]})
    pyhudi.create_table(base, rows, key="id", options=options)
    (path,) = base.glob("*.parquet")
    stored, footer = pq.read_table(path), dict(pq.read_metadata(path).metadata or {})
    footer[b"hoodie_min_record_key"] = "\uff5e".encode()
    footer[b"hoodie_max_record_key"] = "\U0001f600".encode()
    with pq.ParquetWriter(path, stored.schema, store_schema=False) as writer:
        writer.write_table(stored)
        writer.add_key_value_metadata(footer)
    table = pyhudi.open_table(base, options=options)
    assert table.upsert(rows).rows_updated == 2
    assert table.scan().count() == 2
