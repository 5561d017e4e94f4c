"""Writing index definitions (`.hoodie/.index_defs/index.json`). Reading them is `definitions.py`'s.

Definitions and their fields that pyhudi does not know stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pyhudi.config.json_text import parse_json
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CorruptTable
from pyhudi.metadata.definitions import DEFAULT_PATH, INDEX_DEFINITIONS
from pyhudi.storage.storage import Storage

Definitions = dict[str, Any]


def new_definition(
    config: TableConfig,
    name: str,
    kind: str,
    function: str = "",
    columns: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    version: str | None = None,
) -> Definitions:
    """The definition of an index. name: of its partition.

    version: of the index, None for the one that the matching release gives a new one.
    """
    definition: dict[str, Any] = {
        "indexName": name,
        "indexType": kind,
        "indexFunction": function,
        "sourceFields": list(columns),
        "indexOptions": dict(options or {}),
    }
    if config.version.index_versions:
        definition["version"] = version or "V2"
    return {name: definition}


def stored_definitions(storage: Storage, config: TableConfig) -> Definitions:
    """The definitions as the table's file has them. Raises `CorruptTable` for a damaged one."""
    return _known(storage, config.properties.get(INDEX_DEFINITIONS) or DEFAULT_PATH)


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
