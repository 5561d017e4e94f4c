"""What every test can ask for: Apache Hudi as the oracle, and the golden tables."""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyhudi.slices import write_base
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.oracle_pool import (
    OraclePool,
    needs_jvm,
    order,
    release_of,
    without_repeated_pairs,
)
from tests.helpers.parts import chosen_part, in_part
from tests.helpers.tables import GoldenTables

# Spark tests run in environments of their own (`make test-spark`), with the wheel installed. Named
# where there is no PySpark, the folder holds no test, which pytest reports as a failure.
collect_ignore = [] if importlib.util.find_spec("pyspark") else ["spark", "spark_cluster"]
# So do tests of the last release (`make test-last-release`), which need an environment with it.
if "PYHUDI_RELEASE_PYTHON" not in os.environ:
    collect_ignore.append("release")


MEMORY = Path("/dev/shm")
"""A file system in memory, where there is one: tests make some ten thousand small tables."""


def pytest_configure() -> None:
    """Puts `tmp_path` into memory, unless there is little of it or PYTEST_DEBUG_TEMPROOT is set.

    Row groups are kept by rewrites however small they are: most tables of tests have few rows.
    """
    write_base.KEPT_ROWS = write_base.JOINED_ROWS = 1
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks the tests that need Apache Hudi."""
    if needs_jvm(item):
        item.add_marker(pytest.mark.jvm)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Takes those whose turn it is, and starts each release of Apache Hudi once."""
    items[:] = sorted(in_part(without_repeated_pairs(items), chosen_part()), key=order)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how the same tests run again."""
    if chosen_part() is not None:
        part = os.environ["PYHUDI_PART"]
        terminalreporter.write_line(f"of long tests part {part}; the same ones: PYHUDI_PART={part}")


def pytest_collection_finish() -> None:
    """Has the garbage collector leave the ten thousand tests alone, which stay to the end."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """What is frozen when Python ends counts as leaked in some libraries, who say so at length."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def oracle() -> Iterator[OraclePool]:
    """`oracle("1.2.0")` is that release of Apache Hudi. A missing one is an error, not a skip."""
    pool = OraclePool()
    yield pool
    pool.close()


@pytest.fixture
def hudi(request: pytest.FixtureRequest, oracle: OraclePool) -> HudiOracle:
    """Apache Hudi of the release that the test's parameter or its `hudi` marker names."""
    release = getattr(request, "param", None) or release_of(request.node)
    if not release:
        pytest.fail('a test that asks for `hudi` says which: @pytest.mark.hudi("1.2.0")')
    return oracle(release)


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> GoldenTables:
    """The tables that Apache Hudi wrote; `golden.unpack(name)` gives a folder to read."""
    return GoldenTables(tmp_path_factory.mktemp("golden"))
