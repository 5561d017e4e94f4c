"""Writing `.hoodie/.index_defs/index.json`, which `index_definitions.py` reads.

Definitions and fields that pyhudi does not know stay unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pyhudi.config.table_config import TableConfig
from pyhudi.metadata.index_definitions import (
    INDEX_DEFINITIONS,
    definitions_path,
    read_definitions,
)
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
    """Return the definition of an index. name: that of its partition.

    version: of the index; None for the one that the matching release gives a new index.
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


def change_definitions(
    storage: Storage, config: TableConfig, added: Definitions, removed: Collection[str] = ()
) -> dict[str, str]:
    """Rewrite the file if anything changes; return the property that names it.

    Raises `CorruptTable` for a file that is not one of definitions.
    """
    path, known = definitions_path(config), read_definitions(storage, config)
    kept = {name: definition for name, definition in known.items() if name not in removed}
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
