"""The options of archiving, read once (`HoodieArchivalConfig`, 1.2.0)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyhudi.config.option_parsing import (
    OptionGroup,
    check_only,
    custom,
    flag,
    integer,
    option,
    parse_bool,
    parse_fields,
)
from pyhudi.errors import ConfigError, UnsupportedTableFeature

LEAST = "hoodie.keep.min.commits"
MOST = "hoodie.keep.max.commits"
BEYOND_SAVEPOINT = "hoodie.archive.beyond.savepoint"
MERGED_FILES = "hoodie.timeline.compaction.batch.size"
MERGED_BYTES = "hoodie.timeline.compaction.target.file.max.bytes"
KEPT_MANIFESTS = "hoodie.timeline.manifest.retained.versions"


@dataclass(frozen=True)
class HistoryOptions(OptionGroup):
    """How the archive's files are written, merged and retained.

    Without a retained manifest, Hudi deletes the whole history; pyhudi raises `ConfigError`.
    """

    block_records: int = integer(
        "hoodie.commits.archival.batch", "records per block of archive logs (version 6)", default=10
    )
    merged_files: int = integer(
        MERGED_FILES,
        "archive files merged into one (versions 8 and 9); 1 disables merging",
        default=10,
    )
    merged_bytes: int = integer(
        MERGED_BYTES,
        "a merge above this size takes no more files. Hudi's default is 1048576000",
        default=64 << 20,
    )
    kept_manifests: int = integer(KEPT_MANIFESTS, "manifests that stay for readers", default=3)


def _check_savepoints(options: Mapping[str, str]) -> None:
    """Raise `UnsupportedTableFeature` for archiving beyond savepoints.

    No reader of Hudi (0.15.0, 1.0.2, 1.2.0) would count commits that were archived after a
    savepoint.
    """
    if parse_bool(options, BEYOND_SAVEPOINT, default=False):
        msg = (
            f"{BEYOND_SAVEPOINT}: Hudi's readers lose the rows of commits archived beyond "
            "a savepoint"
        )
        raise UnsupportedTableFeature(
            msg, hint="Call delete_savepoint() to let archiving continue."
        )


@dataclass(frozen=True)
class ArchiveOptions(OptionGroup):
    """How many commits stay on the active timeline, and when the others are archived."""

    automatic: bool = flag("hoodie.archive.automatic", "archive after commits", default=True)
    least: int = integer(LEAST, "commits that stay active", default=20)
    most: int = integer(MOST, "archive if there are more commits", default=30)
    savepoints: None = check_only(
        _check_savepoints,
        option(BEYOND_SAVEPOINT, "true raises an error", default=False),
    )
    history: HistoryOptions = custom(HistoryOptions.of)
    """How the archive's files are written."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ArchiveOptions:
        """Read the options as `OptionGroup.of`; the minimum must be below the maximum."""
        parsed = cls(**parse_fields(cls, options))
        if parsed.most <= parsed.least:
            msg = f"{MOST} is {parsed.most}, not more than {LEAST}, which is {parsed.least}"
            raise ConfigError(msg)
        return parsed

    def keeping(self, least: int | None, most: int | None) -> ArchiveOptions:
        """Return the options with other numbers of commits. Raises as `of`.

        If only one is passed, the other keeps its distance to it.
        """
        distance = self.most - self.least
        if least is None:
            least = self.least if most is None else max(most - distance, 1)
        if most is None:
            most = least + distance
        numbers = ArchiveOptions.of({LEAST: str(least), MOST: str(most)})
        return replace(self, least=numbers.least, most=numbers.most)
