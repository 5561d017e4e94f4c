"""A loaded active timeline and its queries.

It is a snapshot: load it again to see later instants. The content of instants is read on demand.
`archive` has the archived instants; an instant older than the timeline's start counts as committed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyhudi.cached_property import cached_property
from pyhudi.config.actions import (
    CLUSTERING,
    COMMIT,
    COMPACTION,
    COMPLETED_ACTION,
    DELTA_COMMIT,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    ROLLBACK,
    SAVEPOINT,
    Instant,
    State,
)
from pyhudi.config.property_names import KEYS
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import KEEPER, LAYOUT_2, META_FOLDER, TimelineLayout
from pyhudi.errors import CorruptTable, TimelineMoved, UnsupportedTableFeature, without_hint
from pyhudi.storage.lru_cache import LruCache
from pyhudi.storage.storage import Entries, Paths, Storage
from pyhudi.timeline import serde
from pyhudi.timeline.archive import Archive
from pyhudi.timeline.commit_metadata import (
    CommitFile,
    CommitMetadata,
    NamedPaths,
    commit_metadata_of,
    decode_commit_files,
    paths_of_files,
)
from pyhudi.timeline.content_checks import check_content
from pyhudi.timeline.instant_range import InstantRange
from pyhudi.timeline.layout_change import AGAIN, MOVING, check_in_force, check_there, check_whole
from pyhudi.timeline.listed_instants import InstantIndex, parse_listing, select

_READ_AT_ONCE = 256
"""Maximum number of commits whose files one prefetch reads."""
_STATS_KEPT = 10_000
"""Maximum number of cached write stats of one timeline, about 10 MB."""


class Timeline:
    """The instants of a table's active timeline, one per time and action, oldest first."""

    def __init__(
        self,
        storage: Storage,
        layout: TimelineLayout,
        files: Iterable[Instant] | InstantIndex,
        archive: Archive,
    ) -> None:
        """`files`: one entry for every file of the timeline. Use `load` to read a table's."""
        index = files if isinstance(files, InstantIndex) else InstantIndex(files)
        self._storage = storage
        self._layout = layout
        self.archive: Archive = archive
        """The archived instants; read on demand."""
        # The archive when an instant of this timeline was last archived.
        self._later: Archive | None = None
        self._files = index.files
        self.instants: tuple[Instant, ...] = index.instants
        self._completed = index.completed
        self._pending = index.pending
        self.commits: tuple[Instant, ...] = index.commits
        """Completed commits, delta commits and replace commits."""
        self._committed = index.committed
        self.pending_times = index.pending_times
        """Requested times of the pending commits, compactions and clusterings."""
        self.first_active: str | None = self.start
        """The timeline's start: anything older that is not pending was committed and archived."""
        self.bound: str | None = None
        """The time at which this timeline was cut; later instants do not count. None if it is
        whole."""
        self.uncut: Timeline = self
        """The whole timeline, if this one was cut."""
        self.keys_counted = ""
        """The table's property about its keys (`key_uniqueness.py`)."""
        self._newest: CommitMetadata | None = None
        self._unpublished: dict[str, CommitMetadata] = {}
        """Metadata of a commit whose file does not exist yet, by requested time."""
        self._read = LruCache(_STATS_KEPT)
        self.other_entries: tuple[Paths, Entries] = ([], [])
        """The directories and other files that the listing of its directory had."""

    @classmethod
    def load(
        cls, storage: Storage, config: TableConfig, *, may_be_missing: bool = False
    ) -> Timeline:
        """List the timeline's directory. A table without instants has an empty timeline.

        Raises `TimelineMoved` if the table's layout has changed, `CorruptTable` if the directory is
        missing, unless it `may_be_missing`, and the errors of `check_whole`, which runs if it needs
        no request or if the timeline is empty.
        """
        layout = config.layout
        folders, entries = storage.list_dir(layout.folder)
        index, other_entries = parse_listing(storage, config, entries)
        if not index.files or any(entry.name == MOVING for entry in other_entries):
            check_in_force(storage, layout)
        if not (folders or entries or may_be_missing):
            check_there(storage, layout)
        timeline = cls(storage, layout, index, Archive(storage, config))
        timeline.other_entries = (folders, other_entries)
        timeline.keys_counted = config.properties.get(KEYS, "")
        if not may_be_missing and not (index.files and timeline.completes_in_names):
            timeline.check_whole()
        return timeline

    def until(self, requested: str) -> Timeline:
        """Return the timeline without instants requested after a time (time travel).

        Archived instants stay committed, except those after that time.
        """
        files = (file for states in self._files.values() for file in states.values())
        files_before = (file for file in files if file.requested <= requested)
        cut = Timeline(self._storage, self._layout, files_before, self.archive)
        cut.first_active = self.first_active
        cut.bound = requested
        cut.uncut = self.uncut
        cut.keys_counted = self.keys_counted
        cut.other_entries = self.other_entries
        cut._unpublished = self._unpublished
        return cut

    def without(self, instants: Collection[Instant]) -> Timeline:
        """Return the timeline as if some of its instants had never been requested.

        Archived instants stay committed.
        """
        removed = {(instant.requested, instant.completed_action) for instant in instants}
        remaining = (states for key, states in self._files.items() if key not in removed)
        files = (file for states in remaining for file in states.values())
        timeline = Timeline(self._storage, self._layout, files, self.archive)
        timeline.first_active = self.first_active
        timeline.keys_counted = self.keys_counted
        timeline.other_entries = self.other_entries
        return timeline

    def with_reopened(self, times: Collection[str]) -> Timeline:
        """Return the timeline as if completed instants of these times were still inflight."""
        files = (
            replace(file, state=State.INFLIGHT, completed=None)
            if file.is_completed and file.requested in times
            else file
            for states in self._files.values()
            for file in states.values()
        )
        timeline = Timeline(self._storage, self._layout, files, self.archive)
        timeline.other_entries = self.other_entries
        return timeline

    def with_completed(
        self, instant: str, action: str, completion: str, unpublished: CommitMetadata | None = None
    ) -> Timeline:
        """Return the timeline after an instant is completed, which need not be on it yet.

        unpublished: metadata of a commit that has no completed file yet. Without them only for a
        layout whose file names have the completion time.
        """
        layout = self._layout
        states = self._files.get((instant, COMPLETED_ACTION.get(action, action)), {})
        files = [file for states in self._files.values() for file in states.values()]
        names = (
            layout.file_name(instant, action, State.REQUESTED),
            layout.file_name(instant, action, State.INFLIGHT),
            layout.file_name(instant, action, State.COMPLETED, completion),
        )
        added = filter(None, map(layout.parse, names))
        files += [file for file in added if file.state.rank not in states]
        timeline = Timeline(self._storage, layout, files, self.archive)
        timeline.keys_counted = self.keys_counted
        timeline.other_entries = self.other_entries
        if unpublished is not None:
            timeline._unpublished = {instant: unpublished}
        return timeline

    def filter_completed(self, *actions: str) -> tuple[Instant, ...]:
        """Return the completed instants of some actions; of all actions by default."""
        return select(self._completed, actions)

    def pending(self, *actions: str) -> tuple[Instant, ...]:
        """Return the requested and inflight instants of some actions; of all actions by default."""
        return select(self._pending, actions)

    @property
    def folder(self) -> str:
        """The directory of its files, relative to the table."""
        return self._layout.folder

    def path(self, instant: Instant) -> str:
        """Return the path of an instant's file, relative to the table."""
        return self._layout.path(instant.file_name)

    @property
    def last_commit(self) -> Instant | None:
        """The completed commit with the latest requested time."""
        return self.commits[-1] if self.commits else None

    @property
    def published_commits(self) -> tuple[Instant, ...]:
        """The completed commits whose files exist."""
        return tuple(c for c in self.commits if c.requested not in self._unpublished)

    @property
    def pending_compactions(self) -> tuple[Instant, ...]:
        """Pending compactions, without log compactions."""
        return self.pending(COMPACTION)

    def times_of_pending_compactions(self) -> frozenset[str]:
        """Return the requested times of the pending compactions."""
        return frozenset(instant.requested for instant in self.pending_compactions)

    def is_committed(self, requested: str) -> bool:
        """Return whether the files of an instant count as committed.

        They do if the instant is a completed commit, or is older than the timeline's start and not
        pending, since it then has been archived (`HoodieTimeline.containsOrBeforeTimelineStarts`).
        A write that a rollback on the timeline names was not archived: it may have written its
        files after the rollback. Hudi 1.2.0 reads them in a table whose first commits are not
        archived yet.

        Raises `UnsupportedTableFeature` for a commit that was archived past an older one with a
        savepoint.
        """
        if requested in self._committed:
            return True
        if requested in self.pending_times or self.first_active is None:
            return False
        if self.bound is not None and requested > self.bound:
            return False
        if self.is_before_start(requested):
            return requested not in self.rolled_back_writes or self._was_archived(requested)
        self._check_in_no_hole(requested)
        # An instant that is not on the timeline was a failed write, or was moved to the other
        # layout.
        self.check_whole()
        return False

    @cached_property
    def rolled_back_writes(self) -> frozenset[str]:
        """Writes that its rollbacks name. Services do not count: they rerun at their instant."""
        cache, uri = self._storage.cache, self._storage.uri
        rollbacks = self.uncut.filter_completed(ROLLBACK)
        keys = {rollback: (uri, f"{self.path(rollback)}#writes") for rollback in rollbacks}
        writes = {rollback: cache.get(key) for rollback, key in keys.items()}
        unread = [rollback for rollback, cached in writes.items() if cached is None]
        with self._storage.prefetch(files=[self.path(rollback) for rollback in unread]):
            for rollback in unread:
                writes[rollback] = self._writes_of(rollback)
                cache.put(keys[rollback], writes[rollback], weight=1)
        return frozenset().union(*writes.values())

    def _writes_of(self, rollback: Instant) -> frozenset[str]:
        targets = (self.read(rollback) or {}).get("instantsRollback") or ()
        writes = (COMMIT, DELTA_COMMIT)
        return frozenset(target["commitTime"] for target in targets if target["action"] in writes)

    def _was_archived(self, requested: str) -> bool:
        actions = (COMMIT, DELTA_COMMIT)
        return any(self.archive.find(requested, action) is not None for action in actions)

    def _check_in_no_hole(self, requested: str) -> None:
        """Raise `UnsupportedTableFeature` for a commit that was archived past one with a savepoint.

        Hudi's readers take it for a failed write and lose its rows (0.15.0, 1.0.2, 1.2.0).
        """
        if requested in self.archived_behind_saved:
            raise UnsupportedTableFeature(
                f"hoodie.archive.beyond.savepoint: the commit {requested} has left the timeline, "
                "where an older one with a savepoint stays",
                hint="Delete the savepoint, and archive the commit, with Apache Hudi.",
            )

    def check_whole(self) -> None:
        """Raise `UnsupportedTableFeature` if another layout's directory has instants too.

        See `layout_change.py`. Checked only once.
        """
        _ = self._is_whole

    @cached_property
    def _is_whole(self) -> bool:
        folders, files = self.meta_folder
        if self.completes_in_names:
            check_whole(self._storage, self._layout, files)
        elif LAYOUT_2.folder in folders:
            check_whole(self._storage, self._layout, self._storage.list_dir(LAYOUT_2.folder)[1])
        return True

    @cached_property
    def meta_folder(self) -> tuple[Paths, Entries]:
        """Content of the table's `.hoodie` directory, without this timeline's instants."""
        return (
            self._storage.list_dir(META_FOLDER) if self.completes_in_names else self.other_entries
        )

    @cached_property
    def may_have_archived(self) -> bool:
        """Whether instants may have been archived. It lists the archive until it finds one."""
        if not has_known_archive(self._storage, self.archive.folder):
            _, files = self._storage.list_dir(self.archive.folder)
            if not any(file.name != KEEPER for file in files):
                return False
            self._storage.listings[f"{self._storage.uri}/{self.archive.folder}"] = True
        return True

    def is_before_start(self, requested: str) -> bool:
        """Return whether a time is before the active timeline: its instants are archived."""
        return self.first_active is None or requested < self.first_active

    @property
    def blocks_start(self) -> str | None:
        """The time before which log blocks count as committed, because their instants are archived.

        Archiving stops at the oldest pending instant, so a pending write before the timeline's
        start moves the boundary down.
        """
        times = [*self.pending_times, *([self.first_active] if self.first_active else [])]
        return min(times, default=None)

    def completion_time(self, requested: str) -> str | None:
        """Return when a commit was completed; None for a pending or an archived one."""
        instant = self._committed.get(requested)
        return None if instant is None else instant.completed

    def find(self, requested: str, action: str) -> Instant | None:
        """Return the instant of a time and an action, pending or completed."""
        states = self._files.get((requested, COMPLETED_ACTION.get(action, action)))
        return states[max(states)] if states else None

    def of_same_time(self, requested: str, action: str) -> tuple[Instant, ...]:
        """Return other actions with the requested time of an action, except its savepoint.

        Hudi creates times without a lock up to 0.15. The metadata table has one delta commit for
        all of them: the last one to complete overwrites the records of the others.
        """
        same = (SAVEPOINT, COMPLETED_ACTION.get(action, action))
        return tuple(
            instant
            for instant in self.instants
            if instant.requested == requested and instant.completed_action not in same
        )

    @property
    def completes_in_names(self) -> bool:
        """Whether file names contain completion times; else they are modification times."""
        return self._layout.completion_in_name

    def latest_time(self) -> str | None:
        """Return the latest requested or completion time on the timeline."""
        times = [i.requested for i in self.instants]
        if self._layout.completion_in_name:
            times += [i.completed for i in self.instants if i.completed is not None]
        return max(times, default=None)

    def files(self, instant: Instant) -> tuple[Instant, ...]:
        """Return every file of an instant, from requested on; `file_name` identifies each."""
        states = self._files[(instant.requested, instant.completed_action)]
        return tuple(states[rank] for rank in sorted(states))

    def read(self, instant: Instant) -> dict[str, Any] | None:
        """Return the content of the file of the furthest state, None if it is empty.

        Raises `CorruptTable` if it is neither JSON nor an Avro container of one record, or if the
        record is invalid.
        """
        return self._read_file(instant)

    def plan(self, instant: Instant) -> dict[str, Any] | None:
        """Return the content of the requested file, None if it is empty or missing.

        Raises `CorruptTable` as `read` does, and for an invalid plan.
        """
        try:
            return self._content_of(instant, State.REQUESTED)
        except CorruptTable as error:
            if instant.is_completed or instant.action not in (CLUSTERING, REPLACE_COMMIT):
                raise
            hint = f'rollback("{instant.requested}") cancels it.'
            raise CorruptTable(
                without_hint(error), file=error.file, offset=error.offset, hint=hint
            ) from error

    def has_damaged_plan(self, instant: Instant) -> bool:
        """Return whether the plan of a pending instant is unreadable."""
        try:
            self.plan(instant)
        except CorruptTable:
            return True
        return False

    def is_clustering(self, instant: Instant) -> bool:
        """Return whether a replace commit is a clustering, as its plan shows up to version 6."""
        if instant.action != REPLACE_COMMIT:
            return False
        return (self.plan(instant) or {}).get("clusteringPlan") is not None

    def inflight(self, instant: Instant) -> dict[str, Any] | None:
        """Return the content of the inflight file, None if it is empty or missing."""
        return self._content_of(instant, State.INFLIGHT)

    def _content_of(self, instant: Instant, state: State) -> dict[str, Any] | None:
        file = self._files[(instant.requested, instant.completed_action)].get(state.rank)
        return None if file is None else self._read_file(file)

    def workload(self, instant: Instant) -> CommitMetadata:
        """Return the workload profile of a pending write, from its inflight file.

        Raises `CorruptTable` as `commit_metadata` does.
        """
        return commit_metadata_of(self.inflight(instant), self.path(instant))

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """Return the metadata of a commit; the default for an empty file, as in Hudi.

        Raises `CorruptTable` as `read` does, and for a record that is not commit metadata.
        """
        if instant.requested in self._unpublished:
            return self._unpublished[instant.requested]
        cache, path = self._cache if instant.is_completed else self._read, self.path(instant)
        if cache is self._read and instant == self.last_commit:
            # It is read for the schema, row sizes and keys, and may be too large for the cache.
            if self._newest is None:
                self._newest = commit_metadata_of(self.read(instant), path)
            return self._newest
        metadata: CommitMetadata | None = cache.get((self._storage.uri, path))
        if metadata is None:
            metadata = commit_metadata_of(self.read(instant), path)
            _put(cache, self._storage, path, metadata)
        return metadata

    def files_of_commits(self) -> Iterator[tuple[Instant, tuple[CommitFile, ...]]]:
        """Yield every commit with the files that it names, oldest first.

        The core decodes commits that are not cached. Raises as `commit_metadata` does.
        """
        for commits in self._portions():
            yield from zip(commits, self._files_of(commits), strict=True)

    def paths_of_commits(self) -> Iterator[tuple[Instant, NamedPaths]]:
        """Yield every commit with the paths that it names, oldest first, as `files_of_commits`."""
        for commits in self._portions():
            keys = [(self._storage.uri, f"{self.path(commit)}#paths") for commit in commits]
            cached = [self._cache.get(key) for key in keys]
            unread = [
                commit for commit, paths in zip(commits, cached, strict=True) if paths is None
            ]
            read = map(paths_of_files, self._files_of(unread) if unread else ())
            for commit, key, cached_paths in zip(commits, keys, cached, strict=True):
                paths: NamedPaths = next(read) if cached_paths is None else cached_paths
                if cached_paths is None:
                    self._cache.put(key, paths, weight=len(paths.paths) // 4 + 1)
                yield commit, paths

    def _portions(self) -> Iterator[Sequence[Instant]]:
        for first in range(0, len(self.commits), _READ_AT_ONCE):
            yield self.commits[first : first + _READ_AT_ONCE]

    def _files_of(self, commits: Sequence[Instant]) -> Iterator[tuple[CommitFile, ...]]:
        cached = [self._files_from_cache(commit) for commit in commits]
        unread = [commit for commit, files in zip(commits, cached, strict=True) if files is None]
        read = iter(self._read_files(unread))
        return (next(read) if files is None else files for files in cached)

    def _files_from_cache(self, commit: Instant) -> tuple[CommitFile, ...] | None:
        path = self.path(commit)
        files: tuple[CommitFile, ...] | None = self._cache.get((self._storage.uri, f"{path}#files"))
        if files is None:
            metadata = self._cache.get((self._storage.uri, path))
            return None if metadata is None else metadata.files
        return files

    @property
    def _cache(self) -> LruCache:
        # A file whose name has its completion time never changes.
        return self._storage.cache if self.completes_in_names else self._read

    def _read_files(self, commits: Sequence[Instant]) -> list[tuple[CommitFile, ...]]:
        paths = [self.path(commit) for commit in commits]
        with self._storage.prefetch(files=paths):
            contents = [self._storage.read_or_none(path) for path in paths]
        decoded = decode_commit_files([content or b"" for content in contents])
        files_by_commit = []
        for commit, path, content, files in zip(commits, paths, contents, decoded, strict=True):
            if content is None or files is None:
                # It was archived in between, or is damaged, which this reports.
                files = self.commit_metadata(commit).files  # noqa: PLW2901
            # Names take half the memory of the whole metadata.
            key = (self._storage.uri, f"{path}#files")
            self._cache.put(key, files, weight=len(files) // 2 + 1)
            files_by_commit.append(files)
        return files_by_commit

    def _read_file(self, file: Instant) -> dict[str, Any] | None:
        path = self.path(file)
        data = self._storage.read_or_none(path)
        if data is None:
            check_in_force(self._storage, self._layout)
            return self._read_if_archived(file)
        content = serde.decode(data, path)
        if content is not None:
            check_content(content, file, path)
        return content

    def _read_if_archived(self, file: Instant) -> dict[str, Any] | None:
        """Return the content of an instant that was archived after the timeline was listed."""
        if file.is_completed:
            for archive in filter(None, (self._later, self.archive.reload())):
                archived = archive.find(file.requested, file.action)
                if archived is not None:
                    self._later = archive
                    return archive.read(archived)
        path = self.path(file)
        msg = f"{path} is missing: it was archived or rolled back since the timeline was listed"
        raise TimelineMoved(msg, hint=AGAIN)

    @property
    def start(self) -> str | None:
        """The oldest of its commits and of its pending compactions and clusterings."""
        planned = self.pending(COMPACTION, LOG_COMPACTION, CLUSTERING)
        return min((i.requested for i in (*self.commits, *planned)), default=None)

    @cached_property
    def archived_behind_saved(self) -> frozenset[str]:
        """Commits that were archived although older ones with savepoints stayed."""
        saved = {i.requested for i in self.instants if i.action == SAVEPOINT}
        if not saved:
            return frozenset()
        first, times = min(saved), (commit.requested for commit in self.commits)
        instant_range = InstantRange(
            after=first, until=next((t for t in times if t > first and t not in saved), None)
        )
        return frozenset(commit.requested for commit in self.archive.commits(instant_range))


def has_known_archive(storage: Storage, folder: str) -> bool:
    """Return whether an earlier listing found archived instants, so that none is needed.

    It stays true after a table is recreated. Then it is checked more often than necessary.
    """
    return f"{storage.uri}/{folder}" in storage.listings


def keep_commit(storage: Storage, path: str, data: bytes) -> None:
    """Cache the metadata of a commit that was just completed, for `Timeline.commit_metadata`.

    path: of a file whose name contains the completion time.
    """
    _put(storage.cache, storage, path, commit_metadata_of(serde.decode(data, path), path))


def _put(cache: LruCache, storage: Storage, path: str, metadata: CommitMetadata) -> None:
    cache.put((storage.uri, path), metadata, weight=len(metadata.write_stats) + 1)
