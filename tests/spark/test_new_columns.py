"""Types of Spark's in new columns: what is stored otherwise, what is refused, VECTOR."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as st

import pyhudi
from pyhudi import ColumnTypeWarning, SchemaMismatch, UnsupportedTableFeature
from pyhudi.spark import SparkEngine, create_table, read, sql

pytestmark = [pytest.mark.spark35, pytest.mark.filterwarnings("ignore")]

HAS_COLLATIONS = hasattr(st.StringType, "isUTF8BinaryCollation")
HAS_TIME = hasattr(st, "TimeType")
HAS_VARIANT = hasattr(st, "VariantType")

SIZED = "id STRING, c CHAR(4), v VARCHAR(3), t TINYINT, s SMALLINT, n STRUCT<x: VARCHAR(2)>"
SIZED_FIELDS = st.StructType(
    [
        st.StructField("id", st.StringType()),
        st.StructField("c", st.CharType(4)),
        st.StructField("v", st.VarcharType(3)),
        st.StructField("t", st.ByteType()),
        st.StructField("s", st.ShortType()),
        st.StructField("n", st.StructType([st.StructField("x", st.VarcharType(2))])),
    ]
)
BY_DECLARATION: dict[str, Callable[[SparkSession, str], Any]] = {
    "ddl": lambda spark, base: create_table(spark, base, SIZED, key="id"),
    "fields": lambda spark, base: create_table(spark, base, SIZED_FIELDS, key="id"),
    "sql": lambda spark, base: sql(
        spark,
        f"CREATE TABLE sized ({SIZED}) USING hudi LOCATION '{base}' "
        "TBLPROPERTIES (primaryKey = 'id')",
    ),
}


@pytest.mark.parametrize("declaration", BY_DECLARATION)
def test_new_columns_warn_of_types_that_hudi_does_not_have(
    declaration: str, spark: SparkSession, tmp_path: Path
) -> None:
    base = str(tmp_path / "t")
    with pytest.warns(ColumnTypeWarning) as warnings:
        BY_DECLARATION[declaration](spark, base)
    said = " ".join(str(warning.message) for warning in warnings).lower()
    for name in ("'c' char(4)", "'v' varchar(3)", "'t' tinyint", "'s' smallint", "varchar(2)"):
        assert name in said
    schema = pyhudi.open_table(base).schema
    assert [schema.field(name).type for name in "cvts"] == [pa.string()] * 2 + [pa.int32()] * 2


def test_new_columns_of_frames_and_alter_warn(spark: SparkSession, tmp_path: Path) -> None:
    base = str(tmp_path / "t")
    frame = spark.sql("SELECT 'a' AS id, CAST(1 AS TINYINT) AS t")
    with pytest.warns(ColumnTypeWarning, match="'t' tinyint"):
        pyhudi.create_table(base, frame, key="id", engine=SparkEngine(spark))
    with pytest.warns(ColumnTypeWarning, match=r"'v' VARCHAR\(3\)"):
        sql(spark, f"ALTER TABLE hudi.`{base}` ADD COLUMNS (v VARCHAR(3))")
    sql(spark, f"INSERT INTO hudi.`{base}` VALUES ('b', 300, 'longer')")  # as Hudi does
    assert sorted(map(tuple, read(spark, base).collect())) == [("a", 1, None), ("b", 300, "longer")]


@pytest.mark.parametrize(
    ("value", "arrow"),
    [
        ("INTERVAL '1' DAY", pa.duration("us")),
        ("INTERVAL '1' YEAR", pa.month_day_nano_interval()),
        ("array(INTERVAL '1' HOUR)", pa.list_(pa.duration("us"))),
    ],
)
def test_interval_has_the_error_of_an_arrow_duration(
    value: str, arrow: pa.DataType, spark: SparkSession, tmp_path: Path
) -> None:
    base, engine = str(tmp_path / "t"), SparkEngine(spark)
    frame = spark.sql(f"SELECT 'a' AS id, {value} AS d")
    rows = pa.table({"id": ["a"], "d": pa.array([None], arrow)})
    errors = []
    for data in (frame, rows):
        with pytest.raises(UnsupportedTableFeature, match="'d") as error:
            pyhudi.create_table(base, data, key="id", engine=engine)
        errors.append(str(error.value))
    assert errors[0] == errors[1]
    table = create_table(spark, base, "id STRING, d BIGINT", key="id")
    for data in (frame, rows):
        with pytest.raises(SchemaMismatch, match=r"'d' is .*, the table has int64"):
            table.upsert(data)
    with pytest.raises(SchemaMismatch, match="do not match"):
        sql(spark, f"INSERT INTO hudi.`{base}` SELECT 'a', {value}")
    assert not pyhudi.open_table(base).history().num_rows


@pytest.mark.skipif(not HAS_COLLATIONS, reason="Spark 3.5 has no collations")
def test_collation_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    base, engine = str(tmp_path / "t"), SparkEngine(spark)
    create_table(spark, base, "id STRING, s STRING, a ARRAY<STRING>", key="id")
    query = "SELECT 'a' AS id, 'x' COLLATE UTF8_LCASE AS s, array('y') AS a"
    nested = "SELECT 'a' AS id, 'x' AS s, array('y' COLLATE UNICODE) AS a"
    where, new = f"hudi.`{base}`", str(tmp_path / "new")
    calls: list[Callable[[], Any]] = [
        lambda: pyhudi.create_table(new, spark.sql(query), key="id", engine=engine),
        lambda: create_table(spark, new, "id STRING, s STRING COLLATE UNICODE_CI", key="id"),
        lambda: sql(spark, f"CREATE TABLE c USING hudi LOCATION '{new}' AS {query}"),
        lambda: pyhudi.open_table(base, engine=engine).upsert(spark.sql(query)),
        lambda: pyhudi.open_table(base, engine=engine).upsert(spark.sql(nested)),
        lambda: sql(spark, f"INSERT INTO {where} {query}"),
        lambda: sql(spark, f"ALTER TABLE {where} ADD COLUMNS (u STRING COLLATE UNICODE)"),
        lambda: sql(
            spark,
            f"MERGE INTO {where} t USING ({query}) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        ),
    ]
    for call in calls:
        with pytest.raises(UnsupportedTableFeature, match="collat"):
            call()
    assert not pyhudi.open_table(base).history().num_rows
    assert not pyhudi.table_exists(new)
    sql(spark, f"INSERT INTO {where} SELECT id, CAST(s AS STRING), a FROM ({query})")
    assert [tuple(row) for row in read(spark, base).collect()] == [("a", "x", ["y"])]


TIMES = pa.table(
    {
        "id": ["a", "b"],
        "us": pa.array([1, None], pa.time64("us")),
        "ms": pa.array([None, 5], pa.time32("ms")),
    }
)


def test_times_of_day_are_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    """Tables have them, and Spark does not: up to 4.3 its TIME type is not enabled."""
    base = str(tmp_path / "t")
    pyhudi.create_table(base, TIMES, key="id")
    with pytest.raises(UnsupportedTableFeature, match=r"'us' .*Spark has no type for it"):
        read(spark, base)
    assert read(spark, base, columns=["id"]).count() == 2
    if HAS_TIME:
        schema = st.StructType([st.StructField("t", st.TimeType())])
        with pytest.raises(UnsupportedTableFeature, match=r"'t' is time\(6\), a type that is not"):
            create_table(spark, tmp_path / "new", schema, key=None)


def test_vectors_are_declared_as_in_hudi(spark: SparkSession, tmp_path: Path) -> None:
    base = str(tmp_path / "t")
    sql(
        spark,
        f"""CREATE TABLE vectors (id STRING, f VECTOR(2), d VECTOR(3, DOUBLE)) USING hudi
        LOCATION '{base}' TBLPROPERTIES (primaryKey = 'id')""",
    )
    sql(spark, "ALTER TABLE vectors ADD COLUMNS (b VECTOR(1, INT8))")
    sql(spark, "INSERT INTO vectors VALUES ('a', array(1, 2), array(1, 2, 3), array(7Y))")
    names = [(field.metadata or {}).get(b"hudi_type") for field in pyhudi.open_table(base).schema]
    assert names == [None, b"VECTOR(2)", b"VECTOR(3, DOUBLE)", b"VECTOR(1, INT8)"]
    rows = [tuple(row) for row in read(spark, base).collect()]
    assert rows == [("a", [1.0, 2.0], [1.0, 2.0, 3.0], [7])]
    with pytest.raises(SchemaMismatch, match="'f'"):
        sql(spark, "INSERT INTO vectors VALUES ('b', array(1), array(1, 2, 3), array(7Y))")
    fields = st.StructType(
        [
            st.StructField("id", st.StringType()),
            st.StructField("f", st.ArrayType(st.FloatType()), True, {"hudi_type": "VECTOR(2)"}),
        ]
    )
    table = create_table(spark, tmp_path / "u", fields, key="id")
    assert table.schema.field("f").type.list_size == 2
    wrong = st.StructType(
        [fields[0], st.StructField("f", st.StringType(), True, fields[1].metadata)]
    )
    with pytest.raises(SchemaMismatch, match=r"'f' is string, and its hudi_type is 'VECTOR\(2\)'"):
        create_table(spark, tmp_path / "w", wrong, key="id")


@pytest.mark.skipif(not HAS_VARIANT, reason="Spark 3.5 has no VARIANT")
def test_variants_are_changed_by_sql(spark: SparkSession, tmp_path: Path) -> None:
    base = str(tmp_path / "t")
    sql(
        spark,
        f"""CREATE TABLE variants (id INT, v VARIANT) USING hudi LOCATION '{base}'
        TBLPROPERTIES (primaryKey = 'id', type = 'mor')""",
    )
    sql(spark, "ALTER TABLE variants ADD COLUMNS (w VARIANT)")
    sql(spark, "INSERT INTO variants SELECT 1, parse_json('{\"a\": 1}'), NULL")
    sql(
        spark,
        """MERGE INTO variants t
        USING (SELECT 1 AS id, parse_json('[2]') AS v, parse_json('true') AS w
               UNION ALL SELECT 2, parse_json('3'), NULL) s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *""",
    )
    update = (
        "UPDATE variants SET w = parse_json('{\"x\": 5}') WHERE variant_get(v, '$[0]', 'int') = 2"
    )
    sql(spark, update)
    table = pyhudi.open_table(base)
    rows = table.scan().to_arrow().sort_by("id")
    for name, texts in {"v": ["[2]", "3"], "w": ['{"x":5}', None]}.items():
        assert rows.schema.field(name).metadata[b"hudi_type"] == b"VARIANT"
        assert pyhudi.variant_to_json(rows[name]).to_pylist() == texts
    (row,) = sql(spark, "SELECT variant_get(w, '$.x', 'int') FROM variants WHERE id = 1").collect()
    assert row[0] == 5
    assert not table.check(deep=True).findings
