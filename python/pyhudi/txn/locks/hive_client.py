"""A Thrift connection to a Hive metastore, for the lock and the catalog."""

from __future__ import annotations

import getpass
import ssl
import threading
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from pyhudi.config.certificate_files import file_error, trusting_context
from pyhudi.config.metastore_options import MetastoreOptions
from pyhudi.errors import ConfigError, StorageError
from pyhudi.storage.options import mask_credentials
from pyhudi.txn.locks.hive_kerberos import Kerberos, KerberosError
from pyhudi.txn.locks.optional_imports import extra

_PORT = 9083
_TIMEOUT_MS = 30_000
_EXTRA = "hive"


def hive_types() -> Any:
    """Return the Thrift types of metastore requests. Raises `ConfigError` without the extra."""
    return extra("pymetastore.hive_metastore.ttypes", _EXTRA)


def user_name() -> str:
    """Return the user of the operating system, as Hudi does."""
    with suppress(KeyError, OSError):
        return getpass.getuser()
    return "pyhudi"


def _tls_context(options: MetastoreOptions) -> ssl.SSLContext | None:
    """Return the context, None without TLS. Raises `ConfigError` for a file that cannot be used."""
    if not options.tls:
        return None
    context = trusting_context(options.ca_file)
    context.check_hostname = options.check_hostname
    certificate, key = options.client_certificate, options.client_key
    if certificate:
        try:
            # Without a password: the prompt of OpenSSL would stop a program.
            context.load_cert_chain(certificate, key or None, lambda: "")
        except OSError as error:
            raise file_error("client_certificate", certificate, error) from error
    elif key:
        raise ConfigError("client_key is set without client_certificate")
    return context


class HiveClient:
    """One connection, opened on first use. Threads may share it."""

    def __init__(
        self,
        uris: str,
        named_by: str = "uris",
        options: MetastoreOptions = MetastoreOptions(),  # noqa: B008 - frozen
    ) -> None:
        """uris: `thrift://host:port` of the servers of one metastore, separated by commas.

        named_by: the option or argument that contains them, for the error about an invalid one.

        Raises `ConfigError` for an invalid setting.
        """
        self._client: Any = None
        self._connection: Any = None
        self._transport: Any = None
        self._uris = mask_credentials(uris)
        self._tls = _tls_context(options)
        self._kerberos = Kerberos(options.kerberos_principal) if options.kerberos else None
        self._call_lock = threading.Lock()
        self._servers = [_server(uri, named_by) for uri in uris.split(",")]

    def __del__(self) -> None:
        # No caller closes the catalog of a table that is opened by name.
        self.disconnect()

    def call(self, name: str, *arguments: Any, retry: bool = True) -> Any:
        """Return the response, from a new connection if the previous one was closed.

        retry: whether to send a call again whose response was lost.
        """
        lost = extra("thrift.transport.TTransport", _EXTRA).TTransportException
        with self._call_lock:
            is_new = self._client is None
            try:
                return self._send(name, arguments)
            except (lost, OSError):
                if is_new or not retry:
                    raise
            return self._send(name, arguments)

    def user_name(self) -> str:
        """Return the user of the ticket; without Kerberos that of the operating system."""
        if self._kerberos is None:
            return user_name()
        with self._call_lock:
            if self._client is None:
                self._connect()
            name: str = self._connection.user
            return name

    def storage_error(self, error: Exception) -> StorageError:
        """Return the error for users, with a hint if the reason may be the connection's type."""
        hint = ""
        # An error after the handshake, such as a missing certificate of the client.
        inner = getattr(error, "inner", None)
        error = inner if isinstance(inner, ssl.SSLError) else error
        if isinstance(error, ssl.SSLCertVerificationError):
            message = f"its certificate is not accepted: {error.verify_message}"
            hint = (
                "Set ca_file to the certificate of its authority. The host in uris must be a name "
                "of the certificate."
            )
        elif isinstance(error, ssl.SSLError):
            message = f"TLS failed: {error.reason or error}"
            hint = "Check whether the server uses TLS, and whether it needs a client_certificate."
        elif isinstance(error, KerberosError):
            message, hint = f"Kerberos failed: {error}", error.hint
        else:
            message = error_message(error)
            # Also of a server with TLS, whose alert Thrift takes for the length of a response.
            transport = extra("thrift.transport.TTransport", _EXTRA).TTransportException
            is_cut = isinstance(error, transport) and getattr(error, "type", 0) not in (
                transport.NOT_OPEN,
                transport.TIMED_OUT,
            )
            if is_cut and self._kerberos is None:
                tls = "tls = true if the server uses TLS, and " if self._tls is None else ""
                hint = (
                    f"Set {tls}kerberos = true if it uses Kerberos: in the catalog's "
                    "configuration, for a lock as options pyhudi.metastore.…"
                )
        return StorageError(f"Hive metastore at {self._uris}: {message}", hint=hint)

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The errors that a call raises."""
        return (extra("thrift.Thrift", _EXTRA).TException, OSError)

    def disconnect(self) -> None:
        """Close the connection; the next call opens another."""
        transport, self._transport, self._client = self._transport, None, None
        if transport is not None:
            transport.close()

    def _send(self, name: str, arguments: tuple[Any, ...]) -> Any:
        if self._client is None:
            self._connect()
        try:
            return getattr(self._client, name)(*arguments)
        except BaseException:
            # So that the next call does not read the late response of this one.
            self.disconnect()
            raise

    def _connect(self) -> None:
        """Connect to the first server that responds. Raises the error of the last one."""
        transports = extra("thrift.transport.TTransport", _EXTRA)
        sockets = extra("thrift.transport.TSocket", _EXTRA)
        protocols = extra("thrift.protocol.TBinaryProtocol", _EXTRA)
        service = extra("pymetastore.hive_metastore.ThriftHiveMetastore", _EXTRA)
        for number, (host, port) in enumerate(self._servers, 1):
            to = sockets.TSocket(host, port)
            to.setTimeout(_TIMEOUT_MS)
            try:
                self._connection = self._open(to, host)
            except (transports.TTransportException, KerberosError):
                if number == len(self._servers):
                    raise
                continue
            self._transport = transport = transports.TBufferedTransport(self._connection)
            self._client = service.Client(protocols.TBinaryProtocol(transport))
            return

    def _open(self, to: Any, host: str) -> Any:
        """Connect a socket of Thrift; return the transport on it that the settings ask for."""
        to.open()
        try:
            if self._tls is not None:
                to.setHandle(self._tls.wrap_socket(to.handle, server_hostname=host))
            return to if self._kerberos is None else self._kerberos.connect(to, host)
        except BaseException:
            to.close()
            raise


def error_message(error: Exception) -> str:
    """Return the message of a metastore's error."""
    message = f"{type(error).__name__} {getattr(error, 'message', None) or error}"
    inner = getattr(error, "inner", None)
    return f"{message}: {inner}" if isinstance(inner, OSError) else message


def _server(uri: str, named_by: str) -> tuple[str, int]:
    server = uri.strip()
    parts = urlsplit(server if "://" in server else f"thrift://{server}")
    if parts.scheme != "thrift" or not parts.hostname:
        msg = f"{named_by}: {mask_credentials(server)!r} is not of the form thrift://host:port"
        raise ConfigError(msg)
    return parts.hostname, parts.port or _PORT
