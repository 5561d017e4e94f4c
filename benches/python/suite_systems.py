"""The table formats that the suites compare, behind the few calls that a suite makes.

A system works on one table, on an open handle where its library has one. `stage` prepares rows and
is not measured; all else is.
"""

# ruff: noqa: PLC0415 - a process imports one system

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from suite_rows import Condition, Keys, Layout, Query, sql_filter

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


class System(Protocol):
    """One table of one format."""

    def stage(self, rows: pa.Table) -> Any:
        """Rows as the writes take them."""

    def load(self, rows: Any) -> None:
        """Create the table and write its first rows."""

    def insert(self, rows: Any) -> None:
        """Write rows whose keys are new, in one commit."""

    def upsert(self, rows: Any) -> None:
        """Write rows over those of the same keys, in one commit."""

    def delete(self, keys: Keys) -> None:
        """Remove the rows of keys, in one commit."""

    def get(self, keys: list[Any], columns: list[str]) -> pa.Table:
        """The rows of keys."""

    def scan(self, columns: list[str], where: Sequence[Condition]) -> pa.Table:
        """The rows that fulfil all conditions."""

    def query(self, query: Query) -> list[tuple[Any, ...]]:
        """The query's answer: read by the system, added up by pyarrow (Spark: by Spark)."""

    def end_round(self) -> None:
        """What a user of the system runs regularly."""

    def close(self) -> None:
        """Finish what runs in the background, and free what belongs to the system."""


class _ArrowSystem:
    """What is common to systems that read into Arrow in this process."""

    def __init__(self, place: str, layout: Layout, storage: Mapping[str, str]) -> None:
        self._place = place
        self._layout = layout
        self._storage = dict(storage)

    def stage(self, rows: pa.Table) -> Any:
        return rows

    def end_round(self) -> None:
        """Nothing: the defaults are what is measured."""

    def close(self) -> None:
        """Nothing runs."""

    def _read(self, columns: list[str], where: Sequence[Condition]) -> Iterable[pa.RecordBatch]:
        raise NotImplementedError

    def scan(self, columns: list[str], where: Sequence[Condition]) -> pa.Table:
        schema = pa.schema([self._layout.schema.field(name) for name in columns])
        batches = [batch.select(columns) for batch in self._read(columns, where)]
        return pa.Table.from_batches([_same(batch, schema) for batch in batches], schema)

    def get(self, keys: list[Any], columns: list[str]) -> pa.Table:
        return self.scan(columns, [(self._layout.key, "in", keys)])

    def query(self, query: Query) -> list[tuple[Any, ...]]:
        return query.answer(self._read(query.columns, query.where))


def _same(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with the types of a schema: one reader gives strings with large offsets, or views."""
    columns = [batch.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class Pyhudi(_ArrowSystem):
    """pyhudi with the options of a user who sets none."""

    type: Any = "cow"

    def load(self, rows: pa.Table) -> None:
        import pyhudi

        self._table = pyhudi.create_table(
            self._place, rows.schema, key=self._layout.key, order_by=self._layout.order,
            partition_by=self._layout.partition, type=self.type, storage_options=self._storage,
        )  # fmt: skip
        self._table.bulk_insert(rows)

    def insert(self, rows: pa.Table) -> None:
        self._table.insert(rows)

    def upsert(self, rows: pa.Table) -> None:
        self._table.upsert(rows)

    def delete(self, keys: Keys) -> None:
        self._table.delete_keys(pa.table({self._layout.key: keys}))

    def get(self, keys: list[Any], columns: list[str]) -> pa.Table:
        return self._table.get(keys, columns=columns)

    def _read(self, columns: list[str], where: Sequence[Condition]) -> Iterable[pa.RecordBatch]:
        return self._table.scan(columns=columns, where=list(where) or None).to_reader()


class PyhudiMor(Pyhudi):
    """The same with a merge-on-read table."""

    type = "mor"


class PyhudiWriter(PyhudiMor):
    """The same with a group writer: batches that come during a commit become one commit."""

    def load(self, rows: pa.Table) -> None:
        super().load(rows)
        self._stack = ExitStack()
        self._writer = self._stack.enter_context(self._table.writer())
        self._last: Any = None

    def insert(self, rows: pa.Table) -> None:
        self._last = self._writer.insert(rows)

    def end_round(self) -> None:
        if self._last is not None:
            self._last.result()

    def close(self) -> None:
        self._stack.close()


class Delta(_ArrowSystem):
    """deltalake, read by its own engine (DataFusion)."""

    def load(self, rows: pa.Table) -> None:
        from deltalake import DeltaTable, write_deltalake

        by = [self._layout.partition] if self._layout.partition else None
        write_deltalake(self._place, rows, partition_by=by, storage_options=self._storage or None)
        self._table = DeltaTable(self._place, storage_options=self._storage or None)

    def insert(self, rows: pa.Table) -> None:
        from deltalake import write_deltalake

        write_deltalake(self._table, rows, mode="append")

    def upsert(self, rows: pa.Table) -> None:
        order = self._layout.order
        newer = f"s.{order} >= t.{order}" if order else None
        merge = self._merge(rows).when_matched_update_all(newer)
        merge.when_not_matched_insert_all().execute()

    def delete(self, keys: Keys) -> None:
        self._merge(pa.table({self._layout.key: keys})).when_matched_delete().execute()

    def _merge(self, source: pa.Table) -> Any:
        key = self._layout.key
        return self._table.merge(source, f"t.{key} = s.{key}", source_alias="s", target_alias="t")

    def _read(self, columns: list[str], where: Sequence[Condition]) -> Iterable[pa.RecordBatch]:
        from deltalake import QueryBuilder

        # Its own engine finds a key ten times as fast as pyarrow's dataset of the table.
        test = f" where {sql_filter(where)}" if where else ""
        statement = f"select {', '.join(columns)} from t{test}"
        batches = QueryBuilder().register("t", self._table).execute(statement)
        return pa.RecordBatchReader.from_stream(batches)


class DeltaMaintained(Delta):
    """deltalake, compacted and vacuumed at the end of each round."""

    def end_round(self) -> None:
        self._table.optimize.compact()
        self._table.vacuum(0, dry_run=False, enforce_retention_duration=False)
        self._table.create_checkpoint()


class Iceberg(_ArrowSystem):
    """pyiceberg, with a catalog in SQLite."""

    def load(self, rows: pa.Table) -> None:
        from pyiceberg.catalog.sql import SqlCatalog

        names = {
            "aws_access_key_id": "s3.access-key-id",
            "aws_secret_access_key": "s3.secret-access-key",
            "aws_region": "s3.region",
            "aws_endpoint_url": "s3.endpoint",
        }
        options = {names[name]: text for name, text in self._storage.items() if name in names}
        local = Path(self._storage.get("catalog", self._place))
        local.mkdir(parents=True, exist_ok=True)
        is_url = "://" in self._place
        catalog = SqlCatalog(
            "bench",
            uri=f"sqlite:///{local.resolve()}/catalog.db",
            warehouse=self._place if is_url else f"file://{Path(self._place).resolve()}",
            **options,
        )
        catalog.create_namespace("bench")
        self._table = catalog.create_table("bench.table", schema=rows.schema)
        if self._layout.partition:
            with self._table.update_spec() as spec:
                spec.add_identity(self._layout.partition)
        self._table.append(rows)

    def insert(self, rows: pa.Table) -> None:
        self._table.append(rows)

    def upsert(self, rows: pa.Table) -> None:
        self._table.upsert(rows, join_cols=[self._layout.key])

    def delete(self, keys: Keys) -> None:
        from pyiceberg.expressions import In

        self._table.delete(In(self._layout.key, keys.tolist()))

    def _read(self, columns: list[str], where: Sequence[Condition]) -> Iterable[pa.RecordBatch]:
        from pyiceberg.expressions import AlwaysTrue

        chosen = sql_filter(where) if where else AlwaysTrue()
        scan = self._table.scan(row_filter=chosen, selected_fields=tuple(columns))
        return scan.to_arrow_batch_reader()


class Spark:
    """Apache Hudi on Spark, through the tests' oracle; started and warmed up before it counts."""

    type = "COPY_ON_WRITE"
    release = "1.2.0"

    def __init__(self, place: str, layout: Layout, _storage: Mapping[str, str]) -> None:
        from tests.helpers.oracle.client import HudiOracle

        self._table = Path(place).resolve()
        self._layout = layout
        self._inputs = self._table.with_name(f"{self._table.name}-inputs")
        self._inputs.mkdir(parents=True, exist_ok=True)
        self._count = 0
        self._options = {
            "hoodie.table.name": "suite",
            "hoodie.datasource.write.table.type": self.type,
            "hoodie.datasource.write.recordkey.field": layout.key,
            "hoodie.upsert.shuffle.parallelism": "2",
            "hoodie.insert.shuffle.parallelism": "2",
            "hoodie.bulkinsert.shuffle.parallelism": "2",
            "hoodie.delete.shuffle.parallelism": "2",
        }
        if layout.order:
            self._options["hoodie.datasource.write.precombine.field"] = layout.order
        self._options["hoodie.datasource.write.partitionpath.field"] = layout.partition or ""
        if not layout.partition:
            self._options["hoodie.datasource.write.keygenerator.class"] = (
                "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
            )
        self._hudi = HudiOracle(self.release, memory="4g", cores=2).start()

    def stage(self, rows: pa.Table) -> Path:
        import pyarrow.parquet as pq

        self._count += 1
        path = self._inputs / f"{self._count}.parquet"
        pq.write_table(rows, path)
        return path

    def warm_up(self, rows: pa.Table) -> None:
        """Have the JVM compile what the suite runs: a small table is written, changed, read."""
        table, self._table = self._table, self._table.with_name("warm-up")
        path = self.stage(rows)
        for operation in ("bulk_insert", "upsert"):
            self._write(path, operation)
        self.query(Query("warm", ((self._number(),),)))
        shutil.rmtree(self._table)
        self._table = table

    def _number(self) -> str:
        fields = self._layout.schema
        return str(next(field.name for field in fields if pa.types.is_integer(field.type)))

    def load(self, rows: Path) -> None:
        self._write(rows, "bulk_insert")

    def insert(self, rows: Path) -> None:
        self._write(rows, "insert")

    def upsert(self, rows: Path) -> None:
        self._write(rows, "upsert")

    def delete(self, keys: Keys) -> None:
        # Hudi takes rows; only their keys count.
        missing = np.zeros(len(keys), np.int64)
        columns = {field.name: pa.nulls(len(keys), field.type) for field in self._layout.schema}
        columns[self._layout.key] = pa.array(keys)
        if self._layout.order:
            columns[self._layout.order] = pa.array(missing + (1 << 40))
        self._write(self.stage(pa.table(columns, schema=self._layout.schema)), "delete")

    def _write(self, path: Path, operation: str) -> None:
        self._hudi.write(self._table, input=path, operation=operation, options=self._options)

    def get(self, keys: list[Any], columns: list[str]) -> pa.Table:
        return self.scan(columns, [(self._layout.key, "in", keys)])

    def scan(self, columns: list[str], where: Sequence[Condition]) -> pa.Table:
        statement = f"select {', '.join(columns)} from {{table}} where {sql_filter(where)}"
        rows = self._hudi.sql(self._table, statement)["rows"]
        schema = pa.schema([self._layout.schema.field(name) for name in columns])
        return pa.Table.from_pylist(rows, schema)

    def query(self, query: Query) -> list[tuple[Any, ...]]:
        rows = self._hudi.sql(self._table, query.sql())["rows"]
        names = [*query.group, "n", *(f"s{at}" for at in range(len(query.sums)))]
        return sorted(tuple(row[name] for name in names) for row in rows)

    def end_round(self) -> None:
        """Nothing: the defaults are what is measured."""

    def close(self) -> None:
        self._hudi.close()


class SparkMor(Spark):
    """The same with a merge-on-read table."""

    type = "MERGE_ON_READ"


SYSTEMS: dict[str, type[Any]] = {
    "pyhudi cow": Pyhudi,
    "pyhudi mor": PyhudiMor,
    "pyhudi writer": PyhudiWriter,
    "deltalake": Delta,
    "deltalake compacted": DeltaMaintained,
    "pyiceberg": Iceberg,
    "Hudi on Spark cow": Spark,
    "Hudi on Spark mor": SparkMor,
}


def is_spark(name: str) -> bool:
    """Whether a system needs the tests' oracle."""
    return issubclass(SYSTEMS[name], Spark)


def spark_is_available() -> bool:
    """Whether there is an Apache Hudi to compare with."""
    from tests.helpers.oracle.client import available

    return available(Spark.release)


def start(
    name: str, place: str, layout: Layout, sample: pa.Table, storage: Mapping[str, str]
) -> System:
    """A system, ready to load a table; `sample` has rows to warm up with."""
    system: System = SYSTEMS[name](place, layout, storage)
    if isinstance(system, Spark):
        system.warm_up(sample)
    return system
