"""The newest checkpoint of a table, and the position from which a source continues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyhudi.api.table import HudiTable
from pyhudi.config.streamer_checkpoint import AFTER, SOURCE, checkpoint_entries, checkpoint_of
from pyhudi.errors import ConfigError
from pyhudi.write.idempotency import newest_first

_NO_ENTRIES: Mapping[str, str] = {}


@dataclass(frozen=True)
class Position:
    """The point at which a source continues."""

    checkpoint: str | None = None
    """The checkpoint in the source's format; None for the beginning."""
    entries: Mapping[str, str] = field(default_factory=dict)
    """Extra metadata of the checkpoint's commit; empty if the user chose another position."""
    instant: str = ""
    """Instant of the checkpoint's commit, which the next commit must continue."""


def find_position(table: HudiTable | None, source: str, reset: str | None) -> Position:
    """Return where a source continues.

    Hudi's streamer and pyhudi continue each other's checkpoints. As with Hudi, `reset` replaces the
    checkpoint once: the commits that follow store it, and are continued.

    Args:
        table: the table; None if it does not exist.
        source: the source's name.
        reset: the position that the user asked for, if any.

    Returns:
        The position.

    Raises:
        ConfigError: the checkpoint is of another source, or empty.
    """
    if table is None:
        return Position(reset)
    for instant, metadata in newest_first(table.state.storage, table.config):
        stored = checkpoint_of(metadata.extra_metadata)
        if stored is None:
            continue
        if reset is not None and stored.reset_key != reset:
            return Position(reset, _NO_ENTRIES, instant.requested)
        if stored.source is not None and stored.source != source:
            raise ConfigError(
                f"{instant} of {table.uri} has the checkpoint of another source, {stored.source}",
                hint="A table has the checkpoint of one source. To read this one from now on, pass "
                "checkpoint=, the position to begin at.",
            )
        if not stored.key:
            raise ConfigError(
                f"{instant} of {table.uri} has an empty checkpoint",
                hint="Pass checkpoint=, the position to begin at.",
            )
        return Position(stored.key, metadata.extra_metadata, instant.requested)
    return Position(reset)


def commit_entries(
    table: HudiTable, source: str, checkpoint: str, position: Position, reset: str | None
) -> dict[str, str]:
    """Return the extra metadata of a commit that continues a position.

    Args:
        table: the table.
        source: the source's name.
        checkpoint: the checkpoint after the commit.
        position: the position before it.
        reset: the position that the user asked for, if any.
    """
    return {
        **checkpoint_entries(table.config.version, checkpoint, reset),
        SOURCE: source,
        AFTER: position.instant,
    }
