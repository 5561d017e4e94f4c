"""Tables by name in real Hive metastores that accept Kerberos only, with a real KDC."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.catalog import HiveCatalog
from pyhudi.catalog.protocol import CatalogPartition, CatalogTable, Column
from pyhudi.cli import main
from pyhudi.clock import SystemClock
from pyhudi.config.metastore_options import MetastoreOptions
from pyhudi.errors import LockTimeout, StorageError
from pyhudi.txn.locks import hive_client
from pyhudi.txn.locks.hive_client import HiveClient, user_name
from pyhudi.txn.locks.hive_metastore import HiveMetastoreLock
from tests.helpers.certificates import Authority
from tests.helpers.hive_metastore import HiveMetastore
from tests.helpers.kerberos import OTHER_SERVICE, REALM, SERVICE, USER, Realm
from tests.helpers.named_tables import check_commits_sync
from tests.helpers.tls_proxy import TlsProxy

LEVELS = {"authentication": 1, "integrity": 2, "privacy": 4}
NewServer = Callable[[bytes | None], str]


@pytest.fixture(scope="session")
def kdc() -> Iterator[Realm]:
    realm = Realm()
    yield realm
    realm.close()


@pytest.fixture
def realm(kdc: Realm, monkeypatch: pytest.MonkeyPatch) -> Iterator[Realm]:
    """The realm, whose user has a ticket and no keytab."""
    for name, value in kdc.variables.items():
        monkeypatch.setenv(name, value)
    kdc.get_ticket()
    yield kdc
    kdc.remove_tickets()


@pytest.fixture(scope="module", params=list(LEVELS))
def protection(request: pytest.FixtureRequest) -> str:
    level: str = request.param
    return level


@pytest.fixture(scope="module")
def protected(
    kdc: Realm, protection: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HiveMetastore]:
    """A metastore with the protection."""
    server = HiveMetastore(tmp_path_factory.mktemp(protection), kerberos=kdc.server(protection))
    yield server
    server.close()


@pytest.fixture(scope="module")
def metastore(kdc: Realm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    """A metastore that offers each protection."""
    settings = kdc.server(",".join(LEVELS))
    server = HiveMetastore(tmp_path_factory.mktemp("metastore"), kerberos=settings)
    yield server
    server.close()


@pytest.fixture(scope="module")
def open_metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    """A metastore without Kerberos."""
    server = HiveMetastore(tmp_path_factory.mktemp("open"))
    yield server
    server.close()


@pytest.fixture
def short_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hive_client, "_TIMEOUT_MS", 2000)


@pytest.fixture
def new_server() -> Iterator[NewServer]:
    """Start a server that sends bytes to each client and closes, or that sends nothing."""
    servers: list[socket.socket] = []

    def start(answer: bytes | None) -> str:
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)
        if answer is not None:
            threading.Thread(target=run, args=(server, answer), daemon=True).start()
        return f"thrift://localhost:{server.getsockname()[1]}"

    def run(server: socket.socket, answer: bytes) -> None:
        with suppress(OSError):  # the server is closed
            while True:
                connection, _ = server.accept()
                with connection, suppress(OSError):  # the client is gone
                    connection.sendall(answer)
                    # A client that still sends would see a reset instead of the answer.
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(4096):
                        pass

    yield start
    for server in servers:
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        server.close()


def uri_of(server: HiveMetastore) -> str:
    return f"thrift://localhost:{server.port}"


def test_commits_sync_with_each_protection(
    realm: Realm,
    protected: HiveMetastore,
    protection: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    settings = (
        f'uris = "{uri_of(protected)}"\n'
        f'kerberos = true\nkerberos_principal = "hive/_HOST@{REALM}"\n'
    )
    check_commits_sync(settings, tmp_path, monkeypatch, capfd)
    client = HiveClient(uri_of(protected), options=MetastoreOptions(kerberos=True))
    assert client.call("get_table", "sales", "trips").owner == USER
    assert client._connection._level == LEVELS[protection]
    client.disconnect()


def test_long_requests_and_responses(realm: Realm, protected: HiveMetastore) -> None:
    """A protected frame has at most 64 KiB: the requests here have several times that."""
    catalog = HiveCatalog(uri_of(protected), kerberos=True)
    catalog.create_database("wide")
    columns = tuple(Column(f"c{number}", "string", "a comment" * 20) for number in range(500))
    table = CatalogTable("t", "file:/wide/t", columns, (Column("day", "string", ""),))
    catalog.create_table("wide", table)
    partitions = [CatalogPartition((f"d{day}",), f"file:/wide/t/d{day}") for day in range(20)]
    catalog.add_partitions("wide", "t", partitions, 10)
    stored = catalog.get_table("wide", "t")
    assert stored is not None
    assert stored.columns == columns
    assert set(catalog.get_partitions("wide", "t")) == set(partitions)
    catalog.close()


def test_strongest_protection_is_chosen(realm: Realm, metastore: HiveMetastore) -> None:
    client = HiveClient(uri_of(metastore), options=MetastoreOptions(kerberos=True))
    assert client.call("get_all_databases") == ["default"]
    assert client._connection._level == LEVELS["privacy"]
    client.disconnect()


@pytest.mark.parametrize(
    ("host", "principal"),
    [
        ("localhost", "hive"),
        ("localhost", "hive/localhost"),
        ("localhost", SERVICE),
        ("127.0.0.1", SERVICE),
        # The Kerberos library finds the name of an address.
        ("127.0.0.1", f"hive/_HOST@{REALM}"),
    ],
)
def test_principal_names_the_metastore(
    realm: Realm, metastore: HiveMetastore, host: str, principal: str
) -> None:
    uris = f"thrift://{host}:{metastore.port}"
    catalog = HiveCatalog(uris, kerberos=True, kerberos_principal=principal)
    assert catalog.list_databases() == ["default"]
    catalog.close()


@pytest.mark.parametrize(
    ("principal", "message"),
    [
        (f"trino/_HOST@{REALM}", "Server trino/localhost@LAKE.TEST not found in Kerberos database"),
        (OTHER_SERVICE, "the server refuses the connection: GSS initiate failed"),
        ("hive/_HOST@OTHER.TEST", "Server krbtgt/OTHER.TEST@LAKE.TEST not found"),
    ],
)
def test_wrong_principal_has_hint(
    realm: Realm, metastore: HiveMetastore, principal: str, message: str
) -> None:
    catalog = HiveCatalog(uri_of(metastore), kerberos=True, kerberos_principal=principal)
    with pytest.raises(StorageError, match=message) as error:
        catalog.list_databases()
    assert uri_of(metastore) in str(error.value)
    assert "hive.metastore.kerberos.principal" in error.value.hint


def test_missing_ticket_has_hint_until_there_is_one(realm: Realm, metastore: HiveMetastore) -> None:
    realm.remove_tickets()
    catalog = HiveCatalog(uri_of(metastore), kerberos=True)
    with pytest.raises(StorageError, match="Kerberos failed: No Kerberos credentials") as error:
        catalog.list_databases()
    assert "kinit" in error.value.hint
    with pytest.raises(StorageError, match="No Kerberos credentials"):
        catalog.create_table("default", CatalogTable("t", "file:/t", (), ()))
    realm.write_keytab()
    assert catalog.list_databases() == ["default"]
    catalog.close()


def test_open_catalog_outlives_its_ticket(realm: Realm, metastore: HiveMetastore) -> None:
    """A connection stays when the ticket expires; the next one needs a new ticket."""
    realm.get_ticket(seconds=3)
    catalog = HiveCatalog(uri_of(metastore), kerberos=True)
    assert catalog.list_databases() == ["default"]
    realm.wait_until_expired()
    assert catalog.list_databases() == ["default"]
    catalog.close()
    with pytest.raises(StorageError, match="Kerberos failed: Ticket expired") as error:
        catalog.list_databases()
    assert "kinit" in error.value.hint
    realm.get_ticket()
    assert catalog.list_databases() == ["default"]
    catalog.close()


def test_unreachable_kdc_has_hint(realm: Realm, metastore: HiveMetastore) -> None:
    realm.stop_kdc()
    try:
        with pytest.raises(StorageError, match="Cannot contact any KDC") as error:
            HiveCatalog(uri_of(metastore), kerberos=True).list_databases()
    finally:
        realm.start_kdc()
    assert "krb5.conf" in error.value.hint


def test_kerberos_on_one_side_has_hint(
    realm: Realm, metastore: HiveMetastore, open_metastore: HiveMetastore, short_timeout: None
) -> None:
    with pytest.raises(StorageError) as error:
        HiveCatalog(uri_of(metastore)).list_databases()
    assert "kerberos = true" in error.value.hint
    with pytest.raises(StorageError, match="Kerberos failed") as error:
        HiveCatalog(uri_of(open_metastore), kerberos=True).list_databases()
    assert "whether the server uses Kerberos" in error.value.hint


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not use Kerberos"),
        (b"\x02\xff\xff\xff\xff", "does not use Kerberos"),
        (b"\x03\x00\x00\x00\x07too bad", "refuses the connection: too bad"),
        (b"\x02\x00\x00\x00\x04junk", "Kerberos failed: "),
        (b"\x02\x00", "ended the handshake"),
        (None, "ended the handshake: read timeout"),
    ],
)
def test_other_servers_are_refused(
    realm: Realm,
    metastore: HiveMetastore,
    new_server: NewServer,
    short_timeout: None,
    answer: bytes | None,
    message: str,
) -> None:
    uri = new_server(answer)
    with pytest.raises(StorageError, match=message):
        HiveCatalog(uri, kerberos=True, kerberos_principal=SERVICE).list_databases()
    # The next server of the same metastore answers.
    both = HiveCatalog(f"{uri},{uri_of(metastore)}", kerberos=True, kerberos_principal=SERVICE)
    assert both.list_databases() == ["default"]
    both.close()


def test_tls_below_kerberos(realm: Realm, metastore: HiveMetastore, tmp_path: Path) -> None:
    """Hive 3 can use both; Hive 2, which runs here, is behind a proxy with TLS."""
    authority = Authority(tmp_path, "lake")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("server"))
    proxy = TlsProxy(context, metastore.port)
    catalog = HiveCatalog(
        f"thrift://127.0.0.1:{proxy.port}",
        tls=True,
        ca_file=str(authority.file),
        kerberos=True,
        kerberos_principal=SERVICE,
    )
    assert catalog.list_databases() == ["default"]
    catalog.close()
    with pytest.raises(StorageError, match=r"Hint: .*TLS"):
        HiveCatalog(f"thrift://127.0.0.1:{proxy.port}", kerberos=True).list_databases()
    proxy.close()


def test_lock_and_sync_by_options(
    realm: Realm, metastore: HiveMetastore, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = pa.table({"id": ["a"]})
    lock = "hoodie.write.lock."
    options = {
        f"{lock}provider": "HiveMetastoreBasedLockProvider",
        f"{lock}hivemetastore.uris": uri_of(metastore),
        f"{lock}hivemetastore.database": "default",
        f"{lock}hivemetastore.table": "trips",
        "hoodie.datasource.meta.sync.enable": True,
        "hoodie.datasource.hive_sync.metastore.uris": uri_of(metastore),
        "pyhudi.metastore.kerberos": True,
        "pyhudi.metastore.kerberos_principal": f"hive/_HOST@{REALM}",
    }
    table = pyhudi.create_table(tmp_path / "trips", rows, key="id", options=options)
    catalog = HiveCatalog(uri_of(metastore), kerberos=True)
    assert catalog.get_table("default", "trips") is not None
    holder = HiveMetastoreLock(
        uri_of(metastore),
        "default",
        "trips",
        SystemClock(),
        options=MetastoreOptions(kerberos=True),
    )
    assert holder.acquire(10_000)
    assert holder.read_holder() == f"{user_name()}@{socket.gethostname()}"
    short_wait = {f"{lock}wait_time_ms": 100, f"{lock}client.num_retries": 0}
    with pytest.raises(LockTimeout):
        pyhudi.open_table(table.uri, options={**options, **short_wait}).upsert(rows)
    holder.release()
    assert table.upsert(rows).rows_updated == 1
    command = ["sync", table.uri, "--hive", uri_of(metastore), "--name", "rides"]
    assert main(command) != 0
    assert "kerberos = true" in capfd.readouterr().err
    assert main([*command, "--option", "pyhudi.metastore.kerberos=true"]) == 0
    assert catalog.get_table("default", "rides") is not None
    catalog.close()
