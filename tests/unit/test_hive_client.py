"""TLS and Kerberos of a Hive metastore's client, on a Thrift server of this process.

`make test-kerberos` has the tests with a KDC.
"""

from __future__ import annotations

import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from pymetastore.hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TServerSocket, TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

import pyhudi
from pyhudi.catalog import HiveCatalog
from pyhudi.errors import ConfigError, StorageError
from tests.helpers.certificates import Authority


class Metastore:
    """Answers `get_all_databases` on each connection, with TLS if it has a context."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self._context = context
        self._server = TServerSocket("127.0.0.1", 0)
        self._server.listen()
        self.uri = f"thrift://127.0.0.1:{self._server.handle.getsockname()[1]}"
        self._thread = threading.Thread(target=self._answer, daemon=True)
        self._thread.start()

    def get_all_databases(self) -> list[str]:
        return ["sales"]

    def _answer(self) -> None:
        with suppress(OSError, AttributeError):  # it is closed
            while True:
                connection = self._server.accept()
                with suppress(OSError, TTransportException):
                    self._answer_on(connection)
                connection.close()

    def _answer_on(self, connection: TSocket) -> None:
        if self._context is not None:
            connection.handle.settimeout(10)
            connection.setHandle(self._context.wrap_socket(connection.handle, server_side=True))
        protocol = TBinaryProtocol(TBufferedTransport(connection))
        processor = ThriftHiveMetastore.Processor(self)
        while True:
            processor.process(protocol, protocol)

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "lake")


@pytest.fixture
def new_metastore() -> Iterator[Callable[[ssl.SSLContext | None], Metastore]]:
    servers: list[Metastore] = []

    def start(context: ssl.SSLContext | None) -> Metastore:
        servers.append(Metastore(context))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def server_context(
    authority: Authority, *, address: str = "127.0.0.1", asks: bool = False
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("server", address))
    if asks:
        context.load_verify_locations(authority.file)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


NewMetastore = Callable[[ssl.SSLContext | None], Metastore]


def test_client_connects_over_tls(authority: Authority, new_metastore: NewMetastore) -> None:
    server = new_metastore(server_context(authority))
    catalog = HiveCatalog(server.uri, tls=True, ca_file=str(authority.file))
    for _ in range(2):
        assert catalog.list_databases() == ["sales"]
        catalog.close()


def test_client_refuses_unknown_authority_and_other_host(
    authority: Authority, new_metastore: NewMetastore, tmp_path: Path
) -> None:
    server = new_metastore(server_context(authority))
    other = Authority(tmp_path, "other")
    with pytest.raises(StorageError, match=r"not accepted: .*\nHint: Set ca_file"):
        HiveCatalog(server.uri, tls=True, ca_file=str(other.file)).list_databases()
    moved = new_metastore(server_context(authority, address="10.0.0.1"))
    with pytest.raises(StorageError, match="not accepted: IP address mismatch"):
        HiveCatalog(moved.uri, tls=True, ca_file=str(authority.file)).list_databases()
    unchecked = HiveCatalog(moved.uri, tls=True, ca_file=str(authority.file), check_hostname=False)
    assert unchecked.list_databases() == ["sales"]


def test_server_asks_for_certificate_of_client(
    authority: Authority, new_metastore: NewMetastore
) -> None:
    server = new_metastore(server_context(authority, asks=True))
    certificate, key = map(str, authority.issue("client"))
    ca_file = str(authority.file)
    with pytest.raises(StorageError, match="client_certificate"):
        HiveCatalog(server.uri, tls=True, ca_file=ca_file).list_databases()
    identified = HiveCatalog(
        server.uri, tls=True, ca_file=ca_file, client_certificate=certificate, client_key=key
    )
    assert identified.list_databases() == ["sales"]


def test_tls_on_one_side_has_hint(authority: Authority, new_metastore: NewMetastore) -> None:
    encrypted, plain = new_metastore(server_context(authority)), new_metastore(None)
    with pytest.raises(StorageError, match=r"tls = true .* kerberos = true"):
        HiveCatalog(encrypted.uri).list_databases()
    with pytest.raises(StorageError, match=r"TLS failed: .*\nHint: Check whether the server"):
        HiveCatalog(plain.uri, tls=True, ca_file=str(authority.file)).list_databases()


def test_wrong_tls_files_are_refused(authority: Authority, tmp_path: Path) -> None:
    missing, text = str(tmp_path / "missing.pem"), tmp_path / "text.pem"
    text.write_text("no certificate")
    for file in (missing, str(text)):
        with pytest.raises(ConfigError, match=r"ca_file '.*' cannot be used"):
            HiveCatalog(tls=True, ca_file=file)
        with pytest.raises(ConfigError, match=r"client_certificate '.*' cannot be used"):
            HiveCatalog(tls=True, client_certificate=file)
    with pytest.raises(ConfigError, match="client_key is set without client_certificate"):
        HiveCatalog(tls=True, client_key=missing)
    with pytest.raises(ConfigError, match="ca_file of the metastore is set without tls"):
        HiveCatalog(ca_file=str(authority.file))


@pytest.mark.parametrize(
    "principal", ["", "hive/", "hive@LAKE", "hive/_HOST@", "a/b/c@LAKE", "a b"]
)
def test_wrong_principal_is_refused(principal: str) -> None:
    with pytest.raises(ConfigError, match=r"is not the principal of a server\nHint: .*hive/_HOST@"):
        HiveCatalog(kerberos=True, kerberos_principal=principal)


def test_principal_without_kerberos_is_refused() -> None:
    with pytest.raises(
        ConfigError, match="kerberos_principal of the metastore is set without kerberos"
    ):
        HiveCatalog(kerberos_principal="hive/_HOST@LAKE")


def test_kerberos_names_its_extra(
    new_metastore: NewMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    server = new_metastore(None)
    with pytest.raises(ConfigError, match=r"pip install 'pyhudi\[kerberos\]'"):
        HiveCatalog(server.uri, kerberos=True).list_databases()


def test_metastore_option_without_its_switch_is_refused(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"]})
    for name, switch in (("ca_file", "tls"), ("kerberos_principal", "kerberos")):
        with pytest.raises(ConfigError, match=rf"{name} .* is set without {switch}"):
            pyhudi.create_table(
                tmp_path / "t", rows, key="id", options={f"pyhudi.metastore.{name}": "x"}
            )
