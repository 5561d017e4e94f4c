"""Incoming data, piece by piece, as keyed rows: whole in memory, or as a stream of pieces.

Nothing is decided about files here. A piece is a fraction of the memory limit, so that what is made
of it stays within.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.schema.given import given_batches
from pyhudi.write.write_context import Session

LEAST_MEMORY = 1024 * 1024
_PIECES = 16
"""A piece is this part of the limit."""
_WHOLE = 4
"""Data up to this part of the limit are written from memory."""


@dataclass(frozen=True)
class Intake:
    """Keyed rows of one write: all in one table, `whole`, or else in `pieces`."""

    pieces: Iterator[pa.Table]
    whole: pa.Table | None
    memory_limit: int


def memory_limit(given: int | None) -> int:
    """The bytes that a write may use; a quarter of the machine's when none are given.

    Raises `ConfigError` for less than a megabyte.
    """
    if given is None:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    if given < LEAST_MEMORY:
        msg = f"memory_limit is {given}; it must be at least {LEAST_MEMORY} bytes"
        raise ConfigError(msg)
    return given


def take(
    session: Session,
    data: Any,
    limit: int,
    *,
    schema_mode: str = "strict",
    generate: bool = False,
) -> tuple[Session, Intake]:
    """Reads the data until they are over, or too much for memory.

    Gives the session with the schema that the data lead to as well. schema_mode: as
    `Session.evolved` takes it. generate: rows may get generated keys. Raises what
    `Session.with_keys` and `to_table` raise; later pieces raise it when they are taken.
    """
    schema, parts = _pieces(data, limit // _PIECES)
    session, _ = session.evolved(schema.empty_table(), schema_mode)
    pieces = (
        session.with_keys(session.evolved(piece, schema_mode)[1], generate=generate)
        for piece in parts
    )
    return session, gathered(pieces, limit)


def gathered(pieces: Iterator[pa.Table], limit: int) -> Intake:
    """Keyed rows of at least one piece, whole if a limit of bytes leaves room for that."""
    held: list[pa.Table] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += piece.nbytes
        if size > limit // _WHOLE:
            return Intake(_drained(held, pieces), None, limit)
    return Intake(iter(()), pa.concat_tables(held), limit)


def _drained(held: list[pa.Table], rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    while held:
        yield held.pop(0)
    yield from rest


def _pieces(data: Any, piece_bytes: int) -> tuple[pa.Schema, Iterator[pa.Table]]:
    """The schema, and at least one table, of about so many bytes, of what `to_table` takes."""
    schema, batches = given_batches(data)
    return schema, _tables(schema, batches, piece_bytes)


def _tables(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], piece_bytes: int
) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    size, given = 0, False
    for batch in batches:
        for part in _cut(batch, piece_bytes):
            held.append(part)
            size += part.nbytes
            if size >= piece_bytes:
                yield pa.Table.from_batches(held, schema)
                held, size, given = [], 0, True
    if held or not given:
        yield pa.Table.from_batches(held, schema)


def _cut(batch: pa.RecordBatch, piece_bytes: int) -> Iterator[pa.RecordBatch]:
    """The batch in slices of about so many bytes."""
    if batch.num_rows == 0:
        return
    rows = max(batch.num_rows * piece_bytes // max(batch.nbytes, 1), 1)
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
