"""`Storage` over a local folder: every call, pickling, and a fork."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from pathlib import Path

import pytest

from pyhudi.storage.storage import Entry, Storage


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(str(tmp_path))


def test_forked_child_blocks_no_writer(storage: Storage) -> None:
    """A file lock belongs to each process with the open file, such as a child forked under it."""
    swaps, stop = [0], threading.Event()

    def swap() -> None:
        version = None
        while not stop.is_set():
            version = storage.replace_version("x.json", str(swaps[0]).encode(), version)
            swaps[0] += 1

    thread = threading.Thread(target=swap, daemon=True)
    thread.start()
    children = []
    try:
        for _ in range(40):
            child = os.fork()
            if child == 0:
                time.sleep(60)
                os._exit(0)
            children.append(child)
            before, until = swaps[0], time.monotonic() + 20
            while swaps[0] <= before + 1:
                assert time.monotonic() < until, f"held up by the child {len(children)}"
                time.sleep(0.001)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        stop.set()
        thread.join()


def test_first_version_does_not_replace_concurrent_file(storage: Storage) -> None:
    """As Hudi does its lock file, without a lock manager."""
    turns, meet = 300, threading.Barrier(2, timeout=60)
    path = Path(storage.uri) / "lock"
    created = []

    def other() -> None:
        for _ in range(turns):
            meet.wait()
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL))
                created.append(True)
            except FileExistsError:
                created.append(False)
            meet.wait()

    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    ours = []
    for turn in range(turns):
        path.unlink(missing_ok=True)
        meet.wait()
        ours.append(storage.replace_version("lock", b"%d" % turn, None) is not None)
        meet.wait()
    thread.join()
    assert [a for a, b in zip(created, ours, strict=True) if a == b] == []


def test_missing_file(storage: Storage) -> None:
    assert storage.read_or_none("a") is None
    assert storage.head("a") is None
    assert not storage.exists("a")
    assert not storage.delete("a")
    with pytest.raises(FileNotFoundError):
        storage.read("a")


def test_put_replaces_and_put_if_absent_does_not(storage: Storage) -> None:
    assert storage.put_if_absent("folder/a", b"one")
    assert not storage.put_if_absent("folder/a", b"two")
    assert storage.read("folder/a") == b"one"
    storage.put("folder/a", b"three")
    assert storage.read("folder/a") == b"three"


def test_listing(storage: Storage) -> None:
    storage.put("b/c/d", b"12")
    storage.put("b/a", b"1")
    storage.put("z", b"")
    assert [entry.path for entry in storage.list("b")] == ["b/a", "b/c/d"]
    folders, files = storage.list_dir("b")
    assert folders == ["b/c"]
    assert [(entry.path, entry.name, entry.size) for entry in files] == [("b/a", "a", 1)]
    assert storage.list_dir("missing") == ([], [])


def test_head_returns_size_and_modification_time(storage: Storage, tmp_path: Path) -> None:
    storage.put("a", b"12345")
    os.utime(tmp_path / "a", ns=(0, 1_700_000_000_123_000_000))
    assert storage.head("a") == Entry("a", 5, 1_700_000_000_123)


def test_delete_dir_removes_everything_below(storage: Storage) -> None:
    storage.put("b/c/d", b"12")
    storage.delete_dir("b")
    storage.delete_dir("b")
    assert storage.list("") == []


def test_pickled_storage_reads_on(storage: Storage) -> None:
    storage.put("a", b"1")
    copy = pickle.loads(pickle.dumps(storage))  # noqa: S301
    assert copy.read("a") == b"1"


def test_native_store_belongs_to_one_process(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = storage.native
    assert storage.native is first
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert storage.native is not first
