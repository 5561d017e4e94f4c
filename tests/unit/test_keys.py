from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.config import TableConfig
from pyhudi.errors import SchemaMismatch, UnsupportedTableFeature
from pyhudi.keys import add_keys, key_spec, needs_existing_key, supported_generator

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


def keyed(table: TableConfig, existing: str | None = None) -> list[tuple[str, str]]:
    rows = add_keys(ROWS, key_spec(table, existing_key=existing))
    assert rows.column_names[:2] == ["_hoodie_record_key", "_hoodie_partition_path"]
    return list(zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True))


def test_one_key_without_partitions_is_the_plain_value() -> None:
    assert keyed(config("id")) == [("k1", ""), ("k2", "")]


def test_one_key_one_partition() -> None:
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
    assert needs_existing_key(table)
    assert keyed(table)[0][0] == wanted


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize(("existing", "wanted"), [("id:k7", "id:k1"), ("k7", "k1")])
def test_single_complex_key_follows_the_keys_that_are_there(
    version: int, existing: str, wanted: str
) -> None:
    assert keyed(config("id", "city,n", version), existing)[0][0] == wanted


@pytest.mark.parametrize("kind", ["TIMESTAMP", "CUSTOM", "USER_PROVIDED", "SPARK_SQL", "SIMPLE"])
def test_other_generators_are_refused_by_name(kind: str) -> None:
    table = config("id,n", "city", hoodie_table_keygenerator_type=kind)
    with pytest.raises(UnsupportedTableFeature, match=f"hoodie.table.keygenerator.type is {kind}"):
        supported_generator(table)


def test_refusal_names_the_class_property_where_that_decides() -> None:
    name = "org.apache.hudi.keygen.TimestampBasedKeyGenerator"
    table = config("id", "city", hoodie_table_keygenerator_class=name)
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.table\.keygenerator\.class"):
        supported_generator(table)


def test_generated_keys_are_refused() -> None:
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.table\.recordkey\.fields"):
        supported_generator(config(""))


def test_null_key_names_the_field() -> None:
    rows = pa.table({"id": ["k1", None], "n": [1, 2], "city": ["a", "b"]})
    with pytest.raises(SchemaMismatch, match="id"):
        add_keys(rows, key_spec(config("id"), existing_key=None))
