"""The options of the archive's files, read once (`HoodieArchivalConfig`, 1.2.0).

They set how the files of either layout are written, merged and retained. `archive_options.py` sets
when instants are archived.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.config.option_parsing import integer, option_names, parse_fields

BLOCK_RECORDS = "hoodie.commits.archival.batch"
MERGED_FILES = "hoodie.timeline.compaction.batch.size"
MERGED_BYTES = "hoodie.timeline.compaction.target.file.max.bytes"
KEPT_MANIFESTS = "hoodie.timeline.manifest.retained.versions"


@dataclass(frozen=True)
class HistoryOptions:
    """How the archive's files are written, merged and retained."""

    block_records: int = integer(BLOCK_RECORDS, default=10)
    """Records of a block in an archive log, which tables below version 8 have."""
    merged_files: int = integer(MERGED_FILES, default=10)
    """Files of one level of an LSM history that are merged into a file of the next; 1 disables
    merging."""
    merged_bytes: int = integer(MERGED_BYTES, default=64 << 20)
    """Size limit above which a merge takes no more files. Hudi's default is 1000 MiB; pyhudi merges
    in memory."""
    kept_manifests: int = integer(KEPT_MANIFESTS, default=3)
    """Manifests of an LSM history that stay for readers, and one more for each merge just done."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> HistoryOptions:
        """Read the options from `hoodie.…` names. Raises `ConfigError` for an invalid value.

        It also raises if no manifest would be retained, which in Hudi deletes the whole history.
        """
        return cls(**parse_fields(cls, options))


HISTORY_OPTIONS = option_names(HistoryOptions)
"""All options that `HistoryOptions.of` reads."""
