"""Compactions that pyhudi plans and Apache Hudi carries out, the reverse, and each the other's."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyhudi
from pyhudi.config.actions import COMPACTION, LOG_COMPACTION
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.shared_table import Pair
from tests.unit.test_savepoints import people

RELEASES = ["0.15.0", "1.0.2", "1.2.0"]
OFTEN = {"hoodie.compact.inline.max.delta.commits": "1"}


@pytest.fixture
def pair(hudi: HudiOracle, tmp_path: Path) -> Pair:
    return Pair(hudi, tmp_path / "visits", "mor")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("hudi", RELEASES, indirect=True)
def test_compaction_executes_plans_of_other_writer(pair: Pair) -> None:
    """With writes of both between plan and deed, over the record index."""
    rows = {f"k{n}": 1 for n in range(4)}

    def written(ids: range, v: int, *, by_hudi: bool) -> None:
        (pair.hudi_writes if by_hudi else pair.pyhudi_writes)(ids, v)
        rows.update({f"k{n}": v for n in ids})
        pair.check(rows)

    written(range(2), 2, by_hudi=True)
    written(range(1, 4), 3, by_hudi=False)

    planned = pair.table.refresh().compact(execute=False)
    assert len(planned.scheduled) == 1
    written(range(2), 4, by_hudi=True)
    written(range(2, 6), 5, by_hudi=False)
    pair.call("run_compaction(op => 'run')")
    assert pending(pair) == []
    pair.check(rows)
    written(range(1, 3), 6, by_hudi=False)
    written(range(3, 5), 7, by_hudi=True)

    pair.call("run_compaction(op => 'schedule')", OFTEN)
    (instant,) = pending(pair)
    written(range(2), 8, by_hudi=False)
    written(range(2, 6), 9, by_hudi=True)
    done = pair.table.refresh().compact(schedule=False)
    assert done.instants == (instant,)
    assert pending(pair) == []
    pair.check(rows)
    written(range(4), 10, by_hudi=True)
    written(range(3), 11, by_hudi=False)

    assert pair.table.compact().files_written
    pair.check(rows)
    written(range(1, 3), 12, by_hudi=True)
    pair.call("run_compaction(op => 'scheduleandexecute')", OFTEN)
    pair.check(rows)
    written(range(1, 3), 13, by_hudi=False)


def pending(pair: Pair) -> list[str]:
    timeline = pair.table.refresh().state.timeline
    return [instant.requested for instant in timeline.pending(COMPACTION)]


LOGS = {
    "hoodie.log.compaction.enable": "true",
    "hoodie.log.compaction.inline": "true",
    "hoodie.log.compaction.blocks.threshold": "3",
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("hudi", RELEASES, indirect=True)
def test_log_files_that_either_has_merged(pair: Pair) -> None:
    """Hudi reads ours, carries out what we have planned, and goes on; and the reverse."""
    # Its default looks at base files, takes a key for an update that a log file has deleted, and
    # leaves the record index without it.
    pair.options["hoodie.index.type"] = "RECORD_INDEX"
    rows = {f"k{n}": 1 for n in range(4)}

    def written(ids: range, v: int, *, by_hudi: bool, merging: bool = False) -> None:
        if merging:
            pair.options.update(LOGS)
        (pair.hudi_writes if by_hudi else pair.pyhudi_writes)(ids, v)
        for name in LOGS:
            pair.options.pop(name, None)
        rows.update({f"k{n}": v for n in ids})

    for v in range(2, 6):
        written(range(3), v, by_hudi=v % 2 == 0)
    pair.table.refresh().delete_keys(people(range(2, 3), 0).select(["id", "city"]))
    del rows["k2"]
    done = pair.table.refresh().log_compact(min_log_files=3)
    assert done.files_written
    pair.check(rows)
    # Late rows.
    pair.hudi_writes(range(2), 3)
    written(range(2), 10, by_hudi=False)
    pair.check(rows)

    for v in range(11, 14):
        written(range(2), v, by_hudi=False)
    planned = pair.table.refresh().log_compact(min_log_files=3, execute=False)
    assert planned.scheduled == tuple(pending_merges(pair))
    written(range(2), 20, by_hudi=True, merging=True)
    assert planned.scheduled[0] not in pending_merges(pair)
    pair.check(rows)

    for v in range(21, 26):
        written(range(2), v, by_hudi=True, merging=True)
    operations = pair.table.refresh().inspect.commits()["operation"].to_pylist()
    assert operations.count("LOG_COMPACT") > 1, operations
    pair.check(rows)
    for v in range(26, 28):
        written(range(2), v, by_hudi=v % 2 == 0)
    assert pair.table.refresh().log_compact(min_log_files=2).files_written
    pair.check(rows)
    # What was deleted comes back. Hudi 1.x takes it off the record index when it merges log files
    # that delete it, wherever it is by then; here it has done so before.
    written(range(3), 30, by_hudi=True)
    # Without services, which would compact a file slice of so many log files.
    no_services = pair.conf | {"hoodie.table.services.enabled": "false"}
    pyhudi.open_table(pair.table.uri, options=no_services).upsert(people(range(3), 31))
    rows.update(dict.fromkeys(("k0", "k1", "k2"), 31))
    assert pair.table.log_compact(min_log_files=2).files_written
    pair.check(rows)
    assert pair.table.compact().files_written
    pair.check(rows)
    written(range(3), 32, by_hudi=True)
    pair.check(rows)


def pending_merges(pair: Pair) -> list[str]:
    timeline = pair.table.refresh().state.timeline
    return [instant.requested for instant in timeline.pending(LOG_COMPACTION)]
