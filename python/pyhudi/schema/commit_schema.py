"""Column ids in a write: the schema that a commit records, and the schema history file.

A table without ids gets none here; `write/alter.py` assigns the first. Sources:
`BaseHoodieWriteClient.saveInternalSchema` and `FileBasedInternalSchemaStorageManager` (Hudi 1.2.0).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from pyhudi import _native
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.schema.column_tree import ColumnTree
from pyhudi.schema.internal_schema import (
    LATEST_SCHEMA,
    SCHEMA_FOLDER,
    SCHEMA_SUFFIX,
    SchemaHistory,
    instant_of_file,
    internal_columns,
)
from pyhudi.schema.table_schema import TableSchema, schema_from_avro
from pyhudi.storage.storage import Storage
from pyhudi.timeline import InstantGenerator, Timeline
from pyhudi.timeline.commit_metadata import SCHEMA_KEY

NOT_STORED = 0
"""The version of a schema that no commit has yet."""


@dataclass(frozen=True)
class CommitSchema:
    """The table schema that a commit records."""

    avro: str
    """Without meta fields."""
    internal: ColumnTree | None = None
    """The columns with their ids, in a table evolved by id."""
    version: int = NOT_STORED
    """The version that gave the table these columns."""
    history: str = ""
    """The history before the commit."""

    def extra_metadata(self, instant: str) -> dict[str, str]:
        """Return the entries of the commit's extra metadata."""
        if self.internal is None:
            return {SCHEMA_KEY: self.avro}
        return {SCHEMA_KEY: self.internal.avro(), LATEST_SCHEMA: self._internal_text(instant)}

    def history_text(self, instant: str) -> str:
        """Return the history with this commit's version."""
        if self.version != NOT_STORED and self.history:
            return self.history
        older = json.loads(self.history)["schemas"] if self.history else []
        schemas = [json.loads(self._internal_text(instant)), *older]
        return json.dumps({"schemas": schemas}, separators=(",", ":"), ensure_ascii=False)

    def _internal_text(self, instant: str) -> str:
        if self.internal is None:
            raise AssertionError(instant)
        return self.internal.internal(self.version or int(instant))


def tree_of(schema: TableSchema, config: TableConfig) -> ColumnTree:
    """Return the table's columns with their ids, with new ids in a table without.

    Raises `UnsupportedTableFeature` for a type without a counterpart in internal schemas.
    """
    current = schema.history.current if schema.history else None
    has_meta = config.populate_meta_fields
    avro = _native.with_meta_fields(schema.avro) if has_meta else schema.avro
    return ColumnTree.of(avro, current, all_types=config.version.internal_schema_has_all_types)


def first_history(tree: ColumnTree) -> SchemaHistory:
    """Return the history of a table that is about to be evolved by id for the first time.

    Its files name columns as the table does, under the version that holds from the beginning.
    """
    internal = tree.internal(NOT_STORED)
    return SchemaHistory(internal, f'{{"schemas":[{internal}]}}', {"": internal_columns(internal)})


def check_ids(schema: TableSchema, config: TableConfig) -> None:
    """Refuse columns that were added without ids after others got ids.

    Older files have that column by its name; with an id it would be null there. Raises
    `UnsupportedTableFeature`.
    """
    if schema.history is not None and tree_of(schema, config).added:
        msg = (
            "hoodie.schema.on.read.enable: columns without ids were added after other "
            "columns got ids"
        )
        raise UnsupportedTableFeature(msg, hint="Write to this table with Apache Hudi.")


def evolve_table_schema(schema: TableSchema, evolved: str, config: TableConfig) -> TableSchema:
    """Return the schema after columns are added to the table's or widened, by name."""
    if schema.history is None:
        return schema_from_avro(evolved, config)
    tree = tree_of(TableSchema(evolved, schema.arrow, history=schema.history), config)
    history = replace(schema.history, current=tree.internal(NOT_STORED))
    return schema_from_avro(_native.without_meta_fields(tree.avro()), config, history)


def commit_schema(schema: TableSchema, config: TableConfig) -> CommitSchema:
    """Return what a commit of this schema records."""
    if schema.history is None:
        return CommitSchema(schema.avro)
    tree = tree_of(schema, config)
    stored = json.loads(schema.history.current)
    version = int(stored.get("version_id", NOT_STORED))
    if json.loads(tree.internal(version)) != stored:
        version = NOT_STORED
    return CommitSchema(schema.avro, tree, version, schema.history.file_json)


def persist(
    storage: Storage, config: TableConfig, generator: InstantGenerator, instant: str, file_json: str
) -> None:
    """Write the history file of a commit that is about to complete.

    It first removes files of commits that never completed: they would count once the timeline is
    archived past them.
    """
    timeline = Timeline.load(storage, config)
    for entry in storage.list_dir(SCHEMA_FOLDER)[1]:
        if not timeline.is_committed(instant_of_file(entry.name)):
            storage.delete(entry.path)
    path = f"{SCHEMA_FOLDER}/{instant}"
    storage.put(f"{path}{SCHEMA_SUFFIX}.requested", b"")
    storage.put(f"{path}{SCHEMA_SUFFIX}.inflight", b"")
    completion = f"_{generator.next()}" if config.layout.completion_in_name else ""
    storage.put(f"{path}{completion}{SCHEMA_SUFFIX}", file_json.encode())


def forget(storage: Storage, instant: str) -> None:
    """Remove the history file of a write that is rolled back."""
    for entry in storage.list_dir(SCHEMA_FOLDER)[1]:
        if instant_of_file(entry.name) == instant:
            storage.delete(entry.path)
