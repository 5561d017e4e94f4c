"""Syncs a table with catalogs: registers it, then updates schema, properties and partitions.

The table is only read. Source of the steps and their order: `HiveSyncTool` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyhudi.catalog.partitions import (
    Changes,
    changes,
    check_apart,
    extractor_of,
    folders_of,
    live_paths,
    partitions_changed_since,
    same_place,
    values_of,
)
from pyhudi.catalog.protocol import Catalog, CatalogPartition, CatalogTable, Column
from pyhudi.catalog.registration import (
    LAST_COMMIT,
    LAST_COMPLETION,
    Registration,
    add_comments,
    describe_table,
    partition_fields,
    registrations,
)
from pyhudi.config.catalog_sync_options import SyncOptions
from pyhudi.errors import ConfigError
from pyhudi.storage.options import mask_credentials
from pyhudi.table.table_snapshot import TableSnapshot


@dataclass(frozen=True)
class SyncResult:
    """What a sync did, for all names of the table in a catalog."""

    tables: tuple[str, ...]
    """Names, as `database.table`."""
    created: tuple[str, ...] = ()
    """Names that were registered for the first time."""
    schema_changed: bool = False
    partitions_added: int = 0
    partitions_moved: int = 0
    partitions_dropped: int = 0


def sync_table(table: TableSnapshot, catalog: Catalog, options: SyncOptions) -> SyncResult:
    """Sync a catalog with the current table.

    Raises `ConfigError` if a name belongs to another table, or the database does not exist and may
    not be created; `UnsupportedTableFeature` if the catalog cannot store the table; `StorageError`
    if the catalog fails. Completed steps stay, and the next sync skips them.
    """
    if not catalog.has_database(options.database):
        if not options.create_database:
            raise ConfigError(
                f"the catalog has no database {options.database!r}",
                hint="Create it, or set hoodie.datasource.hive_sync.auto_create_database.",
            )
        catalog.create_database(options.database)
    result = SyncResult(())
    for registration in registrations(table, options):
        done = _Sync(table, catalog, options, registration).run()
        result = SyncResult(
            result.tables + done.tables,
            result.created + done.created,
            result.schema_changed or done.schema_changed,
            result.partitions_added + done.partitions_added,
            result.partitions_moved + done.partitions_moved,
            result.partitions_dropped + done.partitions_dropped,
        )
    return result


@dataclass(frozen=True)
class _Sync:
    """The sync of one name."""

    table: TableSnapshot
    catalog: Catalog
    options: SyncOptions
    registration: Registration

    def run(self) -> SyncResult:
        """Run the sync."""
        database, name = self.options.database, self.registration.name
        location = self.catalog.location_of(self.table.storage.uri)
        base = self.catalog.base_parameters()
        expected = describe_table(self.table, self.registration, self.options, location, base)
        existing = self.catalog.get_table(database, name)
        if existing is None:
            self.catalog.create_table(database, expected)
            entry, schema_changed, changed = expected, True, True
        else:
            _check_same(existing, expected, database)
            entry = existing
            schema_changed = _differs(existing, expected)
            entry, changed = self._merge_into_catalog(
                existing, expected, schema_changed=schema_changed
            )
        if self.options.comments:
            entry = self._with_comments(entry)
        partitions = self._partitions(existing, location)
        if not self.options.conditional or changed or schema_changed or partitions:
            self._note_commit(entry)
        full = f"{database}.{name}"
        return SyncResult(
            (full,),
            (full,) if existing is None else (),
            schema_changed,
            len(partitions.added),
            len(partitions.moved),
            len(partitions.dropped),
        )

    def _merge_into_catalog(
        self, existing: CatalogTable, expected: CatalogTable, *, schema_changed: bool
    ) -> tuple[CatalogTable, bool]:
        """Update the table's entry in the catalog; settings of other programs stay."""
        comments = {column.name.lower(): column.comment for column in existing.columns}
        columns = tuple(
            Column(each.name, each.type, comments.get(each.name.lower(), ""))
            for each in expected.columns
        )
        merged = replace(
            existing,
            columns=columns if schema_changed else existing.columns,
            input_format=expected.input_format,
            output_format=expected.output_format,
            serde=expected.serde,
            serde_parameters={**existing.serde_parameters, **expected.serde_parameters},
            parameters={**_other_parameters(existing, expected), **expected.parameters},
        )
        if merged != existing:
            cascade = schema_changed and bool(existing.partition_keys)
            self.catalog.alter_table(self.options.database, merged, cascade=cascade)
        return merged, merged != existing

    def _with_comments(self, entry: CatalogTable) -> CatalogTable:
        commented = replace(
            entry,
            columns=add_comments(self.table, entry.columns),
            partition_keys=add_comments(self.table, entry.partition_keys),
        )
        if commented != entry:
            self.catalog.alter_table(self.options.database, commented, cascade=False)
        return commented

    def _partitions(self, existing: CatalogTable | None, location: str) -> Changes:
        fields = partition_fields(self.table, self.options)
        if not fields:
            return Changes()
        database, name = self.options.database, self.registration.name
        recorded: Mapping[str, str] = {} if existing is None else existing.parameters
        last, completed = recorded.get(LAST_COMMIT, ""), recorded.get(LAST_COMPLETION, "")
        changed_paths = partitions_changed_since(self.table, last, completed) if last else None
        if changed_paths is not None and not changed_paths:
            return Changes()
        stored = self.catalog.get_partitions(database, name)
        extractor = self.options.extractor or extractor_of(
            fields, hive_style=self.table.config.hive_style
        )
        among = None
        if changed_paths is not None:
            among = {values_of(path, fields, extractor) for path in changed_paths}
            # Another directory may have the same values.
            changed_paths |= folders_of(stored, among, location)
        live = {
            path: values_of(path, fields, extractor)
            for path in live_paths(self.table, changed_paths)
        }
        check_apart(live)
        partitions = [
            CatalogPartition(values, f"{location}/{path}") for path, values in live.items()
        ]
        todo = changes(stored, partitions, among)
        if todo.added:
            self.catalog.add_partitions(database, name, todo.added, self.options.batch)
        if todo.moved:
            self.catalog.move_partitions(database, name, todo.moved, self.options.batch)
        if todo.dropped:
            self.catalog.drop_partitions(database, name, todo.dropped)
        return todo

    def _note_commit(self, entry: CatalogTable) -> None:
        """Record the last commit, as the last step: a sync that fails before is repeated."""
        commits = self.table.timeline.commits
        if not commits:
            return
        parameters = {LAST_COMMIT: commits[-1].requested}
        completed = [commit.completed for commit in commits if commit.completed]
        if completed:
            parameters[LAST_COMPLETION] = max(completed)
        updated = replace(entry, parameters={**entry.parameters, **parameters})
        if updated != entry:
            self.catalog.alter_table(self.options.database, updated, cascade=False)


def _check_same(existing: CatalogTable, expected: CatalogTable, database: str) -> None:
    """Raise for another table of this name. Hudi drops it; pyhudi keeps what it did not create."""
    if not same_place(existing.location, expected.location):
        theirs = mask_credentials(existing.location)
        raise ConfigError(
            f"{database}.{existing.name} is at {theirs} in the catalog, this table at "
            f"{expected.location}",
            hint="Drop it there, or give another name by hoodie.datasource.hive_sync.table.",
        )
    keys = [key.name.lower() for key in existing.partition_keys]
    if keys != [key.name.lower() for key in expected.partition_keys]:
        raise ConfigError(
            f"{database}.{existing.name} is partitioned by {keys} in the catalog, and catalogs "
            "cannot change that",
            hint="Drop it there; the next sync registers it again.",
        )


def _differs(existing: CatalogTable, expected: CatalogTable) -> bool:
    """Return whether columns differ in names or types. Catalogs have no upper case."""
    return [(each.name.lower(), each.type.lower()) for each in existing.columns] != [
        (each.name.lower(), each.type.lower()) for each in expected.columns
    ]


def _other_parameters(existing: CatalogTable, expected: CatalogTable) -> dict[str, str]:
    """Return the table's other parameters in the catalog, without parts of a longer old schema."""
    prefix = "spark.sql.sources.schema.part."
    return {
        name: value
        for name, value in existing.parameters.items()
        if not (name.startswith(prefix) and f"{prefix}0" in expected.parameters)
    }
