"""The public result of a table service."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pyhudi.config.formatting import HtmlRepr, count_text, duration_text, names_text, size_text
from pyhudi.slices.file_slice import FileSlice
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.txn.operation_metrics import StageMetrics


@dataclass(frozen=True)
class ServiceResult(HtmlRepr):
    """The result of one call of a table service, or of its dry run."""

    service: str
    """compact, log_compact, cluster, clean or archive."""
    instants: tuple[str, ...] = ()
    """Completed instants in order; for archiving, the archived instants."""
    scheduled: tuple[str, ...] = ()
    """Instants that it planned and left pending."""
    file_groups: int = 0
    """File groups that it processed."""
    files_read: int = 0
    bytes_read: int = 0
    files_written: int = 0
    bytes_written: int = 0
    rows_written: int = 0
    files_removed: int = 0
    bytes_removed: int = 0
    """0 if the sizes are unknown."""
    left: tuple[str, ...] = ()
    """Reasons for due work that was skipped."""
    duration_ms: int = 0
    dry_run: bool = False
    metrics: tuple[StageMetrics, ...] = field(default=(), compare=False)
    """The work by stage, as in `WriteResult`; empty for archiving, in `maintain` and after a
    commit."""

    def __repr__(self) -> str:
        counts = [
            ("read", self.files_read, self.bytes_read),
            ("wrote", self.files_written, self.bytes_written),
            ("removed", self.files_removed, self.bytes_removed),
        ]
        parts = [
            f"{action} {count_text(files, 'file')}" + (f" of {size_text(size)}" if size else "")
            for action, files, size in counts
            if files
        ]
        if self.instants:
            parts.append(
                f"{count_text(len(self.instants), 'instant')} {names_text(self.instants, 3)}"
            )
        if self.scheduled:
            parts.append(f"planned {names_text(self.scheduled, 3)}")
        if self.left:
            parts.append(f"left: {names_text(self.left, 3)}")
        title = f"{self.service}, dry run" if self.dry_run else self.service
        parts = parts or ["nothing to do"]
        return f"<ServiceResult {title}: {'; '.join(parts)}; {duration_text(self.duration_ms)}>"

    def skipping(self, reason: str) -> ServiceResult:
        """Return the result with a reason for skipped work, if it is not empty."""
        return replace(self, left=(*self.left, reason)) if reason else self

    def reading(self, slices: Iterable[FileSlice]) -> ServiceResult:
        """Return the result with these slices counted as read."""
        read = list(slices)
        files = sum(len(slice_.files) for slice_ in read)
        return replace(
            self,
            file_groups=self.file_groups + len(read),
            files_read=self.files_read + files,
            bytes_read=self.bytes_read + sum(slice_.size for slice_ in read),
        )

    def writing(self, instant: str, stats: Iterable[WriteStat]) -> ServiceResult:
        """Return the result with a completed instant and its written files."""
        written = list(stats)
        return replace(
            self,
            instants=(*self.instants, instant),
            files_written=self.files_written + len(written),
            bytes_written=self.bytes_written + sum(stat.file_size_in_bytes for stat in written),
            rows_written=self.rows_written + sum(stat.num_writes for stat in written),
        )
