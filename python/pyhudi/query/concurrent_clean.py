"""Finds the action that removed a file while a reader was reading.

A scan reads one snapshot. Cleaners retain its files for a while, by default for ten commits; a
slower reader cannot continue. Up to version 6, a reader also opens log files of concurrent writes,
whose blocks are not committed. They are removed if the write is withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from pyhudi.config.actions import CLEAN, RESTORE, ROLLBACK
from pyhudi.config.file_names import file_name_of
from pyhudi.errors import HistoryUnavailable, HudiError, MissingFile, without_hint
from pyhudi.slices.cleaned_files import was_never_committed
from pyhudi.slices.missing_files import explain_missing_file
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.instant_range import InstantRange

_REMOVING = (CLEAN, RESTORE, ROLLBACK)

Item = TypeVar("Item")


def detect_concurrent_clean(items: Iterable[Item], table: TableSnapshot) -> Iterator[Item]:
    """Yield the items of a scan. table: the scan's snapshot.

    Raises `HistoryUnavailable` for a file that a later action was allowed to remove. `MissingFile`
    for another file names a likely cause.
    """
    try:
        yield from items
    except MissingFile as error:
        remover = _find_remover(table, file_name_of(error.file))
        if remover is None:
            raise explain_missing_file(error, table.config, table.timeline.uncut) from error
        msg = f"{remover} removed files of the snapshot being read: {without_hint(error)}"
        hint = (
            "refresh() the handle and read again. hoodie.clean.commits.retained sets for how many "
            "commits files are kept."
        )
        raise HistoryUnavailable(msg, hint=hint) from error


def _find_remover(table: TableSnapshot, name: str) -> str | None:
    """Return the action that may have removed a file since the snapshot."""
    try:
        current = table.reload()
    except HudiError:
        return None
    earlier = set(table.timeline.uncut.instants)
    newest = max((instant.requested for instant in earlier), default=None)
    archived = current.timeline.archive.instants(InstantRange(after=newest))
    removers = (
        *(instant for instant in archived if instant.action in _REMOVING),
        *current.timeline.filter_completed(*_REMOVING),
        *current.timeline.pending(*_REMOVING),
    )
    since = [instant for instant in removers if instant not in earlier]
    if since:
        return str(since[-1])
    withdrawn = was_never_committed(current.timeline, current.config.version, name)
    return "a write that did not complete" if withdrawn else None
