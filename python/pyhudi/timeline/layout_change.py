"""Detects a change of the timeline's layout, and removes the old timeline.

A change of the table's version writes the timeline again in the other layout, switches the
properties, and removes the old timeline. A reader with the old properties would find fewer
instants, or none. So two signs are checked against the current properties: a directory without
instants, and one with a file that announces its removal.

Hudi moves the instants one by one instead and changes the properties last (`UpgradeDowngrade`,
1.2.0). While it does so, or if it failed, neither directory is complete, and pyhudi refuses the
table.
"""

from __future__ import annotations

from pyhudi.config import property_names as names
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import LAYOUT_1, LAYOUT_2, TimelineLayout
from pyhudi.errors import CorruptTable, TimelineMoved, UnsupportedTableFeature
from pyhudi.storage.properties_file import FILE, read_now
from pyhudi.storage.storage import Entries, Storage

MOVING = ".pyhudi_moving"
"""The file that announces the removal: it is created before the first file is deleted, and deleted
after the last. No release of Hudi takes it for an instant."""

_ARCHIVE = ".hoodie/archived"
"""The archive of layout 1. The archive of layout 2 is below its timeline."""

AGAIN = "Open the table again, or refresh the handle."


def check_in_force(storage: Storage, layout: TimelineLayout) -> None:
    """Raise `TimelineMoved` if the table's properties no longer name this layout."""
    properties = read_now(storage) or {}
    version = properties.get(names.LAYOUT_VERSION, str(layout.version))
    if version != str(layout.version):
        msg = f"the table's version has changed: its timeline is no longer in {layout.folder}"
        raise TimelineMoved(msg, hint=AGAIN)


def check_whole(storage: Storage, layout: TimelineLayout, other_files: Entries) -> None:
    """Raise `UnsupportedTableFeature` if Hudi has moved instants, but not changed the properties.

    other_files: those in the directory of the other layout. The table's next writer removes
    leftovers of a change by pyhudi, which the announcing file identifies.
    """
    other = LAYOUT_1 if layout.completion_in_name else LAYOUT_2
    other_file = next((entry for entry in other_files if other.parse(entry.name) is not None), None)
    if other_file is None or any(
        storage.exists(each.path(MOVING)) for each in (LAYOUT_1, LAYOUT_2)
    ):
        return
    check_in_force(storage, layout)
    # A writer may be removing another writer's leftovers now.
    if not storage.exists(other_file.path):
        return
    msg = (
        f"{names.LAYOUT_VERSION} is {layout.version}, but {other_file.path} exists: an upgrade "
        "or downgrade by Apache Hudi was interrupted"
    )
    hint = "Complete it with Apache Hudi: hudi-cli has `upgrade table` and `downgrade table`."
    raise UnsupportedTableFeature(msg, hint=hint)


def check_there(storage: Storage, layout: TimelineLayout) -> None:
    """Raise `CorruptTable` if the directory of a table's timeline, listed as empty, is missing.

    As a timeline without instants it would make all older files count as committed. Hudi fails too
    (`HoodieTableMetaClient.scanHoodieInstantsFromFileSystem`). On object stores the directory of a
    new table exists by an object that Hudi or pyhudi left below it.
    """
    above, _, _ = layout.folder.rpartition("/")
    if layout.folder in storage.list_dir(above)[0] or read_now(storage) is None:
        return
    msg = f"the timeline directory {layout.folder} is missing"
    hint = f"Restore it from a backup, or fix {names.TIMELINE_PATH} in {FILE}."
    raise CorruptTable(msg, file=layout.folder, hint=hint)


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
