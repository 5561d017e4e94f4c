"""Syncs with AWS Glue, as moto has it, and tables opened by name there."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
from moto import mock_aws

import pyhudi
from pyhudi.catalog import GlueCatalog
from pyhudi.catalog.protocol import CatalogPartition
from pyhudi.catalog.table_sync import is_same_location
from pyhudi.cli import main
from pyhudi.errors import (
    AfterCommitWarning,
    ConfigError,
    StorageError,
    TableNotFound,
    UnsupportedTableFeature,
)

ENABLE = "hoodie.datasource.meta.sync.enable"
TOOL = "hoodie.meta.sync.client.tool.class"
GLUE = "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool"
SYNC = "hoodie.datasource.hive_sync."


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tests")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "tests")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        yield boto3.client("glue", region_name="us-east-1")


def rows(*cities: str, **more: Any) -> pa.Table:
    keys = [f"{number}{city}" for number, city in enumerate(cities)]
    return pa.table({"id": keys, "city": list(cities), **more})


def made(folder: Path, *cities: str, **how: Any) -> pyhudi.HudiTable:
    return pyhudi.create_table(
        folder / "trips", rows(*cities), key="id", partition_by="city", **how
    )


def cities(name: str = "trips", database: str = "default") -> set[str]:
    return {each.values[0] for each in GlueCatalog().get_partitions(database, name)}


def test_commits_are_followed_by_a_sync(service: Any, tmp_path: Path) -> None:
    table = made(tmp_path, "osaka", "lima", options={ENABLE: True, TOOL: GLUE})
    assert cities() == {"osaka", "lima"}
    table.upsert(rows("paris"))
    assert cities() == {"osaka", "lima", "paris"}
    table.delete_partitions(["osaka"])
    assert cities() == {"lima", "paris"}
    found = service.get_table(DatabaseName="default", Name="trips")["Table"]
    (last, *_) = table.inspect.commits().sort_by([("requested", "descending")])["requested"]
    assert found["Parameters"]["last_commit_time_sync"] == last.as_py()
    assert found["Parameters"]["EXTERNAL"] == "TRUE"
    assert found["TableType"] == "EXTERNAL_TABLE"
    (partition, _) = service.get_partitions(DatabaseName="default", TableName="trips")["Partitions"]
    assert partition["StorageDescriptor"]["Location"] == f"{table.uri}/lima"


def test_cli_syncs_with_glue(
    service: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table = made(tmp_path, "osaka")
    into = ("--glue", "us-east-1", "--database", "lake", "--name", "t")
    assert main(["sync", table.uri, *into, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["created"] == ["lake.t"]
    assert cities("t", "lake") == {"osaka"}
    assert main(["sync", table.uri, *into, "--hive", "thrift://localhost:1"]) == 2


def test_glue_registers_three_names_of_merge_on_read(service: Any, tmp_path: Path) -> None:
    table = made(tmp_path, "osaka", type="mor")
    done = table.sync(GlueCatalog(), database="lake", name="t")
    assert done.created == ("lake.t_ro", "lake.t_rt", "lake.t")
    formats = {}
    for name in ("t_ro", "t_rt", "t"):
        found = GlueCatalog().get_table("lake", name)
        assert found is not None
        kind = found.input_format.rsplit(".", 1)[-1]
        formats[name] = kind, found.serde_parameters["hoodie.query.as.ro.table"]
    assert formats == {
        "t_ro": ("HoodieParquetInputFormat", "true"),
        "t_rt": ("HoodieParquetRealtimeInputFormat", "false"),
        "t": ("HoodieParquetRealtimeInputFormat", "false"),
    }
    with pytest.raises(ConfigError, match="read-optimized view"):
        pyhudi.open_table("lake.t_ro", catalog=GlueCatalog())


def test_glue_opens_table_by_name(service: Any, tmp_path: Path) -> None:
    made(tmp_path, "osaka").sync(GlueCatalog())
    catalog = GlueCatalog()
    assert pyhudi.open_table("trips", catalog=catalog).scan().count() == 1
    with pytest.raises(TableNotFound, match=r"no table 'lake\.trips'"):
        pyhudi.open_table("lake.trips", catalog=catalog)
    service.create_table(DatabaseName="default", TableInput={"Name": "other"})
    with pytest.raises(TableNotFound, match="not a Hudi table"):
        pyhudi.open_table("other", catalog=catalog)


def test_glue_sync_adds_columns_and_keeps_foreign_properties(service: Any, tmp_path: Path) -> None:
    catalog = GlueCatalog()
    table = made(tmp_path, "osaka")
    table.sync(catalog)
    known = catalog.get_table("default", "trips")
    assert known is not None
    with_owner = {**known.parameters, "owner": "ann"}
    changed = type(known)(**{**vars(known), "parameters": with_owner})
    catalog.alter_table("default", changed, cascade=False)
    assert not table.sync(catalog).schema_changed
    table.upsert(rows("lima", n=[1]), schema_mode="merge")
    done = table.sync(catalog)
    assert (done.schema_changed, done.partitions_added) == (True, 1)
    found = catalog.get_table("default", "trips")
    assert found is not None
    assert found.parameters["owner"] == "ann"
    assert (found.columns[-1].name, found.columns[-1].type) == ("n", "bigint")
    assert '"name":"n"' in found.parameters["spark.sql.sources.schema.part.0"]


def test_glue_sync_changes_column_type_in_partitions(service: Any, tmp_path: Path) -> None:
    catalog = GlueCatalog()
    base = tmp_path / "trips"
    first = rows(*(f"city{number}" for number in range(101)), v=pa.array([1] * 101, pa.int32()))
    table = pyhudi.create_table(base, first, key="id", partition_by="city")
    table.sync(catalog)
    table.upsert(rows("city0", v=[2**40], n=["x"]), schema_mode="merge")
    assert table.sync(catalog).schema_changed
    pages = service.get_paginator("get_partitions").paginate(
        DatabaseName="default", TableName="trips"
    )
    found = [each for page in pages for each in page["Partitions"]]
    assert len(found) == 101
    for each in found:
        types = {column["Name"]: column["Type"] for column in each["StorageDescriptor"]["Columns"]}
        assert (types["v"], types["n"]) == ("bigint", "string")
        assert each["StorageDescriptor"]["Location"] == f"{table.uri}/{each['Values'][0]}"


def test_glue_sync_of_new_column_keeps_partitions(service: Any, tmp_path: Path) -> None:
    """Hudi leaves them, too: readers find null where a partition has no such column."""
    table = made(tmp_path, "osaka")
    table.sync(GlueCatalog())
    table.upsert(rows("lima", n=[1]), schema_mode="merge")
    table.sync(GlueCatalog())
    found = service.get_partitions(DatabaseName="default", TableName="trips")["Partitions"]
    columns = {
        each["Values"][0]: [column["Name"] for column in each["StorageDescriptor"]["Columns"]]
        for each in found
    }
    assert "n" in columns["lima"]
    assert "n" not in columns["osaka"]


def test_glue_sync_keeps_foreign_empty_values(service: Any, tmp_path: Path) -> None:
    catalog = GlueCatalog()
    options = {f"{SYNC}schema_string_length_thresh": "100"}
    table = made(tmp_path, "osaka", options=options)
    table.sync(catalog)
    known = catalog.get_table("default", "trips")
    assert known is not None
    others = {"mine": "", "spark.sql.sources.schema.part.99": "old"}
    changed = replace(known, parameters={**known.parameters, **others})
    catalog.alter_table("default", changed, cascade=False)
    table.upsert(rows("lima"))
    table.sync(catalog)
    found = catalog.get_table("default", "trips")
    assert found is not None
    assert found.parameters["mine"] == ""
    assert found.parameters.keys() - known.parameters.keys() == {"mine"}


def by_day(folder: Path, *days: str) -> pyhudi.HudiTable:
    data = pa.table({"id": list(days), "day": list(days)})
    return pyhudi.create_table(folder / "days", data, key="id", partition_by="day")


def test_glue_sync_refuses_two_directories_of_one_value(service: Any, tmp_path: Path) -> None:
    table = by_day(tmp_path, "2020/01/01", "2020-01-01")
    with pytest.raises(UnsupportedTableFeature, match="'2020-01-01' and '2020/01/01'"):
        table.sync(GlueCatalog())
    assert not cities("days")


def test_glue_sync_refuses_directory_equal_to_registered_partition(
    service: Any, tmp_path: Path
) -> None:
    table = by_day(tmp_path, "2020-01-01")
    table.sync(GlueCatalog())
    table.upsert(pa.table({"id": ["b"], "day": ["2020/01/01"]}))
    with pytest.raises(UnsupportedTableFeature, match="'2020-01-01' and '2020/01/01'"):
        table.sync(GlueCatalog())
    table.delete_partitions(["2020/01/01"])
    table.sync(GlueCatalog())
    (found,) = GlueCatalog().get_partitions("default", "days")
    assert found.location == f"{table.uri}/2020-01-01"
    table.delete_partitions(["2020-01-01"])
    table.upsert(pa.table({"id": ["b"], "day": ["2020/01/01"]}))
    assert table.sync(GlueCatalog()).partitions_moved == 1
    (found,) = GlueCatalog().get_partitions("default", "days")
    assert found.location == f"{table.uri}/2020/01/01"


@pytest.mark.parametrize("folder", ["/osaka/../../x", "/a//b", "", "_other/x", "/other"])
def test_glue_sync_restores_moved_partition(service: Any, tmp_path: Path, folder: str) -> None:
    catalog = GlueCatalog()
    table = made(tmp_path, "osaka")
    table.sync(catalog)
    elsewhere = CatalogPartition(("osaka",), table.uri + folder)
    catalog.move_partitions("default", "trips", [elsewhere], 1)
    table.upsert(rows("osaka"))
    assert table.sync(catalog).partitions_moved == 1
    (found,) = catalog.get_partitions("default", "trips")
    assert found.location == f"{table.uri}/osaka"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("s3://b/x", "s3a://b/x/", True),
        ("file:/x/y", "/x/y", True),
        ("file:///x/y", "/x/y/", True),
        ("hdfs://nn:8020/x", "hdfs:///x", True),
        ("hdfs:/x", "hdfs://nn:8020/x", True),
        ("hdfs://a/x", "hdfs://b/x", False),
        ("hdfs:///x", "hdfs://nn/y", False),
        ("s3://a/x", "s3://b/x", False),
        ("s3://b/x", "/x", False),
    ],
)
def test_locations_are_told_apart(one: str, other: str, same: bool) -> None:
    assert is_same_location(one, other) is same


def test_glue_sync_is_idempotent(service: Any, tmp_path: Path) -> None:
    table = made(tmp_path, "osaka")
    table.sync(GlueCatalog())
    version = service.get_table(DatabaseName="default", Name="trips")["Table"]["VersionId"]
    table.sync(GlueCatalog())
    again = service.get_table(DatabaseName="default", Name="trips")["Table"]["VersionId"]
    assert again == version


def test_partitions_are_mended_after_what_is_not_on_the_timeline(
    service: Any, tmp_path: Path
) -> None:
    catalog = GlueCatalog()
    table = made(tmp_path, "osaka", "lima")
    table.sync(catalog)
    known = catalog.get_table("default", "trips")
    assert known is not None
    partitions = catalog.get_partitions("default", "trips")
    catalog.drop_partitions("default", "trips", partitions[:1])
    old = {**known.parameters, "last_commit_time_sync": "20200101000000000"}
    catalog.alter_table("default", type(known)(**{**vars(known), "parameters": old}), cascade=False)
    assert table.sync(catalog).partitions_added == 1
    assert cities() == {"osaka", "lima"}


def test_another_table_of_the_name_is_left_alone(service: Any, tmp_path: Path) -> None:
    made(tmp_path / "a", "osaka").sync(GlueCatalog())
    with pytest.raises(ConfigError, match="in the catalog, this table at"):
        made(tmp_path / "b", "osaka").sync(GlueCatalog())


def test_folders_of_times_are_no_numbers(service: Any, tmp_path: Path) -> None:
    by_time = {
        "hoodie.table.keygenerator.type": "TIMESTAMP",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
    }
    data = pa.table({"id": ["a"], "at": [0]})
    table = pyhudi.create_table(tmp_path / "t", data, key="id", partition_by="at", options=by_time)
    with pytest.raises(UnsupportedTableFeature, match="not values of the column 'at'"):
        table.sync(GlueCatalog())
    named = pyhudi.open_table(tmp_path / "t", options={f"{SYNC}partition_fields": "day"})
    named.sync(GlueCatalog())
    assert cities("t") == {"1970-01-01"}


def test_glue_sync_creates_database_only_if_enabled(service: Any, tmp_path: Path) -> None:
    table = made(tmp_path, "osaka", options={f"{SYNC}auto_create_database": "false"})
    with pytest.raises(ConfigError, match="no database 'lake'"):
        table.sync(GlueCatalog(), database="lake")


def test_failed_sync_keeps_commit(service: Any, tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        table = made(
            tmp_path,
            "osaka",
            options={ENABLE: True, f"{SYNC}metastore.uris": "thrift://127.0.0.1:1"},
        )
    assert [warning.category for warning in told] == [AfterCommitWarning]
    assert "sync of catalogs" in str(told[0].message)
    assert table.scan().count() == 1
    with pytest.raises(StorageError, match="Hive metastore at"):
        table.sync()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (f"{SYNC}mode", "jdbc", "Pass hms"),
        (f"{SYNC}create_managed_table", "true", "Leave it out"),
        (f"{SYNC}partition_extractor_class", "com.example.Mine", "MultiPartKeys"),
        (TOOL, "org.apache.hudi.gcp.bigquery.BigQuerySyncTool", "HiveSyncTool"),
    ],
)
def test_sync_refuses_unsupported_options(tmp_path: Path, name: str, value: str, said: str) -> None:
    with pytest.raises(UnsupportedTableFeature, match="pyhudi does not support") as refused:
        made(tmp_path, "osaka", options={name: value})
    assert said in refused.value.hint


def test_hive_sync_needs_address(tmp_path: Path) -> None:
    table = made(tmp_path, "osaka", options={ENABLE: False})
    with pytest.raises(ConfigError, match=r"needs the option .*metastore\.uris"):
        table.sync()
    with pytest.raises(ConfigError, match="catalog is 'x'"):
        table.sync("x")  # type: ignore[arg-type]
