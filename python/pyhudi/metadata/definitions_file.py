"""Writing index definitions (`.hoodie/.index_defs/index.json`). Reading them is `definitions.py`'s.

Definitions and their fields that pyhudi does not know stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pyhudi.config.json_text import parse_json
from pyhudi.config.metadata_names import RECORD_INDEX
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CorruptTable
from pyhudi.metadata.definitions import COLUMN_STATS, DEFAULT_PATH, INDEX_DEFINITIONS
from pyhudi.storage.storage import Storage

Definitions = dict[str, Any]


def new_definitions(
    config: TableConfig,
    partitions: Collection[str],
    columns: Sequence[str],
    *,
    partitioned: bool = False,
) -> Definitions:
    """The definitions that these partitions come with.

    columns: those with statistics. partitioned: a record index is one by data partition.
    """
    version = config.version
    found = {}
    if RECORD_INDEX in partitions and version.index_versions:
        options = {"isPartitioned": str(partitioned).lower()}
        found[RECORD_INDEX] = _definition(RECORD_INDEX, RECORD_INDEX, "", (), options, "V1")
    if COLUMN_STATS in partitions and version.has_index_definitions:
        stats = COLUMN_STATS
        found[stats] = _definition(stats, stats, stats, columns, {}, _newest(config))
    return found


def index_definition(
    config: TableConfig,
    name: str,
    kind: str,
    function: str,
    column: str,
    options: Mapping[str, str],
) -> Definitions:
    """The definition of a secondary or expression index. name: of its partition."""
    found = _definition(name, kind, function, (column,), options, _newest(config))
    return {name: found}


def stored_definitions(storage: Storage, config: TableConfig) -> Definitions:
    """The definitions as the table's file has them. Raises `CorruptTable` for a damaged one."""
    return _known(storage, config.properties.get(INDEX_DEFINITIONS) or DEFAULT_PATH)


def _newest(config: TableConfig) -> str | None:
    """The index version that the matching release gives a new index."""
    return "V2" if config.version.index_versions else None


def _definition(
    name: str,
    kind: str,
    function: str,
    columns: Sequence[str],
    options: Mapping[str, str],
    version: str | None,
) -> dict[str, Any]:
    definition: dict[str, Any] = {
        "indexName": name,
        "indexType": kind,
        "indexFunction": function,
        "sourceFields": list(columns),
        "indexOptions": dict(options),
    }
    return definition if version is None else {**definition, "version": version}


def change_definitions(
    storage: Storage, config: TableConfig, added: Definitions, removed: Collection[str] = ()
) -> dict[str, str]:
    """Writes the file anew, if anything changes; gives the property that names it.

    Raises `CorruptTable` for a file that is not one of definitions.
    """
    path = config.properties.get(INDEX_DEFINITIONS) or DEFAULT_PATH
    known = _known(storage, path)
    kept = {name: one for name, one in known.items() if name not in removed}
    if {**kept, **added} == known:
        return {}
    data = json.dumps(
        {"indexDefinitions": {**kept, **added}},
        indent=2,
        separators=(",", " : "),
        ensure_ascii=False,
    )
    storage.put(path, data.encode())
    return {INDEX_DEFINITIONS: path}


def _known(storage: Storage, path: str) -> Definitions:
    data = storage.read_or_none(path)
    if data is None:
        return {}
    found = parse_json(data, path)
    try:
        return dict(found["indexDefinitions"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTable(f"{path}: not index definitions: {error!r}", file=path) from error
