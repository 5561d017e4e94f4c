"""Reads and writes Apache Hudi tables without a JVM."""

from __future__ import annotations

from pyhudi.errors import (
    AfterCommitError,
    AfterCommitWarning,
    AfterRollbackError,
    ColumnTypeWarning,
    CommitConflict,
    CommitUnknown,
    ConfigError,
    ConstraintViolation,
    ConsumerConflict,
    CorruptTable,
    DuplicateKeyWarning,
    HistoryUnavailable,
    HudiDefaultsWarning,
    HudiError,
    InterruptedAfterCommit,
    InterruptedAfterRollback,
    LockTimeout,
    LockWarning,
    MaintenanceWarning,
    MetadataTableWarning,
    MissingFile,
    PartitionChangeWarning,
    SchemaMismatch,
    StorageError,
    TableNotFound,
    UnsupportedTableFeature,
    WriterTimeout,
)
from pyhudi.lazy_names import lazy_names

TYPE_CHECKING = False
"""True for type checkers. The import of `typing` would take longer than that of this package."""
if TYPE_CHECKING:
    from pyhudi._native import __version__
    from pyhudi.api.batch_queue import CommitFuture
    from pyhudi.api.changes import Changes, Diff
    from pyhudi.api.create import create_table
    from pyhudi.api.drop import drop_table
    from pyhudi.api.group_writer import GroupWriter
    from pyhudi.api.merge_builder import Merge
    from pyhudi.api.named_catalog import NamedCatalog, load_catalog
    from pyhudi.api.notebook_html.show import show
    from pyhudi.api.pending_commit import PendingCommit
    from pyhudi.api.scan import Scan
    from pyhudi.api.splits import Split
    from pyhudi.api.stream import Stream, StreamBatch
    from pyhudi.api.table import HudiTable, open_table
    from pyhudi.api.table_exists import table_exists
    from pyhudi.api.table_transaction import TableTransaction
    from pyhudi.engine.local import LocalEngine
    from pyhudi.engine.protocol import Step
    from pyhudi.ingestion.file_source import FileSource
    from pyhudi.ingestion.ingest import IngestResult, ingest
    from pyhudi.ingestion.kafka_source import KafkaSource
    from pyhudi.ingestion.sql_source import SqlSource
    from pyhudi.input.semi_structured import blob, variant, variant_from_json, variant_to_json
    from pyhudi.input.vectors import vector
    from pyhudi.schema.column_transforms import bucket, day, hour, month, truncate, year
    from pyhudi.schema.payloads import register_merger
    from pyhudi.sql_statements.session import sql
    from pyhudi.txn.operation_metrics import StageMetrics
    from pyhudi.txn.result import WriteResult

__all__ = [
    "AfterCommitError",
    "AfterCommitWarning",
    "AfterRollbackError",
    "Changes",
    "ColumnTypeWarning",
    "CommitConflict",
    "CommitFuture",
    "CommitUnknown",
    "ConfigError",
    "ConstraintViolation",
    "ConsumerConflict",
    "CorruptTable",
    "Diff",
    "DuplicateKeyWarning",
    "FileSource",
    "GroupWriter",
    "HistoryUnavailable",
    "HudiDefaultsWarning",
    "HudiError",
    "HudiTable",
    "IngestResult",
    "InterruptedAfterCommit",
    "InterruptedAfterRollback",
    "KafkaSource",
    "LocalEngine",
    "LockTimeout",
    "LockWarning",
    "MaintenanceWarning",
    "Merge",
    "MetadataTableWarning",
    "MissingFile",
    "NamedCatalog",
    "PartitionChangeWarning",
    "PendingCommit",
    "Scan",
    "SchemaMismatch",
    "Split",
    "SqlSource",
    "StageMetrics",
    "Step",
    "StorageError",
    "Stream",
    "StreamBatch",
    "TableNotFound",
    "TableTransaction",
    "UnsupportedTableFeature",
    "WriteResult",
    "WriterTimeout",
    "__version__",
    "blob",
    "bucket",
    "create_table",
    "day",
    "drop_table",
    "hour",
    "ingest",
    "load_catalog",
    "month",
    "open_table",
    "register_merger",
    "show",
    "sql",
    "table_exists",
    "truncate",
    "variant",
    "variant_from_json",
    "variant_to_json",
    "vector",
    "year",
]

_MODULES = {
    "Changes": "api.changes",
    "CommitFuture": "api.batch_queue",
    "Diff": "api.changes",
    "FileSource": "ingestion.file_source",
    "GroupWriter": "api.group_writer",
    "HudiTable": "api.table",
    "IngestResult": "ingestion.ingest",
    "KafkaSource": "ingestion.kafka_source",
    "LocalEngine": "engine.local",
    "Merge": "api.merge_builder",
    "NamedCatalog": "api.named_catalog",
    "PendingCommit": "api.pending_commit",
    "Scan": "api.scan",
    "Split": "api.splits",
    "SqlSource": "ingestion.sql_source",
    "StageMetrics": "txn.operation_metrics",
    "Step": "engine.protocol",
    "TableTransaction": "api.table_transaction",
    "Stream": "api.stream",
    "StreamBatch": "api.stream",
    "WriteResult": "txn.result",
    "__version__": "_native",
    "blob": "input.semi_structured",
    "bucket": "schema.column_transforms",
    "create_table": "api.create",
    "day": "schema.column_transforms",
    "drop_table": "api.drop",
    "hour": "schema.column_transforms",
    "ingest": "ingestion.ingest",
    "load_catalog": "api.named_catalog",
    "month": "schema.column_transforms",
    "open_table": "api.table",
    "register_merger": "schema.payloads",
    "show": "api.notebook_html.show",
    "sql": "sql_statements.session",
    "table_exists": "api.table_exists",
    "truncate": "schema.column_transforms",
    "variant": "input.semi_structured",
    "variant_from_json": "input.semi_structured",
    "variant_to_json": "input.semi_structured",
    "vector": "input.vectors",
    "year": "schema.column_transforms",
}
"""Names by module. They are imported at first use, so `import pyhudi` is fast."""

_OPEN = "Write table = pyhudi.open_table(path)"
_FOREIGN = {
    **dict.fromkeys(
        ("DeltaTable", "HudiTableBuilder", "Table", "connect", "dataset", "load_catalog", "open"),
        f"{_OPEN}.",
    ),
    **dict.fromkeys(("load_table", "read", "read_table"), f"{_OPEN}, then table.to_arrow()."),
    **dict.fromkeys(("read_delta", "read_hudi"), f"{_OPEN}, then table.to_pandas()."),
    **dict.fromkeys(
        ("scan", "scan_delta", "scan_hudi"), f"{_OPEN}, then table.scan().to_polars_lazy()."
    ),
    **dict.fromkeys(
        ("write", "write_dataset", "write_deltalake", "write_hudi", "write_table"),
        "Write table = pyhudi.create_table(path, rows, key=…), or pyhudi.open_table(path), "
        "then table.upsert(rows).",
    ),
    **dict.fromkeys(("delete_table", "drop"), "Write pyhudi.drop_table(path)."),
    **dict.fromkeys(("exists", "is_deltatable"), "Write pyhudi.table_exists(path)."),
}
"""Names of other libraries, and what to write instead."""

__getattr__, __dir__ = lazy_names(__name__, _MODULES, __all__, _FOREIGN)
