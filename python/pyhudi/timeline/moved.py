"""Noticing that a table's timeline is no longer where it was.

A change of the table's version writes the timeline anew in the other layout, turns the properties
round, and removes the old one. A reader that took the properties before and looks at the timeline
after would find less than there was, or nothing. So what looks odd is checked against the
properties of now: a folder without instants, and one with a file that says that it will go.
"""

from __future__ import annotations

from pyhudi.config import property_names as names
from pyhudi.config.properties_file import read_now
from pyhudi.config.timeline_layout import TimelineLayout
from pyhudi.errors import TimelineMoved
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
