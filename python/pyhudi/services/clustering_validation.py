"""Validity of a clustering plan: changes of its file groups by concurrent writers.

A write to one of them would be lost, unless it is also in the buckets that replace it: Hudi's
writers may write to buckets that are split or merged and to their replacements
(`SparkConsistentBucketDuplicateUpdateStrategy`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyhudi.config.actions import Instant
from pyhudi.config.file_names import file_name_of
from pyhudi.errors import retryable_conflict
from pyhudi.slices.clustering_plan import new_buckets
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.slice_builder import GroupKey, records_of_plan
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.txn.conflicts import (
    ROW_PRESERVING_OPERATIONS,
    ConcurrentCommits,
    collect_written_file_groups,
)

Replacements = Mapping[GroupKey, frozenset[GroupKey]]
"""For each file group of a plan the buckets that replace it, if the plan names them."""


def find_change_since(table: TableSnapshot, instant: Instant) -> str:
    """Describe a change that invalidates a plan since it was created, or return ""."""
    timeline = table.timeline
    record = timeline.plan(instant) or {}
    planned = {
        (slice_["partitionPath"] or "", slice_["fileId"]): {
            file_name_of(path)
            for path in (slice_.get("dataFilePath") or "", *(slice_.get("deltaFilePaths") or ()))
        }
        for slice_ in records_of_plan(record)
    }
    replacements, changed_with_replacement = new_buckets(record), set[GroupKey]()
    for commit in timeline.commits:
        if commit.requested > instant.requested:
            metadata = timeline.commit_metadata(commit)
            if metadata.operation_type in ROW_PRESERVING_OPERATIONS:
                continue
            written = collect_written_file_groups(metadata)
            if planned.keys() & _groups_not_followed(written, replacements):
                return f"{commit} changed file groups of the plan"
            changed_with_replacement |= written
    partitions = {partition for partition, _ in planned}
    view = FileSystemView(table.storage, table.config, timeline, partitions)
    current = {slice_.key: slice_ for slice_ in view.slices()}
    for key, names in planned.items():
        if key not in current or not (
            key in changed_with_replacement or {file.name for file in current[key].files} <= names
        ):
            return f"the file group {key[1]} of partition {key[0]!r} has changed"
    return ""


def check_unchanged(
    inputs: Collection[GroupKey], replacements: Replacements, concurrent: ConcurrentCommits
) -> None:
    """Raise `CommitConflict` if a concurrent commit changed a file group being clustered."""
    for other, metadata in concurrent.commits:
        conflicts = _groups_not_followed(
            collect_written_file_groups(metadata), replacements
        ).intersection(inputs)
        for partition, file_id in sorted(conflicts)[:1]:
            msg = f"{other} changed file group {file_id} of partition {partition!r} concurrently"
            raise retryable_conflict(msg)


def _groups_not_followed(
    written: Collection[GroupKey], replacements: Replacements
) -> set[GroupKey]:
    """Return the file groups that a write changed without their replacements."""
    return {key for key in written if replacements.get(key, frozenset()).isdisjoint(written)}
