"""A source of the messages of a Kafka topic.

The checkpoint is `topic,partition:offset,partition:offset`, the next offset of each partition, as
with Hudi (`KafkaOffsetGen.CheckpointUtils`, 1.2.0). Offsets that are committed to Kafka play no
role.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import pyarrow as pa

from pyhudi.clock import SystemClock
from pyhudi.config.argument_checks import check_fields
from pyhudi.errors import ConfigError, StorageError
from pyhudi.ingestion.bad_records import BadRecord
from pyhudi.ingestion.checkpoint import Position
from pyhudi.ingestion.debezium import envelope_types, flatten
from pyhudi.ingestion.messages import Messages, SchemaRegistry
from pyhudi.ingestion.source import SourceBatch, TableRows

MessageFormat = Literal["json", "avro", "debezium-json", "debezium-avro"]

_CHECKPOINT = re.compile(r"[^,]+(,[0-9]+:[0-9]+)+")
_CHUNK = 10_000
"""Maximum number of messages that one call of the client returns."""
_POLL_S = 1.0


@dataclass(frozen=True)
class KafkaSource:
    """Messages of a Kafka topic: JSON, Avro, or changes that Debezium reads from a database.

    Needs `pip install 'pyhudi[kafka]'`. Messages without a value are ignored.
    """

    servers: str
    """Addresses of brokers: `host:port,host:port`."""
    topic: str
    """The topic's name."""
    format: MessageFormat = "json"
    """Format of values. "debezium-json" and "debezium-avro" are envelopes with `before`, `after`,
    `op` and `source`, of Postgres or MySQL: rows are inserted, updated and deleted."""
    schema: str | None = None
    """Avro schema of all values, as JSON text; None if a schema registry has them."""
    registry: str | None = None
    """URL of a Confluent schema registry, for values that begin with a schema's id."""
    max_rows: int = 500_000
    """Maximum number of messages of a commit."""
    timeout_s: float = 30
    """How long to wait for brokers and the registry."""
    client_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of librdkafka, such as `security.protocol` and `sasl.password`."""

    def __post_init__(self) -> None:
        """Raise `ConfigError` for a wrong argument."""
        check_fields(self)
        if self.format not in get_args(MessageFormat):
            formats = ", ".join(get_args(MessageFormat))
            raise ConfigError(f"format is {self.format!r}", hint=f"It is one of {formats}.")
        if self.max_rows < 1 or self.timeout_s <= 0:
            raise ConfigError("max_rows must be at least 1, and timeout_s more than 0")
        if self.format.endswith("avro") and (self.schema is None) is (self.registry is None):
            raise ConfigError(f"the format {self.format} needs a schema or a registry")

    @property
    def name(self) -> str:
        """The source's name, by which commits tell whether they have its checkpoint."""
        return f"kafka:{self.topic}"

    def fetch(self, position: Position, columns: pa.Schema | None) -> SourceBatch | None:
        """Return the next messages that are there now; None without new messages.

        Args:
            position: where to continue.
            columns: types of columns, as far as the table has them.

        Returns:
            The batch.

        Raises:
            ConfigError: the checkpoint is not one of the topic, or the client is not installed.
            StorageError: a broker or the registry fails, or messages after the checkpoint were
                deleted.
        """
        offsets = read_checkpoint(self.topic, position.checkpoint)
        with closing(self._consumer()) as consumer:
            starts, ends = self._ranges(consumer, offsets)
            messages, next_offsets = self._consume(consumer, starts, ends)
        if not len(messages):
            return None
        bad: list[BadRecord] = []
        is_debezium = self.format.startswith("debezium")
        types = envelope_types(columns) if is_debezium else columns
        if self.format.endswith("json"):
            rows = messages.json_rows(types, bad)
        else:
            registry = self.registry and SchemaRegistry(self.registry, self.timeout_s)
            rows = messages.avro_rows(self.schema, registry or None, bad)
        payload_class = None
        if is_debezium:
            rows, payload_class = flatten(rows, columns)
        checkpoint = format_checkpoint(self.topic, next_offsets)
        return SourceBatch(TableRows(rows), checkpoint, {}, bad, payload_class)

    def _consumer(self) -> Any:
        try:
            from confluent_kafka import Consumer  # noqa: PLC0415 - an extra
        except ImportError as error:
            hint = "Run: pip install 'pyhudi[kafka]'"
            raise ConfigError("KafkaSource needs confluent-kafka", hint=hint) from error
        return Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "pyhudi",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "log_level": 2,
                **self.client_options,
            }
        )

    def _ranges(
        self, consumer: Any, offsets: Mapping[int, int]
    ) -> tuple[dict[int, int], dict[int, int]]:
        """Return the next offsets to read by partition, and the ends.

        Raises `StorageError` if messages after the checkpoint were deleted.
        """
        from confluent_kafka import TopicPartition  # noqa: PLC0415 - an extra

        with _broker_errors(self.servers):
            topics = consumer.list_topics(self.topic, timeout=self.timeout_s).topics
            partitions = topics[self.topic].partitions
        if not partitions:
            raise StorageError(f"{self.servers} has no topic {self.topic!r}")
        starts, ends = {}, {}
        for number in sorted(partitions):
            with _broker_errors(self.servers):
                low, high = consumer.get_watermark_offsets(
                    TopicPartition(self.topic, number), timeout=self.timeout_s
                )
            start = offsets.get(number, low)
            if not low <= start <= high:
                raise StorageError(
                    f"the checkpoint is at offset {start} of partition {number}, and "
                    f"{self.topic} has {low} to {high}",
                    hint="The topic has deleted messages, or was created again. To continue with "
                    f"what it has, pass checkpoint='{self.topic},{number}:{low}'.",
                )
            starts[number], ends[number] = start, high
        return starts, ends

    def _consume(
        self, consumer: Any, starts: Mapping[int, int], ends: Mapping[int, int]
    ) -> tuple[Messages, dict[int, int]]:
        """Return messages up to the ends, and the offsets after them."""
        from confluent_kafka import KafkaError, TopicPartition  # noqa: PLC0415 - an extra

        next_offsets = dict(starts)
        waiting = {number for number, start in starts.items() if start < ends[number]}
        messages = Messages(self.topic)
        if not waiting:
            return messages, next_offsets
        with _broker_errors(self.servers):
            consumer.assign([TopicPartition(self.topic, n, starts[n]) for n in sorted(waiting)])
        clock = SystemClock()
        last_ms = clock.ticks_ms()
        while waiting and len(messages) < self.max_rows:
            count = min(_CHUNK, self.max_rows - len(messages))
            with _broker_errors(self.servers):
                received = consumer.consume(count, _POLL_S)
            if received:
                last_ms = clock.ticks_ms()
            elif clock.ticks_ms() - last_ms > self.timeout_s * 1000:
                raise StorageError(f"{self.servers} returned no message of {self.topic} in time")
            for message in received:
                error, number = message.error(), message.partition()
                if error is None:
                    next_offsets[number] = message.offset() + 1
                    if message.value() is not None:
                        messages.add(message.value(), number, message.offset())
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name
                    next_offsets[number] = max(next_offsets[number], message.offset())
                    waiting.discard(number)
                else:
                    raise StorageError(f"{self.topic}, partition {number}: {error}")
            waiting -= {number for number in waiting if next_offsets[number] >= ends[number]}
        return messages, next_offsets


def read_checkpoint(topic: str, checkpoint: str | None) -> dict[int, int]:
    """Return the next offset by partition; empty for the beginning.

    Raises `ConfigError` if the checkpoint is not one of the topic.
    """
    if checkpoint is None:
        return {}
    if not _CHECKPOINT.fullmatch(checkpoint) or checkpoint.split(",")[0] != topic:
        raise ConfigError(
            f"the checkpoint {checkpoint!r} is not one of the topic {topic}",
            hint=f"Pass checkpoint=, such as '{topic},0:0,1:0', the next offset of each partition.",
        )
    pairs = (pair.split(":") for pair in checkpoint.split(",")[1:])
    return {int(partition): int(offset) for partition, offset in pairs}


def format_checkpoint(topic: str, offsets: Mapping[int, int]) -> str:
    """Return the checkpoint of next offsets by partition."""
    return ",".join([topic, *(f"{number}:{offsets[number]}" for number in sorted(offsets))])


@contextmanager
def _broker_errors(servers: str) -> Iterator[None]:
    """Turn an error of the client into a `StorageError`."""
    from confluent_kafka import KafkaException  # noqa: PLC0415 - an extra

    try:
        yield
    except KafkaException as error:
        msg = f"{servers}: {error.args[0]}"
        raise StorageError(msg, hint="Check servers=, the topic and client_options=.") from error
