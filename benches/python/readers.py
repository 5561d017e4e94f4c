"""One read by one reader, in a process of its own: `readers.py READER CASE FOLDER [--check]`.

Prints a JSON object: seconds of the read without imports, and the number of rows; with --check the
sums of the rows in their place. Who measures the process is `reads.py`.
"""

# ruff: noqa: PLC0415 - a reader imports nothing that it does not need

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cases import CASES, Case

Rows = Any
"""A pyarrow table, or an iterable of record batches that are not kept."""


@dataclass(frozen=True)
class Request:
    """One case on one table."""

    folder: Path
    """Of the table with what was noted about it."""
    case: Case

    @property
    def table(self) -> Path:
        return self.folder / "table"

    @property
    def columns(self) -> list[str] | None:
        return None if self.case.columns is None else list(self.case.columns)

    def keys(self) -> list[str]:
        """The wanted keys, none for a case without."""
        if self.case.keys is None:
            return []
        noted = json.loads((self.folder / "keys.json").read_text())
        return list(noted[self.case.keys])

    def since(self) -> dict[str, str]:
        """Times of the last commit but one."""
        noted: dict[str, str] = json.loads((self.folder / "expected.json").read_text())["since"]
        return noted


def read_pyhudi(request: Request) -> Rows:
    """This project."""
    import pyhudi

    table = pyhudi.open_table(request.table)
    where: list[tuple[str, str, Any]] = list(request.case.where)
    if keys := request.keys():
        where.append(("id", "in", keys))
    options: dict[str, Any] = {
        "columns": request.columns,
        "where": where or None,
        "meta_fields": request.columns is None,
    }
    if request.case.incremental:
        scan = table.incremental(request.since()["completed"], **options)
    else:
        scan = table.scan(**options)
    return scan.to_arrow() if request.case.collected else scan.to_reader()


def read_pyhudi_all(request: Request) -> Rows:
    """All rows, where the case asks for some."""
    return read_pyhudi(replace(request, case=replace(request.case, where=(), keys=None)))


def read_hudi(request: Request) -> Rows:
    """PyPI's hudi, the Python face of hudi-rs. Its filters leave out files, not rows."""
    from hudi import HudiQueryType, HudiReadOptions, HudiTableBuilder

    options = HudiReadOptions()
    if request.columns is not None:
        options = options.with_projection(request.columns)
    filters = [(name, test, str(value)) for name, test, value in request.case.where]
    keys = request.keys()
    if keys:
        filters.append(("id", "IN", ",".join(keys)))
    if filters:
        options = options.with_filters(filters)
    if request.case.incremental:
        options = options.with_query_type(HudiQueryType.Incremental)
        options = options.with_start_timestamp(request.since()["completed"])
    opened = HudiTableBuilder.from_base_uri(str(request.table.resolve())).build()
    # It has no stream of an incremental query.
    collected = request.case.collected or request.case.incremental
    found = opened.read(options) if collected else opened.read_stream(options)
    return _matching(found, request.case, keys)


def _matching(batches: Iterable[Any], case: Case, keys: list[str]) -> Iterable[Any]:
    expression = _expression(case, keys)
    return batches if expression is None else (one.filter(expression) for one in batches)


def read_parquet(request: Request) -> Rows:
    """The base files alone, without what the log files change: the least that any reader does."""
    import pyarrow.dataset as ds

    # No partition was written to twice by base files, so each of them is a slice's newest.
    files = sorted(str(path) for path in request.table.glob("*/*.parquet"))
    return _scanned(ds.dataset(files, format="parquet"), request)


def read_deltalake(request: Request) -> Rows:
    """The rows as they stand in a Delta table: already merged, so there is nothing to merge."""
    from deltalake import DeltaTable

    return _scanned(DeltaTable(request.folder / "delta").to_pyarrow_dataset(), request)


def _scanned(dataset: Any, request: Request) -> Rows:
    import pyarrow as pa

    # pyarrow's own choice, mimalloc, takes much longer where the kernel clears huge pages for it.
    if "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())
    condition = _expression(request.case, request.keys())
    scanner = dataset.scanner(columns=request.columns, filter=condition)
    return scanner.to_table() if request.case.collected else scanner.to_reader()


def _expression(case: Case, keys: list[str]) -> Any:
    """The case's filter for pyarrow, None for none."""
    import pyarrow.compute as pc

    found = None
    for column, comparison, value in case.where:
        test = pc.field(column) == value if comparison == "=" else pc.field(column) > value
        found = test if found is None else found & test
    return pc.field("id").isin(keys) if keys else found


READERS: dict[str, tuple[Callable[[Request], Rows], tuple[str, ...]]] = {
    "parquet": (read_parquet, ("pyarrow.dataset",)),
    "pyhudi": (read_pyhudi, ("pyhudi", "pyhudi.slices.read")),
    "pyhudi-all": (read_pyhudi_all, ("pyhudi", "pyhudi.slices.read")),
    "hudi": (read_hudi, ("hudi", "pyarrow")),
    "deltalake": (read_deltalake, ("deltalake", "pyarrow.dataset")),
}
"""The readers, and what each imports."""


def main(reader: str, case: str, folder: str, *flags: str) -> None:
    """Reads, and says what was read."""
    read, modules = READERS[reader]
    for module in modules:
        importlib.import_module(module)
    start = time.perf_counter()
    found = read(Request(Path(folder), CASES[case]))
    batches = _batches(found)
    if "--check" in flags:
        import rows

        kept = list(batches)
        answer = rows.sums(kept) if kept else {"rows": 0}
    else:
        answer = {"rows": sum(batch.num_rows for batch in batches)}
    print(json.dumps({"seconds": time.perf_counter() - start, **answer}))


def _batches(found: Rows) -> Iterator[Any]:
    if hasattr(found, "to_batches"):
        # The whole table is held until the end.
        yield from found.to_batches()
    else:
        yield from found


if __name__ == "__main__":
    main(*sys.argv[1:])
