"""What a verb is handed for one call: a table whose engine tells how far it is, and what to say.

The verbs know nothing of it. Of tasks finished and tasks to do for each call of the engine a
callback gets every step; `True` draws a bar, in a terminal where `rich` is installed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from pyhudi.clock import SystemClock
from pyhudi.config.extra_metadata import with_commit_id, with_entries
from pyhudi.config.table_config import TableConfig
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.protocol import Step
from pyhudi.write.write_context import Handle, WritableTable

Report: TypeAlias = Callable[[Step], None]


def with_commit_metadata(
    table: WritableTable,
    known: TableConfig,
    entries: Mapping[str, str] | None,
    commit_id: str | None,
) -> Handle:
    """The table for one verb whose commit says these entries in its extra metadata, and its id.

    known: the table's properties as they were a while ago. Raises `ConfigError` for entries that
    are no texts by name, or have a name that is taken.
    """
    options = table.options
    if entries is not None:
        options = with_entries(options, entries)
    if commit_id is not None:
        options = with_commit_id(options, commit_id)
    said = Handle(table.storage, table.engine, options, known=known)
    return Handle.of(said, SystemClock())


@contextmanager
def with_progress(table: WritableTable, progress: bool | Report) -> Iterator[WritableTable]:
    """The table for one verb, with its progress shown while the block runs.

    progress: whether to draw a bar, or a function that gets a `Step` when an engine call begins and
    whenever one of its tasks is finished, one call at a time. What it raises ends the verb. Engines
    of other processes tell nothing.
    """
    engine = table.engine
    if progress is False or not isinstance(engine, LocalEngine):
        yield table
        return
    if progress is not True:
        yield replace(Handle.of(table, SystemClock()), engine=engine.with_progress(progress))
        return
    with _bar() as report:
        told = engine if report is None else engine.with_progress(report)
        yield replace(Handle.of(table, SystemClock()), engine=told)


@contextmanager
def _bar() -> Iterator[Report | None]:
    """Draws what it is told, or None where there is no terminal or no `rich`."""
    try:
        from rich.progress import Progress  # noqa: PLC0415 - an extra
    except ImportError:
        yield None
        return
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - an extra

    with Progress(console=Console(stderr=True), transient=True) as bar:
        known: dict[str, int] = {}

        def show(step: Step) -> None:
            if step.label not in known:
                known[step.label] = int(bar.add_task(step.label, total=step.total))
            task = bar.tasks[known[step.label]].id
            bar.update(task, completed=step.finished, total=step.total)

        yield show
