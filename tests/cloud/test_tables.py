"""Tables in a bucket: read as on a local disk, written by every step that a writer takes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.actions import COMMIT
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CommitConflict
from pyhudi.timeline import Timeline, instant_files
from pyhudi.txn.locks import storage_lock
from pyhudi.write import upsert
from tests.cloud.conftest import Bucket, mostly_s3
from tests.helpers.azure import server as azure
from tests.helpers.gcs.server import GcsServer
from tests.helpers.s3.server import ACCESS_KEY, REGION, SECRET_KEY
from tests.helpers.snippets import snippets
from tests.helpers.tables import GoldenTables, cases, unpack
from tests.sim.crash import CrashingStorage, Handle, Killed, count_native_writes, people

GOLDEN = [
    "v4_mor_part",
    "v6_cow_archived",
    "v6_mor_part_avro",
    "v6_cow_record_index",
    "v8_cow_nonpart",
    "v8_mor_part_avro",
    "v9_mor_record_index",
    "v9_cow_all_types",
]
SMALL = {"hoodie.index.bloom.num_entries": 64, "hoodie.table.name": "people"}


def rows_of(uri: str, bucket: Bucket, **how: Any) -> list[dict[str, Any]]:
    options = how.pop("options", None)
    table = pyhudi.open_table(
        uri, storage_options=bucket.options if "://" in uri else None, options=options
    )
    rows: list[dict[str, Any]] = table.scan(**how).to_arrow().to_pylist()
    return sorted(rows, key=repr)


@mostly_s3(["name"], GOLDEN, ["v6_cow_record_index", "v9_cow_all_types"])
def test_bucket_reads_equal_local_reads_of_hudi_tables(
    bucket: Bucket, golden: GoldenTables, name: str
) -> None:
    base = golden.unpack(name)
    uri = bucket.upload(base, name)
    table = pyhudi.open_table(uri, storage_options=bucket.options)
    asked = [case for case in cases() if case.table == name and case.sha256 and not case.guarded]
    assert asked
    for case in asked:
        assert case.mismatch(case.read(table)) is None, str(case)
    mine, theirs = table.inspect.timeline(), pyhudi.open_table(base).inspect.timeline()
    assert mine.select(["requested", "action"]).equals(theirs.select(["requested", "action"]))


@mostly_s3(
    ["version", "kind"],
    [(version, kind) for version in (6, 8, 9) for kind in ("cow", "mor")],
    [(6, "mor"), (9, "cow")],
)
def test_bucket_table_life_cycle(
    bucket: Bucket, tmp_path: Path, version: Literal[6, 8, 9], kind: Literal["cow", "mor"]
) -> None:
    uri = bucket.uri("lake/people", bucket.kind.other_scheme)
    table = pyhudi.create_table(
        uri, people(range(8), 1, 10), key="id", partition_by="city", order_by="ts", type=kind,
        version=version, options=SMALL, storage_options=bucket.options,
    )  # fmt: skip
    table.upsert(people([2, 3, 8], 2, 20))
    table.delete_keys(pa.table({"id": ["k00"], "city": ["rome"]}))
    table.update("id = 'k01'", {"v": 9})
    table.overwrite_partitions(people([10], 4, 1))
    expected = {"k01": 9, "k03": 2, "k05": 1, "k07": 1, "k10": 4}
    for place in (uri, str(bucket.download("lake/people", tmp_path))):
        assert {row["id"]: row["v"] for row in rows_of(place, bucket)} == expected
    opened = pyhudi.open_table(uri, storage_options=bucket.options)
    few = opened.scan(columns=["id"], where="v >= 4 AND ts > 0").to_arrow()["id"].to_pylist()
    assert sorted(few) == ["k01", "k10"]
    before = opened.inspect.commits()["requested"][0].as_py()
    assert len(opened.scan(as_of=before).to_arrow()) == 8
    storage = bucket.storage("lake/people")
    assert storage.list(".hoodie/.temp") == []
    assert not Timeline.load(storage, TableConfig.load(storage)).pending()


@mostly_s3(
    ["name"],
    ["v6_cow_record_index", "v8_mor_part_avro", "v9_mor_record_index"],
    ["v9_mor_record_index"],
)
def test_metadata_table_is_maintained_in_bucket(bucket: Bucket, tmp_path: Path, name: str) -> None:
    uri = bucket.upload(unpack(name, tmp_path), name)
    table = pyhudi.open_table(uri, storage_options=bucket.options)
    known = table.scan().to_arrow()
    table.upsert(known.slice(0, 3))
    table.delete_keys(known.slice(3, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = rows_of(uri, bucket)
    assert len(rows) == known.num_rows - 1
    listed = rows_of(uri, bucket, options={"hoodie.metadata.enable": "false"})
    assert rows == listed
    assert rows_of(str(bucket.download(name, tmp_path / "back")), bucket) == listed


def test_others_make_the_metadata_table_of_a_handle_anew(bucket: Bucket) -> None:
    """What lists the files is still in memory then, and the index is read with its new contents."""
    uri = bucket.uri("t")
    table = pyhudi.create_table(
        uri, people(range(8), 1, 10), key="id", partition_by="city", order_by="ts", type="cow",
        index="record_index", options=SMALL, storage_options=bucket.options,
    )  # fmt: skip
    table.rebuild_metadata()
    # Of new files, of which the record index gets no keys.
    table.upsert(people(range(8), 1, 10))
    held = pyhudi.open_table(uri, storage_options=bucket.options)
    assert held.count() == 8
    # With a client of its own, as on another machine.
    theirs = pyhudi.open_table(uri, storage_options={**bucket.options, "timeout": "61s"})
    theirs.overwrite_partitions(people(range(8), 2, 20))
    theirs.rebuild_metadata()
    for where in ("id = 'k01'", "v = 1 AND id = 'k01'"):
        assert held.scan(where=where).to_arrow()["v"].to_pylist() == [1]
    assert held.get(["k01"])["v"].to_pylist() == [1]
    assert held.count() == 8


def test_incremental_after_services_gives_later_changes(bucket: Bucket) -> None:
    uri = bucket.uri("t")
    table = pyhudi.create_table(
        uri, people(range(6), 1, 10), key="id", partition_by="city", order_by="ts", type="mor",
        options=SMALL, storage_options=bucket.options,
    )  # fmt: skip
    first = table.upsert(people([1, 2, 7], 2, 20)).instant
    assert table.compact().instants
    table.upsert(people([2], 3, 30))
    table.delete_keys(pa.table({"id": ["k00"], "city": ["rome"]}))
    assert table.cluster().instants
    table.clean()
    table.archive()
    table = pyhudi.open_table(uri, storage_options=bucket.options)
    since = table.incremental(start=first).to_arrow()
    assert dict(zip(since["id"].to_pylist(), since["v"].to_pylist(), strict=True)) == {"k02": 3}
    expected = {"k01": 2, "k02": 3, "k03": 1, "k04": 1, "k05": 1, "k07": 2}
    assert {row["id"]: row["v"] for row in rows_of(uri, bucket)} == expected
    assert list(table.check(deep=True).findings) == []


@pytest.mark.parametrize("bucket", ["azure"], indirect=True)
def test_empty_folders_of_others_change_nothing(bucket: Bucket) -> None:
    uri = bucket.uri("t")
    names = [".hoodie", ".hoodie/.aux", ".hoodie/.temp", ".hoodie/.schema", ".hoodie/archived"]
    for name in [*names, ".hoodie/timeline", ".hoodie/timeline/history", "city=none", "rome"]:
        bucket.server.mark_folder(bucket.name, f"t/{name}")
    pyhudi.create_table(
        uri, people(range(4), 1, 10), key="id", partition_by="city", options=SMALL,
        storage_options=bucket.options,
    )  # fmt: skip
    table = pyhudi.open_table(uri, storage_options=bucket.options)
    table.upsert(people([1], 2, 20))
    assert {row["id"]: row["v"] for row in rows_of(uri, bucket)} == {
        "k00": 1, "k01": 2, "k02": 1, "k03": 1,
    }  # fmt: skip
    assert list(table.check().findings) == []


class CrashingBucket(CrashingStorage):
    """Dies at a chosen change. A file that the core writes is there whole or not at all."""

    def native_write(self, path: str, write: Any) -> Any:
        self.step()
        made = write()
        self.step()
        return made

    def below(self, folder: str) -> CrashingBucket:
        part = CrashingBucket(f"{self.uri}/{folder}")
        part.above = self.above or self
        return part


@mostly_s3(["version", "kind"], [(6, "cow"), (6, "mor"), (8, "mor"), (9, "cow")], [(8, "cow")])
def test_recovery_rolls_back_crashed_writer(
    bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
    version: Literal[6, 8, 9],
    kind: Literal["cow", "mor"],
) -> None:
    for name, value in bucket.options.items():
        monkeypatch.setenv(name.upper(), value)
    count_native_writes(monkeypatch)
    uri = bucket.uri("t")
    pyhudi.create_table(
        uri, people(range(4), 1, 10), key="id", partition_by="city", order_by="ts", type=kind,
        version=version, options=SMALL, storage_options=bucket.options,
    )  # fmt: skip
    options = {"hoodie.index.bloom.num_entries": "64"}
    before = {f"k{i:02}": 1 for i in range(4)}
    dies_at = 0
    while True:
        dies_at += 4 if bucket.cloud == "s3" else 9
        storage = CrashingBucket(uri, dies_at)
        try:
            upsert.upsert(Handle(storage, options), people([0, 1], dies_at, dies_at + 20))
        except Killed:
            pass
        else:
            break
        seen = {row["id"]: row["v"] for row in rows_of(uri, bucket)}
        assert seen in (before, {**before, "k00": dies_at, "k01": dies_at})
        # As if the time of the dead one's lock were over, for which others wait a minute.
        bucket.storage("t").delete(storage_lock.PATH)
        table = pyhudi.open_table(uri, storage_options=bucket.options)
        table.upsert(people([2], dies_at, dies_at + 21))
        before = {**seen, "k02": dies_at}
        assert {row["id"]: row["v"] for row in rows_of(uri, bucket)} == before
        plain = bucket.storage("t")
        timeline = Timeline.load(plain, TableConfig.load(plain))
        assert not timeline.pending()
        assert plain.list(".hoodie/.temp") == []
    assert dies_at > 8


@mostly_s3(["version"], [6, 8, 9], [9])
def test_create_instant_fails_for_second_writer(bucket: Bucket, version: Literal[6, 8, 9]) -> None:
    pyhudi.create_table(
        bucket.uri("t"), people(range(2), 1, 10), key="id", version=version, type="mor",
        options=SMALL, storage_options=bucket.options,
    )  # fmt: skip
    one, other = bucket.storage("t"), bucket.storage("t")
    layout = TableConfig.load(one).layout
    time = "20990101000000000"
    instant_files.request(layout, one, time, COMMIT, b"")
    with pytest.raises(CommitConflict, match=time):
        instant_files.request(layout, other, time, COMMIT, b"")
    instant_files.start(layout, one, time, COMMIT)
    instant_files.publish(layout, one, time, COMMIT, "20990101000000009", b'{"of": "one"}')
    with pytest.raises(CommitConflict, match=time):
        instant_files.publish(layout, other, time, COMMIT, "20990101000000009", b'{"of": "other"}')


def test_upgrade_works_in_bucket(bucket: Bucket, tmp_path: Path) -> None:
    uri = bucket.upload(unpack("v6_mor_part_avro", tmp_path), "t")
    table = pyhudi.open_table(uri, storage_options=bucket.options)
    wanted = rows_of(uri, bucket)
    table.upgrade(9)
    assert pyhudi.open_table(uri, storage_options=bucket.options).version == 9
    assert rows_of(uri, bucket) == wanted


def shown(cloud: str) -> str:
    """The first example of the guide to a cloud."""
    page = Path(__file__).parents[2] / "docs" / "how-to" / f"{cloud}.md"
    return snippets(page, "bucket")[0]


SHOWN = {
    "s3": {
        "eu-west-1": REGION,
        'key_id": "…"': f'key_id": "{ACCESS_KEY}"',
        'access_key": "…"': f'access_key": "{SECRET_KEY}"',
    },
    "gcs": {},
    "azure": {"@account.": f"@{azure.ACCOUNT}.", '_key": "…"': f'_key": "{azure.KEY}"'},
}
"""What stands in the examples for what is true here."""


def test_docs_cloud_example_runs(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in bucket.options.items():
        if "endpoint" in name or "http" in name:
            monkeypatch.setenv(name.upper(), value)
    uri = bucket.uri("lake/trips")
    pyhudi.create_table(
        uri, people([1], 1, 1), key="id", options=SMALL, storage_options=bucket.options
    )
    code = shown(bucket.cloud)
    real = {**SHOWN[bucket.cloud], "//bucket": f"//{bucket.name}"}
    if isinstance(bucket.server, GcsServer):
        real["/keys/lake.json"] = str(bucket.server.account)
    for said, meant in real.items():
        assert said in code
        code = code.replace(said, meant)
    assert "…" not in code
    names: dict[str, Any] = {"pyhudi": pyhudi}
    exec(compile(code, "example", "exec"), names)
    assert names["table"].scan().count() == 1


def test_environment_provides_credentials(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in bucket.options.items():
        if "retr" not in name:
            monkeypatch.setenv(name.upper(), value)
    table = pyhudi.create_table(bucket.uri("t"), people([1], 1, 1), key="id", options=SMALL)
    assert table.scan().count() == 1
    monkeypatch.setenv(bucket.kind.secret_option.upper(), bucket.kind.wrong_secret)
    with pytest.raises(pyhudi.HudiError, match=bucket.kind.refused):
        pyhudi.open_table(bucket.uri("t"))
