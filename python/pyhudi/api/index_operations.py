"""The verbs of a table handle that make and drop indexes. Thin: every verb is one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyhudi.config import argument_checks as arg
from pyhudi.engine.memory_pool import low_memory_mode

if TYPE_CHECKING:  # Opening and reading a table needs none of it.
    from pyhudi.write.write_context import WritableTable


class IndexVerbs:
    """What `HudiTable` can do to its metadata table. Rows never change by it."""

    def _reload(self, instant: str = "") -> None:
        """Has the handle look at the table after an act, which stands if that fails."""
        raise NotImplementedError

    def _writable(self) -> WritableTable:
        """The handle, if it may write."""
        raise NotImplementedError

    @arg.check_arguments(
        kind=arg.text,
        columns=arg.name_or_names,
        name=arg.optional(arg.text),
        function=arg.optional(arg.text),
        options=arg.optional(arg.by_name),
        partitioned=arg.flag,
        concurrently=arg.flag,
    )
    def create_index(
        self,
        kind: str,
        columns: Sequence[str] = (),
        *,
        name: str | None = None,
        function: str | None = None,
        options: Mapping[str, str] | None = None,
        partitioned: bool = False,
        concurrently: bool = False,
    ) -> tuple[str, ...]:
        """Adds an index to the table's metadata table, which is made if there is none.

        Every write keeps the index up to date from then on. Where the table's version has them,
        statistics of partitions come with those of columns. A secondary index is over one column,
        and needs a name and a record index. With `function` an index with statistics or bloom
        filters is an expression index: over one column, with a name.

        Args:
            kind: "column_stats", "partition_stats", "bloom_filters", "record_index" or
                "secondary_index".
            columns: those with statistics; by default the first 32 that can have some, or
                `hoodie.metadata.index.column.stats.column.list` of the handle's options; in version
                6 all columns.
            name: of a secondary or expression index.
            function: such as "lower" or "from_unixtime"; None for no expression.
            options: of the expression, as Hudi's SQL has them, such as `{"format": "yyyy-MM-dd"}`.
            partitioned: a record index in which each data partition has its own keys (table version
                9).
            concurrently: let writers go on while the index is made, which takes the table's lock at
                the beginning and for what they wrote meanwhile at the end. For a table that has a
                metadata table; not for a partitioned record index, nor up to version 6 for any.

        Returns:
            The partitions of the metadata table that were made.

        Raises:
            ConfigError: the index is there already, or columns, names or options are wrong, or the
                table has no partitions to have statistics of.
            SchemaMismatch: a column of a secondary or expression index is none of the table's.
            UnsupportedTableFeature: another kind of index, a column or function that it cannot be
                made of, or a table that pyhudi does not write to.
            CommitConflict: other work is pending that rules it out.
        """
        from pyhudi.metadata import index_request  # noqa: PLC0415 - not for reading
        from pyhudi.write import metadata_lifecycle  # noqa: PLC0415 - not for reading

        names = (columns,) if isinstance(columns, str) else tuple(columns)
        asked = index_request.IndexRequest(kind, names, name, function, options, partitioned)
        made = metadata_lifecycle.create_index(self._writable(), asked, concurrently=concurrently)
        self._reload()
        return made

    @arg.check_arguments(name=arg.text)
    def drop_index(self, name: str) -> tuple[str, ...]:
        """Takes an index away, also one that pyhudi does not make.

        Statistics of partitions go with those of columns. An index that Apache Hudi has begun to
        make and not ended is taken back, with all that the same indexing was to make: only once
        its writer is dead, which no heartbeat tells for certain.

        Args:
            name: a partition of the metadata table, or the name that Hudi's SQL gave the index;
                "files" for the whole metadata table.

        Returns:
            The partitions of the metadata table that went.

        Raises:
            ConfigError: there is no such index, or another one needs it.
            UnsupportedTableFeature: another writer is building another index.
            CommitConflict: another writer is at work on the index.
        """
        from pyhudi.write import metadata_lifecycle  # noqa: PLC0415 - reading needs none of it

        gone = metadata_lifecycle.drop_index(self._writable(), name)
        self._reload()
        return gone

    @arg.check_arguments(memory_limit=arg.optional(arg.whole))
    def rebuild_metadata(self, *, memory_limit: int | None = None) -> tuple[str, ...]:
        """Makes the metadata table anew from what is on storage.

        It gets the partitions that it had, column statistics of the same columns. A table without
        one gets what the handle's options and the table's version say. What was there is removed
        first; should the writer die, the table is read by listing until the next write makes it.

        Args:
            memory_limit: bytes that records may take on their way to files, at least a megabyte;
                with less, files are read more than once. A quarter of the machine's memory by
                default.

        Returns:
            The partitions of the metadata table.

        Raises:
            ConfigError: the limit is too small.
            UnsupportedTableFeature: a partition that pyhudi does not make, before anything is
                removed, or a table that it does not write to.
            CommitConflict: other work is pending that rules it out.
        """
        from pyhudi.write import metadata_lifecycle  # noqa: PLC0415 - reading needs none of it

        with low_memory_mode(memory_limit):
            made = metadata_lifecycle.rebuild(self._writable(), memory=memory_limit)
        self._reload()
        return made
