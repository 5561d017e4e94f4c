"""The options of a write of Spark's format "pyhudi": Hudi's own options map, and a few of pyhudi's.

Spark passes the names in lower case, and no setting of the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyhudi.config.memory_size import parse_memory_size
from pyhudi.config.option_parsing import as_tuple
from pyhudi.config.options import CREATE_OPTIONS, KNOWN_OPTIONS
from pyhudi.engine.protocol import Engine
from pyhudi.errors import ConfigError
from pyhudi.spark.hudi_operations import Target
from pyhudi.spark.hudi_option_table import OPTIONS
from pyhudi.spark.hudi_options import OPERATION, WriteRequest
from pyhudi.spark.source_options import STORAGE, check_no_catalog, check_path
from pyhudi.spark.stream_sink import DEFAULT_IDENTIFIER
from pyhudi.suggestions import did_you_mean
from pyhudi.write.input_rows import MIN_MEMORY

_OWN = ("path", "operation", "memory_limit", "identifier")
_IDENTIFIER = "hoodie.datasource.write.streaming.checkpoint.identifier"
_CHECKPOINT = "checkpointlocation"
_OF_SPARK = (_CHECKPOINT, "queryname")
"""Options of a streaming query that Spark passes on."""
_MEMORY_LIMIT = 512 * 1024 * 1024
_NAMES = {
    name.lower(): name
    for name in (
        *KNOWN_OPTIONS,
        *CREATE_OPTIONS,
        *(name for option in OPTIONS for name in as_tuple(option.names)),
    )
}


@dataclass(frozen=True)
class SourceWrite:
    """A requested write. Picklable."""

    path: str
    request: WriteRequest
    memory_limit: int
    identifier: str
    """Distinguishes streams that write to one table."""
    checkpoint: str | None
    """Spark's directory of the stream's checkpoint."""
    storage_options: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SourceWrite:
        """Parse the options. Raises as `WriteRequest.of`, and `ConfigError` for pyhudi's own."""
        check_no_catalog(options)
        own: dict[str, str] = {}
        hudi_options: dict[str, str] = {}
        storage_options: dict[str, str] = {}
        for name, value in ((str(name).lower(), str(value)) for name, value in options.items()):
            if name.startswith(STORAGE):
                storage_options[name.removeprefix(STORAGE)] = value
            elif name in (*_OWN, *_OF_SPARK):
                own[name] = value
            elif name == _IDENTIFIER:
                own.setdefault("identifier", value)
            elif name.startswith(("hoodie.", "pyhudi.", "_")) or name in _NAMES:
                hudi_options[_NAMES.get(name, name)] = value
            else:
                raise ConfigError(
                    f"the option {name!r} does not apply to writes",
                    hint=did_you_mean(name, _OWN) or f"Pass Hudi's options, or {', '.join(_OWN)}.",
                )
        if "operation" in own:
            if OPERATION in hudi_options:
                raise ConfigError(f"the option operation is set twice, also as {OPERATION}")
            hudi_options[OPERATION] = own["operation"]
        if "path" not in own:
            raise ConfigError(
                "no path was given: Spark's catalog passes no path to a format in Python",
                hint='Call .save("/path/of/the/table"), or create a table with a name by '
                "pyhudi.spark.sql and CREATE TABLE … USING hudi.",
            )
        check_path(own["path"])
        return cls(
            own["path"],
            WriteRequest.of(hudi_options),
            _memory_limit(own.get("memory_limit")),
            own.get("identifier", DEFAULT_IDENTIFIER),
            own.get(_CHECKPOINT),
            storage_options,
        )

    def target(self, engine: Engine, **arguments: Any) -> Target:
        """Return where and how to write. arguments: of the table's methods."""
        arguments = {"memory_limit": self.memory_limit, **arguments}
        return Target(
            self.path, engine, self.storage_options, is_session=False, arguments=arguments
        )


def _memory_limit(value: str | None) -> int:
    if value is None:
        return _MEMORY_LIMIT
    size = parse_memory_size(value, "the option memory_limit")
    if size < MIN_MEMORY:
        raise ConfigError(
            f"the option memory_limit is {value!r}", hint=f"Pass at least {MIN_MEMORY} bytes."
        )
    return size
