"""The options of the archive's files, read once (`HoodieArchivalConfig`, 1.2.0).

They set how the files of either layout are written, merged and retained. `archive_options.py` sets
when instants are archived.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.config.option_parsing import parse_int

BLOCK_RECORDS = "hoodie.commits.archival.batch"
MERGED_FILES = "hoodie.timeline.compaction.batch.size"
MERGED_BYTES = "hoodie.timeline.compaction.target.file.max.bytes"
KEPT_MANIFESTS = "hoodie.timeline.manifest.retained.versions"
HISTORY_OPTIONS = (BLOCK_RECORDS, MERGED_FILES, MERGED_BYTES, KEPT_MANIFESTS)
"""All options that `HistoryOptions.of` reads."""


@dataclass(frozen=True)
class HistoryOptions:
    """How the archive's files are written, merged and retained."""

    block_records: int = 10
    """Records of a block in an archive log, which tables below version 8 have."""
    merged_files: int = 10
    """Files of one level of an LSM history that are merged into a file of the next; 1 disables
    merging."""
    merged_bytes: int = 64 << 20
    """Size limit above which a merge takes no more files. Hudi's default is 1000 MiB; pyhudi merges
    in memory."""
    kept_manifests: int = 3
    """Manifests of an LSM history that stay for readers, and one more for each merge just done."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> HistoryOptions:
        """Read the options from `hoodie.…` names. Raises `ConfigError` for an invalid value.

        It also raises if no manifest would be retained, which in Hudi deletes the whole history.
        """
        return cls(
            parse_int(options, BLOCK_RECORDS, default=cls.block_records),
            parse_int(options, MERGED_FILES, default=cls.merged_files),
            parse_int(options, MERGED_BYTES, default=cls.merged_bytes),
            parse_int(options, KEPT_MANIFESTS, default=cls.kept_manifests),
        )
