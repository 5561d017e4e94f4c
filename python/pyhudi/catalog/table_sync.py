"""Syncs a table with catalogs: registers it, then updates schema, properties and partitions.

The table is only read. Source of the steps and their order: `HiveSyncTool` (Hudi 1.2.0).

The catalog gets each partition that has file groups now. If all commits since the last sync are on
the active timeline, only their partitions are checked. Source of the values: the
extractors of `org.apache.hudi.hive` (Hudi 1.2.0).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyhudi.catalog.protocol import Catalog, CatalogPartition, CatalogTable, Column
from pyhudi.catalog.registration import (
    LAST_COMMIT,
    LAST_COMPLETION,
    PROVIDER,
    Registration,
    add_comments,
    describe_table,
    is_hudi,
    partition_fields,
    registrations,
)
from pyhudi.config.catalog_sync_options import SyncOptions
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.storage.options import mask_credentials
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Instant


@dataclass(frozen=True)
class SyncResult:
    """The result of a sync, for all names of the table in a catalog."""

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
    if not getattr(catalog, "stores_columns", True):
        return _sync_location(table, catalog, options)
    names = registrations(table, options)
    return sum_results([_Sync(table, catalog, options, name).run() for name in names])


def _sync_location(table: TableSnapshot, catalog: Catalog, options: SyncOptions) -> SyncResult:
    """Register a table in a catalog whose entries have a location and no columns, or check it."""
    if table.config.is_merge_on_read and (options.strategy == "RO" or options.skip_ro_suffix):
        raise UnsupportedTableFeature(
            f"{catalog!r} has no read-optimized views",
            hint="Leave out hoodie.datasource.hive_sync.table.strategy and skip_ro_suffix.",
        )
    name = options.table or table.config.name
    full = f"{options.database}.{name}"
    entry = CatalogTable(
        name=name,
        location=catalog.location_of(table.storage.uri),
        columns=(),
        parameters={**options.table_properties, PROVIDER: "hudi"},
    )
    existing = catalog.get_table(options.database, name)
    if existing is None:
        catalog.create_table(options.database, entry)
        return SyncResult((full,), (full,))
    if not is_hudi(existing):
        raise ConfigError(f"{full} exists in the catalog and is not a Hudi table")
    _check_same(existing, entry, options.database)
    return SyncResult((full,))


def sum_results(results: Sequence[SyncResult]) -> SyncResult:
    """Return the result of several syncs together."""
    return SyncResult(
        tuple(name for each in results for name in each.tables),
        tuple(name for each in results for name in each.created),
        any(each.schema_changed for each in results),
        sum(each.partitions_added for each in results),
        sum(each.partitions_moved for each in results),
        sum(each.partitions_dropped for each in results),
    )


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
            self._record_commit(entry)
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

    def _record_commit(self, entry: CatalogTable) -> None:
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
    if not is_same_location(existing.location, expected.location):
        catalog_location = mask_credentials(existing.location)
        raise ConfigError(
            f"{database}.{existing.name} is at {catalog_location} in the catalog, this table at "
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


# --- partitions -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Changes:
    """The changes to make to a table's partitions in a catalog."""

    added: tuple[CatalogPartition, ...] = ()
    moved: tuple[CatalogPartition, ...] = ()
    dropped: tuple[CatalogPartition, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.moved or self.dropped)


def changes(
    in_catalog: Iterable[CatalogPartition],
    live: Iterable[CatalogPartition],
    checked: Collection[tuple[str, ...]] | None,
) -> Changes:
    """Return the difference between a catalog and a table.

    in_catalog: all partitions of the catalog. live: those of the checked partitions that have data.
    checked: values of the checked partitions, None for all.
    """
    stored = {partition.values: partition for partition in in_catalog}
    expected = {partition.values: partition for partition in live}
    lost = stored.keys() - expected.keys()
    if checked is not None:
        lost &= set(checked)
    return Changes(
        added=tuple(expected[values] for values in sorted(expected.keys() - stored.keys())),
        moved=tuple(
            expected[values]
            for values in sorted(expected.keys() & stored.keys())
            if not is_same_location(expected[values].location, stored[values].location)
        ),
        dropped=tuple(stored[values] for values in sorted(lost)),
    )


def partitions_changed_since(
    table: TableSnapshot, last: str, last_completed: str
) -> set[str] | None:
    """Return the partitions that commits changed after the last commit that a catalog has recorded.

    None if that commit has left the active timeline: later changes are then unknown.
    """
    commits = table.timeline.commits
    if last not in {commit.requested for commit in commits}:
        return None
    changed: set[str] = set()
    for commit in commits:
        if commit.requested > last or _completion_time(commit) > (last_completed or last):
            metadata = table.timeline.commit_metadata(commit)
            changed.update(metadata.partition_to_write_stats)
            changed.update(metadata.partition_to_replace_file_ids or ())
    return changed


def live_paths(table: TableSnapshot, among: Collection[str] | None) -> set[str]:
    """Return the partitions that have file groups. among: the partitions to check, None for all."""
    if among is not None and not among:
        return set()
    view = FileSystemView(table.storage, table.config, table.timeline, among)
    return {slice_.partition for slice_ in view.iter_newest_slices()}


def folders_of(
    there: Iterable[CatalogPartition], values: Collection[tuple[str, ...]], base: str
) -> set[str]:
    """Return the paths below a table's location that a catalog has for some values."""
    below = f"{_path(base)}/"
    locations = (_path(each.location) for each in there if each.values in values)
    paths = {path.removeprefix(below) for path in locations if path.startswith(below)}
    # Another writer may have set a location that is not a partition of the table.
    return {path for path in paths if not {"", ".", ".."} & set(path.split("/"))}


def check_apart(paths: Mapping[str, tuple[str, ...]]) -> None:
    """Raise `UnsupportedTableFeature` if two paths have the same values."""
    seen: dict[tuple[str, ...], str] = {}
    for path, values in sorted(paths.items()):
        other = seen.setdefault(values, path)
        if other != path:
            raise UnsupportedTableFeature(
                f"the partitions {other!r} and {path!r}, which a catalog cannot tell apart",
                hint="Use one spelling of the partition's value.",
            )


def values_of(path: str, fields: tuple[str, ...], extractor: str) -> tuple[str, ...]:
    """Return the values of a partition's path in a catalog: as text, and not decoded."""
    if extractor == "HiveStylePartitionValueExtractor":
        values = tuple(path.split("=")[1:])
        if len(values) != 1:
            raise _no(path, fields)
        return values
    if extractor == "MultiPartKeysValueExtractor":
        values = tuple(part.split("=", 1)[-1] for part in path.split("/"))
        if len(values) != len(fields):
            raise _no(path, fields)
        return values
    # Several directories for one value are a date with slashes, which Hudi writes with hyphens.
    return (path.replace("/", "-"),)


def extractor_of(fields: tuple[str, ...], *, hive_style: bool) -> str:
    """Return the class that Hudi uses if none is named."""
    if len(fields) > 1:
        return "MultiPartKeysValueExtractor"
    return "HiveStylePartitionValueExtractor" if hive_style else "SinglePartPartitionValueExtractor"


def _no(path: str, fields: tuple[str, ...]) -> ConfigError:
    return ConfigError(
        f"the partition {path!r} does not give a value for each of {', '.join(fields)}",
        hint="Name the class by hoodie.datasource.hive_sync.partition_extractor_class.",
    )


def _completion_time(commit: Instant) -> str:
    return commit.completed or commit.requested


def is_same_location(first: str, second: str) -> bool:
    """Return whether two locations are the same; programs write their schemes differently."""
    locations = _without_scheme(first), _without_scheme(second)
    is_hdfs = first.startswith("hdfs:") and second.startswith("hdfs:")
    # HDFS without a server means the server of the reader's configuration.
    if is_hdfs and any(location.startswith("/") for location in locations):
        return _path(first) == _path(second)
    return locations[0] == locations[1]


def _without_scheme(location: str) -> str:
    """Return a location without its scheme: the server or bucket, and the path."""
    rest = re.sub(r"^[a-zA-Z][\w+.-]*:(?=/)", "", location)
    server, _, path = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest)
    return f"{server}/{path.strip('/')}"


def _path(location: str) -> str:
    return "/" + _without_scheme(location).partition("/")[2]
