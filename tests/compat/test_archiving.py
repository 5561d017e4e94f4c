"""pyhudi and Apache Hudi archive copies of one table: the same instants go, and say the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Literal

import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.config.actions import CLEAN, REPLACE_COMMIT
from pyhudi.config.retention_options import KEPT_MANIFESTS, MERGED_BYTES, MERGED_FILES
from pyhudi.config.table_config import TableConfig
from pyhudi.storage.storage import Storage
from pyhudi.timeline import serde
from pyhudi.timeline.archive_log import PREFIX
from pyhudi.timeline.lsm_manifest import current_manifest, manifest_numbers
from tests.compat.test_alternating_writers import hudi_options
from tests.compat.test_metadata_writes import EVENT_TIME, METADATA, RELEASES
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.pairwise import with_kinds
from tests.helpers.shared_table import CONF, Pair
from tests.unit.test_archiving_operation import known
from tests.unit.test_savepoints import people, timeline_of

DDL = "id string, city string, v bigint, ts bigint"
PEOPLE = "id string, city string, v bigint"
EVENT = {"hoodie.datasource.write.precombine.field": "v", "hoodie.cleaner.commits.retained": "1"}
COMPACT = {"hoodie.metadata.compact.max.delta.commits": "2"}
KEEP = {"hoodie.clean.commits.retained": "1", "hoodie.cleaner.commits.retained": "1"}
TRIGGER = {"hoodie.compact.inline.max.delta.commits": "2"}


def rows(count: int, v: int, cities: str = "ab") -> list[dict[str, Any]]:
    return [
        {"id": f"{city}{n}", "city": city, "v": v, "ts": v} for city in cities for n in range(count)
    ]


class Archived:
    """A table that Hudi has written, overwritten in part, clustered and cleaned."""

    def __init__(self, hudi: HudiOracle, base: Path, version: int, kind: str) -> None:
        self.hudi, self.base, self.kind = hudi, base, kind
        self.options = {**hudi_options(kind, partitioned=True), **METADATA, **COMPACT, **TRIGGER}
        self.options |= {"hoodie.archive.automatic": "false", "hoodie.clean.automatic": "false"}
        if version == 6:
            self.options |= EVENT_TIME
        for v in (1, 2, 3):
            self.upsert(rows(4, v, "abc"))
        gone = {"hoodie.datasource.write.partitions.to.delete": "c"}
        hudi.write(base, operation="delete_partition", options=self.options | gone)
        self.upsert(rows(2, 4))
        if kind == "mor":
            self.call("run_compaction(op => 'scheduleandexecute')")
        else:
            self.call("run_clustering(op => 'scheduleAndExecute')")
        for v in (5, 6, 7):
            self.upsert(rows(3, v))
        self.call("run_clean(clean_policy => 'KEEP_LATEST_COMMITS', retain_commits => 1)")
        for v in (8, 9, 10):
            self.upsert(rows(3, v))

    def upsert(self, batch: list[dict[str, Any]]) -> None:
        mode = "append" if self.base.exists() else "overwrite"
        self.hudi.write(
            self.base, rows=batch, schema=DDL, operation="upsert", options=self.options, mode=mode
        )

    def call(self, procedure: str) -> None:
        wanted = ("metadata", "compact")
        conf = {k: v for k, v in self.options.items() if any(part in k for part in wanted)}
        self.hudi.call(self.base, procedure, conf)

    def hudi_archives(self) -> None:
        keep = "min_commits => 2, max_commits => 3, retain_commits => 1, enable_metadata => true"
        self.call(f"archive_commits({keep})")

    def pyhudi_archives(self) -> tuple[str, ...]:
        table = pyhudi.open_table(self.base, options={**COMPACT, **KEEP, **TRIGGER})
        return tuple(table.archive(min_commits=2, max_commits=3).instants)

    def copy(self, name: str) -> Path:
        return shutil.copytree(self.base, self.base.with_name(name))

    def read(self, *, metadata: bool) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.hudi.read(self.base, metadata=metadata)["rows"]
        return sorted(found, key=lambda row: str(row["id"]))


def archived(base: Path) -> list[dict[str, Any]]:
    """Every record of the archive, decoded."""
    storage = Storage(str(base))
    config = TableConfig.load(storage)
    folder = config.history_folder
    found: list[dict[str, Any]] = []
    names = sorted(entry.name for entry in storage.list_dir(folder)[1])
    if config.layout.completion_in_name:
        for name in names:
            if name.endswith(".parquet"):
                found += pq.read_table(base / folder / name).to_pylist()
        for row in found:
            for column in ("metadata", "plan"):
                row[column] = serde.decode(row[column] or b"", column)
        return sorted(found, key=lambda row: (row["instantTime"], row["action"]))
    for name in names:
        if name.startswith(PREFIX):
            lines = _native.log_records(storage.native, f"{folder}/{name}")
            found += [json.loads(line) for line in lines]
    return sorted(found, key=lambda row: (row["commitTime"], row["actionState"]))


@pytest.mark.parametrize(
    ("version", "hudi", "kind"),
    [(*release, kind) for release, kind in with_kinds(RELEASES)],
    indirect=["hudi"],
)
@pytest.mark.timeout(600)
def test_archive_matches_hudi_instants_and_content(
    tmp_path: Path, hudi: HudiOracle, version: int, kind: str
) -> None:
    table = Archived(hudi, tmp_path / "t", version, kind)
    before = known(table.base)
    expected = table.read(metadata=False)
    mine = table.copy("mine")
    table.hudi_archives()
    hudis = table.base
    assert known(hudis) == before
    table.base = mine
    gone = table.pyhudi_archives()
    assert len(gone) >= 7
    assert {one.action for one in timeline_of(mine).archive.instants()} >= {REPLACE_COMMIT}
    assert timeline_of(mine).instants == timeline_of(hudis).instants
    assert archived(mine) == archived(hudis)

    for metadata in (True, False):
        assert table.read(metadata=metadata) == expected
    # Hudi goes on, and archives what pyhudi left; then pyhudi does once more.
    for v in (11, 12, 13):
        table.upsert(rows(3, v))
    table.call("run_clean(clean_policy => 'KEEP_LATEST_COMMITS', retain_commits => 1)")
    before = known(mine)
    table.hudi_archives()
    assert known(mine) == before
    more = pyhudi.open_table(mine, options={**COMPACT, **KEEP})
    for _ in range(3):
        more.upsert(more.scan().to_arrow())
    more.clean(retain=1)
    before = known(mine)
    assert table.pyhudi_archives()
    assert known(mine) == before
    assert table.read(metadata=True) == table.read(metadata=False)
    checked = hudi.validate(mine)
    assert checked["ok"], checked["problems"]
    found = more.refresh().check(deep=True)
    assert {finding.kind for finding in found.findings} <= {"partition_statistics_too_narrow"}
    assert CLEAN in {action for _, action in before}


@pytest.mark.parametrize(
    ("version", "hudi", "kind"),
    [(*release, kind) for release, kind in with_kinds(RELEASES)],
    indirect=["hudi"],
)
@pytest.mark.timeout(600)
def test_hudi_goes_on_where_commits_clean_and_archive(
    tmp_path: Path, hudi: HudiOracle, version: int, kind: Literal["cow", "mor"]
) -> None:
    """Most commits are of pyhudi, and Hudi takes no part in the services."""
    pair = Pair(hudi, tmp_path / "t", kind)
    few = {"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "6"}
    often = {**KEEP, **few, "hoodie.metadata.compact.max.delta.commits": "3"}
    del often["hoodie.cleaner.commits.retained"]
    pair.table = pyhudi.open_table(tmp_path / "t", options={**CONF, **often})
    pair.options |= {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    wanted = {f"k{n}": 1 for n in range(4)}
    for v in range(2, 38):
        ids = range(v % 4, 6)
        wanted |= {f"k{n}": v for n in ids}
        if v % 12 == 0:
            pair.hudi_writes(ids, v)
            pair.check(wanted)
        else:
            pair.pyhudi_writes(ids, v)
    timeline = timeline_of(tmp_path / "t")
    assert len(timeline.commits) <= 7
    assert len(timeline.archive.commits()) >= 20
    pair.check(wanted)


@pytest.mark.parametrize(
    ("version", "hudi", "kind"),
    [(*release, kind) for release, kind in with_kinds(RELEASES)],
    indirect=["hudi"],
)
def test_archived_instants_count_as_committed_behind_savepoints(
    tmp_path: Path, hudi: HudiOracle, version: int, kind: Literal["cow", "mor"]
) -> None:
    base = tmp_path / "t"
    parts = [people(range(n, n + 1), 0) for n in range(8)]
    table = pyhudi.create_table(base, parts[0], key="id", type=kind, version=version)
    table = pyhudi.open_table(
        base, options={**COMPACT, **KEEP, **TRIGGER, "hoodie.parquet.small.file.limit": "0"}
    )
    for part in parts[1:]:
        table.insert(part)
    saved = [commit.requested for commit in timeline_of(base).commits[-3:]]
    for commit in saved:
        table.savepoint(instant=commit)
    table.archive(min_commits=1, max_commits=2)
    assert [commit.requested for commit in timeline_of(base).commits] == saved
    ids = {row["id"] for row in hudi.read(base)["rows"]}
    assert ids == {f"k{n}" for n in range(8)} == set(table.scan().to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("hudi", ["1.2.0"], indirect=True)
@pytest.mark.parametrize(
    "options",
    [
        {MERGED_FILES: "2", KEPT_MANIFESTS: "2"},
        {MERGED_FILES: "3", KEPT_MANIFESTS: "1"},
        {MERGED_FILES: "2", MERGED_BYTES: "1"},
    ],
    ids=str,
)
@pytest.mark.timeout(600)
def test_files_of_the_history_are_merged_and_kept_as_asked(
    tmp_path: Path, hudi: HudiOracle, options: dict[str, str]
) -> None:
    """The same commits of two copies leave in the same steps; then each archives the other's."""
    plain = {"hoodie.metadata.enable": "false", "hoodie.clean.automatic": "false"}
    plain |= {"hoodie.clean.commits.retained": "1"}
    mine, named = tmp_path / "mine", plain | {"hoodie.table.name": "trips"}
    pyhudi.create_table(mine, people(range(4), 1), key="id", order_by="v", options=named)
    assert not (mine / ".hoodie" / "metadata").exists()
    for v in range(2, 20):
        pyhudi.open_table(mine, options=plain).upsert(people(range(2), v))
    theirs = shutil.copytree(mine, tmp_path / "theirs")

    def write(base: Path, keep: int, v: int, *, by_hudi: bool) -> None:
        kept = {"hoodie.keep.min.commits": str(keep), "hoodie.keep.max.commits": str(keep + 1)}
        if by_hudi:
            told = hudi_options("cow", partitioned=False) | EVENT | plain | options | kept
            batch = people(range(2), v).to_pylist()
            hudi.write(base, rows=batch, schema=PEOPLE, operation="upsert", options=told)
        else:
            pyhudi.open_table(base, options=plain | options | kept).upsert(people(range(2), v))

    def both(mine: Path, theirs: Path, keeps: range, v: int) -> None:
        for at, keep in enumerate(keeps):
            write(mine, keep, v + at, by_hudi=False)
            write(theirs, keep, v + at, by_hudi=True)
            assert manifest_of(mine) == manifest_of(theirs)

    both(mine, theirs, range(15, 7, -1), 20)
    levels = {name[-9] for name in manifest_of(theirs)[0]}
    assert (levels == {"0"}) == (MERGED_BYTES in options)
    for base in (mine, theirs):
        found = {(one["requested"], one["action"]) for one in hudi.instants(base, archived=True)}
        assert found >= {
            (one.requested, one.action) for one in timeline_of(base).archive.instants()
        }
        for at in range(6):
            write(base, 7, 40 + at, by_hudi=at % 2 == (base == theirs))
        assert not pyhudi.open_table(base).check(deep=True).findings
    checked = hudi.validate(theirs)
    assert checked["ok"], checked["problems"]


def manifest_of(base: Path) -> tuple[list[str], int]:
    """The names in the manifest of a history, and how many manifests there are."""
    storage = Storage(str(base))
    folder = TableConfig.load(storage).history_folder
    manifest = current_manifest(storage, folder)
    return sorted(manifest.files), len(manifest_numbers(storage, folder))
