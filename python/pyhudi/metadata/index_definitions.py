"""Index definitions: which indexes a table has, over which columns. Reading and writing them.

They are in `.hoodie/.index_defs/index.json` (`HoodieIndexMetadata`, Hudi 1.0 and later). Tables of
older releases have none. Definitions and fields that pyhudi does not know stay unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyhudi.config.bounded_json import parse_json
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CorruptTable
from pyhudi.storage.storage import Storage

INDEX_DEFINITIONS = "hoodie.table.index.defs.path"
DEFAULT_PATH = ".hoodie/.index_defs/index.json"

SECONDARY_INDEX = "secondary_index"


@dataclass(frozen=True)
class IndexDefinition:
    """One index, named as its partition in the metadata table."""

    name: str
    index_type: str
    """For example `column_stats`, `secondary_index`; `bloom_filters` also of expression indexes."""
    function: str
    """The function of an expression index, such as `from_unixtime`; `identity` for a secondary
    index."""
    columns: tuple[str, ...]
    options: Mapping[str, str]
    version: int
    """1 if the definition names none (Hudi 1.0)."""

    @property
    def is_partitioned(self) -> bool:
        """Return whether a record index has file groups for each data partition."""
        return self.options.get("isPartitioned", "").lower() == "true"


def index_definitions(storage: Storage, config: TableConfig) -> dict[str, IndexDefinition]:
    """Return the table's index definitions by name; none if it has no such file.

    Raises `CorruptTable` for a file that is not one.
    """
    return parse_definitions(read_definitions(storage, config))


def read_definitions(storage: Storage, config: TableConfig) -> dict[str, Any]:
    """Return the records of `index_definitions`, as the file has them."""
    path = definitions_path(config)
    data = storage.read_or_none(path)
    if data is None:
        return {}
    document = parse_json(data, path)
    try:
        records = dict(document["indexDefinitions"])
        parse_definitions(records)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptTable(f"{path}: not index definitions: {error!r}", file=path) from error
    return records


def definitions_path(config: TableConfig) -> str:
    """Return the path of the file, which may not exist."""
    return config.properties.get(INDEX_DEFINITIONS) or DEFAULT_PATH


def parse_definitions(records: Mapping[str, Any]) -> dict[str, IndexDefinition]:
    """Parse definitions from the records of the file."""
    return {name: _definition(name, record) for name, record in records.items()}


def _definition(name: str, record: Mapping[str, Any]) -> IndexDefinition:
    version = str(record.get("version") or "V1")
    return IndexDefinition(
        name=name,
        index_type=str(record["indexType"]).lower(),
        function=str(record.get("indexFunction") or "").lower(),
        columns=tuple(map(str, record.get("sourceFields") or ())),
        options={str(key): str(value) for key, value in (record.get("indexOptions") or {}).items()},
        version=int(version.removeprefix("V")),
    )


# --- writing --------------------------------------------------------------------------------------


Definitions = dict[str, Any]


def new_definition(
    config: TableConfig,
    name: str,
    index_type: str,
    function: str = "",
    columns: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    version: str | None = None,
) -> Definitions:
    """Return the definition of an index. name: that of its partition.

    version: of the index; None for the one that Hudi 1.2.0 gives a new index of this table.
    Hudi 1.0.2 writes none and ignores it, but without one Hudi 1.2.0 fails at its next write to a
    table of version 8 (`HoodieIndexVersion.lowerThan` of null).
    """
    definition: dict[str, Any] = {
        "indexName": name,
        "indexType": index_type,
        "indexFunction": function,
        "sourceFields": list(columns),
        "indexOptions": dict(options or {}),
        "version": version or ("V2" if config.version.index_versions else "V1"),
    }
    return {name: definition}


def change_definitions(
    storage: Storage, config: TableConfig, added: Definitions, removed: Collection[str] = ()
) -> dict[str, str]:
    """Rewrite the file if anything changes; return the property that names it.

    Raises `CorruptTable` for a file that is not one of definitions.
    """
    path, existing = definitions_path(config), read_definitions(storage, config)
    kept = {name: definition for name, definition in existing.items() if name not in removed}
    if {**kept, **added} == existing:
        return {}
    data = json.dumps(
        {"indexDefinitions": {**kept, **added}},
        indent=2,
        separators=(",", " : "),
        ensure_ascii=False,
    )
    storage.put(path, data.encode())
    return {INDEX_DEFINITIONS: path}
