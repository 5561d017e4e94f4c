"""Whether a cleaner that keeps file versions took files that were current at an earlier time.

A clean that keeps commits says from which on (`timeline/past.py`). One that keeps versions of files
does not, but it names the files that it took: each must have been superseded by the time asked for.
Hudi shows the rows of the other file groups as if they were all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pyhudi.config.actions import CLEAN, REPLACE_COMMIT
from pyhudi.config.file_names import CDC_SUFFIX, parse_base_name, parse_log_name
from pyhudi.errors import HistoryUnavailable
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.grouping import GroupKey
from pyhudi.timeline import Instant, Timeline
from pyhudi.timeline.spans import Span


def check_versions(
    timeline: Timeline, view: FileSystemView, wanted: Callable[[str], bool] | None
) -> None:
    """Raises `HistoryUnavailable` where files are gone that were current on a cut timeline.

    view: of that timeline. wanted: which partitions count, None for all.
    """
    if timeline.bound is None:
        return
    taken: dict[GroupKey, tuple[str, str]] = {}
    for clean, partition, name in _taken(timeline.uncut, timeline.bound):
        found = _group(name)
        if found is None or found[1] > timeline.bound or (wanted and not wanted(partition)):
            continue
        key, version = (partition, found[0]), (found[1], clean)
        taken[key] = max(version, taken.get(key, version))
    if not taken:
        return
    newest = {slice_.key: slice_.base_instant for slice_ in view.slices()}
    lost = {key: at for key, at in taken.items() if newest.get(key, "") <= at[0]}
    replaced = {*view.replaced, *(_replaced_before_start(timeline) if lost else ())}
    for (partition, file_id), (_, clean) in sorted(lost.items()):
        if (partition, file_id) not in replaced:
            raise HistoryUnavailable(
                f"as_of {timeline.bound}: the clean {clean}, which keeps file versions, removed "
                f"files of the group {file_id} in partition {partition!r} that were current then",
                hint="Let the cleaner retain more versions to be able to look further back.",
            )


def _taken(timeline: Timeline, since: str) -> Iterator[tuple[str, str, str]]:
    """The files that cleans after a time removed: the clean, the partition and the file's name.

    None where the newest clean has a horizon: it was looked at already.
    """
    active = timeline.completed(CLEAN)
    newest = timeline.read(active[-1]) or {} if active else {}
    if newest.get("earliestCommitToRetain"):
        return
    later = [instant for instant in active if instant.requested > since]
    for instant in later:
        yield from _files(instant, timeline.read(instant))
    if len(later) < len(active):
        return
    for instant in timeline.archive.instants(Span(after=since)):
        if instant.action == CLEAN:
            yield from _files(instant, timeline.archive.read(instant))


def _files(clean: Instant, metadata: dict[str, Any] | None) -> Iterator[tuple[str, str, str]]:
    for partition, part in ((metadata or {}).get("partitionMetadata") or {}).items():
        for name in part["successDeleteFiles"]:
            yield clean.requested, partition, name.rsplit("/", 1)[-1]


def _group(name: str) -> tuple[str, str] | None:
    """File id and instant of a base file or log file, None for other files."""
    found = parse_base_name(name) or parse_log_name(name)
    if found is None or name.endswith(CDC_SUFFIX):
        return None
    return found.file_id, found.instant


def _replaced_before_start(timeline: Timeline) -> set[GroupKey]:
    """Groups that archived replace commits took away."""
    archive = timeline.archive
    return {
        key
        for instant in archive.commits(Span(until=timeline.bound))
        if instant.action == REPLACE_COMMIT
        for key in archive.commit_metadata(instant).replaced
    }
