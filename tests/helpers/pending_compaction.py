"""A compaction that is planned and not done, as of a writer that leaves it to a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyhudi.clock import SystemClock, format_instant
from pyhudi.config.actions import COMPACTION
from pyhudi.slices.compaction_plan import compaction_plan
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.timeline import Timeline, instant_files, serde

if TYPE_CHECKING:
    from pyhudi import HudiTable


def request_compaction(table: HudiTable) -> str:
    """Requests a compaction of all slices; its instant."""
    timeline = Timeline.load(table.storage, table.config)
    plan = compaction_plan(FileSystemView(table.storage, table.config, timeline).slices())
    clock = SystemClock()
    instant = format_instant(clock.now_ms(), "UTC")
    data = serde.encode_container("HoodieCompactionPlan", plan, clock)
    instant_files.request(table.config.layout, table.storage, instant, COMPACTION, data)
    table.refresh()
    return instant
