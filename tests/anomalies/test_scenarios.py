"""The interleavings show what the committed table of anomalies says."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.anomalies import results
from tests.anomalies.holding_storage import DATA
from tests.anomalies.modes import BUCKETS, DEFAULT, LOCAL_MODES, Mode, steps_in
from tests.anomalies.scenarios import SCENARIOS, Scenario
from tests.anomalies.scripted_run import Place, measure
from tests.helpers.s3.server import S3Server


@pytest.fixture(autouse=True)
def _without_warnings() -> Iterator[None]:
    """Ignore warnings: duplicate keys and late locks are parts of scenarios."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_quick_interleavings_show_committed_results(scenario: Scenario, tmp_path: Path) -> None:
    """The first client has planned, and the second one runs as a whole."""
    outcome = measure(scenario, DEFAULT[0], Place(tmp_path), (DATA,))
    committed = results.load()[str(DEFAULT[0])][scenario.name]
    assert set(outcome.anomalies) == set(committed["possible_at"]) & {DATA}, outcome.anomalies


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("mode", LOCAL_MODES, ids=str)
def test_interleavings_show_committed_results(
    mode: Mode, scenario: Scenario, tmp_path: Path
) -> None:
    outcome = measure(scenario, mode, Place(tmp_path), steps_in(mode))
    assert outcome.summary == results.load()[str(mode)][scenario.name], outcome.anomalies


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A server with a bucket."""
    started = S3Server(tmp_path_factory.mktemp("s3"))
    started.make_bucket("anomalies")
    yield started
    started.close()


@pytest.mark.s3
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("mode", BUCKETS, ids=str)
def test_interleavings_in_bucket_show_committed_results(
    mode: Mode, scenario: Scenario, server: S3Server
) -> None:
    uri = f"s3://anomalies/{mode}/{scenario.name.replace(' ', '-')}"
    place = Place(bucket=uri, storage_options=server.options)
    outcome = measure(scenario, mode, place, steps_in(mode))
    assert outcome.summary == results.load()[str(mode)][scenario.name], outcome.anomalies


def test_results_have_each_scenario_of_each_mode() -> None:
    committed = results.load()
    names = [scenario.name for scenario in SCENARIOS]
    for mode in (*LOCAL_MODES, *BUCKETS):
        assert [*committed[str(mode)]] == names
