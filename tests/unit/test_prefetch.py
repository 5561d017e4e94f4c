"""Prefetched storage answers: used once, only in the block's thread, never after it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyhudi.storage import storage as module
from pyhudi.storage.storage import Storage


class Slow(Storage):
    """A storage that records its requests and their threads."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.reads: list[str] = []
        """Names of the threads."""

    @property
    def native(self) -> object:  # type: ignore[override]
        self.reads.append(threading.current_thread().name)
        return super().native


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slow:
    monkeypatch.setattr(module, "is_remote", lambda _uri: True)
    found = Slow(str(tmp_path))
    for name in ("a", "b", "folder/c"):
        found.put(name, name.encode())
    found.reads.clear()
    return found


def test_first_read_takes_prefetched_answer_and_next_reads_again(storage: Slow) -> None:
    own = threading.current_thread().name
    with storage.prefetch(files=["a"], folders=["folder"], trees=[""]):
        assert storage.read("a") == b"a"
        assert [file.path for file in storage.list_dir("folder")[1]] == ["folder/c"]
        assert [file.path for file in storage.list("")] == ["a", "b", "folder/c"]
        assert own not in storage.reads
        storage.put("a", b"new")
        storage.reads.clear()
        assert storage.read("a") == b"new"
        assert storage.reads == [own]


def test_prefetch_ends_with_block(storage: Slow) -> None:
    with storage.prefetch(files=["a"]):
        pass
    storage.put("a", b"new")
    assert storage.read("a") == b"new"


def test_nested_prefetch_does_not_repeat_requests(storage: Slow) -> None:
    with storage.prefetch(files=["a"], folders=["folder", "other"]):
        with storage.prefetch(files=["a", "b"]):
            assert (storage.read("a"), storage.read("b")) == (b"a", b"b")
        assert [len(files) for _, files in storage.list_dirs(["folder", "other"])] == [1, 0]
    assert len(storage.reads) == 4


def test_prefetch_is_local_to_thread_and_storage(storage: Slow) -> None:
    storage.put("a", b"a")
    with storage.prefetch(files=["a"], folders=["folder"]), ThreadPoolExecutor(1) as pool:
        storage.put("a", b"new")
        assert pool.submit(storage.read, "a").result() == b"new"
        assert [file.path for file in storage.below("folder").list_dir()[1]] == ["c"]


def test_prefetch_failure_raises_at_read(storage: Slow) -> None:
    with storage.prefetch(files=["missing", "missing too"]):
        assert storage.read_or_none("missing") is None
        with pytest.raises(FileNotFoundError):
            storage.read("missing too")
    with storage.prefetch(files=["missing"]):
        pass


def test_concurrent_steps_all_run_before_failure_raises(storage: Slow) -> None:
    taken = []

    def fail() -> None:
        raise ValueError("a step")

    with pytest.raises(ValueError, match="a step"):
        storage.run_concurrently(lambda: taken.append(1), fail, lambda: taken.append(2))
    assert sorted(taken) == [1, 2]
    storage.run_concurrently(lambda: taken.append(3))
    storage.run_concurrently()
    assert sorted(taken) == [1, 2, 3]


def test_slow_consumer_of_listings_keeps_no_block_open(storage: Slow) -> None:
    with storage.prefetch(files=["a"]):
        listings = storage.list_dirs(["folder", "other"])
        assert len(next(listings)[1]) == 1
    storage.put("a", b"new")
    assert next(listings) == ([], [])
    assert next(listings, None) is None
    assert storage.read("a") == b"new"
