"""Brings catalogs up to a table: registers it, then its schema, properties and partitions.

The table is only read. Source of what is done in which order: `HiveSyncTool` (Hudi 1.2.0).
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
from pyhudi.storage.credentials import mask_credentials
from pyhudi.table.table_snapshot import TableSnapshot


@dataclass(frozen=True)
class SyncResult:
    """What a sync did, over all names that the table has in a catalog."""

    tables: tuple[str, ...]
    """Names, as `database.table`."""
    created: tuple[str, ...] = ()
    """Those of them that were registered for the first time."""
    schema_changed: bool = False
    partitions_added: int = 0
    partitions_moved: int = 0
    partitions_dropped: int = 0


def sync_table(table: TableSnapshot, catalog: Catalog, options: SyncOptions) -> SyncResult:
    """Brings a catalog up to a table as it is.

    Raises `ConfigError` where a name belongs to another table, or there is no database and none may
    be made; `UnsupportedTableFeature` for what a catalog cannot hold; `StorageError` where the
    catalog fails. What was done before that stays, and is found done by the next sync.
    """
    if not catalog.has_database(options.database):
        if not options.create_database:
            raise ConfigError(
                f"the catalog has no database {options.database!r}",
                hint="Make it, or set hoodie.datasource.hive_sync.auto_create_database.",
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
        """Carries it out."""
        database, name = self.options.database, self.registration.name
        location = self.catalog.location_of(self.table.storage.uri)
        base = self.catalog.base_parameters()
        wanted = describe_table(self.table, self.registration, self.options, location, base)
        found = self.catalog.get_table(database, name)
        if found is None:
            self.catalog.create_table(database, wanted)
            known, schema_changed, changed = wanted, True, True
        else:
            _check_same(found, wanted, database)
            known = found
            schema_changed = _differs(found, wanted)
            known, changed = self._merge_into_catalog(found, wanted, schema_changed=schema_changed)
        if self.options.comments:
            known = self._with_comments(known)
        partitions = self._partitions(found, location)
        if not self.options.conditional or changed or schema_changed or partitions:
            self._note_commit(known)
        full = f"{database}.{name}"
        return SyncResult(
            (full,),
            (full,) if found is None else (),
            schema_changed,
            len(partitions.added),
            len(partitions.moved),
            len(partitions.dropped),
        )

    def _merge_into_catalog(
        self, found: CatalogTable, wanted: CatalogTable, *, schema_changed: bool
    ) -> tuple[CatalogTable, bool]:
        """The table as it is to be in the catalog; what others have set there stays."""
        comments = {column.name.lower(): column.comment for column in found.columns}
        columns = tuple(
            Column(each.name, each.type, comments.get(each.name.lower(), ""))
            for each in wanted.columns
        )
        known = replace(
            found,
            columns=columns if schema_changed else found.columns,
            input_format=wanted.input_format,
            output_format=wanted.output_format,
            serde=wanted.serde,
            serde_parameters={**found.serde_parameters, **wanted.serde_parameters},
            parameters={**_other_parameters(found, wanted), **wanted.parameters},
        )
        if known != found:
            cascade = schema_changed and bool(found.partition_keys)
            self.catalog.alter_table(self.options.database, known, cascade=cascade)
        return known, known != found

    def _with_comments(self, known: CatalogTable) -> CatalogTable:
        told = replace(
            known,
            columns=add_comments(self.table, known.columns),
            partition_keys=add_comments(self.table, known.partition_keys),
        )
        if told != known:
            self.catalog.alter_table(self.options.database, told, cascade=False)
        return told

    def _partitions(self, found: CatalogTable | None, location: str) -> Changes:
        fields = partition_fields(self.table, self.options)
        if not fields:
            return Changes()
        database, name = self.options.database, self.registration.name
        noted: Mapping[str, str] = {} if found is None else found.parameters
        last, completed = noted.get(LAST_COMMIT, ""), noted.get(LAST_COMPLETION, "")
        looked_at = partitions_changed_since(self.table, last, completed) if last else None
        if looked_at is not None and not looked_at:
            return Changes()
        there = self.catalog.get_partitions(database, name)
        extractor = self.options.extractor or extractor_of(
            fields, hive_style=self.table.config.hive_style
        )
        among = None
        if looked_at is not None:
            among = {values_of(path, fields, extractor) for path in looked_at}
            # Another folder may have the same values.
            looked_at |= folders_of(there, among, location)
        live = {
            path: values_of(path, fields, extractor) for path in live_paths(self.table, looked_at)
        }
        check_apart(live)
        partitions = [
            CatalogPartition(values, f"{location}/{path}") for path, values in live.items()
        ]
        todo = changes(there, partitions, among)
        if todo.added:
            self.catalog.add_partitions(database, name, todo.added, self.options.batch)
        if todo.moved:
            self.catalog.move_partitions(database, name, todo.moved, self.options.batch)
        if todo.dropped:
            self.catalog.drop_partitions(database, name, todo.dropped)
        return todo

    def _note_commit(self, known: CatalogTable) -> None:
        """The last commit, as the last act: a sync that fails before is made again."""
        commits = self.table.timeline.commits
        if not commits:
            return
        noted = {LAST_COMMIT: commits[-1].requested}
        completed = [commit.completed for commit in commits if commit.completed]
        if completed:
            noted[LAST_COMPLETION] = max(completed)
        told = replace(known, parameters={**known.parameters, **noted})
        if told != known:
            self.catalog.alter_table(self.options.database, told, cascade=False)


def _check_same(found: CatalogTable, wanted: CatalogTable, database: str) -> None:
    """Hudi drops a table of another location; pyhudi leaves what it did not make."""
    if not same_place(found.location, wanted.location):
        theirs = mask_credentials(found.location)
        raise ConfigError(
            f"{database}.{found.name} is at {theirs} in the catalog, this table at "
            f"{wanted.location}",
            hint="Drop it there, or give another name by hoodie.datasource.hive_sync.table.",
        )
    keys = [key.name.lower() for key in found.partition_keys]
    if keys != [key.name.lower() for key in wanted.partition_keys]:
        raise ConfigError(
            f"{database}.{found.name} is partitioned by {keys} in the catalog, and catalogs cannot "
            "change that",
            hint="Drop it there; the next sync registers it again.",
        )


def _differs(found: CatalogTable, wanted: CatalogTable) -> bool:
    """Whether columns came, went or have another type. Catalogs know no upper case."""
    return [(each.name.lower(), each.type.lower()) for each in found.columns] != [
        (each.name.lower(), each.type.lower()) for each in wanted.columns
    ]


def _other_parameters(found: CatalogTable, wanted: CatalogTable) -> dict[str, str]:
    """What the table has in the catalog, but for parts of a longer schema that was there before."""
    prefix = "spark.sql.sources.schema.part."
    return {
        name: text
        for name, text in found.parameters.items()
        if not (name.startswith(prefix) and f"{prefix}0" in wanted.parameters)
    }
