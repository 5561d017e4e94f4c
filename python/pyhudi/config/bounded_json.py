"""JSON that others wrote, read within bounds. What the values mean is not known here.

Python's parser takes texts of any size, and raises what a caller would not expect for deep nesting
and for long numbers.
"""

from __future__ import annotations

import json
from typing import Any

from pyhudi.errors import CorruptTable, UnsupportedTableFeature

MAX_TEXT = 256 << 20
"""Bytes of a file of JSON. The core takes as much of an Avro container, once it is inflated."""

MAX_SCHEMA = 8 << 20
"""Bytes of an Avro schema; of more than 100,000 types the core takes none."""


def parse_json(text: str | bytes, where: str, *, most: int = MAX_TEXT, is_file: bool = True) -> Any:
    """The value of a JSON text. where: the file; not `is_file`, what else the text stands in.

    Raises `CorruptTable` for what is no JSON, with the offset in bytes where one is known, and for
    values nested too deeply, `UnsupportedTableFeature` for more than `most` bytes.
    """
    file = where if is_file else None
    if len(text) > most:
        msg = f"{where}: JSON of {len(text)} bytes, {most} at most"
        raise UnsupportedTableFeature(msg)
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
    except ValueError as error:  # a number of more digits than Python takes
        raise CorruptTable(f"{where}: not JSON that can be read: {error}", file=file) from error
