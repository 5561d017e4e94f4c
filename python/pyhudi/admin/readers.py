"""The engines that can read a table, decided by its properties, schema, timeline and files.

`reader_limits.py` has the limits of each engine. No data file is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.admin.reader_limits import ANSWERS, ENGINES, FEATURES, NEEDS, Answer, Limit, limits_of
from pyhudi.cached_property import cached_property
from pyhudi.config import property_names as names
from pyhudi.config.formatting import HtmlRepr
from pyhudi.errors import ConfigError
from pyhudi.input.semi_structured import is_blob, is_variant
from pyhudi.input.vectors import is_vector
from pyhudi.slices.file_groups import pending_compactions
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.hashing_metadata import has_consistent_hashing
from pyhudi.storage.options import scheme_of
from pyhudi.suggestions import did_you_mean
from pyhudi.table.scan_columns import scan_schema
from pyhudi.table.table_snapshot import TableSnapshot

_OWN_RULES = (
    "AWSDmsAvroPayload",
    "MySqlDebeziumAvroPayload",
    "OverwriteNonDefaultsWithLatestAvroPayload",
    "PartialUpdateAvroPayload",
    "PostgresDebeziumAvroPayload",
)
_SCHEMA = pa.schema(
    [
        ("engine", pa.string()),
        ("answer", pa.string()),
        ("limits", pa.list_(pa.string())),
        ("changes", pa.list_(pa.string())),
        ("needs", pa.string()),
        ("sources", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True)
class Reader:
    """One engine and how it reads a table."""

    engine: str
    answer: Answer
    """yes; partly: right rows with a limit; unknown; wrong: other rows without an error; no."""
    limits: tuple[Limit, ...]
    """The features of the table that matter to the engine, with their effect and a change."""
    needs: str
    """A condition before the engine can read it, such as a registration; "" for none."""

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.engine}: {self.answer}"
        for limit in self.limits:
            change = f" {limit.change}" if limit.change else ""
            yield f"  {FEATURES[limit.feature]}: {limit.effect}.{change}"
        if self.needs and self.answer != "no":
            yield f"  {self.needs}"


@dataclass(frozen=True)
class Readers(HtmlRepr):
    """The answers for one table, by engine."""

    readers: tuple[Reader, ...]

    def __getitem__(self, engine: str) -> Reader:
        """Return the answer of an engine. Raises `ConfigError` for an unknown one."""
        for reader in self.readers:
            if reader.engine == engine:
                return reader
        hint = did_you_mean(engine, ENGINES) or f"There are {', '.join(ENGINES)}."
        raise ConfigError(f"there is no engine {engine!r}", hint=hint)

    def __iter__(self) -> Iterator[Reader]:
        return iter(self.readers)

    def __len__(self) -> int:
        return len(self.readers)

    def __str__(self) -> str:
        return "\n".join(map(str, self.readers))

    def __repr__(self) -> str:
        return str(self)

    def to_arrow(self) -> pa.Table:
        """Return a row for each engine.

        Returns:
            Columns: engine, answer, limits, changes, needs, sources (three lists of the same
                length).
        """
        rows = [
            {
                "engine": reader.engine,
                "answer": reader.answer,
                "limits": [f"{FEATURES[each.feature]}: {each.effect}" for each in reader.limits],
                "changes": [each.change for each in reader.limits],
                "needs": reader.needs,
                "sources": [each.source for each in reader.limits],
            }
            for reader in self.readers
        ]
        return pa.Table.from_pylist(rows, _SCHEMA)


def assess_readers(table: TableSnapshot) -> Readers:
    """Return how each engine reads a table."""
    facts = _Facts(table)
    present = {feature for feature in FEATURES if _CHECKS[feature](facts)}

    def read(engine: str) -> Reader:
        limits = tuple(limit for limit in limits_of(engine) if limit.feature in present)
        answer = max((each.answer for each in limits), key=ANSWERS.index, default=ANSWERS[0])
        return Reader(engine, answer, limits, NEEDS[engine])

    return Readers(tuple(map(read, ENGINES)))


class _Facts:
    """Properties and files of a table, read on demand."""

    def __init__(self, table: TableSnapshot) -> None:
        self.table, self.config = table, table.config
        self.version = table.config.version.code
        self.scheme = scheme_of(table.storage.uri) or ""
        self.schema = scan_schema(table)

    @cached_property
    def view(self) -> FileSystemView:
        return FileSystemView(self.table.storage, self.config, self.table.timeline)

    @cached_property
    def has_logs(self) -> bool:
        return self.config.is_merge_on_read and len(self.view.slices().with_logs) > 0

    @cached_property
    def has_replaced_files(self) -> bool:
        groups = self.view.groups
        return any(groups[key].bases for key in self.view.replaced if key in groups)

    @property
    def payload(self) -> str:
        return (self.config.merge.payload_class or "").rpartition(".")[2]

    def has_orc(self) -> bool:
        return self.config.not_parquet is not None

    def has_type(self, is_type: Callable[[pa.DataType], bool]) -> bool:
        return any(is_type(each) for field in self.schema for each in _types(field.type))

    def has_field(self, is_field: Callable[[pa.Field[object]], bool]) -> bool:
        return any(map(is_field, self.schema))


def _types(data_type: pa.DataType) -> Iterator[pa.DataType]:
    yield data_type
    for at in range(data_type.num_fields):
        yield from _types(data_type.field(at).type)


def _is_local(data_type: pa.DataType) -> bool:
    return pa.types.is_timestamp(data_type) and data_type.tz is None


def _has_typed_partitions(facts: _Facts) -> bool:
    return ":" in facts.config.properties.get(names.PARTITION_FIELDS, "")


def _has_plain_partitions(facts: _Facts) -> bool:
    return bool(facts.config.partition_fields) and not facts.config.hive_style


_CHECKS: Mapping[str, Callable[[_Facts], bool]] = {
    "old_version": lambda facts: facts.version < 6,  # noqa: PLR2004 - a table version
    "version_8": lambda facts: facts.version == 8,  # noqa: PLR2004 - as above
    "version_9": lambda facts: facts.version == 9,  # noqa: PLR2004 - as above
    "merge_on_read": lambda facts: facts.config.is_merge_on_read,
    "log_files": lambda facts: facts.has_logs,
    "replaced_files": lambda facts: facts.has_replaced_files,
    "planned_compaction": lambda facts: (
        facts.version == 6  # noqa: PLR2004 - as above
        and bool(pending_compactions(facts.table.timeline))
    ),
    "consistent_hashing": lambda facts: (
        facts.version > 6  # noqa: PLR2004 - as above
        and has_consistent_hashing(facts.table.storage)
    ),
    "typed_partitions": _has_typed_partitions,
    "timestamp_partitions": lambda facts: facts.config.key_generator.startswith("TIMESTAMP"),
    "plain_partitions": _has_plain_partitions,
    "no_partitions": lambda facts: not facts.config.partition_fields,
    "dropped_partition_columns": lambda facts: facts.config.drop_partition_columns,
    "no_meta_columns_6": lambda facts: (
        facts.version == 6  # noqa: PLR2004 - as above
        and not facts.config.populate_meta_fields
        and facts.has_logs
    ),
    "no_meta_columns_8": lambda facts: (
        facts.version == 8  # noqa: PLR2004 - as above
        and not facts.config.populate_meta_fields
        and facts.has_logs
    ),
    "several_orderings": lambda facts: len(facts.config.ordering_fields) > 1,
    "payload": lambda facts: (
        facts.version < 9  # noqa: PLR2004 - as above
        and facts.payload in _OWN_RULES
        and facts.has_logs
    ),
    "debezium": lambda facts: (
        facts.version == 9  # noqa: PLR2004 - as above
        and facts.payload == "PostgresDebeziumAvroPayload"
        and facts.has_logs
    ),
    "schema_history": lambda facts: facts.table.schema.history is not None,
    "timestamps": lambda facts: facts.has_type(pa.types.is_timestamp),
    "local_timestamps": lambda facts: facts.has_type(_is_local),
    "vectors": lambda facts: facts.has_field(is_vector),
    "blobs": lambda facts: facts.has_field(is_blob),
    "variants": lambda facts: facts.has_field(is_variant),
    "orc_copy_on_write": lambda facts: facts.has_orc() and not facts.config.is_merge_on_read,
    "orc_merge_on_read": lambda facts: facts.has_orc() and facts.config.is_merge_on_read,
    "bootstrap": lambda facts: facts.config.bootstrap_path is not None,
    "column_stats": lambda facts: "column_stats" in facts.config.metadata_partitions,
    "not_on_s3": lambda facts: facts.scheme not in ("s3", "s3a"),
    "not_on_gcs": lambda facts: facts.scheme != "gs",
    "any": lambda _: True,
}
"""Whether a table has each of the `FEATURES`."""
