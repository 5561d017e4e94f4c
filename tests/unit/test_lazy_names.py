"""Names of the packages that are imported on first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pyhudi
from pyhudi import catalog, testing


def test_lazy_names_are_listed_and_load() -> None:
    for package in (pyhudi, catalog, testing):
        assert set(package.__all__) <= set(dir(package))
        assert all(getattr(package, name) is not None for name in package.__all__)


def test_lazy_names_name_the_package_of_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match=r"module 'pyhudi\.catalog' has no attribute 'nope'"):
        _ = catalog.nope


def test_lazy_names_are_not_loaded_by_import() -> None:
    # The interpreter may have imported typing for its site packages.
    code = "import sys; sys.modules.pop('typing', None); import pyhudi; print(*sys.modules)"
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert not {"pyhudi.api", "pyarrow", "typing"} & set(output.stdout.split())
