"""Long random histories that pyhudi and Apache Hudi write in turn on one table, beside a model.

`make test-differential-long` takes many steps; see `tests/helpers/history.py`, for those with table
services of both `tests/helpers/served_history.py`, and for those that change the table and whose
writers die `tests/helpers/changed_history.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.changed_history import ChangedHistory
from tests.helpers.differential import Setting
from tests.helpers.history import RELEASES, SECONDS, History
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.pairwise import each_value
from tests.helpers.served_history import ServedHistory

INDEXES = ("SIMPLE", "GLOBAL_SIMPLE", "BLOOM", "GLOBAL_BLOOM", "BUCKET")

SETTINGS = [
    Setting(*case)
    for case in each_value(
        [*RELEASES],
        ("cow", "mor"),
        (*INDEXES, "RECORD_INDEX"),
        (False, True),
        allowed=lambda _version, _kind, index, metadata: metadata or index in INDEXES,
    )
]

SERVED = [
    Setting(version, kind, index, metadata=True, served=True)
    for version, kind, index in each_value(
        [*RELEASES], ("mor", "cow"), ("RECORD_INDEX", "SIMPLE", "BUCKET")
    )
]

CHANGED = [
    (Setting(version, kind, index, metadata=True, served=True), release)
    for release, versions in (("1.2.0", (9, 8, 6)), ("1.0.2", (8,)))
    for version, kind, index in each_value(
        versions, ("mor", "cow"), ("SIMPLE", "RECORD_INDEX", "GLOBAL_BLOOM")
    )
]
"""1.2.0 also writes tables of versions that are older than its own."""


@pytest.mark.parametrize(
    ("setting", "hudi"),
    [pytest.param(one, RELEASES[one.version], id=str(one)) for one in SETTINGS],
    indirect=["hudi"],
)
@pytest.mark.timeout(SECONDS)
def test_history_in_turn(tmp_path: Path, hudi: HudiOracle, setting: Setting) -> None:
    History(tmp_path / "t", hudi, setting).run()


@pytest.mark.parametrize(
    ("setting", "hudi"),
    [pytest.param(one, RELEASES[one.version], id=str(one)) for one in SERVED],
    indirect=["hudi"],
)
@pytest.mark.timeout(SECONDS)
def test_history_with_services_of_both(tmp_path: Path, hudi: HudiOracle, setting: Setting) -> None:
    ServedHistory(tmp_path / "t", hudi, setting).run()


@pytest.mark.parametrize(
    ("setting", "hudi"),
    [pytest.param(one, release, id=f"{one}-{release}") for one, release in CHANGED],
    indirect=["hudi"],
)
@pytest.mark.timeout(SECONDS)
def test_history_while_the_table_changes(
    tmp_path: Path, hudi: HudiOracle, setting: Setting
) -> None:
    ChangedHistory(tmp_path / "t", hudi, setting).run()
