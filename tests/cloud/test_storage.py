"""`Storage` over a bucket: every call, as over a local folder, and what only a bucket has."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.errors import ConfigError, StorageError
from pyhudi.storage.storage import Storage
from tests.cloud.conftest import Bucket
from tests.helpers.core_files import write_base_file


def test_files_come_and_go(bucket: Bucket) -> None:
    storage = bucket.storage()
    assert storage.read_or_none("a") is None
    assert storage.head("a") is None
    assert not storage.delete("a")
    with pytest.raises(FileNotFoundError, match=r"://bucket.*/table/a"):
        storage.read("a")
    assert storage.put_if_absent("folder/a", b"one")
    assert not storage.put_if_absent("folder/a", b"two")
    assert storage.read("folder/a") == b"one"
    storage.put("folder/a", b"three")
    assert storage.read("folder/a") == b"three"
    found = storage.head("folder/a")
    assert found is not None
    assert (found.path, found.size) == ("folder/a", 5)
    assert found.modified_ms > 1_700_000_000_000
    assert not storage.set_modified("folder/a", 1_600_000_000_123)
    assert storage.head("folder/a") == found
    assert storage.head("folder") is None
    assert storage.delete("folder/a")
    assert storage.list("") == []


def test_listing(bucket: Bucket) -> None:
    storage = bucket.storage()
    storage.put("b/c/d", b"12")
    storage.put("b/a", b"")
    storage.put("bb", b"1")
    bucket.storage("table2").put("b/x", b"not of this table")
    assert [(one.path, one.size) for one in storage.list("b")] == [("b/a", 0), ("b/c/d", 2)]
    assert [one.path for one in storage.list("")] == ["b/a", "b/c/d", "bb"]
    folders, files = storage.list_dir("b")
    assert folders == ["b/c"]
    assert [one.path for one in files] == ["b/a"]
    assert storage.list_dir("missing") == ([], [])
    storage.delete_dir("b")
    storage.delete_dir("b")
    assert [one.path for one in storage.list("")] == ["bb"]


NAMES = [
    "city=a%2Fb/x#1~y.parquet",
    "p=1+2 3/a&b=c;d",
    "lisbôn/大阪 <b> \"'",
    "%20/a:b,c@d(e)[f]{g}|h^i`j\\k*l?m$n!",
    "x=.y/..z",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_kept_character_for_character(bucket: Bucket, name: str) -> None:
    storage = bucket.storage("a table %41")
    if bucket.cloud == "azure" and "\\" in name:  # which is a slash there
        with pytest.raises(pyhudi.UnsupportedTableFeature, match="a name with"):
            storage.put_if_absent(name, b"1")
        name = name.replace("\\", "")
    assert storage.put_if_absent(name, b"1")
    assert storage.read(name) == b"1"
    assert [one.path for one in storage.list()] == [name]
    folder = name.split("/", maxsplit=1)[0]
    assert storage.list_dir()[0] == [folder]
    assert [one.path for one in storage.list_dir(folder)[1]] == [name]
    assert bucket.read(f"a table %41/{name}") == b"1"
    storage.delete_dir(folder)
    assert storage.list() == []


def test_put_refuses_names_listings_cannot_return(bucket: Bucket) -> None:
    with pytest.raises(StorageError, match="illegal character"):
        bucket.storage().put("a\x01b", b"")


def test_folders_that_other_writers_marked_are_no_files(bucket: Bucket) -> None:
    storage = bucket.storage()
    bucket.server.mark_folder(bucket.name, "table/.hoodie/empty")
    bucket.server.mark_folder(bucket.name, "table/.hoodie/full")
    storage.put(".hoodie/full/one", b"")
    storage.put(".hoodie/none", b"")
    # In Azure, a folder with nothing in it cannot be told from an empty file.
    lone = [".hoodie/empty"] if bucket.cloud == "azure" else []
    everything = [one.path for one in storage.list("")]
    assert everything == [*lone, ".hoodie/full/one", ".hoodie/none"]
    folders, files = storage.list_dir(".hoodie")
    assert [*lone, *folders] == [".hoodie/empty", ".hoodie/full"]
    assert [one.path for one in files] == [*lone, ".hoodie/none"]
    assert storage.list_dir(".hoodie/empty") == ([], [])
    storage.delete_dir(".hoodie/full")
    storage.delete_dir(".hoodie/empty")
    folders, files = storage.list_dir(".hoodie")
    assert folders == []
    assert [one.path for one in files] == [".hoodie/none"]


def test_put_if_absent_raced_has_one_winner_whose_bytes_stay(bucket: Bucket) -> None:
    storages = [bucket.storage() for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        for turn in range(8):
            path = f".hoodie/timeline/{turn}.commit"
            tries = [
                pool.submit(storage.put_if_absent, path, bytes([number]) * 20_000)
                for number, storage in enumerate(storages)
            ]
            won = [one.result() for one in tries]
            assert sum(won) == 1
            assert storages[0].read(path) == bytes([won.index(True)]) * 20_000


def parquet(storage: Storage, path: str, rows: int) -> pa.Table:
    """Writes a base file through the core's stream, and gives its rows: 24 random bytes each."""
    noise = np.random.default_rng(rows).integers(0, 1 << 62, (3, rows))
    keys = pa.array(noise[0]).cast(pa.string())
    table = pa.table({"_hoodie_record_key": keys, "a": noise[1], "b": noise[2]})
    schema = _native.avro_schema(table.schema, "r", "n")
    write_base_file(
        storage.native, path, table.to_reader(), avro_schema=schema, key_column=None,
        codec="uncompressed",
    )  # fmt: skip
    return table


@pytest.mark.parametrize("rows", [10, 400_000, 1_100_000])
def test_streams_of_any_size_are_written_and_read(bucket: Bucket, rows: int) -> None:
    storage = bucket.storage()
    written = parquet(storage, "p/file.parquet", rows)
    data = bucket.read("table/p/file.parquet")
    assert pyarrow.parquet.read_table(io.BytesIO(data)).equals(written)
    reader, _ = _native.read_slice(
        storage.native, base="p/file.parquet", logs=[], schema=written.schema, columns=["b"],
        merge_mode="COMMIT_TIME_ORDERING", ordering_fields=(),
    )  # fmt: skip
    assert reader.read_all()["b"].combine_chunks().equals(written["b"].combine_chunks())
    found = storage.head("p/file.parquet")
    assert found is not None
    assert found.size == len(data)


@pytest.mark.parametrize("rows", [10, 400_000])
def test_stream_never_replaces_existing_file(bucket: Bucket, rows: int) -> None:
    storage = bucket.storage()
    storage.put("p/file.parquet", b"first")
    with pytest.raises(FileExistsError, match=r"p/file\.parquet"):
        parquet(storage, "p/file.parquet", rows)
    assert storage.read("p/file.parquet") == b"first"


@pytest.mark.parametrize("rows", [10, 900_000])
def test_stream_leaves_nothing_on_failure(bucket: Bucket, rows: int) -> None:
    storage = bucket.storage()
    table = pa.table({"a": np.random.default_rng(1).integers(0, 1 << 62, rows)})

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


def first_number(storage: Storage, path: str) -> int:
    schema = pa.schema({"_hoodie_record_key": pa.string(), "a": pa.int64()})
    reader, _ = _native.read_slice(
        storage.native, base=path, logs=[], schema=schema, columns=["a"],
        merge_mode="COMMIT_TIME_ORDERING", ordering_fields=(),
    )  # fmt: skip
    return int(reader.read_all()["a"][0].as_py())


def write_numbers(storage: Storage, path: str, first: int) -> None:
    numbers = pa.array(range(first, first + 9), pa.int64())
    table = pa.table({"_hoodie_record_key": numbers.cast(pa.string()), "a": numbers})
    schema = _native.avro_schema(table.schema, "r", "n")
    write_base_file(storage.native, path, table, avro_schema=schema, key_column=None)


@pytest.mark.parametrize("recursive", [False, True])
@pytest.mark.parametrize("was_read", [False, True])
def test_read_refetches_file_replaced_by_others_after_listing(
    bucket: Bucket, was_read: bool, recursive: bool
) -> None:
    """As Hudi's writers do, that give a file the name that it had when its writer failed."""
    storage = bucket.storage()
    other = Storage(storage.uri, {**bucket.options, "max_retries": "7"})
    write_numbers(other if was_read else storage, "p/f.parquet", 1)
    assert first_number(storage, "p/f.parquet") == 1
    other.delete("p/f.parquet")
    write_numbers(other, "p/f.parquet", 1001)
    (storage.list if recursive else storage.list_dir)("p")
    assert first_number(storage, "p/f.parquet") == 1001
    other.delete("p/f.parquet")
    (storage.list if recursive else storage.list_dir)("p")
    with pytest.raises(FileNotFoundError):
        first_number(storage, "p/f.parquet")


def test_read_refetches_file_replaced_by_this_process(bucket: Bucket) -> None:
    storage = bucket.storage()
    for first in range(2):
        write_numbers(storage, "p/f.parquet", first)
        assert first_number(bucket.storage(), "p/f.parquet") == first
        if first:
            storage.delete_all(["p/f.parquet"])
        else:
            storage.delete("p/f.parquet")
        with pytest.raises(FileNotFoundError):
            first_number(bucket.storage(), "p/f.parquet")
    storage.put("p/f.parquet", b"PAR1 it is not")
    with pytest.raises(pyhudi.CorruptTable):
        first_number(storage, "p/f.parquet")


def test_another_scheme_is_the_same_place(bucket: Bucket) -> None:
    bucket.storage("t").put("a", b"1")
    scheme = bucket.kind.other_scheme
    same = Storage(bucket.uri("t//", scheme), bucket.options)
    assert same.read("a") == b"1"
    assert same.native.uri == bucket.uri("t", scheme)
    assert same.below("x").native.uri == bucket.uri("t/x", scheme)


def test_wrong_credentials_say_so_and_keep_the_secret(bucket: Bucket) -> None:
    wrong = {**bucket.options, bucket.kind.secret_option: bucket.kind.wrong_secret}
    storage = Storage(bucket.uri("table"), wrong)
    for call in (
        lambda: storage.read("a"),
        lambda: storage.head("a"),
        lambda: storage.list("a"),
        lambda: storage.list_dir("a"),
        lambda: storage.put("a", b""),
        lambda: storage.put_if_absent("a", b""),
        lambda: storage.delete_dir("a"),
        lambda: pyhudi.open_table(bucket.uri("table"), storage_options=wrong),
    ):
        with pytest.raises(StorageError, match=f"{bucket.uri('table')}") as caught:
            call()
        assert bucket.kind.wrong_secret not in f"{caught.value!r} {caught.value}"
        assert "StringToSign" not in str(caught.value)
    shown = f"{storage!r} {storage.options} {vars(storage)} {pickle.loads(pickle.dumps(storage))!r}"
    assert bucket.kind.wrong_secret not in shown


def test_missing_bucket_raises_instead_of_empty_table(bucket: Bucket) -> None:
    uri, options = bucket.uri("t", bucket="there-is-no-such-bucket"), bucket.options
    with pytest.raises(StorageError, match=bucket.kind.missing):
        pyhudi.open_table(uri, storage_options=options)
    with pytest.raises(StorageError, match=bucket.kind.missing):
        pyhudi.create_table(uri, pa.table({"id": ["a"]}), key="id", storage_options=options)
    with pytest.raises(StorageError, match=bucket.kind.missing):
        Storage(uri, options).list_dir("x")
    with pytest.raises(pyhudi.TableNotFound):
        pyhudi.open_table(bucket.uri("nothing"), storage_options=options)


def test_unreachable_server_raises(bucket: Bucket) -> None:
    options = {**bucket.options, bucket.kind.endpoint: "http://127.0.0.1:9", "max_retries": "0"}
    with pytest.raises(StorageError, match=bucket.uri("t/a")) as caught:
        Storage(bucket.uri("t"), options).read("a")
    assert "onnect" in str(caught.value)


def test_http_is_asked_for(bucket: Bucket) -> None:
    options = {key: value for key, value in bucket.options.items() if "http" not in key}
    if bucket.cloud == "gcs":  # where it has to be forbidden
        options["google_allow_http"] = "false"
    with pytest.raises(StorageError):
        Storage(bucket.uri("t"), options).read("a")


READ = """
import pickle, sys
storage = pickle.loads(bytes.fromhex(sys.argv[1]))
sys.stdout.write(storage.read("a").decode())
"""


@pytest.mark.parametrize("by_environment", [False, True])
def test_pickled_storage_reads_on_in_another_process(bucket: Bucket, by_environment: bool) -> None:
    bucket.storage().put("a", b"content")
    known = {} if by_environment else bucket.options
    told = {name.upper(): value for name, value in bucket.options.items() if by_environment}
    storage = Storage(bucket.uri("table"), known)
    text = pickle.dumps(storage).hex()
    done = subprocess.run(
        [sys.executable, "-c", READ, text],
        env={**os.environ, **told},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "content"


def test_fork_lets_child_and_parent_read(bucket: Bucket) -> None:
    storage = bucket.storage()
    storage.put("a", b"1")
    assert storage.read("a") == b"1"
    inherited = storage.native
    child = os.fork()
    if child == 0:
        try:
            good = storage.read("a") == b"1" and [one.path for one in storage.list()] == ["a"]
            try:
                inherited.read("a")
                good = False
            except pyhudi.HudiError:
                pass
            del inherited
            os._exit(0 if good else 1)
        except BaseException:  # noqa: BLE001 - the child must not go on as pytest
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert storage.read("a") == b"1"
    assert storage.put_if_absent("b", b"2")


def test_options_of_no_use_are_named(bucket: Bucket) -> None:
    with pytest.raises(ConfigError, match="whole number"):
        Storage(bucket.uri("t"), {"max_retries": "many"}).native  # noqa: B018
    with pytest.raises(ConfigError, match="boolean"):
        Storage(bucket.uri("t"), {"allow_invalid_certificates": "perhaps"}).native  # noqa: B018
    assert bucket.kind.secret not in str(bucket.storage().options)
