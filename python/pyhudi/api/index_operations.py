"""Methods of a table handle that create and drop indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyhudi.api.operation_events import as_operation
from pyhudi.api.table_handle import TableHandle
from pyhudi.config import argument_checks as arg
from pyhudi.engine.memory_pool import low_memory_mode

if TYPE_CHECKING:
    from pyhudi.config.memory_size import MemorySize


class IndexOperations(TableHandle):
    """Index methods of `HudiTable`. They never change rows."""

    @arg.check_arguments()
    @as_operation
    def create_index(
        self,
        kind: str,
        columns: str | Sequence[str] = (),
        *,
        name: str | None = None,
        function: str | None = None,
        options: Mapping[str, str] | None = None,
        partitioned: bool = False,
        concurrently: bool = False,
    ) -> tuple[str, ...]:
        """Add an index to the table's metadata table, which is created if it does not exist.

        Every later write keeps the index up to date. If the table version supports partition
        statistics, they come with column statistics. A secondary index is over one column, and
        needs a name and a record index. With `function`, an index with statistics or bloom filters
        is an expression index: over one column, with a name.

        Args:
            kind: "column_stats", "partition_stats", "bloom_filters", "record_index" or
                "secondary_index".
            columns: columns of the index; for statistics by default the first 32 that can have
                some, or `hoodie.metadata.index.column.stats.column.list` of the handle's options;
                in version 6 all columns.
            name: name of a secondary or expression index.
            function: a function such as "lower" or "from_unixtime"; None for no expression.
            options: options of the expression, as in Hudi's SQL, such as `{"format":
                "yyyy-MM-dd"}`.
            partitioned: create a record index in which each data partition has its own keys (table
                version 9).
            concurrently: build the index while other writers go on; the table's lock is held only
                at the beginning, and at the end to index what they wrote. The table must have a
                metadata table. Not supported for a partitioned record index, nor up to version 6.

        Returns:
            The partitions of the metadata table that were created.

        Raises:
            ConfigError: the index exists already; columns, names or options are wrong; or the table
                has no partitions for partition statistics.
            SchemaMismatch: a column of a secondary or expression index is not in the table.
            UnsupportedTableFeature: pyhudi does not support this type of index, this column or
                function in it, or writing to the table.
            CommitConflict: a pending operation rules it out.
        """
        from pyhudi.metadata import index_request  # noqa: PLC0415 - not for reading
        from pyhudi.write import index_operations  # noqa: PLC0415 - not for reading

        names = (columns,) if isinstance(columns, str) else tuple(columns)
        request = index_request.IndexRequest(kind, names, name, function, options, partitioned)
        created = index_operations.create_index(
            self._writable(), request, concurrently=concurrently
        )
        self._reload()
        return created

    @arg.check_arguments()
    @as_operation
    def drop_index(self, name: str) -> tuple[str, ...]:
        """Drop an index, also one that pyhudi cannot create.

        Dropping column statistics also drops partition statistics. If Apache Hudi began to build
        the index and did not finish, pyhudi cancels the whole build, with all other indexes of the
        same build. Call this only if its writer has failed: no heartbeat shows that for certain.

        Args:
            name: a partition of the metadata table, or the name of the index in Hudi's SQL; "files"
                for the whole metadata table.

        Returns:
            The partitions of the metadata table that were dropped.

        Raises:
            ConfigError: there is no such index, or another index needs it.
            UnsupportedTableFeature: another writer is building another index.
            CommitConflict: another writer is using the index now.
        """
        from pyhudi.write import index_operations  # noqa: PLC0415 - not needed for reading

        dropped = index_operations.drop_index(self._writable(), name)
        self._reload()
        return dropped

    @arg.check_arguments()
    @as_operation
    def rebuild_metadata(self, *, memory_limit: MemorySize | None = None) -> tuple[str, ...]:
        """Rebuild the metadata table from the files on storage.

        The new one has the same partitions, with column statistics of the same columns. A table
        without a metadata table gets the partitions that the handle's options and the table's
        version imply. pyhudi first removes the old one; if the writer fails, readers list the files
        until the next write rebuilds it.

        Args:
            memory_limit: bytes that records may take in memory, at least a megabyte; with less
                memory, files are read more than once. A quarter of the machine's memory by default.

        Returns:
            The partitions of the metadata table.

        Raises:
            ConfigError: the limit is too small.
            UnsupportedTableFeature: pyhudi cannot create a partition (nothing is removed then), or
                does not write to the table.
            CommitConflict: a pending operation rules it out.
        """
        from pyhudi.write import metadata_lifecycle  # noqa: PLC0415 - not needed for reading

        with low_memory_mode(memory_limit):
            created = metadata_lifecycle.rebuild(self._writable(), memory=memory_limit)
        self._reload()
        return created
