"""dbt itself has an environment of its own: `make test-dbt`."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("dbt") else ["test_*.py"]
