"""Engines that are too large for each test run: `make test-engines` has them."""

from __future__ import annotations

from importlib.util import find_spec

PACKAGES = ("ray", "dask", "daft", "datafusion", "s3fs", "gcsfs", "adlfs")

collect_ignore_glob = [] if all(map(find_spec, PACKAGES)) else ["test_*.py"]
