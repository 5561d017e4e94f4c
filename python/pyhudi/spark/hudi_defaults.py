"""Defaults of an options map that differ from those of Apache Hudi 1.2.0 on purpose.

A write warns once of those that have an effect on it. docs/reference/spark-options.md shows all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pyhudi.config.log import warn
from pyhudi.config.new_table_properties import NewTable
from pyhudi.errors import HudiDefaultsWarning
from pyhudi.index.detection import IndexDetector
from pyhudi.services.archiving import since_compaction

if TYPE_CHECKING:  # The reference page is generated without PySpark.
    from pyhudi.api.table import HudiTable
    from pyhudi.spark.hudi_options import WriteRequest

When = Literal["new table", "new merge-on-read table", "existing table", "never"]

_DELTA_COMMITS = 5
"""Delta commits after which Hudi compacts (`hoodie.compact.inline.max.delta.commits`)."""


@dataclass(frozen=True)
class DefaultDifference:
    """One option whose default differs."""

    names: tuple[str, ...]
    """The names of the option. A map with one of them does not use the default."""
    hudis: str
    own: str
    reason: str
    """Reason and effect, as Markdown."""
    when: When
    """The write that warns: the first one, or each one that it changes."""


DIFFERENCES = (
    DefaultDifference(
        ("hoodie.parquet.compression.codec",),
        "gzip",
        "zstd",
        "[files are written and read faster](../decisions/0008-base-files-are-zstd.md)",
        "new table",
    ),
    DefaultDifference(
        ("hoodie.clean.trigger.max.commits", "hoodie.clean.max.commits"),
        "1",
        "5",
        "every fifth commit cleans, so that small commits cost less; the same commits are retained",
        "new table",
    ),
    DefaultDifference(
        ("pyhudi.small.file.rewrite.factor", "hoodie.parquet.small.file.limit"),
        "0",
        "20",
        "inserts rewrite a small file only if they are large enough in proportion; 0 always "
        "rewrites it",
        "new table",
    ),
    DefaultDifference(
        ("hoodie.compact.inline", "hoodie.compact.schedule.inline"),
        "true for batch writes",
        "false",
        "Hudi compacts every fifth commit. pyhudi compacts file groups with "
        "[too many log files](../how-to/compact.md#compact-after-commits), or by a service",
        "new merge-on-read table",
    ),
    DefaultDifference(
        ("hoodie.index.type",),
        "SIMPLE",
        "BUCKET in a table with buckets",
        "`SIMPLE` would write files that the bucket index does not find",
        "existing table",
    ),
    DefaultDifference(
        ("hoodie.write.auto.upgrade",),
        "true",
        "false",
        "Hudi upgrades an older table to version 9 when it writes to it. pyhudi keeps the version "
        "until you call `upgrade`",
        "existing table",
    ),
    DefaultDifference(
        ("hoodie.table.timeline.timezone",),
        "LOCAL",
        "UTC",
        "instants do not depend on the machine's time zone",
        "never",
    ),
    DefaultDifference(
        ("hoodie.allow.empty.commit",),
        "true",
        "false",
        "data without rows make no commit",
        "never",
    ),
    DefaultDifference(
        ("hoodie.write.concurrency.mode",),
        "SINGLE_WRITER, without a lock",
        "OPTIMISTIC_CONCURRENCY_CONTROL, with the storage lock",
        "a second writer must not damage the table",
        "never",
    ),
)
"""All differences. Those with `when` "never" change no row of a table."""


def warn_of_defaults(request: WriteRequest, table: HudiTable | None) -> None:
    """Warn of defaults that have another effect on this write than Hudi's.

    table: the existing table; None if the write creates one.
    """
    effective = list(_of_new(request) if table is None else _of_existing(table))
    differences = [
        difference for difference in effective if request.named.isdisjoint(difference.names)
    ]
    if not differences:
        return
    count = len(differences)
    values = "; ".join(f"{each.names[0]} is {each.own}, not {each.hudis}" for each in differences)
    warn(
        f"{count} default{'s' if count > 1 else ''} differ{'' if count > 1 else 's'} from Hudi's: "
        f"{values}. Options that you set are not reported",
        HudiDefaultsWarning,
    )


def _of_new(request: WriteRequest) -> Iterator[DefaultDifference]:
    for difference in DIFFERENCES:
        if difference.when == "new table" or (
            difference.when == "new merge-on-read table" and request.type == "mor"
        ):
            yield difference


def _of_existing(table: HudiTable) -> Iterator[DefaultDifference]:
    by_name = {difference.names[0]: difference for difference in DIFFERENCES}
    timeline = table.state.timeline
    if IndexDetector(table.storage, table.config, timeline).has_buckets:
        yield by_name["hoodie.index.type"]
    if table.config.version.code < NewTable.version:
        yield by_name["hoodie.write.auto.upgrade"]
    if table.config.is_merge_on_read and len(since_compaction(timeline)) >= _DELTA_COMMITS:
        yield by_name["hoodie.compact.inline"]
