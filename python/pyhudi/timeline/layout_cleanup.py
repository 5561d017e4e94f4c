"""Leftovers of a change of a table's version on storage, until it is complete.

During the change the table has timelines in both layouts, of which its properties name one; the
other is unused. A file announces the removal of a directory's files: it is created before the first
of them is deleted and removed after the last (`timeline/layout_change.py`).
"""

from __future__ import annotations

from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import LAYOUT_1, LAYOUT_2, TimelineLayout
from pyhudi.storage.storage import Storage
from pyhudi.timeline.layout_change import MOVING

_ARCHIVE = ".hoodie/archived"
"""That of layout 1. The archive of layout 2 is below its timeline."""


def remove_other_timeline(storage: Storage, config: TableConfig) -> None:
    """Remove the timeline of the layout that the table does not have, and its archive."""
    if config.layout.completion_in_name:
        remove_instants(storage, LAYOUT_1)
        storage.delete_dir(_ARCHIVE)
    else:
        remove_instants(storage, LAYOUT_2)
        for folder in storage.list_dir(LAYOUT_2.folder)[0]:
            storage.delete_dir(folder)
    for layout in (LAYOUT_1, LAYOUT_2):
        storage.delete(layout.path(MOVING))
    if not config.layout.completion_in_name:
        storage.delete_dir(LAYOUT_2.folder)


def remove_instants(storage: Storage, layout: TimelineLayout) -> None:
    """Remove the instants of a layout from its directory."""
    for file in storage.list_dir(layout.folder)[1]:
        if layout.parse(file.name) is not None:
            storage.delete(file.path)
