"""Noticing that a table's timeline is not, or no longer, where its properties say.

A change of the table's version writes the timeline anew in the other layout, turns the properties
round, and removes the old one. A reader that took the properties before and looks at the timeline
after would find less than there was, or nothing. So what looks odd is checked against the
properties of now: a folder without instants, and one with a file that says that it will go.
"""

from __future__ import annotations

from pyhudi.config import property_names as names
from pyhudi.config.properties_file import FILE, read_now
from pyhudi.config.timeline_layout import TimelineLayout
from pyhudi.errors import CorruptTable, TimelineMoved
from pyhudi.storage.storage import Storage

MOVING = ".pyhudi_moving"
"""The file. No release of Hudi takes it for an instant."""

AGAIN = "Open the table again, or refresh the handle."


def check_in_force(storage: Storage, layout: TimelineLayout) -> None:
    """Raises `TimelineMoved` where the table's properties no longer name this layout."""
    found = read_now(storage) or {}
    version = found.get(names.LAYOUT_VERSION, str(layout.version))
    if version != str(layout.version):
        msg = f"the table's version has changed: its timeline has left {layout.folder}"
        raise TimelineMoved(msg, hint=AGAIN)


def check_there(storage: Storage, layout: TimelineLayout) -> None:
    """Raises `CorruptTable` where a table lacks the folder of its timeline, which listed nothing.

    Taken for a timeline without instants it would make all older files count as committed. Hudi
    fails there too (`HoodieTableMetaClient.scanHoodieInstantsFromFileSystem`). In a bucket the
    folder of a new table is there by an object that Hudi or pyhudi left below it.
    """
    above, _, _ = layout.folder.rpartition("/")
    if layout.folder in storage.list_dir(above)[0] or read_now(storage) is None:
        return
    msg = f"{layout.folder} is missing, the folder of the table's timeline"
    hint = f"Bring it back from a copy, or mend {names.TIMELINE_PATH} in {FILE}."
    raise CorruptTable(msg, file=layout.folder, hint=hint)
