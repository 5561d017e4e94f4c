"""The section of the report page that shows how the table grew, commit by commit."""

from __future__ import annotations

from collections.abc import Sequence

from pyhudi.api.display import charts, style
from pyhudi.api.display.commit_summary import Commit
from pyhudi.api.display.html import Html, note, tag
from pyhudi.api.display.report_data import Survey
from pyhudi.api.display.report_sections import section
from pyhudi.config.formatting import count_text, instant_text

_TAKES_AWAY = frozenset({"INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION"})
"""Operations that remove rows which their own statistics do not count."""


def growth(survey: Survey) -> Html:
    """Draw rows, bytes and files by commit."""
    commits = survey.commits
    if not commits:
        return section("Growth", note("No commits yet."))
    writes = [commit for commit in commits if not commit.is_service]
    rows = (
        ("inserted", style.INSERTED, [commit.inserted for commit in writes]),
        ("updated", style.UPDATED, [commit.updated for commit in writes]),
        ("deleted", style.DELETED, [commit.deleted for commit in writes]),
    )
    net = [commit.inserted - commit.deleted for commit in writes]
    in_bytes, in_files = _by_kind(commits, "bytes"), _by_kind(commits, "files")
    since = _sum_since(survey)
    figures = [
        _chart("Rows by commit", charts.bars(writes, rows), rows),
        _chart(f"Rows inserted less deleted{since}", charts.running_sum(writes, "rows", net)),
        _chart("Bytes written", charts.bars(commits, in_bytes, in_bytes=True), in_bytes),
        _chart("Files written", charts.bars(commits, in_files), in_files),
    ]
    return section("Growth", tag("div", *figures, class_="two"), note(_growth_note(survey)))


def _chart(title: str, chart: Html, series: Sequence[charts.Series] = ()) -> Html:
    keys = style.key(*((color, name) for name, color, _ in series))
    return tag("div", tag("div", tag("h3", title), keys, class_="named"), chart)


def _by_kind(commits: Sequence[Commit], figure: str) -> tuple[charts.Series, charts.Series]:
    values = [int(getattr(commit, figure)) for commit in commits]
    service = [commit.is_service for commit in commits]
    wrote = [0 if other else value for value, other in zip(values, service, strict=True)]
    other = [value if other else 0 for value, other in zip(values, service, strict=True)]
    return ("writes", style.UPDATED, wrote), ("services", style.SERVICE, other)


def _sum_since(survey: Survey) -> str:
    """Return since when rows are summed, as part of a title; the sum excludes earlier rows."""
    if len(survey.table.timeline.commits) == len(survey.commits) and not survey.has_archive:
        return ", in sum"
    first = instant_text(survey.commits[0].instant.requested)
    return f" since {first}, besides the rows of before"


def _growth_note(survey: Survey) -> str:
    commits = survey.commits
    first = instant_text(commits[0].instant.requested)
    text = f"{count_text(len(commits), 'commit')} from {first} on"
    if len(survey.table.timeline.commits) > len(commits):
        text += f", the newest of {len(survey.table.timeline.commits):,}"
    if any(commit.operation.upper() in _TAKES_AWAY for commit in commits):
        text += ". Rows that overwriting and deleting partitions took away are not counted"
    return f"{text}."
