"""The options of the archive's files, read once (`HoodieArchivalConfig`, 1.2.0).

When instants go there is said in `archive_options.py`; how the files of either layout are written,
merged and kept is said here.
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
"""Every option that `HistoryOptions.of` reads."""


@dataclass(frozen=True)
class HistoryOptions:
    """How the archive's files are written, merged and kept."""

    block_records: int = 10
    """Records of a block in an archive log, which tables below version 8 have."""
    merged_files: int = 10
    """Files of a level of an LSM history that go into one of the next; with 1 none ever do."""
    merged_bytes: int = 64 << 20
    """Merging takes no more files once it has more than this. Hudi's default is 1000 MiB; here
    what is merged is held in memory."""
    kept_manifests: int = 3
    """Manifests of an LSM history that stay for readers, and one more for each merge just done."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> HistoryOptions:
        """From `hoodie.…` options. Raises `ConfigError` for what is no value of theirs.

        So it does where no manifest would be kept, which in Hudi takes the whole history away.
        """
        return cls(
            parse_int(options, BLOCK_RECORDS, default=cls.block_records),
            parse_int(options, MERGED_FILES, default=cls.merged_files),
            parse_int(options, MERGED_BYTES, default=cls.merged_bytes),
            parse_int(options, KEPT_MANIFESTS, default=cls.kept_manifests),
        )
