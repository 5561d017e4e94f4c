"""pyhudi's table services over states that Apache Hudi left: each read is Hudi's stored answer.

Plans that wait, services that died, what was taken back, cleaned and archived: each service of
pyhudi runs on a copy of its own, and no row changes by it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.config.actions import CLEAN, CLUSTERING, COMPACTION, LOG_COMPACTION, REPLACE_COMMIT
from pyhudi.errors import HistoryUnavailable
from tests.helpers.aged import age_what_waits
from tests.helpers.rows import canonical, canonical_rows, difference
from tests.helpers.tables import Case, cases, facts, unpack

pytestmark = pytest.mark.in_parts

FILE = "_hoodie_file_name"
OFTEN = {"hoodie.metadata.compact.max.delta.commits": "2", "hoodie.clean.commits.retained": "1"}
SERVICES: dict[str, Callable[[HudiTable], Any]] = {
    "compact": lambda table: table.compact(),
    "log_compact": lambda table: table.log_compact(min_log_files=2),
    "cluster": lambda table: table.cluster(sort_by=["id", "age"], layout="zorder"),
    "clean": lambda table: table.clean(retain=1),
    "clean_versions": lambda table: table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retain=1),
    "archive": lambda table: table.archive(min_commits=2, max_commits=3),
    "maintain": lambda table: table.maintain(),
}
CARRIED_OUT = {
    "compact": (COMPACTION,),
    "log_compact": (LOG_COMPACTION,),
    "cluster": (CLUSTERING, REPLACE_COMMIT),
    "clean": (CLEAN,),
    "clean_versions": (CLEAN,),
    "maintain": (COMPACTION, CLUSTERING, CLEAN),
}
"""Actions that do not wait after a service."""
TAKING = frozenset({"clean", "clean_versions", "maintain"})
"""Services after which the past may be out of reach."""
ON_LOGS = frozenset({"compact", "log_compact"})
STATES = (
    "v6_cow_archived",
    "v6_cow_clean_versions",
    "v6_cow_clustering",
    "v6_cow_pending_clean",
    "v6_cow_zorder",
    "v6_mor_archived",
    "v6_mor_compaction_restored",
    "v6_mor_compaction_rolled_back",
    "v6_mor_log_compaction",
    "v6_mor_overwritten_cleaned",
    "v6_mor_pending_compaction",
    "v6_mor_restore",
    "v8_cow_archived",
    "v8_cow_clean_commits",
    "v8_cow_clean_versions",
    "v8_cow_clustering",
    "v8_cow_pending_clean",
    "v8_cow_restore",
    "v8_mor_compaction_rolled_back",
    "v8_mor_hilbert",
    "v8_mor_log_compacted",
    "v8_mor_pending_compaction",
    "v9_cow_archived",
    "v9_cow_clean_commits",
    "v9_cow_clean_versions",
    "v9_cow_clustering",
    "v9_cow_pending_clean",
    "v9_cow_zorder",
    "v9_mor_archived",
    "v9_mor_clustering",
    "v9_mor_compaction_restored",
    "v9_mor_compaction_rolled_back",
    "v9_mor_log_compaction",
    "v9_mor_log_compaction_compaction",
    "v9_mor_overwritten_cleaned",
    "v9_mor_pending_clusterings",
    "v9_mor_pending_compaction",
    "v9_mor_restore",
)
QUICK = ("v6_cow_pending_clean", "v8_mor_compaction_rolled_back", "v9_mor_pending_compaction")
"""Those that stand for all in `make test-fast`."""


def reads(state: str) -> Iterator[Case]:
    """Those with rows, but for read-optimized ones, which compactions change by intent."""
    for case in cases():
        if case.table == state and case.kind != "read_optimized" and case.rows is not None:
            yield case


def wanted(case: Case) -> list[str]:
    rows = (json.loads(row) for row in case.rows or ())
    return [canonical({name: value for name, value in row.items() if name != FILE}) for row in rows]


def mismatch(case: Case, table: HudiTable) -> str | None:
    columns = [name for name in case.columns if name != FILE]
    rows = case.read(table)
    return difference(canonical_rows(rows, columns) if columns else [], wanted(case))


def kinds(table: HudiTable) -> set[str]:
    return {finding.kind for finding in table.check(deep=True).findings}


@pytest.mark.parametrize(
    "state", [pytest.param(one, marks=() if one in QUICK else pytest.mark.slow) for one in STATES]
)
def test_rows_stay_those_of_hudi(state: str, tmp_path: Path) -> None:
    base = unpack(state, tmp_path)
    answers = [*reads(state)]
    assert {case.kind for case in answers} >= {"snapshot"}
    before = pyhudi.open_table(base)
    age_what_waits(base)
    found = kinds(before)
    for case in answers:
        assert mismatch(case, before) is None, case
    for name, service in SERVICES.items():
        if name in ON_LOGS and facts(state)["table_type"] == "COPY_ON_WRITE":
            continue
        copied = shutil.copytree(base, tmp_path / name)
        service(pyhudi.open_table(copied, options=OFTEN))
        table = pyhudi.open_table(copied)
        waiting = table.state.timeline.pending(*CARRIED_OUT.get(name, ()))
        assert not (name in CARRIED_OUT and waiting), (name, waiting)
        for case in answers:
            try:
                how = mismatch(case, table)
            except HistoryUnavailable:
                assert name in TAKING, (name, case)
                assert case.kind != "snapshot", (name, case)
                continue
            assert how is None, (name, case, how)
        assert kinds(table) <= found, name


@pytest.mark.parametrize("version", [6, 8, 9])
def test_crashed_clean_shows_no_older_rows(version: int, tmp_path: Path) -> None:
    state = f"v{version}_cow_pending_clean"
    table = pyhudi.open_table(unpack(state, tmp_path))
    rows: dict[str, Any] = {}
    seen: list[bool] = []
    for step in facts(state)["steps"]:
        if step["kind"] != "write":
            continue
        rows |= {row["id"]: row["name"] for row in step["rows"]}
        try:
            scan = table.scan(as_of=step["instants"][-1]["requested"])
            found = {row["id"]: row["name"] for row in scan.to_arrow().to_pylist()}
        except HistoryUnavailable:
            found = {}
        assert found in ({}, rows), step["instants"]
        seen.append(bool(found))
    assert seen == [False, False, False, True, True, True]
