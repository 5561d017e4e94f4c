"""One commit by one writer, in a process of its own: `writers.py WRITER TYPE STEP TABLE INPUTS`.

Prints as JSON what `writes.py` cannot see from outside: the seconds from the input file to the
commit, and the peak memory of this process alone. With `--check`, nothing is written: the sums of
the table's rows are printed.
"""

# ruff: noqa: PLC0415 - a writer imports nothing that it does not need

from __future__ import annotations

import argparse
import importlib
import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rows
from write_cases import STEPS

if TYPE_CHECKING:
    import pyarrow as pa

_KEYS = [rows.KEY, rows.PARTITION]
_SAME_ROW = " and ".join(f"t.{name} = s.{name}" for name in _KEYS)


@dataclass(frozen=True)
class Request:
    """What is to be written."""

    table: Path
    type: str
    verb: str
    source: Path
    """The rows, or the rows whose keys are to be deleted."""
    codec: str | None
    """None: the writer's own."""
    options: tuple[str, ...]
    """`hoodie.…=…`"""

    def rows(self) -> pa.Table:
        """Read by the same reader for every writer."""
        import pyarrow.parquet as pq

        return pq.read_table(self.source)

    def keys(self) -> pa.Table:
        """The rows' keys and partitions."""
        return self.rows().select(_KEYS)


# --- pyhudi ---------------------------------------------------------------------------------------


def write_pyhudi(request: Request) -> None:
    """As it is for who sets nothing: with a metadata table and a record index."""
    _write_pyhudi(request, _options(request))


def write_pyhudi_bare(request: Request) -> None:
    """Without a metadata table, as the other writers of Hudi tables; updates stay in log files."""
    options = {"hoodie.metadata.enable": "false"} | _options(request)
    if request.type == "mor":
        options.setdefault("hoodie.parquet.small.file.limit", "0")
    _write_pyhudi(request, options)


def _write_pyhudi(request: Request, options: dict[str, str]) -> None:
    """Creates the table with the first step; its type is the request's."""
    import pyhudi

    path = str(request.table)
    if request.verb == "bulk_insert":
        table = pyhudi.create_table(
            path,
            rows.SCHEMA,
            key=rows.KEY,
            partition_by=rows.PARTITION,
            order_by=rows.ORDERING,
            type=request.type,
            options=options,
        )
        table.bulk_insert(request.rows())
        return
    table = pyhudi.open_table(path, options=options)
    if request.verb == "upsert":
        table.upsert(request.rows())
    else:
        table.delete_keys(request.keys())


def _options(request: Request) -> dict[str, str]:
    options = dict(option.split("=", 1) for option in request.options)
    if request.codec is not None:
        options["hoodie.parquet.compression.codec"] = request.codec
    return options


def read_pyhudi(table: Path, _source: Path) -> Iterator[pa.RecordBatch]:
    """Hudi tables of every writer."""
    import pyhudi

    yield from pyhudi.open_table(str(table)).scan(columns=list(rows.SCHEMA.names)).to_reader()


# --- others ---------------------------------------------------------------------------------------


def write_deltalake(request: Request) -> None:
    """Appends, and merges with the same rule for late rows."""
    from deltalake import DeltaTable, WriterProperties, write_deltalake

    given = None if request.codec is None else WriterProperties(compression=request.codec.upper())
    if request.verb == "bulk_insert":
        write_deltalake(
            request.table, request.rows(), partition_by=[rows.PARTITION], writer_properties=given
        )
        return
    source = request.rows() if request.verb == "upsert" else request.keys()
    merge = DeltaTable(request.table).merge(
        source, _SAME_ROW, source_alias="s", target_alias="t", writer_properties=given
    )
    if request.verb == "upsert":
        newer = f"s.{rows.ORDERING} >= t.{rows.ORDERING}"
        merge.when_matched_update_all(newer).when_not_matched_insert_all().execute()
    else:
        merge.when_matched_delete().execute()


def read_deltalake(table: Path, _source: Path) -> Iterator[pa.RecordBatch]:
    """The newest version."""
    from deltalake import DeltaTable

    yield from DeltaTable(table).to_pyarrow_dataset().to_batches()


def write_plain(request: Request) -> None:
    """Writes a file a partition; after that reads and writes each anew, without looking at keys."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    codec = (request.codec or "snappy").replace("uncompressed", "none")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        if request.verb == "bulk_insert":
            given = request.rows()
            request.table.mkdir(parents=True)

            def write(city: str) -> None:
                chosen = given.filter(pc.equal(given.column(rows.PARTITION), city))
                pq.write_table(chosen, request.table / f"{city}.parquet", compression=codec)

            list(pool.map(write, given.column(rows.PARTITION).unique().to_pylist()))
            return
        # What every writer has to do.
        request.rows()

        def rewrite(file: Path) -> None:
            held = pq.read_table(file, use_threads=False)
            pq.write_table(held, file.with_suffix(".new"), compression=codec)
            file.with_suffix(".new").replace(file)

        list(pool.map(rewrite, sorted(request.table.iterdir())))


def read_plain(table: Path, _source: Path) -> Iterator[pa.RecordBatch]:
    """Every file."""
    import pyarrow.dataset as ds

    yield from ds.dataset(table).to_batches()


@dataclass(frozen=True)
class Writer:
    """How a writer writes and its tables are read; those that are other programs do not write."""

    write: Callable[[Request], None] | None
    read: Callable[[Path, Path], Iterator[Any]]
    modules: tuple[str, ...] = ()
    """Imported before the time is taken."""


_PYHUDI = ("pyhudi", "pyhudi.write.upsert", "pyarrow.parquet")

WRITERS = {
    "plain": Writer(write_plain, read_plain, ("pyarrow.parquet", "pyarrow.compute")),
    "deltalake": Writer(write_deltalake, read_deltalake, ("deltalake", "pyarrow.parquet")),
    "pyhudi": Writer(write_pyhudi, read_pyhudi, _PYHUDI),
    "pyhudi-bare": Writer(write_pyhudi_bare, read_pyhudi, _PYHUDI),
    "hudi-rs": Writer(None, read_pyhudi),
    "spark": Writer(None, read_pyhudi),
}


def main() -> None:
    """Writes or checks, and says what it took or found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("writer", choices=WRITERS)
    parser.add_argument("type")
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("table", type=Path)
    parser.add_argument("inputs", type=Path)
    parser.add_argument("--codec")
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    writer = WRITERS[given.writer]
    source = given.inputs / f"{given.step}.parquet"
    if given.check:
        print(json.dumps(rows.sums(list(writer.read(given.table, source)))))
        return
    if writer.write is None:
        parser.error(f"{given.writer} is a program of its own")
    for module in writer.modules:
        importlib.import_module(module)
    request = Request(
        given.table, given.type, STEPS[given.step].verb, source, given.codec, tuple(given.option)
    )
    start, used = time.perf_counter(), time.process_time()
    writer.write(request)
    used, seconds = time.process_time() - used, time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "used": used, "peak": _peak()}))


def _peak() -> int:
    """Bytes. Unlike `ru_maxrss`, it does not begin with the parent's."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError


if __name__ == "__main__":
    main()
