"""Methods of a table handle that change its definition: columns, properties, version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from pyhudi.api.operation_events import as_lazy_operation, as_operation
from pyhudi.api.table_handle import TableHandle
from pyhudi.config import argument_checks as arg

if TYPE_CHECKING:  # Opening and reading a table needs none of it.
    from pyhudi.admin.upgrade import VersionChange
    from pyhudi.api.alter_builder import Alter
    from pyhudi.schema.column_transforms import ColumnTransform


class TableProperties(Mapping[str, str]):
    """The content of `hoodie.properties` by name, read-only; `set_properties` changes some."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = dict(sorted(properties.items()))

    def __getitem__(self, name: str) -> str:
        return self._properties[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._properties)

    def __len__(self) -> int:
        return len(self._properties)

    def __repr__(self) -> str:
        width = max(map(len, self._properties), default=0)
        return "\n".join(f"{name:{width}}  {value}" for name, value in self._properties.items())

    def _repr_html_(self) -> str:
        from pyhudi.api.notebook_html.html import property_grid  # noqa: PLC0415 - only notebooks need it
        from pyhudi.api.notebook_html.style import fragment  # noqa: PLC0415 - as above

        return fragment(property_grid(self._properties))


class DdlOperations(TableHandle):
    """DDL of `HudiTable`: its columns, properties and version."""

    @arg.check_arguments()
    @as_lazy_operation
    def alter(
        self,
        *,
        commit_metadata: Mapping[str, str] | None = None,
        commit_id: str | None = None,
    ) -> Alter:
        """Return a builder that changes the table's columns; `execute` applies the changes.

            table.alter().rename_column("fare", "price").add_column("tip", pa.float64()).execute()

        Columns get ids with the first such change, and keep them: no file is rewritten, and older
        files are read by the ids. Apache Hudi reads and writes the table with
        `hoodie.schema.on.read.enable=true`.

        Args:
            commit_metadata: as in `upsert`.
            commit_id: as in `upsert`.

        Returns:
            The builder, without changes.

        Raises:
            ConfigError: an argument is wrong.
        """
        from pyhudi.api.alter_builder import Alter  # noqa: PLC0415 - not needed for reading
        from pyhudi.write.alter import alter  # noqa: PLC0415 - not needed for reading

        return Alter(
            partial(
                self._write,
                alter,
                False,  # noqa: FBT003 - one file, no progress
                commit_metadata=commit_metadata,
                commit_id=commit_id,
            )
        )

    @property
    def properties(self) -> TableProperties:
        """The content of `hoodie.properties` by name: a read-only mapping that prints as lines."""
        return TableProperties(self.config.properties)

    @property
    def constraints(self) -> Mapping[str, str]:
        """The SQL conditions that writers of pyhudi check, by name."""
        from pyhudi.config.constraints import read_constraints  # noqa: PLC0415 - not needed for reading

        return read_constraints(self.config)

    @arg.check_arguments()
    @as_operation
    def add_constraint(self, name: str, condition: str) -> None:
        """Add a condition that every row of the table satisfies, now and after later writes.

        pyhudi reads the rows of the table first. A write of pyhudi raises `ConstraintViolation` if
        the condition is false for one of its rows; it may be null, as in SQL. Apache Hudi's writers
        do not check it.

        Args:
            name: name of the constraint.
            condition: a SQL condition over the table's columns, such as "fare >= 0".

        Raises:
            ConstraintViolation: a stored row makes the condition false.
            SchemaMismatch: the condition does not match the table's columns.
            ConfigError: the table has another constraint of this name, the condition is invalid, or
                the handle was opened as of an earlier time.
            UnsupportedTableFeature: the table merges rows column by column, or pyhudi does not
                write to it.
            CommitConflict: other writers committed during each of three attempts.
            LockTimeout: the table's lock was not free in time.
        """
        from pyhudi.admin.constraints import add_constraint  # noqa: PLC0415 - not needed for reading

        add_constraint(self._writable(), name, condition)
        self._reload()

    @arg.check_arguments()
    @as_operation
    def drop_constraint(self, name: str) -> None:
        """Drop a constraint.

        Args:
            name: name of the constraint.

        Raises:
            ConfigError: there is no constraint of this name, or the handle was opened as of an
                earlier time.
            UnsupportedTableFeature: pyhudi does not write to the table.
            CommitConflict: another writer changed the table's properties.
            LockTimeout: the table's lock was not free in time.
        """
        from pyhudi.admin.constraints import drop_constraint  # noqa: PLC0415 - not needed for reading

        drop_constraint(self._writable(), name)
        self._reload()

    @property
    def generated_columns(self) -> Mapping[str, str]:
        """The SQL expressions of columns that writers of pyhudi compute, by name."""
        from pyhudi.config.constraints import read_generated_columns  # noqa: PLC0415 - not needed for reading

        return read_generated_columns(self.config)

    @arg.check_arguments(expression=arg.check_expression)
    @as_operation
    def add_generated_column(self, name: str, expression: str | ColumnTransform) -> None:
        """Add a column that writers of pyhudi compute from other columns of the row.

        A new column is added to the table, and stored rows with null in it are written again. You
        can call it again after a failure: it continues. Apache Hudi's writers do not compute the
        column.

        Args:
            name: name of the column. If the table has it, its values must be null or those of the
                expression.
            expression: a SQL expression over the table's columns, such as "CAST(at AS DATE)", or a
                transform such as `pyhudi.day("at")`.

        Raises:
            ConstraintViolation: a stored row has another value.
            SchemaMismatch: the expression does not match the table's columns.
            ConfigError: the table has another expression for this column, the expression is
                invalid, or the handle was opened as of an earlier time.
            UnsupportedTableFeature: the table merges rows column by column, or pyhudi does not
                write to it.
            CommitConflict: other writers committed during each of three attempts.
            LockTimeout: the table's lock was not free in time.
        """
        from pyhudi.admin.generated_columns import add_generated_column  # noqa: PLC0415 - not needed for reading

        add_generated_column(self._writable(), name, expression)
        self._reload()

    @arg.check_arguments()
    @as_operation
    def drop_generated_column(self, name: str) -> None:
        """Make a generated column a plain column, which keeps its values.

        Args:
            name: name of the column.

        Raises:
            ConfigError: there is no generated column of this name, or the handle was opened as of
                an earlier time.
            UnsupportedTableFeature: pyhudi does not write to the table.
            CommitConflict: another writer changed the table's properties.
            LockTimeout: the table's lock was not free in time.
        """
        from pyhudi.admin.generated_columns import drop_generated_column  # noqa: PLC0415 - not needed for reading

        drop_generated_column(self._writable(), name)
        self._reload()

    @arg.check_arguments()
    @as_operation
    def set_properties(self, properties: Mapping[str, object]) -> None:
        """Change properties of the table, under its lock: all of them, or none.

        A property that files, keys or partition paths of the table depend on cannot change; the
        error names it. You can change

        - `hoodie.table.cdc.enabled`, for later commits;
        - `hoodie.table.cdc.supplemental.logging.mode`, while no commit of the active timeline has
          recorded changes;
        - your own properties, whose names begin with neither `hoodie.` nor `pyhudi.`;
        - `hoodie.compaction.payload.class` of a copy-on-write table up to version 6 that names no
          class, as Hudi 0.15 leaves it: each of its writers passes the class.

        Other handles see the change after a refresh.

        Args:
            properties: values by name; None removes a property of your own.

        Raises:
            ConfigError: a property cannot change (the message says why), a value is invalid, or the
                handle was opened as of an earlier time.
            CommitConflict: another writer is active.
            LockTimeout: the table's lock was not free in time.
            UnsupportedTableFeature: pyhudi could not write to the table after the change.
        """
        from pyhudi.admin.table_properties import set_properties  # noqa: PLC0415 - not needed for reading

        set_properties(self._writable(), properties)
        self._reload()

    @arg.check_arguments()
    @as_operation
    def upgrade(self, to: int = 9, *, dry_run: bool = False) -> VersionChange:
        """Upgrade the table to a later version; no other operation does that.

        pyhudi compacts log files first, removes the metadata table and rebuilds it in the new
        version. If the writer fails, the next write completes the upgrade. A table that has the
        version already does not change.

        Args:
            to: the table version: 5, 6, 8 or 9.
            dry_run: return what would change, and change nothing; raises what the upgrade would
                raise.

        Returns:
            What changed, or would change.

        Raises:
            UnsupportedTableFeature: the table cannot have that version, or pyhudi does not write to
                it; the message names the property. Nothing is changed.
            CommitConflict: a clustering or another operation is pending, or another writer is
                active.
            ConfigError: there is no such version, it is an earlier one, or the handle was opened as
                of an earlier time.
        """
        return self._change_version(to, up=True, dry_run=dry_run)

    @arg.check_arguments()
    @as_operation
    def downgrade(self, to: int, *, dry_run: bool = False) -> VersionChange:
        """Downgrade the table to an earlier version; otherwise as `upgrade`.

        Args:
            to: the table version: 8, 6, 5 or 4.
            dry_run: return what would change, and change nothing; raises what the downgrade would
                raise.

        Returns:
            What changed, or would change.

        Raises:
            UnsupportedTableFeature: the table cannot have that version, or pyhudi does not write to
                it; the message names the property. Nothing is changed.
            CommitConflict: a clustering or another operation is pending, or another writer is
                active.
            ConfigError: there is no such version, it is a later one, or the handle was opened as of
                an earlier time.
        """
        return self._change_version(to, up=False, dry_run=dry_run)

    def _change_version(self, to: int, *, up: bool, dry_run: bool) -> VersionChange:
        from pyhudi.admin.upgrade import change_version  # noqa: PLC0415 - not needed for reading

        change = change_version(self._writable(), to, up=up, dry_run=dry_run)
        self._reload()
        return change
