"""The commands `catalog`, on AWS Glue as moto has it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
from moto import mock_aws

import pyhudi
from pyhudi.cli import main

CONFIG = """
[catalog.prod]
type = "glue"
region = "us-east-1"

[catalog.prod.storage_options]
secret_access_key = "hidden"

[catalog.metastore]
type = "hive"
uris = "thrift://localhost:1"
"""


@dataclass(frozen=True)
class Output:
    """The output of a command."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


class Commands:
    """Runs `pyhudi catalog`."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def run(self, *arguments: str) -> Output:
        self._capfd.readouterr()
        code = main(["catalog", *arguments])
        return Output(code, *self._capfd.readouterr())


@pytest.fixture
def commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Commands]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "tests")
    (tmp_path / "pyhudi.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYHUDI_CONFIG", raising=False)
    with mock_aws():
        yield Commands(capfd)


def create(location: str, **arguments: Any) -> pyhudi.HudiTable:
    rows = pa.table({"id": ["a", "b"], "city": ["lima", "osaka"], "n": [1, 2]})
    return pyhudi.create_table(location, rows, key="id", partition_by="city", **arguments)


def test_list_shows_catalogs_without_secrets(commands: Commands) -> None:
    listed = commands.run("list", "--json")
    assert listed.rows == [
        {"catalog": "metastore", "type": "hive", "connection": ["uris=thrift://localhost:1"]},
        {"catalog": "prod", "type": "glue", "connection": ["region=us-east-1"]},
    ]
    assert commands.run("list").out.splitlines()[0].split() == ["catalog", "type", "connection"]
    assert "hidden" not in listed.out


def test_list_without_configuration_is_empty(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "pyhudi.toml").unlink()
    listed = commands.run("list", "--json")
    assert (listed.code, listed.out) == (0, "")


def test_catalog_commands_register_rename_and_drop(commands: Commands, tmp_path: Path) -> None:
    created = commands.run("create-database", "prod.sales", "--location", f"file:{tmp_path}/sales")
    assert (created.code, created.out) == (0, "created the database prod.sales\n")
    assert commands.run("databases", "prod", "--json").rows == [{"database": "sales"}]
    assert commands.run("tables", "prod.sales", "--json").rows == []
    table = create(str(tmp_path / "elsewhere"), type="mor")
    registered = commands.run("register", "prod.sales.trips", table.uri, "--json")
    assert registered.rows == [{"name": "prod.sales.trips", "location": table.uri}]
    listed = commands.run("tables", "prod.sales", "--json").rows
    assert listed == [{"table": "trips"}, {"table": "trips_rt"}]
    assert pyhudi.open_table("prod.sales.trips").count() == 2
    renamed = commands.run("rename", "prod.sales.trips", "rides")
    assert renamed.out == "renamed prod.sales.trips to prod.sales.rides\n"
    assert commands.run("rename", "prod.sales.rides", "prod.sales.tours").code == 0
    listed = commands.run("tables", "prod.sales", "--json").rows
    assert listed == [{"table": "tours"}, {"table": "tours_rt"}]
    assert commands.run("drop", "prod.sales.tours").code == 2
    dropped = commands.run("drop", "prod.sales.tours", "--yes")
    assert (dropped.code, dropped.out) == (0, "dropped prod.sales.tours\n")
    assert commands.run("tables", "prod.sales", "--json").rows == []
    assert table.refresh().count() == 2


def test_show_prints_entry(commands: Commands, tmp_path: Path) -> None:
    commands.run("create-database", "prod.sales", "--location", f"file:{tmp_path}/sales")
    table = create("prod.sales.trips")
    (shown,) = commands.run("show", "prod.sales.trips", "--json").rows
    assert (shown["name"], shown["location"]) == ("prod.sales.trips", table.uri)
    assert (shown["hudi_table"], shown["read_optimized_view"]) == (True, False)
    assert shown["partitions"] == 2
    assert shown["last_synced_commit"] == table.history()["instant"][0].as_py()
    types = {column["column"]: (column["type"], column["role"]) for column in shown["columns"]}
    assert types["n"] == ("bigint", "")
    assert types["city"] == ("string", "partition")
    text = commands.run("show", "prod.sales.trips").out
    assert "last synced commit" in text
    assert "partition" in text
    (parameters,) = commands.run("show", "prod.sales.trips", "--properties", "--json").rows
    assert parameters["spark.sql.sources.provider"] == "hudi"


def test_show_describes_table_of_another_format(commands: Commands, tmp_path: Path) -> None:
    commands.run("create-database", "prod.sales")
    glue = boto3.client("glue", region_name="us-east-1")
    glue.create_table(DatabaseName="sales", TableInput={"Name": "plain"})
    (shown,) = commands.run("show", "prod.sales.plain", "--json").rows
    assert (shown["hudi_table"], shown["partitions"], shown["columns"]) == (False, None, [])


def test_drop_with_purge_removes_files(commands: Commands, tmp_path: Path) -> None:
    commands.run("create-database", "prod.sales", "--location", f"file:{tmp_path}/sales")
    table = create("prod.sales.trips")
    dropped = commands.run("drop", "prod.sales.trips", "--purge", "--yes", "--json")
    assert dropped.rows == [{"name": "prod.sales.trips", "purged": True}]
    assert not pyhudi.table_exists(table.uri)
    assert not [*Path(table.uri).rglob("*.parquet")]
    assert commands.run("tables", "prod.sales", "--json").rows == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("databases", "prd"), "no catalog 'prd' is configured"),
        (("tables", "prod"), "'prod' is not of the form CATALOG.DATABASE"),
        (("tables", "prod.sale"), "has no database 'sale'"),
        (("show", "prod.trips"), "'prod.trips' is not of the form CATALOG.DATABASE.TABLE"),
        (("show", "prod.sales.trip"), "has no table sales.trip"),
        (("drop", "prod.sales.trip", "--yes"), "has no table 'prod.sales.trip'"),
        (("drop", "prod.sales.trip"), "has no table 'prod.sales.trip'"),
        (("rename", "prod.sales.a", "other.sales.a"), "is in another catalog"),
        (("register", "prod.sales.a", "/missing"), "no Hudi table at /missing"),
    ],
)
def test_catalog_commands_report_wrong_names(
    commands: Commands, arguments: tuple[str, ...], message: str
) -> None:
    commands.run("create-database", "prod.sales")
    failed = commands.run(*arguments)
    assert failed.code == 3
    assert message in failed.err
