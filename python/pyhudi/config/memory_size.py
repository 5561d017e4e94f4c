"""Sizes of memory, as a number of bytes or as text with a unit."""

from __future__ import annotations

import re
from operator import index
from typing import TypeAlias

from pyhudi.errors import ConfigError

MemorySize: TypeAlias = int | str
"""Bytes, or text such as "512 MiB"."""

_UNITS: dict[str, int] = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", 1)},
    **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", 1)},
}
_SIZE = re.compile(r"\s*([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([a-z]*)\s*", re.IGNORECASE)
_MAX_BYTES = 1 << 63


def parse_memory_size(size: MemorySize, name: str = "memory_limit") -> int:
    """Return a number of bytes.

    Args:
        size: bytes, or text: a number and a unit, in any case. "1 GB" is 1000³ bytes, "1 GiB" 1024³
            bytes; a number without a unit is bytes.
        name: the argument, for errors.

    Returns:
        The bytes, rounded down.

    Raises:
        ConfigError: the size is neither, or needs more than 63 bits.
    """
    expected = 'Pass a number of bytes, or a text such as "512 MiB" or "2 GB".'
    if isinstance(size, str):
        match = _SIZE.fullmatch(size)
        factor = match and _UNITS.get(match[2].lower())
        if not match or not factor:
            raise ConfigError(f"{name} is {size!r}, which is not a size", hint=expected)
        whole, _, fraction = match[1].partition(".")
        # In integers: a float would round a large number.
        result = int(whole + fraction) * factor // int("1" + "0" * len(fraction))
    else:
        try:
            result = index(size)
        except TypeError:
            raise ConfigError(f"{name} is {size!r}", hint=expected) from None
        if isinstance(size, bool):
            raise ConfigError(f"{name} is {size!r}", hint=expected)
    if result >= _MAX_BYTES:
        raise ConfigError(f"{name} is {size!r}, which is too large", hint=expected)
    return result
