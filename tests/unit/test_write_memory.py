"""Writing streams that are larger than memory: the same rows, within the limit."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.errors import ConfigError
from tests.helpers.table_builder import TableBuilder

pytestmark = pytest.mark.in_parts

TABLE = TableBuilder.of(
    pa.schema(
        [("id", pa.string()), ("part", pa.string()), ("v", pa.int64()), ("text", pa.string())]
    ),
    partition_by="part",
    order_by="v",
)
MIB = 1 << 20


def batches(first: int, rows: int, v: int, width: int) -> Iterator[pa.RecordBatch]:
    noise = random.Random(first)
    for start in range(first, first + rows, 2000):
        numbers = range(start, min(start + 2000, first + rows))
        columns = {
            "id": [f"k{n:08}" for n in numbers],
            "part": [f"p{n % 3}" for n in numbers],
            "v": [v] * len(numbers),
            "text": [noise.randbytes(width // 2).hex() for _ in numbers],
        }
        yield pa.RecordBatch.from_pydict(columns, schema=TABLE.schema)


def stream(first: int, rows: int, v: int, width: int = 1000) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(TABLE.schema, batches(first, rows, v, width))


def peak_mib() -> int:
    # Not `getrusage`: there a child starts with the peak of the process that started it.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) >> 10


def content(table: HudiTable) -> pa.Table:
    return table.scan(columns=["id", "part", "v"]).to_arrow().sort_by("id")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_rows_are_the_same_as_from_memory(tmp_path: Path, kind: str) -> None:
    contents, results = [], []
    for limit in (MIB, None):
        table = TABLE.make(tmp_path / str(limit), kind=kind)
        table.bulk_insert(stream(0, 8000, 1), memory_limit=limit, sort="partition")
        table.insert(stream(8000, 3000, 1), memory_limit=limit)
        twice = pa.RecordBatchReader.from_batches(
            TABLE.schema, [*batches(4000, 9000, 3, 1000), *batches(6000, 3000, 2, 1000)]
        )
        result = table.upsert(twice, memory_limit=limit)
        results.append((result.rows_inserted, result.rows_updated))
        contents.append(content(table))
        assert table.overwrite_partitions(stream(0, 2, 9)).file_groups_replaced >= 2
        table.overwrite(stream(0, 4000, 7), memory_limit=limit)
        contents.append(content(table))
    assert results == [(2000, 7000)] * 2
    assert contents[0].equals(contents[2])
    assert contents[1].equals(contents[3])
    assert contents[0].num_rows == 13_000
    assert contents[0]["v"].to_pylist() == [1] * 4000 + [3] * 9000


def test_small_limit_makes_small_row_groups(tmp_path: Path) -> None:
    for verb in ("bulk_insert", "upsert"):
        table = TABLE.make(tmp_path / verb)
        getattr(table, verb)(stream(0, 20_000, 1), memory_limit=4 * MIB)
        files = list((tmp_path / verb).glob("p*/*.parquet"))
        assert len(files) == 3
        for file in files:
            found = pq.ParquetFile(file).metadata
            groups = [found.row_group(n).to_dict() for n in range(found.num_row_groups)]
            sizes = [sum(c["total_compressed_size"] for c in g["columns"]) for g in groups]
            assert len(sizes) > 1
            assert max(sizes) < 2 * MIB


def test_duplicates_of_a_large_stream_are_combined(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", options={"hoodie.combine.before.insert": "true"})
    for verb in (table.bulk_insert, table.insert):
        twice = pa.RecordBatchReader.from_batches(
            TABLE.schema, [*batches(0, 3000, 2, 1000), *batches(0, 3000, 1, 1000)]
        )
        assert verb(twice, memory_limit=MIB).rows_inserted == 3000
    assert set(content(table)["v"].to_pylist()) == {2}


def test_large_stream_is_not_sorted_as_a_whole(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t")
    with pytest.raises(ConfigError, match="too large"):
        table.bulk_insert(stream(0, 8000, 1), sort="global", memory_limit=MIB)
    assert not list((tmp_path / "t").glob("p*"))


RECORD_INDEX = [
    "hoodie.metadata.enable=true",
    "hoodie.metadata.record.index.enable=true",
    "hoodie.metadata.global.record.level.index.enable=true",
]
PROGRAM = """
import sys
import pyhudi
from pathlib import Path
from tests.unit.test_write_memory import MIB, TABLE, peak_mib, stream

base, kind, limit, width = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
table = TABLE.make(base, kind=kind, options=dict(given.split("=") for given in sys.argv[5:]))
rows = 10 * 16 * MIB // (width + 30)
table.bulk_insert(stream(0, rows, 1, width), memory_limit=limit)
loaded = peak_mib()
result = table.upsert(stream(rows // 2, rows, 2, width), memory_limit=limit)
print(loaded, peak_mib(), rows - rows // 2 == result.rows_updated)
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("kind", "width", "options"), [("cow", 1000, []), ("mor", 250, RECORD_INDEX)]
)
def test_memory_limit_holds_for_ten_times_more_rows(
    tmp_path: Path, kind: str, width: int, options: list[str]
) -> None:
    """A record index costs about 25 bytes for each key, as docs/how-to/large-data.md says."""
    rows = 10 * 16 * MIB // (width + 30)
    most = 16 + 300 + (rows * 25 // MIB if options else 0)
    arguments = [str(tmp_path / "t"), kind, str(16 * MIB), str(width), *options]
    arguments = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    loaded, peak, right = done.stdout.split()
    assert right == "True"
    assert int(loaded) < most
    assert int(peak) < most


WIDE = """
import sys
from pathlib import Path

import pyarrow as pa
import pyhudi
from tests.unit.test_write_memory import MIB, TABLE, peak_mib, stream

table = TABLE.make(Path(sys.argv[2]))
table.count()
before = peak_mib()
# Of noise that is made once: nothing else than the write grows.
rows = next(stream(0, 100, 1, 100_000))
data = pa.RecordBatchReader.from_batches(TABLE.schema, (rows for _ in range(40)))
getattr(table, sys.argv[1])(data, memory_limit=16 * MIB)
print(peak_mib() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["bulk_insert", "overwrite"])
def test_memory_limit_holds_for_rows_of_100_kb(tmp_path: Path, verb: str) -> None:
    """400 MB of them; both held 20,000 rows to learn how large one is."""
    arguments = [sys.executable, "-c", WIDE, verb, str(tmp_path / "t")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 16 + 128


def test_wide_rows_come_back_from_several_row_groups(tmp_path: Path) -> None:
    """Their columns are encoded in parts, where all of a column's leaves are in one."""
    rows = range(1000)
    nested = pa.struct([("a", pa.int64()), ("texts", pa.list_(pa.string()))])
    columns: dict[str, pa.Array[Any]] = {"id": pa.array(rows)}
    for n in range(150):
        columns[f"number{n}"] = pa.array([row * n for row in rows])
        values = [None if row % 7 == n % 7 else {"a": n, "texts": [f"t{row}"]} for row in rows]
        columns[f"nested{n}"] = pa.array(values, nested)
    data = pa.table(columns)
    table = pyhudi.create_table(tmp_path, data.schema, key="id")
    table.bulk_insert(data.to_reader(500), memory_limit=MIB)
    for verb in ("insert", "update"):
        (newest,) = sorted(tmp_path.glob("*.parquet"), key=lambda path: path.stat().st_mtime)[-1:]
        found = pq.ParquetFile(newest)
        assert found.num_row_groups > 1, verb
        expected = data.drop_columns("number0")
        stored = found.read(expected.column_names).cast(expected.schema)
        assert stored.sort_by("id").equals(expected)
        assert table.scan(columns=expected.column_names).to_arrow().sort_by("id").equals(expected)
        part = table.scan(columns=expected.column_names, where="id >= 997").to_arrow()
        assert part.sort_by("id").equals(expected.slice(997))
        if verb == "insert":
            table.update("id = 3", {"number0": -1}, memory_limit=MIB)
    assert table.scan(columns=["id"], where="number0 = -1").to_arrow()["id"].to_pylist() == [3]


THOUSANDS = """
import sys

import pyhudi
from tests.unit.test_write_memory import MIB, peak_mib

table = pyhudi.open_table(sys.argv[2])
table.count()
before, limit = peak_mib(), 64 * MIB
if sys.argv[1] == "upsert":
    table.upsert(table.head(1), memory_limit=limit)
elif sys.argv[1] == "update":
    # Not as text: the parser of SQL takes memory of its own.
    import pyarrow.compute as pc

    table.update(pc.field("id") == 0, {"c0": -1}, memory_limit=limit)
elif sys.argv[1] == "compact":
    table.compact(memory_limit=limit)
else:
    table.cluster(memory_limit=limit)
print(peak_mib() - before)
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_memory_limit_holds_for_thousands_of_columns(
    tmp_path: Path, kind: Literal["cow", "mor"]
) -> None:
    """Encoders and decoders of all columns used up to 350 MiB together, for 20 rows."""
    rows = {f"c{n}": [*range(20)] if n % 2 == 0 else [*map(str, range(20))] for n in range(4000)}
    options = {"hoodie.parquet.compression.codec": "zstd"}
    data = pa.table({"id": [*range(20)], **rows})
    pyhudi.create_table(tmp_path, data, key="id", type=kind, options=options)
    services = ["compact", "cluster"] if kind == "mor" else []
    for verb in ["upsert", "update", *services]:
        arguments = [sys.executable, "-c", THOUSANDS, verb, str(tmp_path)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True)
        assert int(done.stdout) <= 130, verb
    rows_after = pyhudi.open_table(tmp_path).scan(columns=["id", "c0", "c3999"]).to_arrow()
    assert rows_after.sort_by("id").slice(0, 2).to_pylist() == [
        {"id": 0, "c0": -1, "c3999": "0"},
        {"id": 1, "c0": 1, "c3999": "1"},
    ]


def test_write_imports_no_sql_parser() -> None:
    """Its import uses 10 MiB and is slow."""
    program = "import sys, pyhudi.write.upsert; print('sqlglot' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
