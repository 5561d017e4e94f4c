"""Noticing that a table's timeline is not, or no longer, where its properties say.

A change of the table's version writes the timeline anew in the other layout, turns the properties
round, and removes the old one. A reader that took the properties before and looks at the timeline
after would find less than there was, or nothing. So what looks odd is checked against the
properties of now: a folder without instants, and one with a file that says that it will go.

Hudi moves the instants one by one instead and changes the properties last (`UpgradeDowngrade`,
1.2.0). Of a table where it died, or is at it, neither folder tells all: such a one is refused.
"""

from __future__ import annotations

from pyhudi.config import property_names as names
from pyhudi.config.properties_file import FILE, read_now
from pyhudi.config.timeline_layout import LAYOUT_1, LAYOUT_2, TimelineLayout
from pyhudi.errors import CorruptTable, TimelineMoved, UnsupportedTableFeature
from pyhudi.storage.storage import Entries, Storage

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


def check_whole(storage: Storage, layout: TimelineLayout, others: Entries) -> None:
    """Raises `UnsupportedTableFeature` where Hudi has moved instants, but not the properties.

    others: what the folder of the other layout has. What a change by pyhudi left there the table's
    next writer removes; the file tells that it is pyhudi's.
    """
    other = LAYOUT_1 if layout.completion_in_name else LAYOUT_2
    moved = next((entry for entry in others if other.parse(entry.name) is not None), None)
    if moved is None or any(storage.exists(each.path(MOVING)) for each in (LAYOUT_1, LAYOUT_2)):
        return
    check_in_force(storage, layout)
    # A writer may be about to remove what another left.
    if not storage.exists(moved.path):
        return
    msg = (
        f"{names.LAYOUT_VERSION} is {layout.version}, but {moved.path} is there: a change of the "
        "table's version by Apache Hudi is half done"
    )
    hint = "Complete it with Apache Hudi: hudi-cli has `upgrade table` and `downgrade table`."
    raise UnsupportedTableFeature(msg, hint=hint)


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
