"""`Storage` over HDFS: every call, as over a local folder, and what only HDFS has."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.errors import ConfigError, StorageError
from pyhudi.storage.storage import Storage
from tests.cloud.conftest import HdfsFolder
from tests.cloud.test_storage import parquet
from tests.helpers.core_files import write_base_file


def test_files_come_and_go(hdfs: HdfsFolder) -> None:
    storage = hdfs.storage()
    assert storage.read_or_none("a") is None
    assert storage.head("a") is None
    assert not storage.delete("a")
    with pytest.raises(FileNotFoundError, match=r"hdfs://.*/table/a"):
        storage.read("a")
    assert storage.put_if_absent("folder/a", b"one")
    assert not storage.put_if_absent("folder/a", b"two")
    assert storage.read("folder/a") == b"one"
    first = storage.head("folder/a")
    storage.put("folder/a", b"three")
    assert storage.read("folder/a") == b"three"
    found = storage.head("folder/a")
    assert first is not None
    assert found is not None
    assert (found.path, found.size) == ("folder/a", 5)
    assert found.modified_ms >= first.modified_ms > 1_700_000_000_000
    assert storage.set_modified("folder/a", 1_600_000_000_123)
    assert storage.head("folder/a") == found._replace(modified_ms=1_600_000_000_123)
    storage.put("empty", b"")
    assert storage.read("empty") == b""
    assert storage.head("folder") is None
    with pytest.raises(FileNotFoundError):
        storage.read("folder/a/below")
    assert storage.delete("folder/a")
    assert storage.delete("empty")
    assert storage.list("") == []


def test_listing(hdfs: HdfsFolder) -> None:
    storage = hdfs.storage()
    names = [f"many/{number:02}" for number in range(13)]
    for name in ("b/c/d", "b/a", "bb", *names):
        storage.put(name, name.encode())
    hdfs.storage("table2").put("b/x", b"not of this table")
    assert [(one.path, one.size) for one in storage.list("b")] == [("b/a", 3), ("b/c/d", 5)]
    assert [one.path for one in storage.list("")] == ["b/a", "b/c/d", "bb", *names]
    folders, files = storage.list_dir("b")
    assert folders == ["b/c"]
    assert [one.path for one in files] == ["b/a"]
    assert [one.path for one in storage.list_dir("many")[1]] == names
    nothing: tuple[list[str], list[object]] = ([], [])
    assert storage.list_dir("missing") == nothing
    assert storage.list_dir("bb") == nothing
    assert storage.list_dir("bb/below") == nothing
    storage.delete_dir("b")
    storage.delete_dir("b")
    assert storage.list("bb") == []
    assert storage.list_dir()[0] == ["many"]
    assert [one.path for one in storage.list("")] == ["bb", *names]


@pytest.mark.parametrize(
    "name",
    [
        "city=a%2Fb/x#1~y.parquet",
        "p=1+2 3/a&b=c;d",
        "lisbôn/大阪 <b> \"'",
        "%20/ab,c@d(e)[f]{g}|h^i`j\\k*l?m$n!",
        "x=.y/..z",
    ],
)
def test_names_are_kept_character_for_character(hdfs: HdfsFolder, name: str) -> None:
    storage = hdfs.storage("a table %41")
    assert storage.put_if_absent(name, b"1")
    assert storage.read(name) == b"1"
    assert [one.path for one in storage.list()] == [name]
    folder = name.split("/", maxsplit=1)[0]
    assert storage.list_dir()[0] == [folder]
    storage.delete_dir(folder)
    assert storage.list() == []


def test_put_refuses_names_hdfs_does_not_allow(hdfs: HdfsFolder) -> None:
    with pytest.raises(pyhudi.UnsupportedTableFeature, match="a name with : in HDFS"):
        hdfs.storage().put("t=10:30/a", b"")


def test_put_if_absent_raced_has_one_winner_whose_bytes_stay(hdfs: HdfsFolder) -> None:
    storages = [hdfs.storage() for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        for turn in range(4):
            path = f".hoodie/timeline/{turn}.commit"
            tries = [
                pool.submit(storage.put_if_absent, path, bytes([number]) * 20_000)
                for number, storage in enumerate(storages)
            ]
            won = [one.result() for one in tries]
            assert sum(won) == 1
            assert storages[0].read(path) == bytes([won.index(True)]) * 20_000
    assert len(storages[0].list()) == 4  # and no staged copy


def test_replace_succeeds_for_one_of_many_writers(hdfs: HdfsFolder) -> None:
    hdfs.storage().put("counter", b"0 start")
    done = [0] * 4

    def count(number: int) -> None:
        storage = hdfs.storage()
        while done[number] < 5:
            found = storage.read_version("counter")
            assert found is not None
            value = int(found[0].split()[0])
            new = f"{value + 1} of {number} {done[number]}".encode()
            done[number] += storage.replace_version("counter", new, found[1]) is not None

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, range(4)))
    assert hdfs.storage().read("counter").startswith(b"20 ")
    assert [one.path for one in hdfs.storage().list()] == ["counter"]
    assert hdfs.storage().replace_version("counter", b"none was", None) is None


def test_put_shows_whole_file_to_readers(hdfs: HdfsFolder) -> None:
    storage, other = hdfs.storage(), hdfs.storage()
    sizes = (3 << 20, 5 << 20)  # in one block, and in two
    storage.put("a", b"\0" * sizes[0])
    ended = threading.Event()

    def write() -> None:
        for turn in range(6):
            storage.put("a", bytes([turn]) * sizes[turn % 2])
        ended.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not ended.is_set():
        seen = other.read("a")
        assert len(seen) in sizes
        assert seen.count(seen[:1]) == len(seen)
    writer.join()


@pytest.mark.parametrize("rows", [10, 1_100_000])
def test_streams_of_any_size_are_written_and_read(hdfs: HdfsFolder, rows: int) -> None:
    storage = hdfs.storage()
    written = parquet(storage, "p/file.parquet", rows)
    data = storage.read("p/file.parquet")
    assert pyarrow.parquet.read_table(io.BytesIO(data)).equals(written)
    reader, _ = _native.read_slice(
        storage.native, base="p/file.parquet", logs=[], schema=written.schema, columns=["b"],
        merge_mode="COMMIT_TIME_ORDERING", ordering_fields=(),
    )  # fmt: skip
    assert reader.read_all()["b"].combine_chunks().equals(written["b"].combine_chunks())
    found = storage.head("p/file.parquet")
    assert found is not None
    assert found.size == len(data)


def test_stream_never_replaces_existing_file(hdfs: HdfsFolder) -> None:
    storage = hdfs.storage()
    storage.put("p/file.parquet", b"first")
    with pytest.raises(FileExistsError, match=r"p/file\.parquet"):
        parquet(storage, "p/file.parquet", 10)
    assert storage.read("p/file.parquet") == b"first"


def test_stream_leaves_nothing_on_failure(hdfs: HdfsFolder) -> None:
    storage = hdfs.storage()
    table = pa.table({"a": np.random.default_rng(1).integers(0, 1 << 62, 900_000)})

    def batches() -> pa.RecordBatchReader:
        def some() -> Iterator[pa.RecordBatch]:
            yield from table.to_batches()
            raise ValueError("no more rows")

        return pa.RecordBatchReader.from_batches(table.schema, some())

    schema = _native.avro_schema(table.schema, "r", "n")
    with pytest.raises(Exception, match="no more rows"):
        write_base_file(
            storage.native, "p/f.parquet", batches(), avro_schema=schema, key_column=None
        )
    assert storage.list() == []


BEGIN = """
import sys, threading
import numpy as np, pyarrow as pa
from pyhudi import _native
from pyhudi.storage.storage import Storage
from tests.helpers.core_files import write_base_file

schema = pa.schema([("a", pa.int64())])

def batches():
    for turn in range(8):
        noise = np.random.default_rng(turn).integers(0, 1 << 62, 1 << 18)
        yield pa.record_batch([noise], schema=schema)
    print("begun", flush=True)
    threading.Event().wait()

rows = pa.RecordBatchReader.from_batches(schema, batches())
write_base_file(
    Storage(sys.argv[1]).native, "p/f.parquet", rows, key_column=None, codec="uncompressed",
    avro_schema=_native.avro_schema(schema, "r", "n"), row_group_bytes=1 << 20,
)
"""


def test_delete_removes_file_a_killed_writer_left_open(hdfs: HdfsFolder) -> None:
    writer = subprocess.Popen([sys.executable, "-c", BEGIN, hdfs.uri()], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"begun\n"
    storage = hdfs.storage()
    with pytest.raises(FileExistsError):
        parquet(storage, "p/f.parquet", 10)
    writer.kill()
    writer.communicate()
    assert [one.path for one in storage.list()] == ["p/f.parquet"]
    assert storage.delete("p/f.parquet")
    written = parquet(storage, "p/f.parquet", 10)
    assert pyarrow.parquet.read_table(io.BytesIO(storage.read("p/f.parquet"))).equals(written)


def test_users(hdfs: HdfsFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    ada, bob = hdfs.storage(user="ada"), hdfs.storage(hadoop_user_name="bob")
    ada.put("shared/a", b"1")
    assert bob.read("shared/a") == b"1"
    for call in (
        lambda: bob.put("shared/b", b""),
        lambda: bob.put_if_absent("shared/b", b""),
        lambda: bob.delete("shared/a"),
        lambda: bob.delete_dir("shared"),
        lambda: parquet(bob, "shared/c", 10),
    ):
        with pytest.raises(StorageError, match="Permission denied: user=bob") as caught:
            call()
        assert "\n" not in str(caught.value)
    hdfs.server.tell(f"mode 700 /{hdfs.name}/table/shared")
    for read in (bob.read, bob.head, bob.list_dir):
        with pytest.raises(StorageError, match="Permission denied: user=bob"):
            read("shared/a")
    monkeypatch.setenv("HADOOP_USER_NAME", "bob")
    with pytest.raises(StorageError, match="Permission denied: user=bob"):
        hdfs.storage().read("shared/a")
    monkeypatch.setenv("HADOOP_USER_NAME", "ada")
    assert hdfs.storage().read("shared/a") == b"1"


def test_umask_option_lets_group_write(hdfs: HdfsFolder) -> None:
    hdfs.storage("open", **{"user": "ada", "fs.permissions.umask-mode": "000"}).put("p/a", b"1")
    bob = hdfs.storage("open", user="bob")
    bob.put("p/b", b"2")
    assert len(bob.list()) == 2


def test_name_service_resolves(
    hdfs: HdfsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two name nodes, of which the first is away."""
    host = hdfs.server.url.removeprefix("hdfs://")
    settings = {
        "dfs.nameservices": "lake",
        "dfs.ha.namenodes.lake": "nn1,nn2",
        "dfs.namenode.rpc-address.lake.nn1": "127.0.0.1:9",
        "dfs.namenode.rpc-address.lake.nn2": host,
    }
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in settings.items()
    )
    (tmp_path / "hdfs-site.xml").write_text(f"<configuration>{properties}</configuration>")
    core = "<configuration><property><name>fs.defaultFS</name><value>hdfs://lake</value></property></configuration>"
    (tmp_path / "core-site.xml").write_text(core)
    hdfs.storage().put("a", b"1")
    place = f"{hdfs.name}/table"
    by_option = Storage(f"hdfs://lake/{place}", {"conf_dir": str(tmp_path)})
    assert by_option.read("a") == b"1"
    with pytest.raises(StorageError, match="HADOOP_CONF_DIR"):
        Storage(f"hdfs://lake/{place}", {"max_retries": "0"}).read("a")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    for uri in (f"hdfs://lake/{place}", f"hdfs:///{place}", f"hdfs:/{place}"):
        storage = Storage(uri)
        assert storage.read("a") == b"1"
        assert storage.below("b").native.uri == f"{storage.native.uri}/b"


def test_connect_fails_for_missing_name_node(hdfs: HdfsFolder) -> None:
    nobody = Storage("hdfs://127.0.0.1:9/t", {"max_retries": "0"})
    for call in (nobody.read, nobody.delete, nobody.list_dir):
        with pytest.raises(StorageError, match=r"hdfs://127\.0\.0\.1:9/t.*refused"):
            call("a")
    # Waited for no longer than a name node that may have been named wrongly is.
    with pytest.raises(StorageError, match=r"hdfs://127\.0\.0\.1:9/t"):
        pyhudi.open_table("hdfs://127.0.0.1:9/t")


def test_connect_waits_for_restarting_name_node(hdfs: HdfsFolder) -> None:
    storage = hdfs.storage()
    storage.put("a", b"1")
    hdfs.server.tell("stop")
    hdfs.server.tell("start", wait=False)
    assert storage.read("a") == b"1"
    assert storage.put_if_absent("b", b"2")
    assert storage.delete("a")
    assert [one.path for one in storage.list()] == ["b"]
    hdfs.server.tell("mode 777 /")  # once it has started


def test_options_of_no_use_are_named(hdfs: HdfsFolder) -> None:
    with pytest.raises(ConfigError, match="whole number"):
        hdfs.storage(max_retries="many").native  # noqa: B018
    with pytest.raises(ConfigError, match="octal"):
        hdfs.storage(**{"fs.permissions.umask-mode": "9"}).native  # noqa: B018
    with pytest.raises(ConfigError, match="is unknown") as caught:
        hdfs.storage(hadoop_user_nam="ada")
    assert "hadoop_user_name" in str(caught.value)
    with pytest.raises(ConfigError, match="names a user"):
        Storage("hdfs://ada@host:1/t").native  # noqa: B018


READ = """
import pickle, sys
storage = pickle.loads(bytes.fromhex(sys.argv[1]))
sys.stdout.write(storage.read("a").decode())
"""


def test_pickled_storage_reads_on_in_another_process(hdfs: HdfsFolder) -> None:
    hdfs.storage().put("a", b"content")
    done = subprocess.run(
        [sys.executable, "-c", READ, pickle.dumps(hdfs.storage(user="ada")).hex()],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "content"


def test_fork_raises_in_child_and_parent_continues(hdfs: HdfsFolder) -> None:
    storage = hdfs.storage()
    storage.put("a", b"1")
    inherited = storage.native
    child = os.fork()
    if child == 0:
        try:
            good = is_refused(lambda: storage.read("a")) and is_refused(lambda: inherited.read("a"))
            del inherited
            os._exit(0 if good else 1)
        except BaseException:  # noqa: BLE001 - the child must not go on as pytest
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert storage.read("a") == b"1"


def is_refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except pyhudi.UnsupportedTableFeature:
        return True
    return False
