"""Every table that Apache Hudi wrote reads as Apache Hudi reads it, or is refused by name."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import UnsupportedTableFeature
from tests.helpers.refused import REFUSED, possible_refusal, refusal
from tests.helpers.tables import Case, GoldenTables, cases, names

CASES = list(cases())
LEAST_SHARE_READ = 0.8


def read(base: Path, case: Case) -> pa.Table:
    """One read through the public API."""
    return case.read(pyhudi.open_table(str(base)))


def read_or_refused(base: Path, case: Case) -> pa.Table | None:
    """One read of a table some of whose slices are refused by name, None if this one is."""
    try:
        return read(base, case)
    except UnsupportedTableFeature as refused:
        named = possible_refusal(case)
        if named is None or named not in str(refused):
            raise
        return None


@pytest.mark.parametrize("case", CASES, ids=str)
def test_reads_what_hudi_reads_or_refuses_by_name(case: Case, golden: GoldenTables) -> None:
    base = golden.unpack(case.table)
    named = refusal(case)
    if named is not None:
        with pytest.raises(UnsupportedTableFeature, match=re.escape(named)):
            read(base, case)
        return
    if case.guarded is not None:
        with pytest.raises(case.guarded):
            read(base, case)
        return
    rows = read_or_refused(base, case)
    assert rows is None or case.mismatch(rows) is None


@pytest.mark.filterwarnings("ignore:.*is missing:pyhudi.errors.MetadataTableWarning")
@pytest.mark.parametrize("table", names())
def test_keys_are_found_where_a_scan_finds_them(table: str, golden: GoldenTables) -> None:
    """The first look-up reads what it needs, the later ones have it in memory."""
    try:
        opened = pyhudi.open_table(str(golden.unpack(table)))
        rows = opened.to_arrow().to_pylist()
    except UnsupportedTableFeature:
        pytest.skip("the table is refused")
    fields = opened.config.record_key_fields
    sample = [row for row in rows[:: len(rows) // 12 + 1] if fields]
    for row in sample * 3:
        key = tuple(row[field] for field in fields)
        found = opened.get([key if len(fields) > 1 else key[0]]).to_pylist()
        expected = [each for each in rows if tuple(each[field] for field in fields) == key]
        assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_most_reads_are_not_refused() -> None:
    refused = [case for case in CASES if refusal(case) or possible_refusal(case)]
    assert len(refused) <= (1 - LEAST_SHARE_READ) * len(CASES)


def test_golden_refusals_are_all_listed() -> None:
    known = {*names(), *(f"{case.table}-{case.kind}" for case in CASES), *map(str, CASES)}
    assert not REFUSED.keys() - known
