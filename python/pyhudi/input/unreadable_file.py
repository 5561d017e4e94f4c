"""The error of a data file that no table can store."""

from __future__ import annotations

from pyhudi.errors import ConfigError


class UnreadableFile(ConfigError):
    """A data file that no table can store: wrong use, like a damaged file."""
