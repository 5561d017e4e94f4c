"""The sections of the report page, one function each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyhudi.admin.health import REBUILD, Advice, Health
from pyhudi.api.display import charts, style
from pyhudi.api.display.commit_summary import COMMITS_MOST, kind_of
from pyhudi.api.display.html import Html, badge, grid, join, note, tag, value_text
from pyhudi.api.display.report_data import IndexFacts, Survey
from pyhudi.api.display.storage_picture import Place, partition_name, places_of, storage_picture
from pyhudi.api.display.timeline_picture import timeline_picture
from pyhudi.config.formatting import count_text, instant_text, names_text, size_text
from pyhudi.slices.file_slice import FileSlice

_PARTITIONS_MOST = 100
_COLUMNS_MOST = 12
_SIZES = (1 << 20, 8 << 20, 32 << 20, 128 << 20, 512 << 20)
_SIZE_NAMES = ("below 1 MiB", "1 to 8 MiB", "8 to 32 MiB", "32 to 128 MiB", "to 512 MiB", "more")
_SHARES = (0.0, 0.05, 0.2, 0.5, 1.0)
_SHARE_NAMES = ("none", "below 5 %", "5 to 20 %", "20 to 50 %", "50 to 100 %", "more")
_VERBS = {
    "compact": "compact()",
    "cluster": "cluster()",
    "clean": "clean()",
    "archive": "archive()",
    REBUILD: "rebuild_metadata()",
}


def section(title: str, *inner: object) -> Html:
    """Return a section of the page."""
    return tag("section", tag("h2", title), *inner)


def tiles(survey: Survey) -> Html:
    """Return the key figures."""
    health = survey.health
    if health is None:
        return Html()
    newest = health.base_bytes + health.log_bytes
    share = 100 * health.log_bytes / newest if newest else 0
    figures = [
        _tile(health, "file_groups", "file groups", f"in {health.partitions:,} partitions"),
        _tile(health, "base_bytes", "base files", count_text(health.base_files, "file")),
        _tile(health, "log_bytes", "log files", f"{health.log_files:,} files, {share:.0f} %"),
        _tile(health, "old_bytes", "older states", count_text(health.old_files, "file")),
        _tile(health, "active_instants", "instants", f"{health.pending:,} pending"),
        _tile(health, "metadata_bytes", "metadata table", f"{health.metadata_files:,} files"),
    ]
    return tag("div", *figures, class_="tiles")


def _tile(health: Health, figure: str, name: str, more: str) -> Html:
    value: int = getattr(health, figure)
    text = size_text(value) if "bytes" in figure else f"{value:,}"
    value_tag = tag("b", text, data_figure=figure, data_value=value)
    return tag("div", tag("span", name), value_tag, tag("small", more), class_="tile")


def advice(survey: Survey) -> Html:
    """Return the services that are worth running, with the reasons."""
    if survey.health is None:
        return Html()
    entries = [_advice(item) for item in survey.health.advice]
    if not entries:
        entries = [tag("p", badge("fine", "good"), "Nothing needs to be done.", class_="note")]
    return section("What is worth doing", *entries)


def _advice(item: Advice) -> Html:
    call = tag("code", f"table.{_VERBS.get(item.service, 'maintain()')}")
    reason = tag("p", item.reason[:1].upper() + item.reason[1:] + ".")
    return tag("div", badge(item.service, "warm"), reason, call, class_="advice")


def timeline(survey: Survey) -> Html:
    """Draw the timeline, by time and in order."""
    table = survey.table
    instants = table.timeline.instants

    def draw(*, by_order: bool) -> Html:
        return timeline_picture(
            instants,
            survey.operations,
            merge_on_read=table.config.is_merge_on_read,
            with_ends=table.timeline.completes_in_names,
            by_order=by_order,
        )

    if not instants:
        return section("Timeline", draw(by_order=False))
    views = tag("div", _view("time", chosen=True), _view("order", chosen=False), class_="views")
    pictures = [
        tag("div", draw(by_order=False), class_="by-time"),
        tag("div", draw(by_order=True), class_="by-order"),
    ]
    remark = (
        f"{len(instants):,} instants of the active timeline. Rings with a broken line are pending."
    )
    if len(table.timeline.commits) > COMMITS_MOST:
        remark += (
            f" What the newest {COMMITS_MOST:,} commits did was read; older ones go by their name."
        )
    return tag("section", views, tag("h2", "Timeline"), *pictures, note(remark))


def _view(by: str, *, chosen: bool) -> Html:
    button = tag("input", type="radio", name="view", id=f"by-{by}", checked="" if chosen else None)
    return tag("label", button, f"by {by}")


def storage(survey: Survey) -> Html:
    """Draw partitions and file groups by size, with histograms of file sizes."""
    slices = survey.slices
    if not slices:
        return section("Partitions and file groups", note("No file groups yet."))
    places = places_of(slices)
    empty = len(survey.partitions) - len(places)
    parts: list[object] = [
        style.key(
            (style.BASE, "base file"), (style.LOG, "log files"), (style.REST, "many small ones")
        ),
        storage_picture(places, survey.waiting),
    ]
    if survey.waiting:
        parts.append(note("File groups with a broken edge wait for a planned service."))
    parts.append(tag("div", *_classes(slices), class_="two"))
    parts.append(_partitions(places))
    if empty > 0:
        parts.append(note(f"{count_text(empty, 'partition')} without files that a snapshot reads"))
    return section("Partitions and file groups", *parts)


def _classes(slices: Sequence[FileSlice]) -> Iterator[Html]:
    bases = [slice_.base.size for slice_ in slices if slice_.base is not None]
    sizes = [sum(size >= bound for bound in _SIZES) for size in bases]
    counts = [sizes.count(number) for number in range(len(_SIZE_NAMES))]
    bars = charts.histogram(_SIZE_NAMES, counts, style.BASE, "base files")
    yield tag("div", tag("h3", "Base files by size"), bars)
    shares = [sum(log_share(slice_) > bound for bound in _SHARES) for slice_ in slices]
    counts = [shares.count(number) for number in range(len(_SHARE_NAMES))]
    bars = charts.histogram(_SHARE_NAMES, counts, style.LOG, "file groups")
    yield tag("div", tag("h3", "File groups by bytes of logs to those of the base file"), bars)


def log_share(slice_: FileSlice) -> float:
    """Return log bytes divided by base file bytes; infinity without a base file."""
    logs = sum(log.size for log in slice_.logs)
    if slice_.base is None or not slice_.base.size:
        return float("inf") if logs else 0
    return logs / slice_.base.size


def _partitions(places: Sequence[Place]) -> Html:
    largest = max((place.size for place in places), default=0) or 1
    rows = [
        (
            tag("code", partition_name(place.name)),
            len(place.slices),
            sum(len(slice_.logs) for slice_ in place.slices),
            (join([_bar(place.size / largest, style.BASE), size_text(place.size)]), place.size),
            (_log_bar(place), place.log_bytes / place.size if place.size else 0),
        )
        for place in places[:_PARTITIONS_MOST]
    ]
    names = ("partition", "file groups", "log files", "size", "log share")
    result = grid(names, rows, numbers=(1, 2), sortable=True)
    if len(places) <= _PARTITIONS_MOST:
        return result
    return join([result, note(f"the {_PARTITIONS_MOST} largest of {len(places):,} partitions")])


def _log_bar(place: Place) -> Html:
    share = place.log_bytes / place.size if place.size else 0
    return join([_bar(share, style.LOG), f"{100 * share:.0f} %"])


def _bar(share: float, color: str) -> Html:
    inner = tag("i", style=f"width:{100 * share:.1f}%;background:{color}")
    return tag("span", inner, class_="share")


def indexes(survey: Survey) -> Html:
    """Return the metadata table's partitions and their states."""
    parts: list[object] = []
    if survey.index:
        parts.append(tag("p", "Writers find keys by ", badge(survey.index), class_="note"))
    if not survey.indexes:
        parts.append(note("There is no metadata table: files are listed on storage."))
        return section("Indexes and metadata table", *parts)
    rows = [
        (
            tag("code", facts.name),
            _state(facts),
            facts.files,
            facts.log_files,
            (size_text(facts.bytes), facts.bytes),
            _definition(facts),
        )
        for facts in survey.indexes
    ]
    names = ("partition", "state", "files", "of them logs", "size", "over")
    table = grid(names, rows, numbers=(2, 3, 4), sortable=True)
    return section("Indexes and metadata table", *parts, table)


def _state(facts: IndexFacts) -> Html:
    class_ = {"ready": "good", "being made": "warm"}.get(facts.state)
    return badge(facts.state, class_) if class_ else tag("span", facts.state, class_="problem")


def _definition(facts: IndexFacts) -> str:
    definition = facts.definition
    if definition is None:
        return ""
    over = names_text(definition.columns, _COLUMNS_MOST)
    is_plain = definition.function in ("", "identity", definition.kind)
    return over if is_plain else f"{definition.function}({over})"


def history(survey: Survey) -> Html:
    """Return the newest instants and what they did."""
    table, rows_of_history = survey.table, survey.history
    if rows_of_history is None or not rows_of_history.num_rows:
        return section("Recent history", note("No instants yet."))
    kinds = {
        (instant.requested, instant.action): kind_of(
            instant,
            survey.operations.get(instant.requested),
            merge_on_read=table.config.is_merge_on_read,
        )
        for instant in table.timeline.instants
    }
    rows = []
    for row in rows_of_history.to_pylist():
        work = kinds.get((row["instant"], row["action"]), row["action"])
        color = style.ACTION_COLORS.get(work, "#888")
        dot = tag("i", style=f"background:{color}")
        pending = [] if row["state"] == "COMPLETED" else [badge(row["state"].lower(), "warm")]
        counts = [row[f"rows_{done}"] for done in ("inserted", "updated", "deleted")]
        size = row["bytes"]
        rows.append(
            (
                (instant_text(row["instant"]), row["instant"]),
                join([tag("span", dot, work, class_="key"), *pending]),
                row["operation"] or "",
                *("" if count is None else count for count in (*counts, row["files"])),
                "" if size is None else (size_text(size), size),
                _note(row),
            )
        )
    names = ("instant", "did", "operation", "inserted", "updated", "deleted", "files", "bytes", "")
    grid_ = grid(names, rows, numbers=(3, 4, 5, 6, 7), sortable=True)
    return section("Recent history", grid_)


def _note(row: dict[str, object]) -> object:
    """Return what was rolled back, or the extra metadata of the commit."""
    rolled_back, metadata = row["rolled_back"], row["metadata"]
    if isinstance(rolled_back, list) and rolled_back:
        return value_text(f"took back {', '.join(map(str, rolled_back))}")
    if isinstance(metadata, list):
        return value_text("; ".join(f"{name}: {value}" for name, value in metadata))
    return ""
