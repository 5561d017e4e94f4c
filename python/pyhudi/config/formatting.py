"""Formats numbers, times and lists for people, for the text of results, and results as HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")
_STEP = 1024
_SECOND = 1000
_MINUTE = 60 * _SECOND
_LONGEST = 160

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters of a terminal, except tabs and line ends."""


def printable(text: str) -> str:
    """Escape control characters of untrusted text for a terminal, as Python writes them."""
    return _CONTROLS.sub(lambda match: repr(match[0])[1:-1], text)


def size_text(size: float) -> str:
    """Format bytes, such as `870 bytes` or `1.2 MiB`."""
    if size < _STEP:
        return f"{size:.0f} bytes"
    for unit in _UNITS[:-1]:
        size /= _STEP
        if size < _STEP:
            return f"{size:.1f} {unit}"
    return f"{size / _STEP:.1f} {_UNITS[-1]}"


def count_text(number: int, thing: str) -> str:
    """Format a count, such as `1 file` or `2,000 files`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def type_text(data_type: type) -> str:
    """Format a type with its article, such as `an int` or `a polars.Series`."""
    module = "" if data_type.__module__ == "builtins" else f"{data_type.__module__}."
    name = f"{module}{data_type.__qualname__}"
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


def duration_text(milliseconds: float) -> str:
    """Format a duration, such as `20 ms`, `1.5 s` or `3 min`."""
    if milliseconds < _SECOND:
        return f"{milliseconds:.0f} ms"
    if milliseconds < _MINUTE:
        return f"{milliseconds / _SECOND:.1f} s"
    return f"{milliseconds / _MINUTE:,.0f} min"


def instant_text(instant: str | None) -> str:
    """Format an instant as `2026-01-31 12:30:00.123`; text that is not a time is unchanged."""
    if not instant or not instant.isdecimal() or len(instant) < 14:
        return instant or ""
    day = f"{instant[:4]}-{instant[4:6]}-{instant[6:8]}"
    time = f"{instant[8:10]}:{instant[10:12]}:{instant[12:14]}"
    return f"{day} {time}" + (f".{instant[14:]}" if instant[14:] else "")


def names_text(names: Sequence[str], max_names: int = 8) -> str:
    """Join names with commas; of many, only the first."""
    if len(names) <= max_names:
        return ", ".join(names)
    return f"{', '.join(names[:max_names])} and {len(names) - max_names:,} more"


def shorten(text: str, max_length: int = _LONGEST) -> str:
    """Return the text on one line, cut if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= max_length else f"{line[: max_length - 3]}..."


class HtmlRepr:
    """A result with HTML for notebooks, which `api/notebook_html` makes.

    That package is above all packages with results, so it is imported by name when it is needed.
    """

    def _repr_html_(self) -> str:
        html: str = import_module("pyhudi.api.notebook_html.result_html").result_html(self)
        return html
