"""One read by one reader, in a process of its own: `readers.py READER CASE TABLE [--check]`.

Prints a JSON object: the number of rows, or with --check their sums. Who measures the process is
`merge_on_read.py`.
"""

# ruff: noqa: PLC0415 - a reader imports nothing that it does not need

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from cases import CASES, Case

Rows = Any
"""A pyarrow table, or an iterable of record batches that are not kept."""


def read_pyhudi(table: Path, case: Case) -> Rows:
    """This project."""
    import pyhudi

    scan = pyhudi.open_table(table).scan(case.columns, meta_fields=case.columns is None)
    return scan.to_reader() if case.streamed else scan.to_arrow()


def read_hudi(table: Path, case: Case) -> Rows:
    """PyPI's hudi, the Python face of hudi-rs."""
    from hudi import HudiReadOptions, HudiTableBuilder

    options = HudiReadOptions()
    if case.columns is not None:
        options = options.with_projection(list(case.columns))
    opened = HudiTableBuilder.from_base_uri(str(table.resolve())).build()
    return opened.read_stream(options) if case.streamed else opened.read(options)


def read_parquet(table: Path, case: Case) -> Rows:
    """The base files alone, without what the log files change: the least that any reader does."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    # pyarrow's own choice, mimalloc, takes much longer where the kernel clears huge pages for it.
    if "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())
    # No partition was written to twice by base files, so each of them is a slice's newest.
    files = sorted(str(path) for path in table.glob("*/*.parquet"))
    columns = None if case.columns is None else list(case.columns)
    base = ds.dataset(files, format="parquet")
    if case.streamed:
        return base.scanner(columns=columns).to_reader()
    return base.to_table(columns=columns)


READERS: dict[str, Callable[[Path, Case], Rows]] = {
    "parquet": read_parquet,
    "pyhudi": read_pyhudi,
    "hudi": read_hudi,
}


def main(reader: str, case: str, table: str, *flags: str) -> None:
    """Reads, and says what was read."""
    found = READERS[reader](Path(table), CASES[case])
    print(json.dumps(_sums(found) if "--check" in flags else {"rows": _count(found)}))


def _sums(found: Rows) -> dict[str, int]:
    import rows

    is_table = hasattr(found, "num_rows")
    return rows.sums(found if is_table else list(found))


def _count(found: Rows) -> int:
    batches: Iterable[Any] = [found] if hasattr(found, "num_rows") else found
    return sum(batch.num_rows for batch in batches)


if __name__ == "__main__":
    main(*sys.argv[1:])
