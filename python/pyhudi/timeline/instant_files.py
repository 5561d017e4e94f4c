"""Creates and removes the files of an instant's states, which no other module does.

`config/timeline_layout.py` has their names.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyhudi.config.actions import COMPLETED_ACTION, State
from pyhudi.config.timeline_layout import TimelineLayout
from pyhudi.errors import CommitConflict, retryable_conflict
from pyhudi.storage.storage import Storage


def request(
    layout: TimelineLayout, storage: Storage, time: str, action: str, content: bytes = b""
) -> None:
    """Create the requested file. Raises `CommitConflict` if the instant exists already."""
    _create(layout, storage, layout.file_name(time, action, State.REQUESTED), content)


def start(
    layout: TimelineLayout, storage: Storage, time: str, action: str, content: bytes = b""
) -> None:
    """Create the inflight file. Raises `CommitConflict` if it exists already."""
    _create(layout, storage, layout.file_name(time, action, State.INFLIGHT), content)


def check_inflight(layout: TimelineLayout, storage: Storage, time: str, action: str) -> None:
    """Raise `CommitConflict` unless the instant is inflight, and not complete at any time."""
    name = layout.file_name(time, action, State.INFLIGHT)
    if not layout.completion_in_name:
        inflight = storage.exists(layout.path(name))
    else:
        names = [entry.name for entry in storage.list_dir(layout.folder)[1]]
        done = COMPLETED_ACTION.get(action, action)
        if _find_completed_file(layout, names, time, done) is not None:
            raise _already_there(f"{time}.{done}")
        inflight = name in names
    if not inflight:
        raise retryable_conflict(f"the {action} {time} was rolled back by another writer")


def publish(
    layout: TimelineLayout,
    storage: Storage,
    time: str,
    action: str,
    completion_time: str,
    content: bytes,
) -> None:
    """Create the completed file, which publishes the instant.

    The caller has just checked that it is inflight. Raises `CommitConflict` if the file exists.
    Layout 1 does not store `completion_time`.
    """
    name = layout.file_name(time, action, State.COMPLETED, completion_time)
    _create(layout, storage, name, content)


def is_completed_otherwise(
    layout: TimelineLayout, storage: Storage, time: str, action: str, completion_time: str
) -> bool:
    """Return whether another writer completed the instant at another time."""
    if not layout.completion_in_name:
        return False
    own = layout.file_name(time, action, State.COMPLETED, completion_time)
    names = [entry.name for entry in storage.list_dir(layout.folder)[1] if entry.name != own]
    done = COMPLETED_ACTION.get(action, action)
    return _find_completed_file(layout, names, time, done) is not None


def remove(layout: TimelineLayout, storage: Storage, time: str, action: str, state: State) -> bool:
    """Remove the file of one state, as the last step of a rollback; false if there was none."""
    if state is not State.COMPLETED:
        return storage.delete(layout.path(layout.file_name(time, action, state)))
    names = [entry.name for entry in storage.list_dir(layout.folder)[1]]
    name = _find_completed_file(layout, names, time, COMPLETED_ACTION.get(action, action))
    return name is not None and storage.delete(layout.path(name))


def _find_completed_file(
    layout: TimelineLayout, names: Iterable[str], time: str, action: str
) -> str | None:
    for name in names:
        parsed = layout.parse(name)
        if parsed is None or parsed.state is not State.COMPLETED:
            continue
        if (parsed.requested, parsed.action) == (time, action):
            return parsed.file_name
    return None


def _create(layout: TimelineLayout, storage: Storage, name: str, content: bytes) -> None:
    if storage.put_if_absent(layout.path(name), content):
        return
    # After a lost response the store retries, and finds the file that it created itself.
    if not content or storage.read_or_none(layout.path(name)) != content:
        raise _already_there(name)


def _already_there(name: str) -> CommitConflict:
    return CommitConflict(
        f"the timeline already has {name}",
        hint="Another writer took the same instant: run the operation again.",
        retry=True,
    )
