"""Reads JSON of other programs within limits. The meaning of the values is not known here.

Python's parser accepts text of any size, and raises unexpected errors for deep nesting and for long
numbers.
"""

from __future__ import annotations

import json
from typing import Any

from pyhudi.errors import CorruptTable, UnsupportedTableFeature

MAX_TEXT = 256 << 20
"""Maximum bytes of a JSON file. The core has the same limit for an inflated Avro container."""

MAX_SCHEMA = 8 << 20
"""Maximum bytes of an Avro schema; the core accepts none with more than 100,000 types."""


def parse_json(
    text: str | bytes, where: str, *, max_bytes: int = MAX_TEXT, is_file: bool = True
) -> Any:
    """Return the value of a JSON text.

    Raises `CorruptTable` for text that is not JSON, with the byte offset if it is known, and for
    values nested too deeply; `UnsupportedTableFeature` for more than `max_bytes`.

    where: the file, or, without `is_file`, the place of the text.
    """
    file = where if is_file else None
    if len(text) > max_bytes:
        raise UnsupportedTableFeature(f"{where}: JSON of {len(text)} bytes, {max_bytes} at most")
    try:
        return json.loads(text.decode("utf-8") if isinstance(text, bytes) else text)
    except UnicodeDecodeError as error:
        msg = f"{where}: not UTF-8 at byte {error.start}"
        raise CorruptTable(msg, file=file, offset=error.start) from error
    except json.JSONDecodeError as error:
        offset = len(error.doc[: error.pos].encode("utf-8", "surrogatepass"))
        msg = f"{where}: not JSON at byte {offset}: {error.msg}"
        raise CorruptTable(msg, file=file, offset=offset) from error
    except RecursionError as error:
        raise CorruptTable(f"{where}: JSON is nested too deeply", file=file) from error
    except ValueError as error:  # a number with more digits than Python accepts
        raise CorruptTable(f"{where}: not JSON that can be read: {error}", file=file) from error
