"""Compactions that pyhudi plans and Apache Hudi carries out, the reverse, and each the other's."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.config.actions import COMPACTION
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.pair import Pair

RELEASES = ["0.15.0", "1.0.2", "1.2.0"]
OFTEN = {"hoodie.compact.inline.max.delta.commits": "1"}


@pytest.fixture
def pair(hudi: HudiOracle, tmp_path: Path) -> Pair:
    return Pair(hudi, tmp_path / "visits", "mor")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("hudi", RELEASES, indirect=True)
def test_each_carries_out_what_the_other_planned(pair: Pair) -> None:
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
