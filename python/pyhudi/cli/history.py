"""Commands about a table's past: history, savepoints, consumers, rollback, restore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pyhudi.cli.arguments import DryRun, Limit, Location, Yes
from pyhudi.cli.command import Call, Group
from pyhudi.config.formatting import count_text, size_text

if TYPE_CHECKING:  # Help needs none of it.
    from pyhudi.txn.restore import RestoreResult

Archived = Annotated[bool, typer.Option("--archived", help="Include archived instants.")]
Instant = Annotated[str, typer.Argument(metavar="INSTANT", help="Instant of the commit.")]


def timeline(call: Call, table: Location, *, archived: Archived = False) -> None:
    """List the instants with their latest state, oldest first."""
    call.out.listing(call.open(table).inspect.timeline(archived=archived))


def commits(call: Call, table: Location) -> None:
    """List the completed commits of the active timeline with statistics, oldest first."""
    call.out.listing(call.open(table).inspect.commits())


def history(
    call: Call,
    table: Location,
    limit: Limit = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only instants requested after this time.")
    ] = None,
    *,
    archived: Archived = False,
) -> None:
    """Show the history of the table, newest first, with the extra metadata of commits.

    Use an `instant` or a `completed` time as --start or --end of `incremental` and `changes`. To
    follow a table, use their --position.
    """
    call.out.listing(call.open(table).history(limit, archived=archived, since=since))


def rollback(
    call: Call, table: Location, instant: Instant, *, dry_run: DryRun = False, yes: Yes = False
) -> None:
    """Roll back the newest completed commit, or a failed pending write."""
    opened = call.open(table)
    if not dry_run:

        def question() -> str:
            return f"Roll back {instant}, {_describe_loss(opened.rollback(instant, dry_run=True))}?"

        call.confirm(question, yes=yes)
    call.out.result(opened.rollback(instant, dry_run=dry_run))


def restore(
    call: Call,
    table: Location,
    to: Annotated[str, typer.Argument(metavar="TIME", help="Instant of a commit, or a time.")],
    *,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Restore the table to an earlier commit; later commits are deleted permanently."""
    opened = call.open(table)
    if not dry_run:

        def question() -> str:
            return f"Restore the table to {to}, {_describe_loss(opened.restore(to, dry_run=True))}?"

        call.confirm(question, yes=yes)
    call.out.result(opened.restore(to, dry_run=dry_run))


def create(
    call: Call,
    table: Location,
    comment: Annotated[str, typer.Option("--comment", help="Comment of the savepoint.")] = "",
    instant: Annotated[
        str | None, typer.Option("--instant", help="Instant of the commit; default: the newest.")
    ] = None,
) -> None:
    """Create a savepoint, so that the cleaner retains the files of a commit."""
    saved = call.open(table).savepoint(comment, instant)
    call.out.print_done(f"saved {saved}", instant=saved)


def list_(call: Call, table: Location) -> None:
    """List the savepoints, oldest first."""
    call.out.rows(call.open(table).savepoints())


def delete(call: Call, table: Location, instant: Instant) -> None:
    """Delete a savepoint; the commit stays."""
    call.open(table).delete_savepoint(instant)
    call.out.print_done(f"deleted the savepoint of {instant}", instant=instant)


savepoint = Group(
    "Create, list and delete savepoints.", {"create": create, "list": list_, "delete": delete}
)


Consumer = Annotated[str, typer.Argument(metavar="NAME", help="Name of the consumer.")]


def list_consumers(call: Call, table: Location) -> None:
    """List the consumers of streams and their positions, by name."""
    call.out.rows(call.open(table).consumers())


def reset_consumer(
    call: Call,
    table: Location,
    name: Consumer,
    to: Annotated[
        str,
        typer.Argument(
            metavar="POSITION", help="A position, an instant, a time, `latest` or `earliest`."
        ),
    ],
) -> None:
    """Move a consumer, so that its next stream begins after a position."""
    call.open(table).reset_consumer(name, to)
    call.out.print_done(f"moved the consumer {name} to {to}", consumer=name, position=to)


def delete_consumer(call: Call, table: Location, name: Consumer) -> None:
    """Delete a consumer; a stream with its name begins as a new one."""
    call.open(table).delete_consumer(name)
    call.out.print_done(f"deleted the consumer {name}", consumer=name)


consumer = Group(
    "List, move and delete consumers of streams.",
    {"list": list_consumers, "reset": reset_consumer, "delete": delete_consumer},
)


def _describe_loss(planned: RestoreResult) -> str:
    instants = count_text(len(planned.instants), "instant")
    files = count_text(planned.files_deleted, "file")
    return f"losing {instants}, {files} of {size_text(planned.bytes_deleted)}"
