"""Every table that Apache Hudi wrote reads as Apache Hudi reads it, or is refused by name."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import UnsupportedTableFeature
from tests.helpers.refused import REFUSED, refusal
from tests.helpers.tables import Case, GoldenTables, cases, names

CASES = list(cases())
LEAST_SHARE_READ = 0.8


def read(base: Path, kind: str) -> pa.Table:
    """One read through the public API."""
    scan = pyhudi.open_table(str(base)).scan(
        meta_fields=True, read_optimized=kind == "read_optimized"
    )
    return scan.to_arrow()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_reads_what_hudi_reads_or_refuses_by_name(case: Case, golden: GoldenTables) -> None:
    base = golden.unpack(case.table)
    named = refusal(case.table, case.kind)
    if named is not None:
        with pytest.raises(UnsupportedTableFeature, match=re.escape(named)):
            read(base, case.kind)
        return
    assert case.mismatch(read(base, case.kind)) is None


def test_most_reads_are_not_refused() -> None:
    refused = [case for case in CASES if refusal(case.table, case.kind) is not None]
    assert len(refused) <= (1 - LEAST_SHARE_READ) * len(CASES)


def test_every_listed_refusal_is_a_golden_read() -> None:
    known = {*names(), *map(str, CASES)}
    assert not REFUSED.keys() - known
