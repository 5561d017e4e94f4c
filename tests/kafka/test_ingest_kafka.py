"""`pyhudi.ingest` of topics of a real Kafka broker: formats, checkpoints, crashes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi import KafkaSource, _native, ingest
from pyhudi.api.table import HudiTable
from pyhudi.cli import main
from pyhudi.config.streamer_checkpoint import KEY_V1, KEY_V2
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import ConfigError, SchemaMismatch, StorageError
from pyhudi.storage.storage import Storage
from tests.helpers.kafka.server import KafkaServer
from tests.helpers.snippets import snippets
from tests.sim.crash import SMALL_BLOOM, people_table
from tests.sim.states import recorded

pytestmark = pytest.mark.kafka

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "ingest-kafka.md"
_NUMBERS = count()
SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "ride",
        "fields": [{"name": "id", "type": "long"}, {"name": "v", "type": ["null", "string"]}],
    }
)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = KafkaServer(tmp_path_factory.mktemp("kafka"))
    yield server.address
    server.close()


class Topic:
    """A new topic and its producer."""

    def __init__(self, servers: str, partitions: int) -> None:
        from confluent_kafka import Producer
        from confluent_kafka.admin import AdminClient, NewTopic

        self.servers, self.name = servers, f"rides-{next(_NUMBERS)}"
        self.admin = AdminClient({"bootstrap.servers": servers})
        for made in self.admin.create_topics([NewTopic(self.name, partitions, 1)]).values():
            made.result(30)
        self._producer = Producer({"bootstrap.servers": servers})

    def send(self, *values: bytes | dict[str, Any] | None, partition: int = 0) -> None:
        """Sends messages, of which dicts are JSON objects."""
        for value in values:
            data = json.dumps(value).encode() if isinstance(value, dict) else value
            self._producer.produce(self.name, data, partition=partition)
        assert self._producer.flush(30) == 0

    def source(self, **arguments: Any) -> KafkaSource:
        return KafkaSource(self.servers, self.name, **arguments)


@pytest.fixture
def topic(kafka: str) -> Topic:
    return Topic(kafka, 1)


def rows_of(table: Path, *columns: str) -> list[dict[str, Any]]:
    found = pyhudi.open_table(table).to_arrow().sort_by("id")
    rows: list[dict[str, Any]] = (found.select(list(columns)) if columns else found).to_pylist()
    return rows


def metadata(table: Path) -> dict[str, str]:
    return dict(pyhudi.open_table(table).history(1).to_pylist()[0]["metadata"])


def record(schema: str, row: dict[str, Any]) -> bytes:
    """A row as an Avro record: what a container file has between its header and its end."""
    data = _native.json_to_container(schema, json.dumps([row]), b"0123456789abcdef")
    block: bytes = data.split(data[-16:])[1]
    # The number of records, which is 1, and the size, which has one byte here.
    assert block[0] == 2
    assert len(block) - 2 < 64
    return block[2:]


@pytest.mark.parametrize(("version", "name"), [(6, KEY_V1), (8, KEY_V2), (9, KEY_V2)])
def test_kafka_source_continues_each_partition(
    version: int, name: str, kafka: str, tmp_path: Path
) -> None:
    topic, table = Topic(kafka, 3), tmp_path / "t"
    topic.send({"id": 1}, {"id": 2}, partition=0)
    topic.send({"id": 3}, partition=1)
    result = ingest(table, topic.source(), key="id", operation="insert", version=version)
    assert result.rows == 3
    assert metadata(table)[name] == f"{topic.name},0:2,1:1,2:0"
    assert ingest(table, topic.source(), operation="insert").commits == 0
    topic.send({"id": 4}, partition=2)
    topic.send(None, partition=0)
    topic.send({"id": 5, "new": "x"}, partition=0)
    assert ingest(table, topic.source(), operation="insert").rows == 2
    assert metadata(table)[name] == f"{topic.name},0:4,1:1,2:1"
    assert [row["id"] for row in rows_of(table)] == [1, 2, 3, 4, 5]


def test_kafka_source_limits_rows_of_commits(topic: Topic, tmp_path: Path) -> None:
    topic.send(*({"id": n} for n in range(10)))
    done: list[int] = []
    ingest(
        tmp_path / "t",
        topic.source(max_rows=4),
        key="id",
        on_commit=lambda written: done.append(written.rows_in or 0),
    )
    assert done == [4, 4, 2]
    assert [row["id"] for row in rows_of(tmp_path / "t")] == [*range(10)]


def test_kafka_source_reads_committed_transactions_only(topic: Topic, tmp_path: Path) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": topic.servers, "transactional.id": topic.name})
    producer.init_transactions(30)
    for n in range(4):
        producer.begin_transaction()
        producer.produce(topic.name, b'{"id":%d}' % n)
        producer.flush(30)
        (producer.abort_transaction if n % 2 else producer.commit_transaction)(30)
    result = ingest(tmp_path / "t", topic.source(), key="id")
    assert result.checkpoint == f"{topic.name},0:8"
    assert [row["id"] for row in rows_of(tmp_path / "t")] == [0, 2]
    assert ingest(tmp_path / "t", topic.source()).commits == 0


def test_kafka_source_leaves_out_bad_messages(topic: Topic, tmp_path: Path) -> None:
    topic.send({"id": 1}, b"oops", b'{\n"id": 2\n}', b"\xff")
    with pytest.raises(SchemaMismatch, match=rf"{topic.name},0:1: JSON parse error"):
        ingest(tmp_path / "t", topic.source(), key="id")
    aside = tmp_path / "aside"
    result = ingest(tmp_path / "t", topic.source(), key="id", max_bad_records=2, bad_records=aside)
    assert (result.rows, result.bad_records) == (2, 2)
    (file,) = aside.iterdir()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["source"] for line in lines] == [f"{topic.name},0:1", f"{topic.name},0:3"]


def test_kafka_source_reads_avro(topic: Topic, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"id": 1, "v": "a"}, {"id": 2, "v": None}]
    topic.send(*(record(SCHEMA, row) for row in rows), b"\xff")
    source = topic.source(format="avro", schema=SCHEMA)
    assert ingest(tmp_path / "t", source, key="id", max_bad_records=1).bad_records == 1
    assert rows_of(tmp_path / "t") == rows


@pytest.fixture
def registry() -> Iterator[Callable[[dict[int, str]], str]]:
    """A server with the one call of a schema registry that a reader needs."""
    servers: list[HTTPServer] = []

    def serve(schemas: dict[int, str]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # noqa: N802 - the name of the base class
                schema = schemas.get(int(self.path.rpartition("/")[2]))
                self.send_response(404 if schema is None else 200)
                self.end_headers()
                self.wfile.write(json.dumps({"schema": schema}).encode())

            def log_message(self, *_: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_kafka_source_reads_schemas_of_registry(
    topic: Topic, registry: Callable[[dict[int, str]], str], tmp_path: Path
) -> None:
    newer = json.loads(SCHEMA)
    newer["fields"].append({"name": "n", "type": "int"})
    schemas = {7: SCHEMA, 300: json.dumps(newer)}
    url = registry(schemas)
    rows: list[dict[str, Any]] = [{"id": 1, "v": "a"}, {"id": 2, "v": None, "n": 5}]
    for (number, schema), row in zip(schemas.items(), rows, strict=True):
        topic.send(b"\0" + number.to_bytes(4, "big") + record(schema, row))
    topic.send(b"\x01")
    source = topic.source(format="avro", registry=url)
    assert ingest(tmp_path / "t", source, key="id", max_bad_records=1).bad_records == 1
    assert rows_of(tmp_path / "t") == [{"n": None, **row} for row in rows]
    topic.send(b"\0" + (8).to_bytes(4, "big") + record(SCHEMA, rows[0]))
    with pytest.raises(StorageError, match="schemas/ids/8"):
        ingest(tmp_path / "t", source)


def postgres(op: str, before: Any, after: Any, lsn: int | None) -> dict[str, Any]:
    source = {"name": "db", "schema": "public", "ts_ms": 5, "txId": 7, "lsn": lsn, "xmin": None}
    return {"before": before, "after": after, "op": op, "ts_ms": 6, "source": source}


def mysql(op: str, before: Any, after: Any, pos: int) -> dict[str, Any]:
    source = {"name": "db", "ts_ms": 5, "file": "bin.000012", "pos": pos, "row": 0}
    envelope = {"before": before, "after": after, "op": op, "ts_ms": 6, "source": source}
    return {"schema": {"type": "struct"}, "payload": envelope}


@pytest.mark.parametrize("envelope", [postgres, mysql])
@pytest.mark.parametrize(("version", "kind"), [(6, "cow"), (8, "mor"), (9, "cow"), (9, "mor")])
def test_kafka_source_applies_debezium_changes(
    version: int,
    kind: Any,
    envelope: Callable[[str, Any, Any, int], dict[str, Any]],
    topic: Topic,
    tmp_path: Path,
) -> None:
    """Deletes remove rows, and a change with an earlier position loses, in any order."""
    table, source = tmp_path / "t", topic.source(format="debezium-json")
    topic.send(
        envelope("r", None, {"id": 1, "v": "a"}, 10),
        envelope("c", None, {"id": 2, "v": "b"}, 11),
        envelope("c", None, {"id": 3, "v": "c"}, 12),
        envelope("u", {"id": 1, "v": "a"}, {"id": 1, "v": "a2"}, 100),
    )
    ingest(table, source, key="id", version=version, type=kind)
    assert [row["v"] for row in rows_of(table)] == ["a2", "b", "c"]
    topic.send(
        envelope("d", {"id": 2, "v": "b"}, None, 101),
        None,
        envelope("u", None, {"id": 1, "v": "late"}, 99),
        envelope("u", None, {"id": 3, "v": "c2"}, 102),
        {**envelope("t", None, None, 103)},
    )
    result = ingest(table, source)
    assert result.rows == 3
    assert rows_of(table, "id", "v") == [{"id": 1, "v": "a2"}, {"id": 3, "v": "c2"}]
    assert ingest(table, source).commits == 0


@pytest.mark.parametrize("envelope", [postgres, mysql])
def test_kafka_source_reads_changes_with_types_of_table(
    envelope: Callable[[str, Any, Any, int], dict[str, Any]], topic: Topic, tmp_path: Path
) -> None:
    """A text of a later batch looks like a time, and a number has no fraction."""
    source = topic.source(format="debezium-json")
    topic.send(envelope("c", None, {"id": 1, "v": "a", "n": 1.5}, 1))
    ingest(tmp_path / "t", source, key="id")
    topic.send(envelope("c", None, {"id": 2, "v": "2026-01-01T00:00:00Z", "n": 2}, 2))
    ingest(tmp_path / "t", source)
    assert rows_of(tmp_path / "t", "id", "v", "n")[1] == {
        "id": 2,
        "v": "2026-01-01T00:00:00Z",
        "n": 2.0,
    }


def test_kafka_source_refuses_messages_without_envelope(topic: Topic, tmp_path: Path) -> None:
    topic.send({"id": 1})
    with pytest.raises(ConfigError, match="not Debezium envelopes"):
        ingest(tmp_path / "t", topic.source(format="debezium-json"), key="id")
    topic.send({"op": "c", "source": {"name": "x"}, "after": {"id": 1}})
    with pytest.raises(ConfigError, match="neither lsn nor file"):
        ingest(tmp_path / "t", topic.source(format="debezium-json"), key="id")


def test_kafka_source_raises_if_messages_are_gone(topic: Topic, tmp_path: Path) -> None:
    from confluent_kafka import TopicPartition

    topic.send({"id": 1}, {"id": 2}, {"id": 3})
    ingest(tmp_path / "t", topic.source(max_rows=1), key="id", checkpoint=f"{topic.name},0:2")
    with pytest.raises(StorageError, match="offset 9 of partition 0"):
        ingest(tmp_path / "t", topic.source(), checkpoint=f"{topic.name},0:9")
    deleted = topic.admin.delete_records([TopicPartition(topic.name, 0, 2)])
    for each in deleted.values():
        each.result(30)
    with pytest.raises(StorageError, match="has 2 to 3"):
        ingest(tmp_path / "t", topic.source(), checkpoint=f"{topic.name},0:1")
    for wrong in ("1700000000000", "other,0:1", f"{topic.name},x:1"):
        with pytest.raises(ConfigError, match="not one of the topic"):
            ingest(tmp_path / "t", topic.source(), checkpoint=wrong)


def test_kafka_source_raises_without_broker_or_topic(topic: Topic, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"127\.0\.0\.1:9"):
        ingest(tmp_path / "t", KafkaSource("127.0.0.1:9", "t", timeout_s=1), key="id")
    with pytest.raises(StorageError, match="no topic"):
        ingest(tmp_path / "t", KafkaSource(topic.servers, "nowhere", timeout_s=10), key="id")


def test_kafka_command_prints_result(
    topic: Topic, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic.send({"id": 1})
    command = ["ingest", "kafka", str(tmp_path / "t"), topic.name, "--servers", topic.servers]
    assert main([*command, "-k", "id", "--client-option", "client.id=me"]) == 0
    assert capsys.readouterr().out == "1 row in 1 commit\n"


def test_kafka_page_ingests_topic(
    topic: Topic,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    topic.send({"id": 1})
    (code,) = snippets(PAGE, "broker")
    code = code.replace("broker1:9092,broker2:9092", topic.servers)
    exec(code.replace("rides-topic", topic.name), {})
    assert capsys.readouterr().out == "1 row in 1 commit\n"


@pytest.mark.parametrize(("version", "kind"), [(9, "mor"), (6, "cow")])
def test_killed_kafka_ingest_is_continued_exactly(
    version: int, kind: str, kafka: str, tmp_path: Path
) -> None:
    """As tests/sim/test_ingest_crash.py: killed at each change of storage, in 3 commits."""
    topic = Topic(kafka, 2)
    for n in range(6):
        row = {"id": f"k{n}", "city": ("oslo", "rome")[n % 2], "v": n, "ts": n}
        topic.send(row, partition=n % 2)
    options = {**SMALL_BLOOM, "hoodie.parquet.small.file.limit": "0"}
    base = tmp_path / "table"
    people_table(base, version, kind, options)
    source = topic.source(max_rows=2)

    def write(storage: Storage) -> None:
        ingest(HudiTable(storage, LocalEngine(1), options), source, operation="insert")

    counts = set()
    for n, crashed in recorded(base, tmp_path, write).deaths():
        table = HudiTable(Storage(str(crashed)), LocalEngine(1), options)
        counts.add(table.scan().count())
        ingest(table, source, operation="insert")
        found = table.refresh().to_arrow().sort_by("v")["id"].to_pylist()
        assert found == [f"k{each}" for each in range(6)], n
    assert counts == {0, 2, 4, 6}
