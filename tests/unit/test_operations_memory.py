"""Operations on data larger than the memory limit stay within it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.admin.check_keys import SliceKeys, keys_parts
from pyhudi.api.table import HudiTable
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.memory_pool import low_memory_mode
from tests.unit.test_write_memory import MIB, TABLE, stream

ROWS, WIDTH = 40_000, 1000
LIMIT = 8 * MIB
MARGIN = 104
"""MiB; how-reads-work.md allows 128 for larger data. Tables in memory take three times as much."""
VERB = """
import sys
import pyarrow.compute, pyarrow.dataset
import pyhudi
from pathlib import Path
from pyhudi.engine.local import LocalEngine
from tests.unit.test_write_memory import MIB, stream

def memory(name):
    # Not `getrusage`: there a child starts with the peak of the process that started it.
    status = Path("/proc/self/status").read_text()
    return int(status.split(name + ":")[1].split()[0]) >> 10


def drained(lazy):
    return sum(batch.num_rows for batch in lazy.to_reader())


base, verb, rows, width, limit = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
table = pyhudi.open_table(base, engine=LocalEngine(2))
before = memory("VmRSS")
if verb == "merge":
    merge = table.merge(stream(rows // 2, rows, 9, width), memory_limit=limit)
    result = merge.when_matched_update_all().when_not_matched_insert_all().execute()
    count = result.rows_updated + result.rows_inserted
elif verb == "diff":
    times = table.inspect.commits()["requested"].to_pylist()
    count = drained(table.diff(min(times), max(times), memory_limit=limit))
else:
    count = drained(getattr(table, verb)(memory_limit=limit))
print(count, memory("VmHWM") - before)
"""


def peak_of(base: Path, verb: str) -> list[int]:
    """Rows that came or changed, and MiB beyond those of the idle process."""
    arguments = [str(base), verb, str(ROWS), str(WIDTH), str(LIMIT)]
    done = subprocess.run(
        [sys.executable, "-c", VERB, *arguments], capture_output=True, text=True, check=True
    )
    return [int(text) for text in done.stdout.split()]


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 40 MiB, all of whose rows a second commit changed, with its changes beside."""
    folder = tmp_path_factory.mktemp("memory") / "t"
    table: HudiTable = TABLE.make(folder, options={"hoodie.table.cdc.enabled": "true"})
    table.bulk_insert(stream(0, ROWS, 1, WIDTH))
    table.upsert(stream(0, ROWS, 2, WIDTH))
    return folder


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the peak memory")
@pytest.mark.parametrize(
    ("verb", "count"), [("incremental", ROWS), ("diff", ROWS), ("changes", 2 * ROWS)]
)
def test_read_respects_memory_limit(changed: Path, verb: str, count: int) -> None:
    found, peak = peak_of(changed, verb)
    assert found == count
    assert peak < LIMIT // MIB + MARGIN


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the peak memory")
def test_merge_respects_memory_limit(tmp_path: Path) -> None:
    TABLE.make(tmp_path / "t").bulk_insert(stream(0, ROWS, 1, WIDTH))
    found, peak = peak_of(tmp_path / "t", "merge")
    assert found == ROWS
    assert peak < LIMIT // MIB + MARGIN


def test_diff_splits_more_keys_into_more_parts(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t")
    table.bulk_insert(stream(0, 2000, 1, 100))
    tasks = [SliceKeys(task) for task in table.scan(columns=["id"]).tasks]
    few, many = (keys_parts(LocalEngine(2), tasks, memory) for memory in (1 << 40, 1 << 16))
    assert few < many


def test_arrow_allocator_is_restored_after_low_memory_mode() -> None:
    before = pa.default_memory_pool().backend_name
    with low_memory_mode(None):
        assert pa.default_memory_pool().backend_name == before
    with low_memory_mode(MIB):
        with low_memory_mode(MIB):
            assert pa.default_memory_pool().backend_name == "system"
        assert pa.default_memory_pool().backend_name == "system"
    assert pa.default_memory_pool().backend_name == before
