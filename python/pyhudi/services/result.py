"""What a table service did, as the caller sees it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServiceResult:
    """What one call of a table service did, or with `dry_run` would do."""

    service: str
    """compact, log_compact, cluster, clean or archive."""
    instants: tuple[str, ...] = ()
    """Those that it completed, in that order; of archiving those that left the active timeline."""
    scheduled: tuple[str, ...] = ()
    """Those that it planned and left pending."""
    file_groups: int = 0
    """File groups that it worked on."""
    files_read: int = 0
    bytes_read: int = 0
    files_written: int = 0
    bytes_written: int = 0
    rows_written: int = 0
    files_removed: int = 0
    bytes_removed: int = 0
    """0 where nobody knows the sizes."""
    left: tuple[str, ...] = ()
    """What was due and is left, each with the reason."""
    duration_ms: int = 0
    dry_run: bool = False
