"""Kerberos on a connection to a Hive metastore: the mechanism GSSAPI of SASL, in Thrift's frames.

Tickets, keytabs and realms are the business of the system's Kerberos library. Not for TLS, which
the socket may use already. Sources: RFC 4752; `TSaslTransport` (Thrift 0.12.0).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

from pyhudi.errors import ConfigError
from pyhudi.txn.locks.optional_imports import extra

_START, _OK, _BAD, _ERROR, _COMPLETE = range(1, 6)
"""The status before each message of the handshake."""
_LEVELS = _PRIVACY, _INTEGRITY, _AUTHENTICATION = 4, 2, 1
"""Levels of protection as bits of the server's offer, the strongest first."""
_STATUS = struct.Struct(">BI")
_LENGTH_BYTES = 4
_MAX_MESSAGE = 1 << 20
_MAX_READ = 1 << 20
_PRINCIPAL = re.compile(r"([^/@\s]+)(?:/([^/@\s]+)(?:@([^/@\s]+))?)?")
_HOST = "_HOST"

_TICKET_HINT = (
    "Get a ticket with kinit, or name a keytab in KRB5_CLIENT_KTNAME. klist lists tickets."
)
_REALM_HINT = "Check the realm and its kdc in krb5.conf."
_PRINCIPAL_HINT = (
    "Set kerberos_principal to hive.metastore.kerberos.principal of the metastore's hive-site.xml. "
    "The host in uris has to be that of the principal."
)
_SERVER_HINT = "Check whether the server uses Kerberos, and whether it uses TLS."
_HINTS = {
    -1765328377: _PRINCIPAL_HINT,  # KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN
    -1765328228: _REALM_HINT,  # KRB5_KDC_UNREACH
    -1765328230: _REALM_HINT,  # KRB5_REALM_UNKNOWN
}
"""Hints by codes of MIT's Kerberos library; others get the one about tickets."""


class KerberosError(ConnectionError):
    """Kerberos did not open the connection, or does not protect it any more."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class Kerberos:
    """The identity that a server has to prove."""

    def __init__(self, principal: str) -> None:
        """principal: `service`, `service/host` or `service/host@REALM`.

        The host `_HOST` is that of the URI. The Kerberos library adds the realm.

        Raises `ConfigError` for any other text.
        """
        match = _PRINCIPAL.fullmatch(principal)
        if match is None:
            msg = f"kerberos_principal {principal!r} is not the principal of a server"
            raise ConfigError(msg, hint="Write it like hive/_HOST@REALM.")
        self._service: str = match[1]
        self._host: str | None = match[2] if match[2] != _HOST else None
        self._realm: str | None = match[3]

    def connect(self, connected: Any, host: str) -> KerberosConnection:
        """Return the connection on a connected socket of Thrift, after the handshake.

        Raises `KerberosError`, and `ConfigError` without the extra.
        """
        gssapi = extra("gssapi", "kerberos")
        flags = gssapi.RequirementFlag
        with _gss_errors(gssapi):
            context = gssapi.SecurityContext(
                name=self._name(gssapi, host),
                mech=gssapi.MechType.kerberos,
                flags=flags.mutual_authentication | flags.integrity | flags.confidentiality,
                usage="initiate",
            )
        connection = KerberosConnection(connected, context, gssapi)
        connection.shake_hands()
        return connection

    def _name(self, gssapi: Any, host: str) -> Any:
        """Return the name of the server at a host."""
        name = gssapi.Name(
            f"{self._service}@{self._host or host}", gssapi.NameType.hostbased_service
        )
        if self._realm is None:
            return name
        if self._host is None:
            # The Kerberos library knows the name of a host for an alias or an address.
            server = str(name.canonicalize(gssapi.MechType.kerberos)).partition("@")[0]
        else:
            server = f"{self._service}/{self._host}"
        return gssapi.Name(f"{server}@{self._realm}", gssapi.NameType.kerberos_principal)


class KerberosConnection:
    """A transport of Thrift without a buffer: each `write` sends frames."""

    def __init__(self, connected: Any, context: Any, gssapi: Any) -> None:
        """connected: a socket of Thrift. context: a new one of GSSAPI."""
        self._socket = connected
        self._context = context
        self._gssapi = gssapi
        transports = extra("thrift.transport.TTransport", "hive")
        self._transport_error: type[Exception] = transports.TTransportException
        self._level = 0
        self._max_frame = 0
        """Bytes of a protected frame before its protection."""
        self._frame = BytesIO()

    @property
    def user(self) -> str:
        """The user of the client's principal: its first part, as with Hadoop's default rule."""
        return re.split("[/@]", str(self._context.initiator_name))[0]

    # --- handshake --------------------------------------------------------------------------------

    def shake_hands(self) -> None:
        """Identify client and server, and agree on the protection. Raises `KerberosError`."""
        try:
            with _gss_errors(self._gssapi):
                self._agree()
        except self._transport_error as error:
            raise KerberosError(f"the server ended the handshake: {error}", _SERVER_HINT) from error

    def _agree(self) -> None:
        token = self._context.step()
        self._send(_START, b"GSSAPI")
        while not self._context.complete:
            self._send(_OK, token)
            token = self._context.step(self._receive(_OK))
        self._send(_OK, token)
        offer = self._context.unwrap(self._receive(_OK)).message
        self._send(_OK, self._context.wrap(self._choose(offer), encrypt=False).message)
        self._receive(_COMPLETE)

    def _choose(self, offer: bytes) -> bytes:
        """Return the answer to an offer: the strongest of its levels, and no name of a user.

        offer: a byte of levels, and the maximum bytes of a protected frame in three bytes.
        """
        levels, max_bytes = offer[0] if offer else 0, int.from_bytes(offer[1:4], "big")
        self._level = next((level for level in _LEVELS if levels & level), 0)
        if self._level == _AUTHENTICATION:
            return bytes([_AUTHENTICATION, 0, 0, 0])
        is_encrypted = self._level == _PRIVACY
        self._max_frame = self._context.get_wrap_size_limit(max_bytes, is_encrypted)
        if not self._level or not self._max_frame:
            raise KerberosError(f"the server has no usable protection: {offer!r}", _SERVER_HINT)
        return bytes([self._level]) + b"\xff\xff\xff"

    def _send(self, status: int, message: bytes | None) -> None:
        self._send_frame(message or b"", bytes([status]))

    def _receive(self, expected: int) -> bytes:
        status, length = _STATUS.unpack(self._read_exactly(_STATUS.size))
        if not _START <= status <= _COMPLETE or length > _MAX_MESSAGE:
            raise KerberosError("the server does not use Kerberos", _SERVER_HINT)
        message = self._read_exactly(length)
        if status != expected:
            text = message.decode(errors="replace")
            raise KerberosError(f"the server refuses the connection: {text}", _PRINCIPAL_HINT)
        return message

    # --- frames -----------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Send data as a frame; protected data as frames of the length that the server takes."""
        if self._level == _AUTHENTICATION:
            self._send_frame(data)
            return
        for start in range(0, len(data), self._max_frame):
            part = data[start : start + self._max_frame]
            with _gss_errors(self._gssapi):
                wrapped = self._context.wrap(part, encrypt=self._level == _PRIVACY)
            self._send_frame(wrapped.message)

    def flush(self) -> None:
        """Do nothing: the frames are sent."""

    def read(self, size: int) -> bytes:
        """Return at most this many bytes; wait for a frame if all are read."""
        while not (data := self._frame.read(size)):
            self._frame = BytesIO(self._read_frame())
        return data

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _read_frame(self) -> bytes:
        frame = self._read_exactly(int.from_bytes(self._read_exactly(_LENGTH_BYTES), "big"))
        if self._level == _AUTHENTICATION:
            return frame
        with _gss_errors(self._gssapi):
            unwrapped = self._context.unwrap(frame)
        if self._level == _PRIVACY and not unwrapped.encrypted:
            raise KerberosError("the server sent a frame without encryption", _SERVER_HINT)
        message: bytes = unwrapped.message
        return message

    def _send_frame(self, content: bytes, status: bytes = b"") -> None:
        self._socket.write(status + len(content).to_bytes(_LENGTH_BYTES, "big") + content)

    def _read_exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            data += self._socket.read(min(size - len(data), _MAX_READ))
        return bytes(data)


@contextmanager
def _gss_errors(gssapi: Any) -> Iterator[None]:
    """Raise errors of the Kerberos library as `KerberosError`."""
    try:
        yield
    except gssapi.exceptions.GSSError as error:
        raise KerberosError(_reason(error), _hint(error)) from error


def _reason(error: Any) -> str:
    """Return what the Kerberos library says, without the general text of GSSAPI before it."""
    reasons = error.get_all_statuses(error.min_code, is_maj=False) if error.min_code else []
    return ", ".join(reasons or error.get_all_statuses(error.maj_code, is_maj=True))


def _hint(error: Any) -> str:
    # The library has codes of 32 bits with a sign, GSSAPI without.
    code = error.min_code - (1 << 32) if error.min_code >= 1 << 31 else error.min_code
    return _HINTS.get(code, _TICKET_HINT)
