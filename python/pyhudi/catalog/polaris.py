"""Apache Polaris as a catalog: a Hudi table is a generic table of its REST API.

An entry has a format and a location, and no columns, partitions or views. The API can neither
change nor rename it, and vends no credentials for it. Source: `generic-tables-api.yaml` and
`GenericTableCatalogAdapter` (Polaris 1.5.0).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from pyhudi.catalog.protocol import CatalogPartition, CatalogTable
from pyhudi.catalog.registration import PROVIDER
from pyhudi.catalog.rest_client import Response, RestClient, path_segment
from pyhudi.errors import ConfigError, StorageError, UnsupportedTableFeature
from pyhudi.storage.options import scheme_of

ALL_ROLES = "PRINCIPAL_ROLE:ALL"
"""Scope of a token with all roles of its principal."""
_SERVER = "Apache Polaris"
_FORMAT = "hudi"
_GENERIC_TABLES = "polaris/v1/{prefix}/namespaces/{namespace}/generic-tables"
"""End of an endpoint that a server without generic tables does not list."""
_URI_END = "the uri ends in /api/catalog by default"
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _CONFLICT = 401, 403, 404, 409


class PolarisCatalog:
    """Generic tables of Apache Polaris. Needs no extra package."""

    stores_columns = False
    """An entry is a name and a location: a sync does not change it."""

    def __init__(
        self,
        uri: str,
        warehouse: str,
        *,
        credential: str | None = None,
        token: str | None = None,
        scope: str = ALL_ROLES,
        realm: str | None = None,
        ca_file: str | None = None,
        timeout_s: float = 30,
    ) -> None:
        """Prepare a catalog; it connects on the first call.

        Args:
            uri: address of the API, such as `https://polaris:8181/api/catalog`.
            warehouse: name of the catalog in Polaris.
            credential: `client_id:client_secret` of a principal, for which Polaris issues tokens.
            token: a token instead of a credential.
            scope: the principal roles that a token has.
            realm: realm of the server, if it has several.
            ca_file: PEM file of the authorities whose certificates are accepted; by default those
                of the system.
            timeout_s: seconds that the server has for an answer.

        Raises:
            ConfigError: an argument is wrong, or the file cannot be used.
        """
        if (credential is None) == (token is None):
            msg = f"{_SERVER} needs a credential or a token, and not both"
            raise ConfigError(msg, hint='A credential is text such as "client_id:client_secret".')
        if credential is not None and not all(credential.partition(":")):
            raise ConfigError(f"the credential of {_SERVER} is not client_id:client_secret")
        for name, value in (("token", token), ("realm", realm)):
            if value is not None and not (value.isascii() and value.isprintable()):
                raise ConfigError(f"the {name} of {_SERVER} has characters that no {name} has")
        self.uri = uri
        self.warehouse = warehouse
        self._credential = credential
        self._scope = scope
        self._token = token
        self._prefix: str | None = None
        self._headers = {} if realm is None else {"Polaris-Realm": realm}
        self._client = RestClient(_SERVER, uri, ca_file=ca_file, timeout_s=timeout_s)

    def __repr__(self) -> str:
        return f"PolarisCatalog({self._client.uri!r}, {self.warehouse!r})"

    def close(self) -> None:
        """Forget the token that Polaris issued; the next call requests a new one."""
        self._prefix = None
        if self._credential is not None:
            self._token = None

    def location_of(self, uri: str) -> str:
        """Return a table's location; for a local table the URI of its absolute path."""
        text = uri.rstrip("/")
        if scheme_of(text) not in (None, "file"):
            return text
        # Not encoded: Hadoop reads a percent sign as it is.
        return f"file://{os.path.abspath(text.removeprefix('file:'))}"  # noqa: PTH100 - text stays text

    def base_parameters(self) -> Mapping[str, str]:
        """Return no parameters."""
        return {}

    def has_database(self, database: str) -> bool:
        """Return whether a namespace of this name exists."""
        return self.database_location(database) is not None

    def list_databases(self) -> list[str]:
        """Return the names of all namespaces that are in no other one."""
        return sorted(each[0] for each in self._pages("v1", "/namespaces", "namespaces"))

    def database_location(self, database: str) -> str | None:
        """Return the location of a namespace, "" if it has none, None if it does not exist."""
        stored = self._call("GET", "v1", _namespace(database), absent="NoSuchNamespaceException")
        return None if stored is None else (stored.get("properties") or {}).get("location") or ""

    def create_database(self, database: str, location: str = "") -> None:
        """Create a namespace, below the base location of its catalog if you pass no location."""
        path_segment(database, "database")
        properties = {"location": location} if location else {}
        content = {"namespace": [database], "properties": properties}
        self._call("POST", "v1", "/namespaces", content)

    def list_tables(self, database: str) -> list[CatalogTable]:
        """Return all generic tables of a namespace, also those that are not Hudi tables."""
        path = f"{_namespace(database)}/generic-tables"
        names = [_field(each, "name") for each in self._pages("polaris/v1", path, "identifiers")]
        tables = [self.get_table(database, name) for name in names]
        return [table for table in tables if table is not None]

    def get_table(self, database: str, name: str) -> CatalogTable | None:
        """Return a generic table, None if it does not exist."""
        absent = "NoSuchTableException"
        stored = self._call("GET", "polaris/v1", _table(database, name), absent=absent)
        if stored is None:
            return None
        table = _field(stored, "table")
        table_format = _field(table, "format")
        return CatalogTable(
            name=_field(table, "name"),
            location=table.get("base-location") or "",
            columns=(),
            parameters={**(table.get("properties") or {}), PROVIDER: table_format},
        )

    def create_table(self, database: str, table: CatalogTable) -> None:
        """Register a new table, whose files Polaris does not own."""
        path_segment(table.name, "table")
        content = {
            "name": table.name,
            "format": _FORMAT,
            "base-location": table.location,
            "properties": {key: each for key, each in table.parameters.items() if key != PROVIDER},
        }
        self._call("POST", "polaris/v1", f"{_namespace(database)}/generic-tables", content)

    def drop_table(self, database: str, name: str) -> None:
        """Remove a table from Polaris, if it exists; its files stay."""
        absent = "NoSuchTableException"
        self._call("DELETE", "polaris/v1", _table(database, name), absent=absent)

    def rename_table(self, database: str, name: str, new_name: str) -> None:
        """Raise `ConfigError`: Polaris has no such call.

        A copy of the entry would not have the privileges that were granted on it.
        """
        raise ConfigError(
            f"{_SERVER} cannot rename the generic table {database}.{name}",
            hint=f"Register the table as {new_name}, grant its privileges, then drop {name}.",
        )

    def alter_table(self, database: str, table: CatalogTable, *, cascade: bool) -> None:  # noqa: ARG002 - protocol
        """Raise `UnsupportedTableFeature`: Polaris cannot change an entry."""
        raise _no_columns(f"{database}.{table.name}")

    def get_partitions(self, database: str, name: str) -> list[CatalogPartition]:  # noqa: ARG002 - protocol
        """Return no partitions: an entry has none."""
        return []

    def add_partitions(
        self,
        database: str,
        name: str,
        partitions: Sequence[CatalogPartition],  # noqa: ARG002 - protocol
        batch: int,  # noqa: ARG002 - protocol
    ) -> None:
        """Raise `UnsupportedTableFeature`: an entry has no partitions."""
        raise _no_columns(f"{database}.{name}")

    move_partitions = add_partitions

    def drop_partitions(
        self,
        database: str,
        name: str,
        partitions: Sequence[CatalogPartition],  # noqa: ARG002 - protocol
    ) -> None:
        """Raise `UnsupportedTableFeature`: an entry has no partitions."""
        raise _no_columns(f"{database}.{name}")

    # --- requests ---------------------------------------------------------------------------------

    def _pages(self, api: str, path: str, field: str) -> list[Any]:
        items: list[Any] = []
        page = ""
        while True:
            response = self._call("GET", api, f"{path}{page}")
            items += _field(response, field)
            next_page = response.get("next-page-token")
            if not next_page:
                return items
            page = f"?{urlencode({'pageToken': next_page})}"

    def _call(
        self, method: str, api: str, path: str, content: Any = None, *, absent: str = ""
    ) -> Any:
        """Return the content of the answer.

        Raises `StorageError` if Polaris fails.

        path: below the catalog. absent: type of the error for which None is returned.
        """
        if self._prefix is None:
            self._prefix = self._find_prefix()
        response = self._send(method, f"/{api}/{self._prefix}{path}", content)
        if absent and (response.status, response.error_type) == (_NOT_FOUND, absent):
            return None
        if not response.is_success:
            raise _failure(response)
        if method == "GET" and not isinstance(response.content, dict):
            raise _answer_error("an object")
        return response.content

    def _find_prefix(self) -> str:
        """Return the prefix of paths. Raises `ConfigError` for a catalog that does not exist."""
        query = urlencode({"warehouse": self.warehouse})
        response = self._send("GET", f"/v1/config?{query}")
        if (response.status, response.error_type) == (_NOT_FOUND, "NotFoundException"):
            # Polaris has the same error type for a path that it does not have.
            raise ConfigError(
                f"{_SERVER} at {self._client.uri} has no catalog {self.warehouse!r}: "
                f"{response.message}",
                hint=f"Set warehouse to the name of a catalog in Polaris; {_URI_END}.",
            )
        if not response.is_success:
            raise _failure(response)
        content = response.content if isinstance(response.content, dict) else {}
        prefix = (content.get("overrides") or {}).get("prefix")
        endpoints = [str(each) for each in content.get("endpoints") or ()]
        if not prefix or not any(each.endswith(_GENERIC_TABLES) for each in endpoints):
            raise ConfigError(
                f"the server at {self._client.uri} has no generic tables",
                hint="pyhudi uses Apache Polaris 1.0 or later, with generic tables enabled.",
            )
        return quote(prefix, safe="")

    def _send(self, method: str, path: str, content: Any = None) -> Response:
        is_new = self._token is None
        response = self._authorize(method, path, content)
        if response.status == _UNAUTHORIZED and self._credential is not None and not is_new:
            # An issued token expires, by default after an hour.
            self._token = None
            response = self._authorize(method, path, content)
        return response

    def _authorize(self, method: str, path: str, content: Any) -> Response:
        if self._token is None:
            self._token = self._request_token()
        headers = {**self._headers, "Authorization": f"Bearer {self._token}"}
        return self._client.send(method, path, content=content, headers=headers)

    def _request_token(self) -> str:
        client_id, _, secret = (self._credential or "").partition(":")
        form = {
            "grant_type": "client_credentials",
            "client_id": client_id,
            "client_secret": secret,
            "scope": self._scope,
        }
        response = self._client.send("POST", "/v1/oauth/tokens", form=form, headers=self._headers)
        if not response.is_success:
            raise _failure(response)
        return str(_field(response.content, "access_token"))


def _namespace(database: str) -> str:
    return f"/namespaces/{path_segment(database, 'database')}"


def _table(database: str, name: str) -> str:
    return f"{_namespace(database)}/generic-tables/{path_segment(name, 'table')}"


def _field(content: Any, name: str) -> Any:
    """Return a field of an answer. Raises `StorageError` for an answer without it."""
    if not isinstance(content, dict) or name not in content:
        raise _answer_error(repr(name))
    return content[name]


def _answer_error(missing: str) -> StorageError:
    return StorageError(f"{_SERVER} answered without {missing}", hint=f"Check the uri; {_URI_END}.")


def _failure(response: Response) -> StorageError:
    hints = {
        _UNAUTHORIZED: "Check the credential or the token of the catalog, and its scope and realm.",
        _FORBIDDEN: "Grant the principal's role the privilege in Polaris.",
        _NOT_FOUND: ""
        if response.error_type.startswith("NoSuch")
        else f"Check the uri; {_URI_END}.",
        _CONFLICT: "Choose another name: an Iceberg table or a view can have it, too.",
    }
    hint = hints.get(response.status, "")
    return StorageError(f"{_SERVER}: {response.message}", hint=hint)


def _no_columns(name: str) -> UnsupportedTableFeature:
    return UnsupportedTableFeature(f"{_SERVER} stores no columns and no partitions of {name}")
