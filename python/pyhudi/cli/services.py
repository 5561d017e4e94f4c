"""Commands that run table services. They change no rows, except `expire`."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from pyhudi.cli.arguments import (
    DryRun,
    Execute,
    Location,
    Memory,
    Partitions,
    Schedule,
    names,
    number_or_text,
)
from pyhudi.cli.command import Call, Work, commands


class Layout(str, Enum):
    """Order of rows for several sort columns."""

    linear = "linear"
    zorder = "zorder"
    hilbert = "hilbert"


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    works: dict[str, Work] = {
        "maintain": maintain,
        "compact": compact,
        "log-compact": log_compact,
        "cluster": cluster,
        "clean": clean,
        "archive": archive,
        "expire": expire,
    }
    commands(app, works)


def maintain(
    call: Call,
    table: Location,
    budget: Annotated[
        str | None, typer.Option("--budget", help="The budget: 90, 10m, 1h, or 2GiB to read.")
    ] = None,
    every: Annotated[
        str | None, typer.Option("--every", help="Repeat forever with this pause: 5m.")
    ] = None,
    memory_limit: Memory = None,
    *,
    dry_run: DryRun = False,
) -> None:
    """Run due services, the most useful first, until none is due."""
    result = call.open(table).maintain(
        number_or_text(budget),
        every=number_or_text(every),
        memory_limit=memory_limit,
        dry_run=dry_run,
        progress=call.progress,
    )
    if call.out.json or not call.out.quiet:
        call.out.text(str(result), result)


def compact(
    call: Call,
    table: Location,
    partition: Partitions = None,
    strategy: Annotated[
        str | None, typer.Option("--strategy", help="One of Hudi's classes.")
    ] = None,
    instant: Annotated[
        str | None, typer.Option("--instant", help="Execute only this pending compaction.")
    ] = None,
    memory_limit: Memory = None,
    *,
    schedule: Schedule = True,
    execute: Execute = True,
    dry_run: DryRun = False,
) -> None:
    """Merge log files of a merge-on-read table into base files."""
    result = call.open(table).compact(
        partitions=partition or None,
        strategy=strategy,
        schedule=schedule,
        execute=execute,
        instant=instant,
        dry_run=dry_run,
        memory_limit=memory_limit,
        progress=call.progress,
    )
    call.out.result(result)


def log_compact(
    call: Call,
    table: Location,
    partition: Partitions = None,
    min_log_files: Annotated[
        int | None, typer.Option("--min-log-files", help="Minimum number of log files.")
    ] = None,
    *,
    schedule: Schedule = True,
    execute: Execute = True,
    dry_run: DryRun = False,
) -> None:
    """Merge the log files of a file group into one."""
    result = call.open(table).log_compact(
        partitions=partition or None,
        min_log_files=min_log_files,
        schedule=schedule,
        execute=execute,
        dry_run=dry_run,
        progress=call.progress,
    )
    call.out.result(result)


def cluster(
    call: Call,
    table: Location,
    sort_by: Annotated[
        str | None, typer.Option("--sort-by", metavar="A,B", help="Columns to sort rows by.")
    ] = None,
    layout: Annotated[
        Layout | None, typer.Option("--layout", help="The order of rows for several columns.")
    ] = None,
    partition: Partitions = None,
    memory_limit: Memory = None,
    *,
    schedule: Schedule = True,
    execute: Execute = True,
    dry_run: DryRun = False,
) -> None:
    """Rewrite small files into larger, sorted file groups."""
    result = call.open(table).cluster(
        sort_by=names(sort_by),
        layout=None if layout is None else layout.value,
        partitions=partition or None,
        schedule=schedule,
        execute=execute,
        dry_run=dry_run,
        memory_limit=memory_limit,
        progress=call.progress,
    )
    call.out.result(result)


def clean(
    call: Call,
    table: Location,
    policy: Annotated[
        str | None,
        typer.Option("--policy", help="KEEP_LATEST_COMMITS, …_BY_HOURS, …_FILE_VERSIONS."),
    ] = None,
    retain: Annotated[
        int | None, typer.Option("--retain", help="Number of commits, hours or versions to retain.")
    ] = None,
    *,
    dry_run: DryRun = False,
) -> None:
    """Delete replaced files that are older than the retention."""
    result = call.open(table).clean(
        policy=policy, retain=retain, dry_run=dry_run, progress=call.progress
    )
    call.out.result(result)


def archive(
    call: Call,
    table: Location,
    min_commits: Annotated[
        int | None, typer.Option("--min-commits", help="Number of commits that stay active.")
    ] = None,
    max_commits: Annotated[
        int | None, typer.Option("--max-commits", help="Archive if there are more.")
    ] = None,
    *,
    dry_run: DryRun = False,
) -> None:
    """Move the oldest instants from the active timeline to the archive."""
    result = call.open(table).archive(
        min_commits=min_commits, max_commits=max_commits, dry_run=dry_run
    )
    call.out.result(result)


def expire(
    call: Call,
    table: Location,
    days: Annotated[
        int | None,
        typer.Option("--days", help="Drop partitions without a write for this many days."),
    ] = None,
    *,
    by_creation: Annotated[
        bool | None,
        typer.Option(
            "--by-creation/--by-write", help="Use the creation or the last write of a partition."
        ),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Delete partitions without a recent write."""
    result = call.open(table).expire_partitions(days, by_creation=by_creation, dry_run=dry_run)
    call.out.result(result)
