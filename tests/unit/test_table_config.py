"""Table configuration: defaults, merge inference, new tables, and changes that break off."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import pytest

from pyhudi.config.merge_mode import MergeConfig
from pyhudi.config.new_table_properties import NewTable, new_table_config
from pyhudi.config.table_config import TableConfig, find_unsupported_merge
from pyhudi.errors import (
    CommitConflict,
    ConfigError,
    CorruptTable,
    TableNotFound,
    UnsupportedTableFeature,
)
from pyhudi.storage.properties import parse_properties
from pyhudi.storage.properties_file import (
    BACKUP,
    FILE,
    create_config,
    read_config,
    recover_config,
    update_config,
)
from tests.helpers.tables import GoldenTables, facts, names
from tests.unit.memory_storage import MemoryStorage, StillClock

MODEL = "org.apache.hudi.common.model."
PAYLOAD = "hoodie.compaction.payload.class"
EVENT_ID = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
COMMIT_ID = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
OTHER_ID = "1897ef5f-18bc-4557-939c-9d6a8afd1519"


def config(version: int = 9, /, **properties: str) -> TableConfig:
    basics = {"hoodie.table.name": "t", "hoodie.table.version": str(version)}
    return TableConfig({**basics, **{k.replace("__", "."): v for k, v in properties.items()}})


def with_merge(version: int, properties: dict[str, str]) -> TableConfig:
    return TableConfig({**config(version).properties, **properties})


class TestReading:
    def test_defaults_of_a_reader(self) -> None:
        table = config()
        assert table.table_type == "COPY_ON_WRITE"
        assert table.timezone == "LOCAL"
        assert table.populate_meta_fields
        assert not any((table.hive_style, table.url_encode, table.drop_partition_columns))
        assert table.base_file_format == "PARQUET"
        assert table.metadata_partitions == ()
        assert table.create_schema is None
        assert table.timeline_path == ".hoodie/timeline"
        assert table.history_folder == ".hoodie/timeline/history"

    def test_folders_that_the_table_names(self) -> None:
        table = config(8, hoodie__timeline__path="tl", hoodie__timeline__history__path="old")
        assert (table.timeline_path, table.history_folder) == (".hoodie/tl", ".hoodie/tl/old")
        old = config(6, hoodie__timeline__path="timeline")
        assert (old.timeline_path, old.history_folder) == (".hoodie", ".hoodie/archived")

    @pytest.mark.parametrize(
        "name",
        ["hoodie.timeline.path", "hoodie.timeline.history.path", "hoodie.archivelog.folder"],
    )
    @pytest.mark.parametrize("folder", ["/srv/timeline", "s3://other/timeline", "../other", "a/.."])
    def test_folders_outside_the_tables_are_refused(self, name: str, folder: str) -> None:
        table = TableConfig({**config().properties, name: folder})
        with pytest.raises(UnsupportedTableFeature, match=name):
            table.check_readable()

    def test_lists(self) -> None:
        table = config(
            hoodie__table__partition__fields="city:SIMPLE,at:TIMESTAMP",
            hoodie__table__recordkey__fields="a, b",
            hoodie__table__precombine__field="ts",
        )
        assert table.partition_fields == ("city", "at")
        assert table.record_key_fields == ("a", "b")
        assert table.ordering_fields == ("ts",)

    def test_newer_name_of_ordering_fields_wins(self) -> None:
        table = config(
            hoodie__table__precombine__field="old", hoodie__table__ordering__fields="ts,seq"
        )
        assert table.ordering_fields == ("ts", "seq")

    @pytest.mark.parametrize(
        ("partition", "key", "wanted"),
        [
            ("", "a", "NON_PARTITION"),
            ("p", "a", "SIMPLE"),
            ("p", "", "SIMPLE"),
            ("p", "a,b", "COMPLEX"),
            ("p,q", "a", "COMPLEX"),
            ("p:SIMPLE", "a", "CUSTOM"),
        ],
    )
    def test_inferred_key_generator(self, partition: str, key: str, wanted: str) -> None:
        table = config(
            hoodie__table__partition__fields=partition, hoodie__table__recordkey__fields=key
        )
        assert table.key_generator == wanted

    def test_key_generator_class_wins_over_type(self) -> None:
        both = config(
            hoodie__table__keygenerator__class="org.apache.hudi.keygen.ComplexAvroKeyGenerator",
            hoodie__table__keygenerator__type="SIMPLE",
        )
        assert both.key_generator == "COMPLEX_AVRO"
        assert config(hoodie__table__keygenerator__type="custom").key_generator == "CUSTOM"
        own = config(hoodie__table__keygenerator__class="com.example.Mine")
        assert own.key_generator == "USER_PROVIDED"

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("hoodie.table.base.file.format", "HFILE"),
            ("hoodie.table.log.file.format", "PARQUET"),
            ("hoodie.table.format", "iceberg"),
            ("hoodie.table.version", "10"),
            ("hoodie.table.type", "MERGE_ON_THURSDAY"),
            ("hoodie.timeline.layout.version", "1"),
        ],
    )
    def test_unreadable_tables_are_refused_by_property(self, key: str, value: str) -> None:
        table = with_merge(9, {key: value})
        with pytest.raises(UnsupportedTableFeature, match=key.replace(".", r"\.")):
            table.check_readable()

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("hoodie.bootstrap.index.enable", "false"),
            ("hoodie.bootstrap.index.type", "NO_OP"),
            (
                "hoodie.bootstrap.index.class",
                "org.apache.hudi.common.bootstrap.index.NoOpBootstrapIndex",
            ),
        ],
    )
    def test_bootstrapped_tables_need_the_hfile_index(self, key: str, value: str) -> None:
        with_merge(9, {key: value}).check_readable()
        bootstrapped = {"hoodie.bootstrap.base.path": "/old/table"}
        with_merge(9, bootstrapped).check_readable()
        table = with_merge(9, {**bootstrapped, key: value})
        with pytest.raises(UnsupportedTableFeature, match=key.replace(".", r"\.")):
            table.check_readable()

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("hoodie.table.version", ""),
            ("hoodie.table.version", "six"),
            ("hoodie.table.name", ""),
            ("hoodie.table.timeline.timezone", "CET"),
        ],
    )
    def test_bad_values_are_damage(self, key: str, value: str) -> None:
        table = with_merge(9, {key: value})
        with pytest.raises(CorruptTable, match=key):
            _ = table.version, table.name, table.timezone

    def test_pickles(self) -> None:
        table = config(hoodie__table__ordering__fields="ts")
        assert table.merge.mode == "EVENT_TIME_ORDERING"
        assert pickle.loads(pickle.dumps(table)) == table  # noqa: S301


class TestMergeRules:
    @pytest.mark.parametrize("version", [4, 5, 6, 8])
    @pytest.mark.parametrize(
        ("properties", "wanted"),
        [
            ({}, "COMMIT_TIME_ORDERING"),
            ({"hoodie.table.precombine.field": "ts"}, "EVENT_TIME_ORDERING"),
            ({PAYLOAD: MODEL + "DefaultHoodieRecordPayload"}, "EVENT_TIME_ORDERING"),
            ({PAYLOAD: MODEL + "EventTimeAvroPayload"}, "EVENT_TIME_ORDERING"),
            (
                {
                    PAYLOAD: MODEL + "OverwriteWithLatestAvroPayload",
                    "hoodie.table.precombine.field": "ts",
                },
                "COMMIT_TIME_ORDERING",
            ),
            (
                {PAYLOAD: "com.uber.hoodie.common.model.OverwriteWithLatestAvroPayload"},
                "COMMIT_TIME_ORDERING",
            ),
            ({PAYLOAD: "com.example.MyPayload"}, "CUSTOM"),
            ({"hoodie.record.merge.strategy.id": EVENT_ID}, "EVENT_TIME_ORDERING"),
            ({"hoodie.compaction.record.merger.strategy": COMMIT_ID}, "COMMIT_TIME_ORDERING"),
            ({"hoodie.record.merge.strategy.id": OTHER_ID}, "CUSTOM"),
        ],
    )
    def test_inferred_before_version_9(
        self, version: int, properties: dict[str, str], wanted: str
    ) -> None:
        assert with_merge(version, properties).merge.mode == wanted

    def test_payload_beside_strategy(self) -> None:
        both = {
            PAYLOAD: MODEL + "OverwriteWithLatestAvroPayload",
            "hoodie.compaction.record.merger.strategy": EVENT_ID,
        }
        assert with_merge(6, both).merge.mode == "COMMIT_TIME_ORDERING"
        assert with_merge(8, both).merge.mode == "EVENT_TIME_ORDERING"

    def test_stored_mode_counts_from_version_8(self) -> None:
        stored = {
            "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
            "hoodie.table.precombine.field": "ts",
        }
        assert with_merge(8, stored).merge.mode == "COMMIT_TIME_ORDERING"
        assert with_merge(9, stored).merge.mode == "COMMIT_TIME_ORDERING"

    def test_unknown_mode_is_refused(self) -> None:
        table = config(hoodie__record__merge__mode="RANDOM")
        with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.record\.merge\.mode"):
            _ = table.merge

    @pytest.mark.parametrize("version", [6, 8])
    def test_dms_payload_marks_deletes(self, version: int) -> None:
        stored = {"hoodie.record.merge.mode": "CUSTOM"} if version == 8 else {}
        table = with_merge(version, {PAYLOAD: MODEL + "AWSDmsAvroPayload", **stored})
        assert table.merge.mode == "COMMIT_TIME_ORDERING"
        assert (table.merge.delete_field, table.merge.delete_marker) == ("Op", "D")
        assert find_unsupported_merge(table) is None

    @pytest.mark.parametrize("database", ["MySql", "Postgres"])
    def test_debezium_payloads_before_version_9_are_not_supported(self, database: str) -> None:
        payload = f"{MODEL}debezium.{database}DebeziumAvroPayload"
        table = with_merge(6, {PAYLOAD: payload})
        assert table.merge.delete_field == "_change_operation_type"
        assert table.merge.delete_marker == "d"
        assert find_unsupported_merge(table) == f"{PAYLOAD}={payload}"

    def test_stored_delete_marker(self) -> None:
        prefix = "hoodie.record.merge.property.hoodie.payload.delete."
        table = with_merge(9, {prefix + "field": "op", prefix + "marker": "X"})
        assert (table.merge.delete_field, table.merge.delete_marker) == ("op", "X")
        with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.payload\.delete\.marker"):
            _ = with_merge(9, {prefix + "field": "op"}).merge

    def test_partial_updates_are_not_supported(self) -> None:
        mode = "hoodie.table.partial.update.mode"
        assert find_unsupported_merge(with_merge(9, {mode: "IGNORE_DEFAULTS"})) == (
            f"{mode}=IGNORE_DEFAULTS"
        )
        assert find_unsupported_merge(with_merge(8, {mode: "IGNORE_DEFAULTS"})) is None

    @pytest.mark.parametrize(
        ("properties", "wanted"),
        [
            ({}, "hoodie.record.merge.mode=CUSTOM"),
            (
                {"hoodie.record.merge.strategy.id": OTHER_ID},
                f"hoodie.record.merge.strategy.id={OTHER_ID}",
            ),
            ({PAYLOAD: "com.example.Mine"}, f"{PAYLOAD}=com.example.Mine"),
        ],
    )
    def test_custom_merging_is_not_supported(self, properties: dict[str, str], wanted: str) -> None:
        table = with_merge(9, {"hoodie.record.merge.mode": "CUSTOM", **properties})
        assert find_unsupported_merge(table) == wanted

    def test_hudi_1_2_takes_a_version_6_default_table_by_commit_time(
        self, golden: GoldenTables
    ) -> None:
        """Hudi 0.15 keeps the row of the greater ordering value, 1.2.0 the later one."""
        stored = _load("v6_mor_payload_overwrite_latest", golden)
        assert stored.merge == MergeConfig(
            "COMMIT_TIME_ORDERING", MODEL + "OverwriteWithLatestAvroPayload", EVENT_ID
        )


def _load(name: str, golden: GoldenTables) -> TableConfig:
    data = (golden.unpack(name) / FILE).read_bytes()
    return TableConfig.load(MemoryStorage({FILE: data}), StillClock())


@pytest.mark.parametrize("name", names())
def test_table_config_reads_every_hudi_table(name: str, golden: GoldenTables) -> None:
    table = _load(name, golden)
    known = facts(name)
    assert table.version.code == known["table_version"]
    assert table.table_type == known["table_type"]
    assert table.merge.mode in {"COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING", "CUSTOM"}
    assert table.key_generator != "USER_PROVIDED"


NEW = NewTable(
    "t",
    "MERGE_ON_READ",
    record_key_fields=("id",),
    partition_fields=("city",),
    ordering_fields=("ts",),
    create_schema='{"type":"record"}',
)


class TestNewTables:
    @pytest.mark.parametrize("version", [6, 8, 9])
    def test_reads_back(self, version: int) -> None:
        storage = MemoryStorage()
        made = new_table_config(_new(version=version, hive_style=True))
        made.save_new(storage, StillClock())
        table = TableConfig.load(storage, StillClock())
        assert table == made
        assert table.version.code == version
        assert table.record_key_fields == ("id",)
        assert table.partition_fields == ("city",)
        assert table.ordering_fields == ("ts",)
        assert table.key_generator == "SIMPLE"
        assert table.merge.mode == "EVENT_TIME_ORDERING"
        assert table.timezone == "UTC"
        assert table.hive_style
        assert table.metadata_partitions == ()
        assert table.create_schema == '{"type":"record"}'

    @pytest.mark.parametrize(
        ("version", "real"),
        [(6, "v6_mor_payload_default"), (8, "v8_mor_no_metadata"), (9, "v9_mor_no_metadata")],
    )
    def test_has_what_hudi_stores(self, version: int, real: str, golden: GoldenTables) -> None:
        stored = dict(_load(real, golden).properties)
        mine = dict(new_table_config(_new(version=version)).properties)
        for key in ("hoodie.table.name", "hoodie.table.checksum", "hoodie.table.create.schema"):
            stored.pop(key, None)
            mine.pop(key)
        mine.pop("hoodie.table.timeline.timezone")
        stored.pop("hoodie.table.timeline.timezone", None)
        for key in (
            "hoodie.table.metadata.partitions",
            "hoodie.table.metadata.partitions.inflight",
            "hoodie.table.index.defs.path",
            "hoodie.table.partition_extractor_class",
            "hoodie.database.name",
        ):
            stored.pop(key, None)
        if version == 8:
            assert mine.pop("hoodie.table.ordering.fields") == "ts"
        assert mine == stored

    @pytest.mark.parametrize("version", [6, 8, 9])
    def test_commit_time_without_ordering_fields(self, version: int) -> None:
        table = new_table_config(_new(version=version, ordering_fields=()))
        assert table.ordering_fields == ()
        assert table.merge.mode == "COMMIT_TIME_ORDERING"

    @pytest.mark.parametrize(
        ("partition", "key", "wanted"),
        [
            ((), ("a", "b"), "NON_PARTITION"),
            (("p",), ("a", "b"), "COMPLEX"),
            (("p",), (), "SIMPLE"),
            (("p", "q"), (), "COMPLEX"),
        ],
    )
    def test_key_generator(
        self, partition: tuple[str, ...], key: tuple[str, ...], wanted: str
    ) -> None:
        table = new_table_config(_new(partition_fields=partition, record_key_fields=key))
        assert table.key_generator == wanted

    @pytest.mark.parametrize(
        "wrong",
        [
            {"name": ""},
            {"version": 5},
            {"merge_mode": "CUSTOM"},
            {"merge_mode": "EVENT_TIME_ORDERING", "ordering_fields": ()},
            {"version": 6, "ordering_fields": ("a", "b")},
        ],
    )
    def test_choices_that_do_not_go_together(self, wrong: dict[str, object]) -> None:
        with pytest.raises(ConfigError):
            new_table_config(_new(**wrong))

    def test_does_not_replace_a_table(self) -> None:
        storage = MemoryStorage({FILE: b"a=1"})
        with pytest.raises(ConfigError, match="exists at"):
            new_table_config(NEW).save_new(storage, StillClock())
        assert storage.files == {FILE: b"a=1"}


def _new(**changes: object) -> NewTable:
    return NewTable(**{**NEW.__dict__, **changes})


def _table() -> MemoryStorage:
    storage = MemoryStorage()
    create_config(storage, {"hoodie.table.name": "t", "keep.me": "1"}, StillClock())
    storage.changes = 0
    return storage


class TestFile:
    def test_open_raises_where_no_table_exists(self) -> None:
        clock = StillClock()
        with pytest.raises(TableNotFound, match="memory:///table") as error:
            TableConfig.load(MemoryStorage(), clock)
        assert error.value.hint
        assert clock.slept == []

    def test_waits_while_another_writer_may_be_replacing_the_file(self) -> None:
        clock = StillClock()
        with pytest.raises(CorruptTable):
            TableConfig.load(MemoryStorage({FILE: b"\0" * 99}), clock)
        assert sum(clock.slept) == 4

    def test_folder_without_file_and_backup_is_no_table_at_once(self) -> None:
        clock = StillClock()
        with pytest.raises(TableNotFound):
            TableConfig.load(MemoryStorage({".hoodie/20240101000000000.commit": b""}), clock)
        assert clock.slept == []

    def test_file_that_is_replaced_between_looks_at_it_and_at_its_backup_is_read(self) -> None:
        good, looked = _table().files[FILE], []

        class Replaced(MemoryStorage):
            def read_or_none(self, path: str) -> bytes | None:
                # The backup goes once the file is there, after the look at it.
                looked.append(path)
                return good if looked.count(FILE) > 1 else None

        clock = StillClock()
        found = read_config(Replaced({".hoodie/x": b""}), clock)
        assert (found["hoodie.table.name"], looked, clock.slept) == ("t", [FILE, BACKUP, FILE], [])

    def test_backup_is_read_where_the_file_is_missing_or_damaged(self) -> None:
        good = _table().files[FILE]
        for broken in (None, b"", good[:-20], good.replace(b"name=t", b"name=u"), b"\0" * 99):
            storage = MemoryStorage({BACKUP: good})
            if broken is not None:
                storage.files[FILE] = broken
            assert _names(storage) == {"t"}

    def test_properties_without_valid_copy_raise(self) -> None:
        damaged = _table().files[FILE].replace(b"name=t", b"name=u")
        storage = MemoryStorage({FILE: damaged, BACKUP: b"a=\\u1"})
        with pytest.raises(CorruptTable, match="checksum") as error:
            TableConfig.load(storage, StillClock())
        assert error.value.file == FILE
        assert damaged[error.value.offset :].startswith(b"hoodie.table.checksum")
        assert error.value.hint.startswith("Restore .hoodie/hoodie.properties from a copy")

    def test_missing_checksum_is_borne(self) -> None:
        data = b"hoodie.table.name=old\nhoodie.table.version=6\n"
        assert _names(MemoryStorage({FILE: data})) == {"old"}

    def test_update_keeps_unknown_keys(self) -> None:
        storage = _table()
        new = update_config(storage, {"a": "1"}, StillClock(), removed=["hoodie.table.name"])
        assert {key: value for key, value in new.items() if "checksum" not in key} == {
            "keep.me": "1",
            "a": "1",
        }
        assert set(storage.files) == {FILE}
        assert parse_properties(storage.files[FILE], FILE) == new

    def test_update_of_what_has_changed(self) -> None:
        storage = _table()
        before = TableConfig(read_config(storage, StillClock()))
        before.update(storage, {"a": "1"}, StillClock())
        with pytest.raises(CommitConflict, match="changed the table's properties") as error:
            before.update(storage, {"b": "1"}, StillClock())
        assert error.value.retry
        assert set(storage.files) == {FILE}
        assert read_config(storage, StillClock())["a"] == "1"

    def test_stalled_writer_does_not_replace_properties(self) -> None:
        """Another one took its backup for that of a dead writer."""
        storage, class_ = _table(), MemoryStorage

        def stood_still(*given: Any, **how: Any) -> str | None:
            storage.replace_version = partial(class_.replace_version, storage)  # type: ignore[method-assign]
            update_config(storage, {"a": "1"}, StillClock(2_000_000_000_000))
            return storage.replace_version(*given, **how)

        storage.replace_version = stood_still  # type: ignore[method-assign]
        with pytest.raises(CommitConflict, match="another writer changed"):
            update_config(storage, {"b": "1"}, StillClock())
        assert set(storage.files) == {FILE}
        now = read_config(storage, StillClock())
        assert ("a" in now, "b" in now) == (True, False)

    @pytest.mark.parametrize("fail_at", [1, 2, 3])
    def test_update_that_breaks_off_loses_nothing(self, fail_at: int) -> None:
        storage = _table()
        storage.fail_at = fail_at
        with pytest.raises(ConnectionError):
            update_config(storage, {"a": "1"}, StillClock())
        storage.fail_at = 0
        assert _names(storage) == {"t"}
        assert update_config(storage, {"b": "2"}, StillClock())["b"] == "2"
        assert set(storage.files) == {FILE}

    def test_recovery_puts_the_backup_back(self) -> None:
        good = _table().files[FILE]
        storage = MemoryStorage({BACKUP: good})
        recover_config(storage, StillClock())
        assert storage.files == {FILE: good}

    def test_recovery_leaves_a_valid_file_alone(self) -> None:
        good = _table().files[FILE]
        storage = MemoryStorage({FILE: good, BACKUP: b"half"})
        recover_config(storage, StillClock())
        assert storage.files == {FILE: good}

    def test_recovery_never_drops_the_only_remains(self) -> None:
        storage = MemoryStorage({FILE: b"\0", BACKUP: b"\0"})
        with pytest.raises(CorruptTable):
            recover_config(storage, StillClock())
        assert set(storage.files) == {FILE, BACKUP}


def _names(storage: MemoryStorage) -> set[str]:
    return {read_config(storage, StillClock())["hoodie.table.name"]}
