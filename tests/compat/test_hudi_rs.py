"""PyPI's `hudi`, a reader of other authors, returns the rows of tables of Hudi and of pyhudi."""

from __future__ import annotations

import contextlib
import re
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi import HudiQueryType, HudiReadOptions

from pyhudi import HistoryUnavailable, HudiTable
from pyhudi.admin.reader_limits import RS_5
from tests.helpers import small_tables, written_tables
from tests.helpers.hudi_rs import DEFECTS, READ_OPTIMIZED, defect, read
from tests.helpers.pairwise import each_value
from tests.helpers.rows import canonical_rows, difference
from tests.helpers.tables import Case, GoldenTables, cases

GOLDEN = [
    case
    for case in cases()
    if case.kind in ("snapshot", "read_optimized") and (case.rows, case.sha256) != (None, None)
]
WRITTEN = each_value(
    tuple(product((6, 8, 9), ("cow", "mor"))),
    tuple(written_tables.LAYOUTS),
    tuple(written_tables.HISTORIES),
    allowed=lambda form, *names: written_tables.is_possible(form[1], *names),
)


@pytest.mark.parametrize("case", GOLDEN, ids=str)
def test_hudi_rs_reads_golden_tables_as_hudi_or_has_a_listed_defect(
    case: Case, golden: GoldenTables
) -> None:
    base, listed = str(golden.unpack(case.table)), defect(str(case))
    options = HudiReadOptions(hudi_options=READ_OPTIMIZED if case.kind == "read_optimized" else {})
    if listed is not None and listed.error:
        # Rust's panics are no `Exception`.
        with pytest.raises(BaseException, match=re.escape(listed.error)):
            read(base, options)
        return
    rows = read(base, options)
    is_equal = rows.num_rows == 0 if case.rows == () else not _mismatch(case, rows)
    assert is_equal is (listed is None), listed.reason if listed else _mismatch(case, rows)


def _mismatch(case: Case, rows: pa.Table) -> str | None:
    if rows.num_columns == 0:
        return "no rows"
    return case.mismatch(rows)


def test_hudi_rs_defects_each_name_a_read() -> None:
    met = {defect(str(case)) for case in GOLDEN}
    assert not [each.reason for each in DEFECTS if each not in met]


@pytest.mark.parametrize(
    ("form", "layout", "history"),
    WRITTEN,
    ids=[f"v{form[0]}-{form[1]}-{layout}-{history}" for form, layout, history in WRITTEN],
)
def test_hudi_rs_reads_what_pyhudi_wrote(
    form: tuple[int, Any], layout: str, history: str, tmp_path: Path
) -> None:
    """Meta columns are compared, too; and the past, and ranges of commits."""
    version, kind = form
    table = written_tables.write(tmp_path / "t", version, kind, layout, history)
    now = table.scan(meta_fields=True).to_arrow()
    assert _difference(read(table.uri), now) is None
    if kind == "mor":
        rows = read(table.uri, HudiReadOptions(hudi_options=READ_OPTIMIZED))
        expected = table.scan(meta_fields=True, read_optimized=True).to_arrow()
        assert _difference(rows, expected) is None
    if history == "add column":  # `hudi` shows the past without it, and refuses some ranges
        return
    past = _past(table)
    assert past
    for time, then in past.items():
        rows = read(table.uri, HudiReadOptions().with_as_of_timestamp(time))
        assert _difference(rows, then) is None, f"as of {time}"
        options = HudiReadOptions().with_query_type(HudiQueryType.Incremental)
        rows = read(table.uri, options.with_start_timestamp(time))
        since = table.incremental(time, meta_fields=True).to_arrow()
        assert _difference(rows, since) is None, f"after {time}"


def _past(table: HudiTable) -> dict[str, pa.Table]:
    """By time the rows after some of the last commits, without those whose files were cleaned."""
    found = {}
    for time in _commit_times(table)[-4:]:
        with contextlib.suppress(HistoryUnavailable):
            found[time] = table.scan(meta_fields=True, as_of=time).to_arrow()
    return found


def _commit_times(table: HudiTable) -> list[str]:
    """Completion times, up to version 6 requested times: those by which Hudi takes ranges."""
    commits = table.state.timeline.commits
    if table.version <= 6:
        return [commit.requested for commit in commits]
    return sorted(commit.completed or "" for commit in commits)


def _difference(rows: pa.Table, expected: pa.Table) -> str | None:
    if rows.num_columns == 0:
        return None if expected.num_rows == 0 else "no rows"
    names = expected.column_names
    return difference(canonical_rows(rows, names), canonical_rows(expected, names))


@pytest.mark.parametrize(("axes", "version", "kind", "history"), list(small_tables.cases()))
def test_hudi_rs_reads_as_inspect_readers_predicts(
    axes: str, version: int, kind: Any, history: small_tables.History, tmp_path: Path
) -> None:
    table = small_tables.write(tmp_path / "t", axes, version, kind, history)
    try:
        rows = read(table.uri)
    except Exception:  # noqa: BLE001 - `hudi` exports no class of its errors
        answer = "no"
    else:
        answer = "yes" if small_tables.is_equal(rows, table) else "wrong"
    assert answer == table.inspect.readers()[RS_5].answer
