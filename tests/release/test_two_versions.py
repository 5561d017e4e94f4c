"""Tables of the last release and of this version, each read and changed by the other.

`make test-last-release` builds the release and sets PYHUDI_RELEASE_PYTHON to an interpreter that
has it. After each step both versions return the rows of a model, and neither finds a fault.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from tests.helpers.pairwise import pairwise
from tests.helpers.rows import by_id
from tests.helpers.table_builder import SMALL
from tests.helpers.written_tables import ROWS, rows
from tests.release.version import Refused, Version

CHECKSUM = b"PYCR"
"""Log blocks with checksums have it: releases before them refuse such log files."""

LAYOUTS: dict[str, dict[str, Any]] = {
    "record index": {"index": "record_index"},
    "simple": {"index": "simple", "partition_by": "city"},
    "bloom": {"index": "bloom", "partition_by": "city"},
    "bucket": {"index": "bucket", "partition_by": "city"},
    "constraints": {"constraints": {"fare": "fare >= 0"}, "partition_by": "city"},
    "generated": {"generated": {"tens": "substring(id, 3, 1)"}, "partition_by": "tens"},
}
FEATURES: dict[str, dict[str, Any]] = {
    "constraints": {"constraints": {"fare": "fare >= 0"}},
    "generated": {"generated": {"tens": "substring(id, 3, 1)"}},
    "merge_rules": {"merge_rules": {"count": "sum", "tags": "append"}},
    "cdc": {"options": {"hoodie.table.cdc.enabled": "true"}},
    "orc": {"options": {"hoodie.table.base.file.format": "ORC"}},
    "two keys": {"key": ["id", "city"], "partition_by": "city"},
    "two ordering columns": {"order_by": ["ts", "fare"]},
    "virtual keys": {"options": {"hoodie.populate.meta.fields": "false"}},
    "no metadata": {"options": {"hoodie.metadata.enable": "false"}},
    "partial updates": {"options": {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}},
}
"""Arguments of `create_table` by a name: a parameter that a release may lack, or a feature."""
WRITTEN_BY_ALL = frozenset({"constraints", "generated"})
"""Parameters whose tables a version that does not know them may change, as Apache Hudi does."""

Model = dict[str, dict[str, Any]]
Change = Callable[[Model], None]
Step = tuple[str, dict[str, Any], Change]


@pytest.fixture(scope="module")
def new() -> Iterator[Version]:
    with Version("this version", sys.executable, Path(pyhudi.__file__).parents[1]) as version:
        yield version


@pytest.fixture(scope="module")
def old() -> Iterator[Version]:
    python = os.environ["PYHUDI_RELEASE_PYTHON"]
    with Version("the release", python) as version:
        assert version.package.is_relative_to(Path(python).parents[1]), version.package
        yield version


@pytest.fixture(scope="module")
def reads_new_logs(old: Version, tmp_path_factory: pytest.TempPathFactory) -> bool:
    """Whether the release writes log blocks with checksums, so that it reads them, too."""
    base = tmp_path_factory.mktemp("probe") / "t"
    old.create(base, rows(range(3), 1), key="id", order_by="ts", type="mor", options=SMALL)
    old.call(base, "upsert", {}, data=rows([1], 2))
    logs = [path for path in base.glob(".*.log.*") if path.is_file()]
    assert logs
    return all(CHECKSUM in path.read_bytes() for path in logs)


def has_checksums(base: Path) -> bool:
    """Return whether log blocks of the table or of its metadata table have checksums."""
    logs = (path for path in base.rglob(".*.log.*") if path.is_file())
    return any(CHECKSUM in path.read_bytes() for path in logs)


# ---------------------------------------------------------------- steps with their model


def upsert(numbers: range, ts: int, columns: Sequence[str] = ROWS.schema.names) -> Step:
    data = rows(numbers, ts).select(list(columns))

    def change(model: Model) -> None:
        for row in data.to_pylist():
            old = model.get(row["id"])
            if old is None or row["ts"] >= old["ts"]:
                model[row["id"]] = row

    return "upsert", {"data": data}, change


def delete(*numbers: int) -> Step:
    keys = [f"k{number:03}" for number in numbers]
    listed = ", ".join(f"'{key}'" for key in keys)

    def change(model: Model) -> None:
        for key in keys:
            model.pop(key, None)

    return "delete", {"where": f"id in ({listed})"}, change


def update(below: int) -> Step:
    def change(model: Model) -> None:
        for row in model.values():
            if row["count"] is not None and row["count"] > -below:
                row["fare"] += 100

    return "update", {"where": f"count > {-below}", "set": {"fare": "fare + 100"}}, change


def service(method: str, **arguments: Any) -> Step:
    return method, arguments, lambda _: None


def services(kind: str, layout: str) -> list[Step]:
    compactions = [service("compact")] if kind == "mor" else []
    clusterings = [service("cluster")] if layout != "bucket" else []
    return [*compactions, *clusterings, service("clean", retain=1)]


# ---------------------------------------------------------------- tests


def options_of(layout: str) -> dict[str, str]:
    """Return the options with which a table of the layout is opened to be changed."""
    index = LAYOUTS[layout].get("index")
    return {**SMALL, **({"hoodie.index.type": index.upper()} if index else {})}


def check(base: Path, model: Model, *versions: Version) -> None:
    expected = sorted(model.values(), key=lambda row: str(row["id"]))
    for version in versions:
        found = version.read(base, columns=ROWS.schema.names)
        assert by_id(found) == expected, version.name
        assert version.check(base) == [], version.name


CASES = pairwise((6, 8, 9), ("cow", "mor"), tuple(LAYOUTS), ("old", "new"))


@pytest.mark.parametrize(("number", "kind", "layout", "creator"), CASES)
def test_versions_change_a_table_in_turn(  # noqa: PLR0913, PLR0917 - axes and versions
    number: int,
    kind: str,
    layout: str,
    creator: str,
    tmp_path: Path,
    old: Version,
    new: Version,
    reads_new_logs: bool,
) -> None:
    arguments = LAYOUTS[layout]
    if not {*arguments} <= {*old.parameters("create_table")}:
        pytest.skip(f"the release has no {layout}")
    base, options = tmp_path / "t", options_of(layout)
    first, second = (old, new) if creator == "old" else (new, old)
    data = rows(range(40), 1)
    model = {row["id"]: row for row in data.to_pylist()}
    first.create(
        base, data, key="id", order_by="ts", type=kind, version=number, **arguments, options=SMALL
    )
    turns: list[list[Step]] = [
        [upsert(range(30, 50), 2), delete(3, 10, 45)],
        [upsert(range(20, 35), 3), update(9), *services(kind, layout), upsert(range(5), 4)],
        [upsert(range(2, 12), 5), delete(0, 33), *services(kind, layout)],
        [service("archive", min_commits=2, max_commits=3), upsert(range(40, 60), 6), update(5)],
        [upsert(range(8), 2), delete(50, 51), upsert(range(60, 63), 7)],
    ]
    for turn, steps in enumerate(turns):
        version = (first, second)[turn % 2]
        start = None
        for method, values, change in steps:
            instant = version.call(base, method, options, **values)
            change(model)
            start = start or instant
        if not reads_new_logs and has_checksums(base):
            # The release cannot read these log files, and says so.
            check(base, model, new)
            refuses_or_reads(old, base, model)
            return
        check(base, model, old, new)
        start = completion_time(base, start)
        assert incremental(old, base, start) == incremental(new, base, start)


def completion_time(base: Path, instant: Any) -> str:
    """Return the completion time of an instant, or the instant itself on version 6.

    Versions of pyhudi before 0.2.0 do not take requested times as starts from table version 8 on.
    """
    files = [*(base / ".hoodie" / "timeline").glob(f"{instant}_*")]
    return files[0].stem.split("_")[1] if files else str(instant)


def incremental(version: Version, base: Path, start: Any) -> list[dict[str, Any]] | None:
    """Return the rows since an instant; None if the files that they need are cleaned."""
    try:
        return by_id(version.incremental(base, start=start, columns=["id", "ts", "fare"]))
    except Refused as error:
        if "HistoryUnavailable" not in str(error):
            raise
        return None


def refuses_or_reads(version: Version, base: Path, model: Model) -> bool:
    """Return whether the version reads the table; any error but a `HudiError` fails."""
    try:
        found = version.read(base, columns=list(next(iter(model.values()))))
    except Refused:
        return False
    assert by_id(found) == sorted(model.values(), key=lambda row: str(row["id"]))
    return True


@pytest.mark.parametrize(("feature", "kind"), list(product(FEATURES, ("cow", "mor"))))
def test_features_are_shared_or_refused(  # noqa: PLR0913, PLR0917 - axes and versions
    feature: str, kind: str, tmp_path: Path, old: Version, new: Version, reads_new_logs: bool
) -> None:
    base = tmp_path / "t"
    arguments = {"key": "id", "order_by": "ts", "type": kind, **FEATURES[feature]}
    # No table in ORC has times.
    columns = [name for name in ROWS.schema.names if feature != "orc" or name != "at"]
    new.create(base, rows(range(10), 1).select(columns), **arguments)
    new.call(base, "upsert", {}, data=rows(range(5, 12), 2).select(columns))
    new.call(base, "delete", {}, where="id = 'k003'")
    model = {row["id"]: row for row in new.read(base, columns=columns).to_pylist()}
    is_known = feature not in new.parameters("create_table") or feature in old.parameters(
        "create_table"
    )
    is_shared = is_known and (reads_new_logs or not has_checksums(base))
    assert refuses_or_reads(old, base, model) or not is_shared
    method, values, change = upsert(range(6, 14), 3, columns)
    before = by_id(new.read(base))
    try:
        old.call(base, method, {}, **values)
    except Refused:
        assert not is_shared
        assert by_id(new.read(base)) == before
    else:
        assert is_known or feature in WRITTEN_BY_ALL, f"the release changes rows with {feature}"
        if feature in {"merge_rules", "partial updates"}:
            model = {row["id"]: row for row in new.read(base, columns=columns).to_pylist()}
        else:
            change(model)
            assert refuses_or_reads(new, base, model)
        assert refuses_or_reads(old, base, model) or not is_shared
    assert new.check(base) == []
