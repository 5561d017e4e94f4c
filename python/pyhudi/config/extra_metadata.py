"""Extra metadata that a caller adds to commits, from options or for one call."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping

from pyhudi.config.argument_checks import is_whole
from pyhudi.config.bounded_json import parse_json
from pyhudi.config.property_names import KEYS
from pyhudi.errors import ConfigError, CorruptTable

COMMIT_METADATA_PREFIX = "_"
"""Prefix of options that go into the extra metadata of commits, as with Hudi's default of
`hoodie.datasource.write.commitmeta.key.prefix`."""

_FOR_ONE_CALL = "pyhudi.commit.metadata."
"""Option prefix of the entries of one call, whose names are arbitrary."""

COMMIT_ID = "_pyhudi_commit_id"
"""Entry of an idempotent commit: the id that its caller chose."""

COMMIT_IDS = "_pyhudi_commit_ids"
"""Entry of a group commit: a JSON list of the ids of its batches, if there are several."""

ROWS_REJECTED = "_pyhudi_rows_rejected"
"""Entry with the number of rows that the write has put into another table."""

STREAM_BATCHES = "_hudi_streaming_sink_checkpoint"
"""Entry with JSON of the last batch of each stream: `HoodieStreamingSink.SINK_CHECKPOINT_KEY`."""

_TAKEN = frozenset({"schema", "latest_schema", KEYS, COMMIT_ID, COMMIT_IDS, ROWS_REJECTED})
"""Names of entries that every commit writes itself."""


def with_entries(options: Mapping[str, str], entries: Mapping[str, str]) -> dict[str, str]:
    """Return the options of one call whose commit gets these entries.

    Raises `ConfigError` for values that are not strings, and for reserved names.
    """
    for name, value in entries.items():
        if not isinstance(value, str):
            msg = f"commit_metadata has {name!r}: {value!r}"
            raise ConfigError(msg, hint="Pass strings as values.")
        if not is_whole(name) or not is_whole(value):
            msg = f"commit_metadata has {name!a}: {value!a}: it contains half of a surrogate pair"
            raise ConfigError(msg)
        if not name or name in _TAKEN:
            msg = f"commit_metadata has the name {name!r}, which is taken"
            raise ConfigError(msg, hint="Choose another name.")
    _check_batches(entries)
    return {**options, **{f"{_FOR_ONE_CALL}{name}": value for name, value in entries.items()}}


def _check_batches(entries: Mapping[str, str]) -> None:
    where = "commit_metadata"
    try:
        for stream in stream_batches_by_id(entries, STREAM_BATCHES, where):
            stream_batch(entries, stream, where)
    except CorruptTable as error:
        hint = 'Give JSON as {"stream": "7"}, the number of its last batch.'
        raise ConfigError(str(error), hint=hint) from error


def with_commit_id(options: Mapping[str, str], commit_id: str) -> dict[str, str]:
    """Return the options of one call whose commit gets this id."""
    return {**options, f"{_FOR_ONE_CALL}{COMMIT_ID}": commit_id}


def with_commit_ids(options: Mapping[str, str], ids: Collection[str]) -> dict[str, str]:
    """Return the options of one call whose commit gets all of these ids."""
    if len(ids) < 2:  # noqa: PLR2004 - one id is stored as it always was
        return with_commit_id(options, *ids) if ids else {**options}
    return {**options, f"{_FOR_ONE_CALL}{COMMIT_IDS}": json.dumps([*ids])}


def commit_ids(extra_metadata: Mapping[str, str], where: object) -> frozenset[str]:
    """Return the ids that a commit's extra metadata have, of one write or of several.

    Raises `CorruptTable` naming `where` for an entry that is not a JSON list of strings.
    """
    single, several = extra_metadata.get(COMMIT_ID), extra_metadata.get(COMMIT_IDS)
    ids = [] if single is None else [single]
    if several is None:
        return frozenset(ids)
    listed = parse_json(several, f"{where}: {COMMIT_IDS}", is_file=False)
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise CorruptTable(f"{where}: {COMMIT_IDS} is {several!r}, which is not a list of strings")
    return frozenset([*ids, *listed])


def stream_batches_by_id(
    extra_metadata: Mapping[str, str], name: str, where: object
) -> dict[str, str]:
    """Return the value for each stream in an entry of a commit's extra metadata.

    Raises `CorruptTable` naming `where` for an entry that is not a JSON object.
    """
    entry = extra_metadata.get(name)
    batches = parse_json(entry, f"{where}: {name}", is_file=False) if entry else {}
    if not isinstance(batches, dict):
        raise CorruptTable(f"{where}: {name} is {entry!r}, which is not a JSON object")
    return {stream: str(value) for stream, value in batches.items()}


def stream_batch(extra_metadata: Mapping[str, str], stream: str, where: object) -> int | None:
    """Return the last batch of a stream in a commit's extra metadata; None if it has none.

    Raises `CorruptTable` naming `where` for a value that is not a number.
    """
    number = stream_batches_by_id(extra_metadata, STREAM_BATCHES, where).get(stream)
    if number is None:
        return None
    if not re.fullmatch(r"[0-9]{1,19}", number):
        msg = f"{where}: {STREAM_BATCHES} has {number!r} as the last batch of {stream!r}"
        raise CorruptTable(msg)
    return int(number)


def commit_metadata(options: Mapping[str, str]) -> dict[str, str]:
    """Return what the options add to the extra metadata of each commit."""
    always = {
        name: value for name, value in options.items() if name.startswith(COMMIT_METADATA_PREFIX)
    }
    once = {
        name.removeprefix(_FOR_ONE_CALL): value
        for name, value in options.items()
        if name.startswith(_FOR_ONE_CALL)
    }
    return {**always, **once}
