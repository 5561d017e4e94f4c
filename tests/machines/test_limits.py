"""Processes at the limits of the system: files, file sizes, disk space, threads, address space.

Each step of such a process ends with its result or with a typed error, and the table stays whole:
`limited_process.py` has the steps. Only a process without memory may end within a step.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from tests.machines.limited_process import COUNT, rows_of

pytestmark = pytest.mark.slow

PIDS = Path("/sys/fs/cgroup/pids")


def make(base: Path) -> str:
    """A table whose rows are in base files, and half of them in log files, too."""
    table = pyhudi.create_table(
        base, rows_of(range(COUNT), 0), key="id", partition_by="p", type="mor"
    )
    table.upsert(rows_of(range(COUNT // 2), 0))
    return str(base)


def run(
    uri: str, **limits: int | str
) -> tuple[list[dict[str, Any]], subprocess.CompletedProcess[str]]:
    """The steps of a process under limits."""
    command = [sys.executable, "-m", "tests.machines.limited_process", uri, json.dumps(limits)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()], done


def judge(uri: str, steps: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Asserts that results are right, and that the table has what the process was told it has."""
    by_name = {one["step"]: one for one in steps}
    for name in ("scan", "count"):
        assert by_name.get(name, {}).get("result", COUNT) == COUNT, by_name[name]
    table = pyhudi.open_table(uri)
    table.upsert(rows_of(range(1), 7))
    assert not table.check(deep=True).findings
    rows = table.scan().to_arrow().to_pylist()
    values = {row["id"]: row["v"] for row in rows}
    assert len(values) == len(rows)
    written = COUNT // 2 - 1
    updated = sum(value == 1 for value in values.values())
    is_updated = "result" in by_name.get("upsert", {})
    assert updated == written if is_updated else updated in (0, written), by_name
    added = len(rows) - COUNT
    assert added == 10 if "result" in by_name.get("new", {}) else added in (0, 10), by_name
    return by_name


def judge_typed(uri: str, steps: list[dict[str, Any]], done: Any, error: str) -> None:
    """Asserts that all steps ended as results or errors, and that some error says the cause."""
    assert done.returncode == 0, done.stderr
    assert "panicked" not in done.stderr
    by_name = judge(uri, steps)
    assert len(by_name) == 7, by_name
    texts = [one["text"] for one in steps if "error" in one]
    assert any(error in text for text in texts) or not error, texts


@pytest.mark.parametrize("files", [16, 32, 64])
def test_few_open_files_are_enough(files: int, tmp_path: Path) -> None:
    uri = make(tmp_path / "t")
    judge_typed(uri, *run(uri, RLIMIT_NOFILE=files), "")


@pytest.mark.parametrize("size", [10_000, 100_000])
def test_file_size_limit_is_typed_error(size: int, tmp_path: Path) -> None:
    uri = make(tmp_path / "t")
    judge_typed(uri, *run(uri, RLIMIT_FSIZE=size), "ulimit -f")


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("kib", [8, 100, 400])
def test_full_disk_is_typed_error(kib: int, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "32m"):
        uri = make(tmp_path / "disk" / "t")
        status = os.statvfs(uri)
        filler = tmp_path / "disk" / "filler"
        filler.write_bytes(bytes(status.f_bavail * status.f_frsize - kib * 1024))
        steps, done = run(uri)
        filler.unlink()
        judge_typed(uri, steps, done, "No space left")


@pytest.mark.parametrize("threads", [1, 2, 4, 8])
def test_threads_limit_is_typed_error(threads: int, tmp_path: Path) -> None:
    """A control group: RLIMIT_NPROC does not hold for root."""
    group = PIDS / f"pyhudi-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("only root can make a control group")
    try:
        # The process begins with the threads that importing pyarrow starts.
        (group / "pids.max").write_text(str(threads))
        uri = make(tmp_path / "t")
        judge_typed(uri, *run(uri, CGROUP=str(group)), "")
    finally:
        group.rmdir()


@pytest.mark.parametrize("mib", [60, 120, 200, 300])
def test_little_address_space_harms_no_table(mib: int, tmp_path: Path) -> None:
    """An allocation of Rust that fails ends the process, as one of C++ may; it says so.

    What the process was told before is in the table, and the next writer cleans up.
    """
    uri = make(tmp_path / "t")
    steps, done = run(uri, RLIMIT_AS=mib << 20)
    if done.returncode:
        assert done.returncode in (-signal.SIGABRT, -signal.SIGSEGV), done.stderr
        assert "memory allocation of" in done.stderr or "bad_alloc" in done.stderr, done.stderr
    judge(uri, steps)
