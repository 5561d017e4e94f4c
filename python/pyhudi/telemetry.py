"""Metrics and traces of OpenTelemetry, made of the events of this process.

`instrument` starts it. Needs the extra `opentelemetry`, which is the API alone: your program
configures the SDK and its exporters. Names follow OpenTelemetry's semantic conventions for database
clients; what these do not have begins with `pyhudi.`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from pyhudi import events
from pyhudi.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextvars import Token

    from opentelemetry.context import Context
    from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation
    from opentelemetry.trace import Span, Tracer, TracerProvider

__all__ = ["instrument"]

Attributes: TypeAlias = "dict[str, str | int]"

_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Bounds of histograms: those of the conventions, and longer ones for writes and services."""
_ROWS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
"""Bounds of the number of rows read: those of the conventions."""


def instrument(
    *, meter_provider: MeterProvider | None = None, tracer_provider: TracerProvider | None = None
) -> events.Listener:
    """Record metrics and traces of all operations of this process from now on.

    A second call replaces the first, whose recording ends.

    Args:
        meter_provider: receives the metrics; the global provider of OpenTelemetry by default.
        tracer_provider: receives the traces; the global provider of OpenTelemetry by default.

    Returns:
        The listener. Its `close` ends the recording, and so does the end of a `with` block.

    Raises:
        ConfigError: opentelemetry-api is not installed, or an argument is not a provider.
    """
    global _listener  # noqa: PLW0603 - two recordings would record all twice
    try:
        from opentelemetry import metrics, trace  # noqa: PLC0415 - an extra
    except ImportError as error:
        hint = "pip install 'pyhudi[opentelemetry]'"
        raise ConfigError("opentelemetry-api is not installed", hint=hint) from error
    from pyhudi._native import __version__  # noqa: PLC0415 - as above

    _check_provider("meter_provider", meter_provider, "get_meter")
    _check_provider("tracer_provider", tracer_provider, "get_tracer")
    meter = metrics.get_meter("pyhudi", __version__, meter_provider)
    tracer = trace.get_tracer("pyhudi", __version__, tracer_provider)
    recorded_metrics, traces = _Metrics(meter), _Traces(tracer)

    def end(event: events.Event) -> None:
        # The `Span` is current, so that exemplars of the metrics name it.
        try:
            recorded_metrics.record(event)
        finally:
            traces.end(event)

    if _listener is not None:
        _listener.close()
    listener = _listener = events.listen(end, on_begin=traces.begin)
    _observe_requests(meter, lambda: not listener.is_closed)
    return listener


_listener: events.Listener | None = None
"""The recording of the process."""


def _check_provider(name: str, provider: object, method: str) -> None:
    if provider is not None and not callable(getattr(provider, method, None)):
        kind = "MeterProvider" if method == "get_meter" else "TracerProvider"
        raise ConfigError(f"{name} is {provider!r:.60}", hint=f"Pass a {kind} of OpenTelemetry.")


def _attributes(event: events.Event) -> Attributes:
    """Return the attributes of an event, for metrics and traces."""
    attributes: Attributes = {"db.system.name": "hudi"}
    operation = event.operation
    if operation is not None:
        attributes["db.collection.name"] = operation.table
        attributes["db.operation.name"] = operation.name
    if isinstance(event, events.Service):
        attributes["pyhudi.service.name"] = event.name
    if isinstance(event, events.Commit):
        attributes["pyhudi.commit.action"] = event.action
    if event.error is not None:
        attributes["error.type"] = type(event.error).__qualname__
    return attributes


class _Metrics:
    """The instruments that events are recorded with."""

    def __init__(self, meter: Meter) -> None:
        def seconds(name: str, description: str) -> Callable[[float, Attributes], None]:
            return meter.create_histogram(
                name, "s", description, explicit_bucket_boundaries_advisory=_SECONDS
            ).record

        def total(name: str, unit: str, description: str) -> Callable[[int, Attributes], None]:
            return meter.create_counter(name, unit, description).add

        self._durations = {
            events.Operation: seconds(
                "db.client.operation.duration", "Duration of calls that read or change a table."
            ),
            events.LockWait: seconds("pyhudi.lock.wait.duration", "Waits for a table's lock."),
            events.LockHold: seconds(
                "pyhudi.lock.hold.duration", "Time for which a table's lock was held."
            ),
            events.Commit: seconds("pyhudi.commit.duration", "Publication under the lock."),
            events.Service: seconds("pyhudi.service.duration", "Table services after commits."),
        }
        self._rows_read = meter.create_histogram(
            "db.client.response.returned_rows",
            "{row}",
            "Rows that reads returned.",
            explicit_bucket_boundaries_advisory=_ROWS,
        ).record
        self._rows = total("pyhudi.rows", "{row}", "Rows that writes changed, by change.")
        self._files = total("pyhudi.files", "{file}", "Files that were written and removed.")
        self._bytes = total("pyhudi.bytes.written", "By", "Bytes of data files written.")
        self._retries = total(
            "pyhudi.conflict.retries", "{retry}", "Retries after conflicts with other writers."
        )

    def record(self, event: events.Event) -> None:
        """Record an event that has ended."""
        attributes = _attributes(event)
        if isinstance(event, events.ConflictRetry):
            self._retries(1, attributes)
            return
        self._durations[type(event)](event.seconds, attributes)
        if isinstance(event, events.Operation | events.Service):
            self._record_figures(event, attributes)
        if isinstance(event, events.Operation) and event.rows_read:
            self._rows_read(event.rows_read, attributes)

    def _record_figures(
        self, event: events.Operation | events.Service, attributes: Attributes
    ) -> None:
        rows = {
            "inserted": event.rows_inserted,
            "updated": event.rows_updated,
            "deleted": event.rows_deleted,
        }
        for change, number in rows.items():
            if number:
                self._rows(number, {**attributes, "pyhudi.row.change": change})
        for change, number in (("written", event.files_written), ("removed", event.files_removed)):
            if number:
                self._files(number, {**attributes, "pyhudi.file.change": change})
        if event.bytes_written:
            self._bytes(event.bytes_written, attributes)


def _observe_requests(meter: Meter, is_recording: Callable[[], bool]) -> None:
    """Let a meter read the requests of this process from now on, whenever it collects."""
    from opentelemetry.metrics import Observation  # noqa: PLC0415 - an extra

    before = events.storage_requests()

    def totals() -> dict[str, events.Requests]:
        if not is_recording():
            return {}
        return {kind: now.since(before[kind]) for kind, now in events.storage_requests().items()}

    def observing(figure: str, **more: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            for kind, requests in totals().items():
                attributes = {"pyhudi.storage.request.kind": kind, **more}
                yield Observation(getattr(requests, figure), attributes)

        return observe

    meter.create_observable_counter(
        "pyhudi.storage.requests", [observing("total")], "{request}", "Requests to storage."
    )
    meter.create_observable_counter(
        "pyhudi.storage.io",
        [
            observing("bytes_sent", **{"network.io.direction": "transmit"}),
            observing("bytes_received", **{"network.io.direction": "receive"}),
        ],
        "By",
        "Bytes of requests to storage, and of their answers.",
    )
    meter.create_observable_counter(
        "pyhudi.storage.retries", [observing("retries")], "{request}", "Requests sent again."
    )
    meter.create_observable_counter(
        "pyhudi.storage.throttled",
        [observing("throttled")],
        "{request}",
        "Answers by which the service asked for fewer requests.",
    )


class _Traces:
    """The traces of running events, as an OpenTelemetry `Span` each."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._running: dict[events.Event, tuple[Span, Token[Context] | None]] = {}

    def begin(self, event: events.Event) -> None:
        """Start the `Span` of an event, and make it current if the event encloses others."""
        from opentelemetry import context, trace  # noqa: PLC0415 - an extra

        if isinstance(event, events.ConflictRetry | events.LockHold):
            return
        kind = trace.SpanKind.INTERNAL
        if isinstance(event, events.Operation):
            kind = trace.SpanKind.CLIENT
        attributes = {**_attributes(event), "pyhudi.table.uri": event.uri}
        otel_span = self._tracer.start_span(_title(event), kind=kind, attributes=attributes)
        token = context.attach(trace.set_span_in_context(otel_span)) if event.is_enclosing else None
        self._running[event] = otel_span, token

    def end(self, event: events.Event) -> None:
        """End the `Span` of an event. A retry after a conflict becomes an event of one."""
        from opentelemetry import context  # noqa: PLC0415 - an extra

        if isinstance(event, events.ConflictRetry):
            self._add_retry(event)
            return
        otel_span, token = self._running.pop(event, (None, None))
        if otel_span is None:
            return
        if token is not None:
            context.detach(token)
        if otel_span.is_recording():
            _describe(otel_span, event)
        otel_span.end()

    def _add_retry(self, event: events.ConflictRetry) -> None:
        otel_span, _ = (
            self._running.get(event.parent, (None, None)) if event.parent else (None, None)
        )
        if otel_span is not None:
            attributes = {**_attributes(event), "pyhudi.conflict.attempt": event.attempt}
            otel_span.add_event("conflict retry", attributes)


def _title(event: events.Event) -> str:
    if isinstance(event, events.Operation):
        return f"{event.name} {event.table}"
    if isinstance(event, events.Service):
        return event.name
    return "lock wait" if isinstance(event, events.LockWait) else "commit"


def _describe(otel_span: Span, event: events.Event) -> None:
    """Add to a `Span` what is known at the end of its event."""
    from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415 - an extra

    otel_span.set_attributes({**_attributes(event), "pyhudi.table.uri": event.uri})
    if isinstance(event, events.Operation):
        figures = {
            "db.response.returned_rows": event.rows_read,
            "pyhudi.rows.inserted": event.rows_inserted,
            "pyhudi.rows.updated": event.rows_updated,
            "pyhudi.rows.deleted": event.rows_deleted,
            "pyhudi.files.written": event.files_written,
            "pyhudi.bytes.written": event.bytes_written,
            "pyhudi.conflict.retries": event.conflict_retries,
        }
        otel_span.set_attributes({name: value for name, value in figures.items() if value})
    if isinstance(event, events.Operation | events.Commit | events.Service) and event.instant:
        otel_span.set_attribute("pyhudi.instant", event.instant)
    if event.error is not None:
        otel_span.record_exception(event.error)
        otel_span.set_status(Status(StatusCode.ERROR, str(event.error)))
