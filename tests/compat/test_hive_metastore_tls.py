"""Tables by name in a real Hive metastore that accepts TLS only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.catalog import HiveCatalog
from pyhudi.cli import main
from pyhudi.errors import StorageError
from tests.helpers.hive_metastore import HiveMetastore, new_keystore
from tests.helpers.named_tables import check_commits_sync

pytestmark = pytest.mark.jvm


@dataclass(frozen=True)
class TlsMetastore:
    """The server, its certificate, and one of another server."""

    uris: str
    port: int
    certificate: Path
    other_certificate: Path


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsMetastore]:
    folder = tmp_path_factory.mktemp("metastore")
    keystore, certificate = new_keystore(folder, "metastore", "ip:127.0.0.1")
    _, other = new_keystore(folder, "other", "ip:127.0.0.1")
    server = HiveMetastore(folder, keystore=keystore)
    yield TlsMetastore(server.uris, server.port, certificate, other)
    server.close()


def test_commits_sync_over_tls(
    metastore: TlsMetastore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    settings = f'uris = "{metastore.uris}"\ntls = true\nca_file = "{metastore.certificate}"\n'
    check_commits_sync(settings, tmp_path, monkeypatch, capfd)
    assert main(["catalog", "list", "--json"]) == 0
    (listed,) = capfd.readouterr().out.splitlines()
    assert "tls=true" in json.loads(listed)["connection"]


def test_unknown_certificate_is_refused(metastore: TlsMetastore) -> None:
    for ca_file in (None, str(metastore.other_certificate)):
        catalog = HiveCatalog(metastore.uris, tls=True, ca_file=ca_file)
        with pytest.raises(StorageError, match="its certificate is not accepted") as error:
            catalog.list_databases()
        assert metastore.uris in str(error.value)
        assert "Set ca_file" in error.value.hint


def test_certificate_of_another_host_is_refused(metastore: TlsMetastore) -> None:
    uris, ca_file = f"thrift://localhost:{metastore.port}", str(metastore.certificate)
    with pytest.raises(StorageError, match="not accepted: Hostname mismatch"):
        HiveCatalog(uris, tls=True, ca_file=ca_file).list_databases()
    unchecked = HiveCatalog(uris, tls=True, ca_file=ca_file, check_hostname=False)
    assert "default" in unchecked.list_databases()


def test_connection_without_tls_has_hint(metastore: TlsMetastore) -> None:
    with pytest.raises(StorageError) as error:
        HiveCatalog(metastore.uris).list_databases()
    assert "tls = true" in error.value.hint


def test_lock_and_sync_by_options_over_tls(metastore: TlsMetastore, tmp_path: Path) -> None:
    lock = "hoodie.write.lock."
    options = {
        f"{lock}provider": "HiveMetastoreBasedLockProvider",
        f"{lock}hivemetastore.uris": metastore.uris,
        f"{lock}hivemetastore.database": "default",
        f"{lock}hivemetastore.table": "rides",
        "hoodie.datasource.meta.sync.enable": True,
        "hoodie.datasource.hive_sync.metastore.uris": metastore.uris,
    }
    tls = {"pyhudi.metastore.tls": True, "pyhudi.metastore.ca_file": str(metastore.certificate)}
    rows = pa.table({"id": ["a"]})
    with pytest.raises(StorageError, match=r"pyhudi\.metastore"):
        pyhudi.create_table(tmp_path / "rides", rows, key="id", options=options)
    table = pyhudi.create_table(tmp_path / "rides", rows, key="id", options={**options, **tls})
    assert table.upsert(rows).rows_updated == 1
    catalog = HiveCatalog(metastore.uris, tls=True, ca_file=str(metastore.certificate))
    assert catalog.get_table("default", "rides") is not None
    catalog.close()
