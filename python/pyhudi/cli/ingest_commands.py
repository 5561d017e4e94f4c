"""Commands that ingest files, databases and topics, once or continuously."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyhudi.cli.arguments import (
    Delimiter,
    Location,
    Memory,
    NoKey,
    Rename,
    TableArguments,
    check_one_key,
    pair_option,
    parse_names,
    parse_pairs,
)
from pyhudi.cli.command import INTERRUPTED, Call, Group
from pyhudi.config.formatting import count_text

if TYPE_CHECKING:  # Help needs none of it.
    from pyhudi.ingestion.source import Source
    from pyhudi.txn.result import WriteResult


class Operation(str, Enum):
    """How rows are written."""

    upsert = "upsert"
    insert = "insert"
    bulk_insert = "bulk_insert"


class DataFormat(str, Enum):
    """Formats of files of a source."""

    parquet = "parquet"
    json = "json"
    csv = "csv"
    avro = "avro"


class MessageFormat(str, Enum):
    """Formats of messages of a topic."""

    json = "json"
    avro = "avro"
    debezium_json = "debezium-json"
    debezium_avro = "debezium-avro"


@dataclass(frozen=True)
class SourceArguments(TableArguments):
    """The arguments of all commands that ingest."""

    no_key: NoKey = False
    operation: Annotated[Operation, typer.Option("--operation", help="How to write the rows.")] = (
        Operation.upsert
    )
    columns: Annotated[
        str | None,
        typer.Option("--columns", "-c", metavar="A,B", help="Only these columns of the source."),
    ] = None
    rename: Rename = None
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval",
            metavar="SECONDS",
            help="Run until Ctrl-C or SIGTERM, and look for new data after this pause.",
        ),
    ] = None
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint", metavar="POSITION", help="Begin here, not at the table's checkpoint."
        ),
    ] = None
    bad_records: Annotated[
        str | None,
        typer.Option(
            "--bad-records", metavar="FOLDER", help="Directory for records that are not rows."
        ),
    ] = None
    max_bad_records: Annotated[
        int,
        typer.Option("--max-bad-records", min=0, help="Maximum number of records to leave out."),
    ] = 0
    memory_limit: Memory = None

    def keywords(self) -> dict[str, Any]:
        """Return the arguments of `pyhudi.ingest`. Raises `BadParameter` for two keys."""
        check_one_key(self.key, no_key=self.no_key)
        return {
            **super().keywords(),
            "key": None if self.no_key else parse_names(self.key) or (),
            "operation": self.operation.value,
            "columns": parse_names(self.columns),
            "rename": parse_pairs(self.rename, "--rename"),
            "checkpoint": self.checkpoint,
            "interval": self.interval,
            "bad_records": self.bad_records,
            "max_bad_records": self.max_bad_records,
            "memory_limit": self.memory_limit,
        }


def ingest_files(
    call: Call,
    table: Location,
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="A directory, or a URI such as s3://bucket/new.")
    ],
    file_format: Annotated[
        DataFormat | None,
        typer.Option("--format", help="Format of the files; default: by their extensions."),
    ] = None,
    pattern: Annotated[
        str, typer.Option("--pattern", metavar="GLOB", help="Only files that match, as '*.json'.")
    ] = "*",
    max_bytes: Annotated[
        str, typer.Option("--max-bytes", metavar="SIZE", help="Maximum size of files in a commit.")
    ] = "256MiB",
    late_seconds: Annotated[
        float,
        typer.Option(
            "--late-seconds", min=0, help="How late a file with an older time may appear."
        ),
    ] = 60,
    delimiter: Delimiter = None,
    *,
    arguments: SourceArguments,
) -> int | None:
    """Write new files of a directory to a table, each record once."""
    from pyhudi.ingestion.file_source import FileSource  # noqa: PLC0415 - help does not need it

    source = FileSource(
        folder,
        None if file_format is None else file_format.value,
        pattern,
        max_bytes,
        late_seconds,
        "\t" if delimiter == "\\t" else delimiter,
        call.storage_options,
    )
    return _run(call, table, source, arguments)


def ingest_sql(
    call: Call,
    table: Location,
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="A table of the database, or a SELECT.")
    ],
    url: Annotated[
        str,
        typer.Option(
            "--url",
            envvar="PYHUDI_SOURCE_URL",
            help="The database: postgresql://user:password@host/name, mysql://…, sqlite:///….",
        ),
    ],
    column: Annotated[
        str, typer.Option("--column", metavar="NAME", help="A column whose values increase.")
    ],
    max_rows: Annotated[
        int, typer.Option("--max-rows", min=1, help="Maximum number of rows in a commit.")
    ] = 500_000,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="SQL", help="Read only values below this expression."),
    ] = None,
    *,
    arguments: SourceArguments,
) -> int | None:
    """Write new rows of a database to a table, each row once."""
    from pyhudi.ingestion.sql_source import SqlSource  # noqa: PLC0415 - help does not need it

    return _run(call, table, SqlSource(url, query, column, max_rows, until), arguments)


def ingest_kafka(
    call: Call,
    table: Location,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")],
    servers: Annotated[
        str, typer.Option("--servers", metavar="HOST:PORT,…", help="Addresses of brokers.")
    ],
    message_format: Annotated[
        MessageFormat, typer.Option("--format", help="Format of the messages.")
    ] = MessageFormat.json,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", exists=True, dir_okay=False, help="File with the Avro schema."),
    ] = None,
    registry: Annotated[
        str | None, typer.Option("--registry", metavar="URL", help="A Confluent schema registry.")
    ] = None,
    max_rows: Annotated[
        int, typer.Option("--max-rows", min=1, help="Maximum number of messages in a commit.")
    ] = 500_000,
    client_option: Annotated[
        list[str] | None,
        pair_option("--client-option", help="Option of librdkafka, such as security.protocol=SSL."),
    ] = None,
    *,
    arguments: SourceArguments,
) -> int | None:
    """Write new messages of a Kafka topic to a table, each message once."""
    from pyhudi.ingestion.kafka_source import KafkaSource  # noqa: PLC0415 - help does not need it

    source = KafkaSource(
        servers,
        topic,
        message_format.value,
        None if schema is None else schema.read_text(encoding="utf-8"),
        registry,
        max_rows,
        client_options=parse_pairs(client_option, "--client-option"),
    )
    return _run(call, table, source, arguments)


def _run(call: Call, table: str, source: Source, arguments: SourceArguments) -> int | None:
    """Ingest a source, and print a line for each commit. Returns the exit code, None for 0."""
    from pyhudi.ingestion.ingest import ingest as run  # noqa: PLC0415 - help does not need it

    def show(written: WriteResult) -> None:
        if arguments.interval is not None:
            call.out.note(f"{written.instant}: {count_text(written.rows_in or 0, 'row')}")

    with _stop_on_signals(call) as stop:
        result = run(
            table,
            source,
            options=call.options,
            storage_options=call.storage_options,
            progress=call.progress,
            on_commit=show,
            stop=stop,
            **arguments.keywords(),
        )
    if call.out.json or not call.out.quiet:
        call.out.text(str(result), result)
    # With an interval, a signal is the end that was asked for.
    return INTERRUPTED if stop.is_set() and arguments.interval is None else None


@contextmanager
def _stop_on_signals(call: Call) -> Iterator[Event]:
    """Yield an event that Ctrl-C and SIGTERM set; a second signal ends the process as usual."""
    stop = Event()
    previous: dict[int, Any] = {}

    def handle(number: int, _: object) -> None:
        stop.set()
        signal.signal(number, previous[number])
        call.out.note("ending after the commit")

    for number in (signal.SIGINT, signal.SIGTERM):
        previous[number] = signal.signal(number, handle)
    try:
        yield stop
    finally:
        for previous_number, handler in previous.items():
            signal.signal(previous_number, handler)


ingest = Group(
    "Ingest a source: every record once, whatever fails.",
    {"files": ingest_files, "sql": ingest_sql, "kafka": ingest_kafka},
)
