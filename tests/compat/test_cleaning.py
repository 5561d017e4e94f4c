"""pyhudi and Apache Hudi clean copies of one table: the same files are left, in the same words."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi.clock import SystemClock
from pyhudi.config.actions import CLEAN
from pyhudi.config.retention_options import KEEP_COMMITS, KEEP_VERSIONS, CleanOptions
from pyhudi.services import cleaning
from pyhudi.storage.storage import Storage
from pyhudi.write.table_opening import open_for_change
from tests.compat.test_alternating_writers import hudi_options
from tests.compat.test_metadata_writes import (
    EVENT_TIME,
    LOCATIONS,
    METADATA,
    RELEASES,
    STATISTICS,
)
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.pairwise import with_kinds
from tests.sim.crash import Handle
from tests.unit.test_cleaning import data_files
from tests.unit.test_savepoints import timeline_of

DDL = "id string, city string, v bigint, ts bigint"
COMPACT = {"hoodie.metadata.compact.max.delta.commits": "50"}
POLICIES = [(KEEP_COMMITS, 1), (KEEP_COMMITS, 4), (KEEP_VERSIONS, 1), (KEEP_VERSIONS, 2)]
RETAINED = {KEEP_COMMITS: "retain_commits", KEEP_VERSIONS: "file_versions_retained"}


def rows(count: int, v: int, cities: str = "abc") -> list[dict[str, Any]]:
    return [
        {"id": f"{city}{n}", "city": city, "v": v, "ts": v} for city in cities for n in range(count)
    ]


class Tables:
    """A table that Hudi has written, with a partition that it deleted and a pending compaction."""

    def __init__(self, hudi: HudiOracle, base: Path, version: int, kind: str) -> None:
        self.hudi, self.base, self.kind = hudi, base, kind
        self.options = {**hudi_options(kind, partitioned=True), **METADATA, **STATISTICS}
        self.options |= {**LOCATIONS, **COMPACT, "hoodie.archive.automatic": "false"}
        if version == 6:
            self.options |= EVENT_TIME
        for count, v, cities in [(4, 1, "abc"), (2, 2, "ab"), (3, 3, "abc")]:
            self.upsert(rows(count, v, cities))
        self.compaction("scheduleandexecute")
        self.upsert(rows(4, 4, "ab"))
        gone = {"hoodie.datasource.write.partitions.to.delete": "c"}
        hudi.write(base, operation="delete_partition", options=self.options | gone)
        self.upsert(rows(4, 5, "a"))
        self.upsert(rows(3, 6, "ab"))
        self.compaction("schedule")
        for count, v, cities in [(2, 7, "a"), (1, 8, "b"), (1, 9, "b")]:
            self.upsert(rows(count, v, cities))

    def upsert(self, batch: list[dict[str, Any]]) -> None:
        mode = "append" if self.base.exists() else "overwrite"
        self.hudi.write(
            self.base, rows=batch, schema=DDL, operation="upsert", options=self.options, mode=mode
        )

    def compaction(self, op: str) -> None:
        if self.kind == "mor":
            conf = {"hoodie.compact.inline.max.delta.commits": "1"}
            self.hudi.call(self.base, f"run_compaction(op => '{op}')", conf)

    def copy(self, name: str) -> Path:
        return shutil.copytree(self.base, self.base.with_name(name))

    def clean(self, base: Path, policy: str, retain: int) -> None:
        conf = {name: text for name, text in self.options.items() if "metadata" in name}
        call = f"run_clean(clean_policy => '{policy}', {RETAINED[policy]} => {retain})"
        self.hudi.call(base, call, conf)

    def read(self, base: Path, *, metadata: bool) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.hudi.read(base, metadata=metadata)["rows"]
        return sorted(found, key=lambda row: str(row["id"]))


def said(base: Path) -> dict[str, Any]:
    timeline = timeline_of(base)
    record = timeline.read(timeline.filter_completed(CLEAN)[-1]) or {}
    for of_run in ("startCleanTime", "timeTakenInMillis"):
        record.pop(of_run)
    for part in record["partitionMetadata"].values():
        for names in ("deletePathPatterns", "successDeleteFiles"):
            part[names].sort()
    return record


def without_checksums(base: Path) -> list[str]:
    return [name for name in data_files(base) if not name.endswith(".crc")]


@pytest.mark.parametrize(
    ("version", "hudi", "kind"),
    [(*release, kind) for release, kind in with_kinds(RELEASES)],
    indirect=["hudi"],
)
@pytest.mark.timeout(600)
def test_clean_leaves_same_files_as_hudi(
    tmp_path: Path, hudi: HudiOracle, version: int, kind: str
) -> None:
    tables = Tables(hudi, tmp_path / "t", version, kind)
    expected = tables.read(tables.base, metadata=False)
    mine = tables.base
    for policy, retain in POLICIES:
        hudis = tables.copy(f"hudis-{policy}-{retain}")
        tables.clean(hudis, policy, retain)
        mine = tables.copy(f"mine-{policy}-{retain}")
        table = pyhudi.open_table(mine, options=COMPACT)
        before = {str(finding) for finding in table.check(deep=True).findings}
        done = table.clean(policy=policy, retain=retain)
        assert done.files_removed > 0
        assert without_checksums(mine) == without_checksums(hudis)
        assert said(mine) == said(hudis)
        # Some are Hudi's: statistics that its writers leave out.
        found = {str(finding) for finding in table.check(deep=True).findings}
        assert found <= before
    for metadata in (True, False):
        assert tables.read(mine, metadata=metadata) == expected
    # Hudi goes on, by its metadata table, and cleans what pyhudi left.
    tables.base = mine
    tables.upsert(rows(4, 10, "ab"))
    tables.clean(mine, KEEP_VERSIONS, 1)
    assert tables.read(mine, metadata=True) == tables.read(mine, metadata=False)
    checked = hudi.validate(mine)
    assert checked["ok"], checked["problems"]


@pytest.mark.parametrize(("version", "hudi"), RELEASES, indirect=["hudi"])
@pytest.mark.timeout(600)
def test_clean_completes_plans_of_other_writer(
    tmp_path: Path, hudi: HudiOracle, version: int
) -> None:
    tables = Tables(hudi, tmp_path / "t", version, "cow")
    expected = tables.read(tables.base, metadata=False)
    hudis = tables.copy("hudis")
    tables.clean(hudis, KEEP_COMMITS, 2)
    left, record = without_checksums(hudis), said(hudis)

    # Hudi dies as its clean was about to be complete.
    done = timeline_of(hudis).filter_completed(CLEAN)[-1]
    layout = pyhudi.open_table(hudis).config.layout
    (hudis / layout.path(done.file_name)).unlink()
    assert pyhudi.open_table(hudis).clean(retain=2).instants == (done.requested,)
    assert said(hudis) == record
    assert tables.read(hudis, metadata=True) == expected

    # pyhudi dies when it has planned.
    opened = open_for_change(Handle(Storage(str(tables.base))), SystemClock())
    action, _ = cleaning._schedule(opened, CleanOptions(commits=2))
    assert action is not None
    tables.clean(tables.base, KEEP_COMMITS, 2)
    assert [clean.requested for clean in timeline_of(tables.base).filter_completed(CLEAN)] == [
        action.time
    ]
    assert without_checksums(tables.base) == left
    assert said(tables.base) == record
    for metadata in (True, False):
        assert tables.read(tables.base, metadata=metadata) == expected
    found = pyhudi.open_table(tables.base).check(deep=True)
    assert found.ok, str(found)
