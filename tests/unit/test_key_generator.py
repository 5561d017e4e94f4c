from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import SchemaMismatch, UnsupportedTableFeature
from pyhudi.schema.key_generator import (
    add_keys,
    as_stored,
    check_key_generator,
    depends_on_rows,
    key_spec,
)
from pyhudi.storage.storage import Storage
from tests.helpers.tables import unpack

ROWS = pa.table({"id": ["k1", "k2"], "n": [1, 2], "city": ["são/a b", None]})


def config(keys: str, partitions: str = "", version: int = 9, **more: str) -> TableConfig:
    return TableConfig(
        {
            "hoodie.table.name": "t",
            "hoodie.table.version": str(version),
            "hoodie.table.recordkey.fields": keys,
            "hoodie.table.partition.fields": partitions,
            **{name.replace("_", "."): value for name, value in more.items()},
        }
    )


def keyed(table: TableConfig, prefixed: bool | None = None) -> list[tuple[str, str]]:
    rows = add_keys(ROWS, key_spec(table, prefixed=prefixed))
    assert rows.column_names[:2] == ["_hoodie_record_key", "_hoodie_partition_path"]
    return list(zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True))


def test_single_key_without_partitions_is_plain_value() -> None:
    assert keyed(config("id")) == [("k1", ""), ("k2", "")]


def test_single_key_and_partition_use_simple_generator() -> None:
    assert keyed(config("n", "city")) == [("1", "são/a b"), ("2", "__HIVE_DEFAULT_PARTITION__")]


def test_several_keys_are_prefixed_with_and_without_partitions() -> None:
    wanted = ["id:k1,n:1", "id:k2,n:2"]
    assert [key for key, _ in keyed(config("id,n"))] == wanted
    assert [key for key, _ in keyed(config("id,n", "city"))] == wanted


def test_partition_path_styles() -> None:
    table = config("id", "city,n")
    styled = TableConfig(
        {
            **table.properties,
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.datasource.write.partitionpath.urlencode": "true",
        }
    )
    assert keyed(table)[0] == ("id:k1", "são/a b/1")
    assert keyed(styled)[0] == ("id:k1", "city=são%2Fa b/n=1")


@pytest.mark.parametrize(("version", "wanted"), [(6, "k1"), (8, "k1"), (9, "id:k1")])
def test_single_complex_key_of_a_new_table_is_as_its_release_writes_it(
    version: int, wanted: str
) -> None:
    table = config("id", "city,n", version)
    assert depends_on_rows(table)
    assert keyed(table)[0][0] == wanted


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize(("prefixed", "wanted"), [(True, "id:k1"), (False, "k1")])
def test_single_complex_key_follows_the_keys_that_are_there(
    version: int, prefixed: bool, wanted: str
) -> None:
    assert keyed(config("id", "city,n", version), prefixed)[0][0] == wanted


@pytest.mark.parametrize(
    "kind", ["TIMESTAMP", "GLOBAL_DELETE", "USER_PROVIDED", "SPARK_SQL", "SIMPLE"]
)
def test_other_generators_are_refused_by_name(kind: str) -> None:
    table = config("id,n", "city", hoodie_table_keygenerator_type=kind)
    with pytest.raises(UnsupportedTableFeature, match=f"hoodie.table.keygenerator.type is {kind}"):
        check_key_generator(table)


def test_refusal_names_the_class_property_where_that_decides() -> None:
    name = "org.apache.hudi.keygen.GlobalDeleteKeyGenerator"
    table = config("id", "city", hoodie_table_keygenerator_class=name)
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.table\.keygenerator\.class"):
        check_key_generator(table)


def test_generated_keys_need_an_instant() -> None:
    spec = key_spec(config("", "city"), prefixed=None)
    assert spec.generator == "SIMPLE"
    rows = add_keys(ROWS, spec, instant="20240101000000000")
    assert rows.column(0).to_pylist() == ["20240101000000000_0_0", "20240101000000000_0_1"]
    assert rows.column_names == ["_hoodie_record_key", "_hoodie_partition_path", *ROWS.column_names]
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.table\.recordkey\.fields"):
        add_keys(ROWS, spec)


def test_dates_with_slashes() -> None:
    table = TableConfig(
        {
            **config("id", "day").properties,
            "hoodie.datasource.write.slash.separated.date.partitioning": "true",
        }
    )
    rows = pa.table({"id": ["a", "b"], "day": pa.array([0, None], pa.date32())})
    paths = add_keys(rows, key_spec(table, prefixed=None)).column(1).to_pylist()
    assert paths == ["1970/01/01", "__HIVE_DEFAULT_PARTITION__"]


def test_key_error_names_column_of_distant_date() -> None:
    rows = pa.table({"id": ["a"], "day": pa.array([2**31 - 1], pa.int32()).cast(pa.date32())})
    for names in (("id", "day"), ("day", "id")):
        with pytest.raises(SchemaMismatch, match=r"column day has a date too far off.*2147483647"):
            add_keys(rows, key_spec(config(*names), prefixed=None))


def test_nested_keys_and_partitions() -> None:
    rows = pa.table({"at": pa.array([{"id": 1, "p": "x"}, {"id": 2, "p": None}])})
    table = config("at.id", "at.p", hoodie_table_keygenerator_type="SIMPLE")
    made = add_keys(rows, key_spec(table, prefixed=None))
    assert made.column(0).to_pylist() == ["1", "2"]
    assert made.column(1).to_pylist() == ["x", "__HIVE_DEFAULT_PARTITION__"]


TIMED = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM",
    "hoodie.keygen.timebased.timezone": "UTC",
}


def custom(spec: str, **more: str) -> TableConfig:
    table = config("id", spec, hoodie_table_keygenerator_type="CUSTOM")
    return TableConfig({**table.properties, **TIMED, **more})


def test_custom_generators_join_simple_and_timestamp_fields() -> None:
    spec = key_spec(custom("city:SIMPLE,n:timestamp"), prefixed=None)
    assert not spec.key_prefixed
    assert add_keys(ROWS, spec).column(1).to_pylist() == [
        "são/a b/1970/01",
        "__HIVE_DEFAULT_PARTITION__/1970/01",
    ]


def test_types_that_the_table_does_not_store_are_asked_for() -> None:
    option = "hoodie.datasource.write.partitionpath.field"
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.table\.partition\.fields") as error:
        key_spec(custom("city,n"), prefixed=None)
    assert option in str(error.value)
    options = {option: "city:SIMPLE,n:TIMESTAMP"}
    assert set(key_spec(custom("city,n"), prefixed=None, options=options).times or {}) == {"n"}


def test_option_conflicting_with_table_is_refused() -> None:
    options = {"hoodie.keygen.timebased.timezone": "GMT+1"}
    with pytest.raises(UnsupportedTableFeature, match="timezone"):
        key_spec(custom("city:SIMPLE,n:timestamp"), prefixed=None, options=options)


def test_null_key_names_the_field() -> None:
    rows = pa.table({"id": ["k1", None], "n": [1, 2], "city": ["a", "b"]})
    with pytest.raises(SchemaMismatch, match="id"):
        add_keys(rows, key_spec(config("id"), prefixed=None))


@pytest.mark.parametrize(
    ("first", "second"), [(("1,b:2", "3"), ("1", "2,b:3")), (("__null__", "x"), (None, "x")),
                          (("x", "__empty__"), ("x", ""))],
)  # fmt: skip
def test_keys_of_two_spellings_are_refused_by_every_verb(
    tmp_path: Path, first: tuple[str, str], second: tuple[str | None, str]
) -> None:
    def rows(*keys: tuple[str | None, str]) -> pa.Table:
        columns = {"a": [a for a, _ in keys], "b": [b for _, b in keys], "v": [1] * len(keys)}
        return pa.table(columns, schema=pa.schema(SPELLED))

    table = pyhudi.create_table(tmp_path, rows(("1", "2,c"), (None, "3")), key=["a", "b"])
    known = "of other values|stands for"
    for verb in (table.upsert, table.insert, table.bulk_insert, table.delete_keys, table.overwrite):
        with pytest.raises(SchemaMismatch, match=f"row 1: .*({known})"):
            verb(rows(("1", "3"), first))
    with pytest.raises(SchemaMismatch, match=known):
        table.merge(rows(first)).when_matched_delete().execute()
    with pytest.raises(SchemaMismatch, match=known):
        table.upsert(rows(first, second), partial=True)
    assert table.scan(columns=["a", "b"]).to_arrow().num_rows == 2
    plain = pyhudi.create_table(tmp_path / "plain", rows(first), key="b")
    assert plain.scan().to_arrow().num_rows == 1


SPELLED = [("a", pa.string()), ("b", pa.string()), ("v", pa.int64())]


def test_rows_are_deleted_by_nested_keys(tmp_path: Path) -> None:
    who = pa.array([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    rows = pa.table({"who": who, "day": pa.array([0, 1], pa.date32())})
    table = pyhudi.create_table(str(tmp_path / "t"), rows, key="who.id", partition_by="day")
    table.delete_keys(pa.table({"who": pa.array([{"id": 1}])}))
    assert table.scan(["who"]).to_arrow().to_pylist() == [{"who": {"id": 2, "name": "b"}}]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_generated_keys_are_never_the_same_and_rows_cannot_be_found_by_them(
    tmp_path: Path, version: int
) -> None:
    rows = ROWS.select(["n", "city"])
    table = pyhudi.create_table(str(tmp_path / "t"), rows, key=None, version=version)
    table.insert(rows)
    made = table.scan(meta_fields=True).to_arrow().column("_hoodie_record_key").to_pylist()
    assert len(set(made)) == 2 * rows.num_rows
    refused = pytest.raises(UnsupportedTableFeature, match=r"hoodie\.table\.recordkey\.fields")
    with refused:
        table.upsert(rows)
    with refused:
        table.delete_keys(rows)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_new_table_uses_its_timestamp_generator(tmp_path: Path, version: int) -> None:
    rows = ROWS.drop_columns(["city"])
    options = {"hoodie.table.keygenerator.type": "TIMESTAMP", **TIMED}
    path = str(tmp_path / "t")
    pyhudi.create_table(path, rows, key="id", partition_by="n", version=version, options=options)
    table = pyhudi.open_table(path)
    assert table.upsert(rows).rows_updated == 2
    assert table.upsert(table.scan().to_arrow()).rows_updated == 2
    assert set(table.scan(meta_fields=True).to_arrow().column(3).to_pylist()) == {"1970/01"}
    table.delete_keys(rows)
    assert table.scan().to_arrow().num_rows == 0


TYPE = "hoodie.keygen.timebased.timestamp.type"
GOLDEN: dict[str, dict[str, str]] = {
    "v6_cow_timestamp_key": {TYPE: "EPOCHMILLISECONDS"},
    "v6_cow_custom_key": {
        "hoodie.datasource.write.partitionpath.field": "city:SIMPLE,at:TIMESTAMP",
        TYPE: "DATE_STRING",
        "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd HH:mm:ss",
        "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd",
        "hoodie.keygen.timebased.timezone": "UTC",
    },
    "v6_cow_complex_key": {},
    "v9_cow_complex_key": {},
}


@pytest.mark.parametrize("name", GOLDEN)
def test_keys_are_those_that_hudi_wrote(name: str, tmp_path: Path) -> None:
    unpack(name, tmp_path)
    table = pyhudi.open_table(tmp_path / name)
    theirs = table.scan(meta_fields=True).to_arrow()
    stored = pa.schema([("at", pa.int64())]) if name == "v6_cow_timestamp_key" else table.schema
    config = TableConfig.load(Storage(str(tmp_path / name)))
    first = theirs.column("_hoodie_record_key")[0].as_py()
    spec = key_spec(config, prefixed=first.startswith("id:"), options=GOLDEN[name])
    mine = add_keys(as_stored(theirs.select(theirs.column_names[5:]), config, stored), spec)
    for column in ("_hoodie_record_key", "_hoodie_partition_path"):
        assert mine.column(column).to_pylist() == theirs.column(column).to_pylist()


def test_generator_options_hudi_did_not_store_are_required(tmp_path: Path) -> None:
    for name, property_name in (("v6_cow_timestamp_key", TYPE), ("v6_cow_custom_key", "partition")):
        unpack(name, tmp_path)
        config = TableConfig.load(Storage(str(tmp_path / name)))
        with pytest.raises(UnsupportedTableFeature, match=property_name):
            key_spec(config, prefixed=None)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"hoodie.table.keygenerator.type": "UUID"}, "keygenerator.type is 'UUID'"),
        ({"hoodie.table.keygenerator.type": "TIMESTAMP"}, "timestamp.type is not set"),
    ],
)
@pytest.mark.parametrize("version", [6, 9])
def test_create_refuses_unsupported_key_generator(
    tmp_path: Path, options: dict[str, str], named: str, version: int
) -> None:
    with pytest.raises(pyhudi.HudiError, match=named):
        pyhudi.create_table(
            str(tmp_path / "t"),
            ROWS.schema,
            key="id",
            partition_by="n",
            version=version,
            options=options,
        )
    assert not (tmp_path / "t").exists()


def test_partition_path_with_leading_slash_is_refused() -> None:
    table = TableConfig(
        {
            **config("id", "n").properties,
            "hoodie.datasource.write.slash.separated.date.partitioning": "true",
        }
    )
    rows = pa.table({"id": ["a"], "n": [-5]})
    with pytest.raises(SchemaMismatch, match="slash"):
        add_keys(rows, key_spec(table, prefixed=None))
