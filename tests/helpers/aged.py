"""Pending work whose writer shows no heartbeat and has been gone for long, as Hudi leaves it."""

from __future__ import annotations

import os
from pathlib import Path

import pyhudi
from pyhudi.clock import SystemClock
from pyhudi.config.actions import (
    CLUSTERING,
    COMPACTION,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    RESTORE,
    ROLLBACK,
)
from pyhudi.txn.heartbeat import UNSEEN_MS


def age(base: Path, *instants: str) -> None:
    """Has all that bears these instants be as old as what a dead writer left, markers too."""
    then = (SystemClock().now_ms() - UNSEEN_MS) / 1000 - 1
    for instant in instants:
        for named in base.rglob(f"*{instant}*"):
            for path in (named, *named.rglob("*")):
                os.utime(path, (then, then))


def age_what_waits(base: Path) -> None:
    """`age` for services, restores and rollbacks that are pending."""
    actions = (COMPACTION, LOG_COMPACTION, CLUSTERING, REPLACE_COMMIT, RESTORE, ROLLBACK)
    pending = pyhudi.open_table(base).state.timeline.pending(*actions)
    age(base, *(instant.requested for instant in pending))
