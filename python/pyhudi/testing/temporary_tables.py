"""Tables for one test: in memory where the system has a directory in memory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyhudi import create_table
from pyhudi.testing.table_layout import TableLayout

if TYPE_CHECKING:
    from pyhudi import HudiTable

_MEMORY = Path("/dev/shm")  # noqa: S108 - the file is in a directory of its own
_MIN_FREE = 256 << 20
_SMALL_FILTERS = {"hoodie.index.bloom.num_entries": "64"}
"""Bloom filters for 60,000 keys take most of the time of a small table."""


@contextmanager
def temporary_table(layout_or_data: Any, **arguments: Any) -> Iterator[HudiTable]:
    """Create a table for a `with` block, which removes it.

    Its directory is in `/dev/shm`, which Linux keeps in memory, if 256 MiB are free there;
    otherwise it is among the temporary files. Bloom filters are sized for small tables.

    Args:
        layout_or_data: a `TableLayout`, or rows or a schema as in `create_table`.
        arguments: arguments of `create_table`.

    Yields:
        A handle of the table.

    Raises:
        HudiError: as `create_table`.
    """
    arguments["options"] = {**_SMALL_FILTERS, **arguments.get("options", {})}
    with tempfile.TemporaryDirectory(prefix="pyhudi-testing-", dir=_memory()) as directory:
        uri = Path(directory) / "table"
        if isinstance(layout_or_data, TableLayout):
            yield layout_or_data.create(uri, **arguments)
        else:
            yield create_table(uri, layout_or_data, **arguments)


def _memory() -> Path | None:
    if not (_MEMORY.is_dir() and os.access(_MEMORY, os.W_OK)):
        return None
    return _MEMORY if shutil.disk_usage(_MEMORY).free > _MIN_FREE else None
