"""A reader whose files go while it reads: what took them, where that was nobody's fault.

A scan is of one moment. Files of that moment stay as long as cleaners keep them, which is ten
commits by default; a reader that is slower than those cannot go on. Up to version 6 it opens log
files of writes beside it too, whose blocks do not count; they go where a write is withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from pyhudi.config.actions import CLEAN, RESTORE, ROLLBACK
from pyhudi.errors import HistoryUnavailable, HudiError, MissingFile, without_hint
from pyhudi.slices.cleaned_files import was_never_committed
from pyhudi.slices.missing_files import explain_missing_file
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.instant_range import InstantRange

_REMOVING = (CLEAN, RESTORE, ROLLBACK)

Item = TypeVar("Item")


def detect_concurrent_clean(found: Iterable[Item], table: TableSnapshot) -> Iterator[Item]:
    """What a scan of a table gives, which is as it was when the scan was made.

    Raises `HistoryUnavailable` for a file that was removed since by who was free to. `MissingFile`
    for another one tells a likely cause.
    """
    try:
        yield from found
    except MissingFile as error:
        taken = _find_remover(table, (error.file or "").rsplit("/", 1)[-1])
        if taken is None:
            raise explain_missing_file(error, table.config, table.timeline.uncut) from error
        msg = f"{taken} removed files of the snapshot that is read: {without_hint(error)}"
        hint = (
            "refresh() the handle and read again. hoodie.clean.commits.retained says for how many "
            "commits files stay."
        )
        raise HistoryUnavailable(msg, hint=hint) from error


def _find_remover(table: TableSnapshot, name: str) -> str | None:
    """What may have removed a file since the table was looked at."""
    try:
        now = table.reload()
    except HudiError:
        return None
    known = set(table.timeline.uncut.instants)
    newest = max((instant.requested for instant in known), default=None)
    archived = now.timeline.archive.instants(InstantRange(after=newest))
    removers = (
        *(instant for instant in archived if instant.action in _REMOVING),
        *now.timeline.filter_completed(*_REMOVING),
        *now.timeline.pending(*_REMOVING),
    )
    since = [instant for instant in removers if instant not in known]
    if since:
        return str(since[-1])
    withdrawn = was_never_committed(now.timeline, now.config.version, name)
    return "a write that did not complete" if withdrawn else None
