"""Engines that are too large for each test run: `make test-engines` has them."""

from __future__ import annotations

from importlib.util import find_spec

ENGINES = ("ray", "dask", "daft", "datafusion")

collect_ignore_glob = [] if all(map(find_spec, ENGINES)) else ["test_*.py"]
