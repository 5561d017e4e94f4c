"""Results of methods in a notebook, without their zero and empty fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from pyhudi.admin.check_findings import CheckResult, Finding
from pyhudi.admin.health import Health
from pyhudi.admin.maintain import MaintenanceResult
from pyhudi.admin.reader_limits import FEATURES, Limit
from pyhudi.admin.readers import Readers
from pyhudi.admin.upgrade import VersionChange
from pyhudi.api.notebook_html.html import Html, badge, grid, join, note, property_grid, tag
from pyhudi.api.notebook_html.style import fragment
from pyhudi.config.formatting import count_text, duration_text, names_text, size_text
from pyhudi.query.explain import Explanation
from pyhudi.services.result import ServiceResult
from pyhudi.txn.restore import RestoreResult
from pyhudi.txn.result import WriteResult

_MAX_FINDINGS = 50
_MAX_NAMES = 12


def result_html(result: Any) -> str:
    """Return the notebook HTML of a result."""
    return fragment(*_write_result(result))


def _write_result(result: Any) -> list[Html]:
    match result:
        case WriteResult():
            state = badge("committed", "good") if result.committed else badge("nothing to change")
            without = ("operation", "instant", "partitions", "was_written_before")
            more = {"partitions": _names([path or "(no partition)" for path in result.partitions])}
            again = [badge("written before")] if result.was_written_before else []
            parts = [state, *again]
            figures = {"instant": result.instant, **_figures(result, without), **more}
            return [_head(result.operation, *parts), property_grid(_without_empty(figures))]
        case ServiceResult():
            figures = {**_figures(result, ("service", "left", "dry_run"))}
            idle = not (result.file_groups or result.instants or result.scheduled)
            idle_badge = [badge("nothing to do")] if idle and not result.files_removed else []
            skipped = [note(f"left: {reason}") for reason in result.left]
            return [
                _head(result.service, *idle_badge, *_dry(result.dry_run)),
                property_grid(_without_empty(figures)),
                *skipped,
            ]
        case RestoreResult():
            figures = _figures(result, ("dry_run",))
            return [_head("restore", *_dry(result.dry_run)), property_grid(_without_empty(figures))]
        case VersionChange():
            figures = _figures(result, ("before", "after", "dry_run"))
            figures["properties_set"] = _names(list(result.properties_set))
            title = f"version {result.before} to {result.after}"
            return [_head(title, *_dry(result.dry_run)), property_grid(_without_empty(figures))]
        case Health():
            return _health(result)
        case Readers():
            return _readers(result)
        case MaintenanceResult():
            return _maintenance_result(result)
        case CheckResult():
            return _check_result(result)
        case Explanation():
            return _explanation(result)
    raise TypeError(f"{type(result).__name__} has no HTML form")


def _health(health: Health) -> list[Html]:
    advice = [(badge(item.service, "warm"), item.reason) for item in health.advice]
    state = badge("no service is needed", "good")
    if advice:
        state = badge(f"{count_text(len(advice), 'thing')} to do", "warm")
    parts = [_head("health", state)]
    if advice:
        parts.append(grid(("worth doing", "why"), advice))
    return [*parts, property_grid(_figures(health, ("advice",), zeros=True))]


_ANSWER_STYLES = {"yes": "good", "no": "bad", "wrong": "bad", "partly": "warm", "unknown": "warm"}


def _readers(readers: Readers) -> list[Html]:
    rows = [
        (
            reader.engine,
            badge(reader.answer, _ANSWER_STYLES[reader.answer]),
            "; ".join(f"{FEATURES[each.feature]}: {each.effect}" for each in reader.limits),
            " ".join(dict.fromkeys(filter(None, (*map(_change, reader.limits), reader.needs)))),
        )
        for reader in readers
    ]
    return [_head("readers"), grid(("engine", "reads", "why", "what to do"), rows)]


def _change(limit: Limit) -> str:
    return limit.change


def _maintenance_result(result: MaintenanceResult) -> list[Html]:
    rows = [
        (done.service, done.file_groups, done.files_read, done.files_written, done.files_removed)
        for done in result.done
    ]
    names = ("service", "file groups", "files read", "written", "removed")
    did = [grid(names, rows, numbers=(1, 2, 3, 4))] if rows else [note("Nothing was done.")]
    skipped = [note(f"left: {reason}") for reason in result.left]
    took = badge(duration_text(result.duration_ms))
    return [
        _head("maintenance", took, *_dry(result.dry_run)),
        *did,
        *skipped,
        *_health(result.after),
    ]


def _check_result(result: CheckResult) -> list[Html]:
    scope = f"{count_text(result.files, 'file')} in {count_text(result.partitions, 'partition')}"
    errors = len(result.errors)
    state = badge("no difference", "good")
    if result.findings:
        class_ = "bad" if errors else "warm"
        state = badge(f"{count_text(len(result.findings), 'finding')}, {errors:,} errors", class_)
    parts = [_head("deep check" if result.deep else "check", state), note(scope)]
    for title, findings in (("found", result.findings), ("removed", result.repaired)):
        if findings:
            parts.append(_findings(title, findings))
    return parts


def _findings(title: str, findings: Sequence[Finding]) -> Html:
    rows = [
        (
            badge(finding.severity, "bad" if finding.severity == "error" else "warm"),
            finding.kind,
            finding.partition,
            tag("code", finding.item),
            finding.expected,
            finding.found,
        )
        for finding in findings[:_MAX_FINDINGS]
    ]
    result = grid((title, "kind", "partition", "item", "expected", "found"), rows)
    more = len(findings) - _MAX_FINDINGS
    return result if more <= 0 else join([result, note(f"and {more:,} more")])


def _explanation(result: Explanation) -> list[Html]:
    rows = [
        (step.index, step.of, step.before, len(step.partitions) + len(step.slices))
        for step in result.steps
    ]
    read = f"{count_text(result.slices, 'file slice')} of {size_text(result.size)}"
    figures = {"files": result.listing, "partitions": result.partitions, "to read": read}
    steps = grid(("index", "asked about", "of them", "left out"), rows, numbers=(2, 3))
    return [
        _head("plan of a scan", badge("not read yet")),
        property_grid(figures),
        *([steps] if rows else []),
    ]


def _head(title: str, *badges: Html) -> Html:
    return tag("div", tag("b", title), *badges, class_="head")


def _dry(dry_run: bool) -> list[Html]:
    return [badge("dry run", "warm")] if dry_run else []


def _figures(result: Any, without: Iterable[str], *, zeros: bool = False) -> dict[str, object]:
    """Return the fields of a result as text, without those that are zero or empty."""
    omitted = {*without, "metrics"}
    return {
        field.name.removesuffix("_ms").replace("_", " "): _text(field.name, value)
        for field in fields(result)
        if field.name not in omitted and ((value := getattr(result, field.name)) or zeros)
    }


def _text(name: str, value: Any) -> object:
    if "bytes" in name:
        return size_text(value)
    if name.endswith("_ms"):
        return duration_text(value)
    if isinstance(value, tuple):
        return _names(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _names(names: Sequence[str]) -> str:
    return names_text(names, _MAX_NAMES)


def _without_empty(figures: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in figures.items() if value != ""}
