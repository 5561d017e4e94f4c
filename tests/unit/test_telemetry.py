"""Metrics and spans of operations, received by the SDK of OpenTelemetry."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import pyhudi
from pyhudi import events, telemetry
from pyhudi.clock import SystemClock
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.storage.storage import Storage
from pyhudi.txn.locks.storage_lock import StorageLock
from tests.helpers.interference import interfere_once

OPTIONS: dict[str, Any] = {"hoodie.metadata.enable": False}
COMPACTS = {"hoodie.compact.inline": True, "hoodie.compact.inline.max.delta.commits": 1}


def rows(*ids: str, v: int = 1) -> pa.Table:
    return pa.table({"id": ids, "v": pa.array([v] * len(ids), pa.int64())})


def make(base: Path, data: Any, **more: Any) -> pyhudi.HudiTable:
    options = {**OPTIONS, **more.pop("options", {})}
    return pyhudi.create_table(
        base / "trips", data, key="id", order_by="v", options=options, **more
    )


class Received:
    """What the exporters of a program have received."""

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.exporter = InMemorySpanExporter()
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))

    def spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]

    def points(self, name: str) -> list[tuple[dict[str, Any], float]]:
        """Attributes and value of each point; of a histogram the number of values."""
        data = self.reader.get_metrics_data()
        metrics = [] if data is None else data.resource_metrics[0].scope_metrics[0].metrics
        return [
            (dict(point.attributes or {}), getattr(point, "value", getattr(point, "count", 0)))
            for metric in metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


@pytest.fixture
def received() -> Iterator[Received]:
    received = Received()
    with telemetry.instrument(meter_provider=received.meters, tracer_provider=received.tracers):
        yield received


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


def test_write_has_a_span_with_its_parts(tmp_path: Path, received: Received) -> None:
    table = make(tmp_path, rows("a"))
    received.exporter.clear()
    result = table.upsert(rows("a", "b", v=2))
    (span,) = received.spans("upsert trips")
    assert (span.kind, span.parent, span.status.status_code) == (
        SpanKind.CLIENT,
        None,
        StatusCode.UNSET,
    )
    assert dict(span.attributes or {}) == {
        "db.system.name": "hudi",
        "db.operation.name": "upsert",
        "db.collection.name": "trips",
        "pyhudi.table.uri": table.uri,
        "pyhudi.instant": result.instant,
        "pyhudi.rows.inserted": 1,
        "pyhudi.rows.updated": 1,
        "pyhudi.files.written": 1,
        "pyhudi.bytes.written": result.bytes_written,
    }
    waits, (commit,) = received.spans("lock wait"), received.spans("commit")
    assert len(waits) >= 2
    assert {parent_of(part) for part in (*waits, commit)} == {id_of(span)}
    assert dict(commit.attributes or {})["pyhudi.commit.action"] == "commit"


def test_write_has_metrics(tmp_path: Path, received: Received) -> None:
    table = make(tmp_path, rows("a"))
    result = table.upsert(rows("a", "b", v=2))
    upsert = {
        "db.system.name": "hudi",
        "db.operation.name": "upsert",
        "db.collection.name": "trips",
    }
    assert (upsert, 1) in received.points("db.client.operation.duration")
    changed = received.points("pyhudi.rows")
    assert ({**upsert, "pyhudi.row.change": "inserted"}, 1) in changed
    assert ({**upsert, "pyhudi.row.change": "updated"}, 1) in changed
    assert (upsert, result.bytes_written) in received.points("pyhudi.bytes.written")
    assert (upsert, len(received.spans("commit")) - 1) in [
        ({k: v for k, v in attributes.items() if k != "pyhudi.commit.action"}, count)
        for attributes, count in received.points("pyhudi.commit.duration")
    ]
    assert upsert in [attributes for attributes, _ in received.points("pyhudi.lock.wait.duration")]
    assert upsert in [attributes for attributes, _ in received.points("pyhudi.lock.hold.duration")]


def test_histograms_have_seconds_and_bounds(tmp_path: Path, received: Received) -> None:
    make(tmp_path, rows("a"))
    data = received.reader.get_metrics_data()
    assert data is not None
    (scope,) = data.resource_metrics[0].scope_metrics
    assert (scope.scope.name, scope.scope.version) == ("pyhudi", pyhudi.__version__)
    units = {metric.name: metric.unit for metric in scope.metrics}
    assert units["db.client.operation.duration"] == "s"
    assert units["pyhudi.storage.io"] == "By"
    (duration,) = [m for m in scope.metrics if m.name == "db.client.operation.duration"]
    point: Any = duration.data.data_points[0]
    assert point.explicit_bounds[:4] == (0.001, 0.005, 0.01, 0.05)
    assert 0 < point.sum < 60


def test_requests_are_those_of_the_process(tmp_path: Path, received: Received) -> None:
    """Read whenever the SDK collects, so they also have requests of no operation."""
    before = events.storage_requests()
    table = make(tmp_path, rows("a"))
    table.to_arrow()
    now = {kind: total.since(before[kind]) for kind, total in events.storage_requests().items()}
    by_kind = {
        attributes["pyhudi.storage.request.kind"]: value
        for attributes, value in received.points("pyhudi.storage.requests")
    }
    assert by_kind == {kind: requests.total for kind, requests in now.items()}
    assert by_kind["write"] > 0
    sent = {
        attributes["pyhudi.storage.request.kind"]: value
        for attributes, value in received.points("pyhudi.storage.io")
        if attributes["network.io.direction"] == "transmit"
    }
    assert sent == {kind: requests.bytes_sent for kind, requests in now.items()}
    assert [value for _, value in received.points("pyhudi.storage.retries")] == [0] * 6
    assert [value for _, value in received.points("pyhudi.storage.throttled")] == [0] * 6


def test_read_has_a_span_and_metrics(tmp_path: Path, received: Received) -> None:
    table = make(tmp_path, rows("a", "b"))
    assert table.to_arrow().num_rows == 2
    (span,) = received.spans("scan trips")
    assert dict(span.attributes or {})["db.response.returned_rows"] == 2
    scan = {
        "db.system.name": "hudi",
        "db.operation.name": "scan",
        "db.collection.name": "trips",
    }
    assert (scan, 1) in received.points("db.client.response.returned_rows")
    assert (scan, 1) in received.points("db.client.operation.duration")


def test_spans_are_in_the_trace_of_the_program(tmp_path: Path, received: Received) -> None:
    """Also those of a stream of rows, which is not the current span while it is read."""
    table = make(tmp_path, rows("a"))
    tracer = received.tracers.get_tracer("program")
    with tracer.start_as_current_span("job") as job:
        reader = table.to_reader()
        table.upsert(rows("b"))
        reader.read_all()
    for name in ("scan trips", "upsert trips"):
        assert parent_of(received.spans(name)[-1]) == job.get_span_context().span_id


def test_failed_operation_has_a_span_with_the_error(tmp_path: Path, received: Received) -> None:
    table = make(tmp_path, rows("a"))
    with pytest.raises(SchemaMismatch):
        table.upsert(pa.table({"id": ["a"], "nothing": [1]}))
    (span,) = received.spans("upsert trips")
    assert span.status.status_code is StatusCode.ERROR
    assert "nothing" in (span.status.description or "")
    assert [event.name for event in span.events] == ["exception"]
    failed = [
        attributes
        for attributes, _ in received.points("db.client.operation.duration")
        if "error.type" in attributes
    ]
    assert [attributes["error.type"] for attributes in failed] == ["SchemaMismatch"]


def test_conflict_retry_is_an_event_of_the_span(
    tmp_path: Path, received: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path, rows("a"))
    other = pyhudi.open_table(table.uri, options=OPTIONS)
    interfere_once(monkeypatch, lambda: other.upsert(rows("a", v=5)))
    table.upsert(rows("a", v=7))
    (span,) = [s for s in received.spans("upsert trips") if s.events]
    (event,) = span.events
    assert event.name == "conflict retry"
    attributes = dict(event.attributes or {})
    assert (attributes["error.type"], attributes["pyhudi.conflict.attempt"]) == (
        "CommitConflict",
        2,
    )
    assert dict(span.attributes or {})["pyhudi.conflict.retries"] == 1
    assert [value for _, value in received.points("pyhudi.conflict.retries")] == [1]
    commits = [c for c in received.spans("commit") if parent_of(c) == id_of(span)]
    assert [c.status.status_code for c in commits] == [StatusCode.ERROR, StatusCode.UNSET]


def test_lock_wait_between_threads_has_a_span(tmp_path: Path, received: Received) -> None:
    table = make(tmp_path, rows("a"))
    received.exporter.clear()
    lock = StorageLock(Storage(table.uri), SystemClock(), validity_ms=60_000, renew_ms=6_000)
    assert lock.acquire(1000)
    waits = threading.Event()

    def on_begin(event: events.Event) -> None:
        if isinstance(event, events.LockWait):
            waits.set()

    with events.listen(lambda _: None, on_begin=on_begin):
        writer = threading.Thread(target=table.upsert, args=(rows("b"),))
        writer.start()
        assert waits.wait(20)
        threading.Event().wait(0.3)
        lock.release()
        writer.join()
    wait = received.spans("lock wait")[0]
    assert wait.start_time is not None
    assert wait.end_time is not None
    assert wait.end_time - wait.start_time >= 0.3e9
    assert parent_of(wait) == id_of(received.spans("upsert trips")[0])


def test_service_after_a_commit_has_a_span(tmp_path: Path, received: Received) -> None:
    table = make(tmp_path, rows("a"), type="mor", options=COMPACTS)
    received.exporter.clear()
    table.upsert(rows("a", v=2))
    (service,) = received.spans("compaction")
    (upsert,) = received.spans("upsert trips")
    assert parent_of(service) == id_of(upsert)
    assert id_of(service) in [parent_of(commit) for commit in received.spans("commit")]
    (attributes,) = [
        attributes
        for attributes, _ in received.points("pyhudi.service.duration")
        if attributes["db.operation.name"] == "upsert"
    ]
    assert attributes["pyhudi.service.name"] == "compaction"


def test_service_in_the_background_has_its_own_trace(tmp_path: Path, received: Received) -> None:
    options = {**COMPACTS, "pyhudi.table.services.mode": "background"}
    table = make(tmp_path, rows("a"), type="mor", options=options)
    table.finish_services()
    received.exporter.clear()
    table.upsert(rows("a", v=2))
    table.finish_services()
    (service,) = received.spans("compaction")
    assert service.parent is None


def test_closed_recording_has_no_spans_and_requests(tmp_path: Path) -> None:
    received = Received()
    with telemetry.instrument(meter_provider=received.meters, tracer_provider=received.tracers):
        pass
    make(tmp_path, rows("a"))
    assert received.exporter.get_finished_spans() == ()
    assert received.points("pyhudi.storage.requests") == []


def test_missing_extra_raises_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ConfigError, match="opentelemetry-api is not installed") as raised:
        telemetry.instrument()
    assert "pyhudi[opentelemetry]" in raised.value.hint


def test_second_instrument_replaces_the_first(tmp_path: Path, received: Received) -> None:
    table, second = make(tmp_path, rows("a")), Received()
    received.exporter.clear()
    with telemetry.instrument(meter_provider=second.meters, tracer_provider=second.tracers):
        table.upsert(rows("b"))
    assert len(second.spans("upsert trips")) == 1
    assert received.spans("upsert trips") == []


def test_instrument_refuses_what_is_no_provider() -> None:
    with pytest.raises(ConfigError, match="tracer_provider is 'x'"):
        telemetry.instrument(tracer_provider="x")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="meter_provider is 5"):
        telemetry.instrument(meter_provider=5)  # type: ignore[arg-type]
