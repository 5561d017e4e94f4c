"""The table that a method uses for one call: it is watched, and adds commit metadata.

A callback gets every step: the finished tasks and the number of
tasks of each engine call. `True` draws a bar in a terminal if `rich` is installed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TypeAlias

from pyhudi.clock import SystemClock
from pyhudi.config.extra_metadata import with_commit_id, with_entries
from pyhudi.config.table_config import TableConfig
from pyhudi.engine.protocol import Step
from pyhudi.table.participants import CommitParticipant
from pyhudi.txn.operation_metrics import OperationWatcher
from pyhudi.write.table_opening import Handle, WritableTable

Report: TypeAlias = Callable[[Step], None]
Progress: TypeAlias = bool | Report
"""True to draw a bar in a terminal, or a function to call at each step."""


def with_commit_metadata(
    table: WritableTable,
    previous: TableConfig,
    entries: Mapping[str, str] | None,
    commit_id: str | None,
    participants: tuple[CommitParticipant, ...] = (),
) -> Handle:
    """Return the table for one write whose commit has these entries and this id.

    Raises `ConfigError` for entries that are not strings by name, or have a reserved name.

    previous: the table's properties, possibly out of date. entries: extra metadata of the commit.
    commit_id: id of the commit. participants: of this write, in addition to those of the table.
    """
    options = table.options
    if entries is not None:
        options = with_entries(options, entries)
    if commit_id is not None:
        options = with_commit_id(options, commit_id)
    handle = Handle(
        table.storage, table.engine, options, previous_config=previous, participants=participants
    )
    return Handle.of(handle, SystemClock())


@contextmanager
def watch_operation(
    table: WritableTable, title: str, progress: Progress = False
) -> Iterator[tuple[WritableTable, OperationWatcher]]:
    """Yield the table for one method, and the watcher that has the method's metrics.

    title: the operation and the table's name: "upsert of trips". progress: whether to draw a bar
    while the block runs, or a function that gets a `Step` when an engine call begins and whenever
    tasks of it are finished, one call at a time. An error of the function ends the method.
    """
    with nullcontext(progress or None) if progress is not True else _bar() as report:
        watcher = OperationWatcher(f"pyhudi {title}", report)
        engine = table.engine.with_watcher(watcher)
        yield replace(Handle.of(table, SystemClock()), engine=engine), watcher


@contextmanager
def _bar() -> Iterator[Report | None]:
    """Yield a callback that draws a bar; None without a terminal or without `rich`."""
    try:
        from rich.progress import Progress as Bar  # noqa: PLC0415 - an extra
    except ImportError:
        yield None
        return
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - an extra

    with Bar(console=Console(stderr=True), transient=True) as bar:
        bar_tasks: dict[str, int] = {}

        def show(step: Step) -> None:
            if step.label not in bar_tasks:
                # Without a total, the bar shows that the number of tasks is not known yet.
                bar_tasks[step.label] = int(bar.add_task(step.label, total=step.total or None))
            task = bar.tasks[bar_tasks[step.label]].id
            bar.update(task, completed=step.finished, total=step.total or None)

        yield show
