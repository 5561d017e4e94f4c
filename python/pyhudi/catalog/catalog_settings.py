"""The settings of a configured catalog: checked entries, and the catalog that they describe.

`config_file.py` finds the entries. The settings travel with a table's handle as an option, so that
a later sync needs no configuration.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pyhudi.catalog.config_file import PREFIX, check_name, find_file, read_catalogs
from pyhudi.errors import ConfigError
from pyhudi.storage.options import StorageOptions, mask_credentials
from pyhudi.suggestions import did_you_mean

if TYPE_CHECKING:
    from pyhudi.catalog.protocol import NamespaceCatalog
    from pyhudi.config.catalog_sync_options import SyncOptions

_KEYS: dict[str, dict[str, type]] = {
    "hive": {
        "uris": str,
        "tls": bool,
        "ca_file": str,
        "client_certificate": str,
        "client_key": str,
        "check_hostname": bool,
        "kerberos": bool,
        "kerberos_principal": str,
    },
    "glue": {"region": str, "endpoint_url": str},
    "polaris": {
        "uri": str,
        "warehouse": str,
        "credential": str,
        "token": str,
        "scope": str,
        "realm": str,
        "ca_file": str,
    },
}
"""Keys of each type of catalog, with the types of their values."""
_REQUIRED: dict[str, tuple[str, ...]] = {
    "hive": ("uris",),
    "glue": (),
    "polaris": ("uri", "warehouse"),
}
_SECRETS = ("credential", "token")
_REFUSED = {
    "unity": (
        "Unity Catalog has no data source format for Hudi tables: as another format, readers would "
        "also read rows that were replaced or deleted."
    ),
    "gravitino": (
        "Apache Gravitino registers no Hudi tables. Its Hudi catalog shows those of a Hive "
        "metastore: use that one, with the type hive."
    ),
}
"""Catalogs that cannot store a Hudi table, and why."""
_COMMON: dict[str, type] = {"type": str, "storage_options": dict, "options": dict}
_SYNONYMS = {
    "uris": ("uri", "url", "host", "thrift"),
    "uri": ("url", "uris", "host", "server"),
    "warehouse": ("catalog", "catalog_name", "prefix"),
    "credential": ("credentials", "client_id", "client_secret"),
    "region": ("region_name", "aws_region"),
    "endpoint_url": ("endpoint",),
    "type": ("catalog_type", "kind"),
    "storage_options": ("storage",),
    "tls": ("ssl", "use_ssl", "use_tls"),
    "ca_file": ("ca", "cafile", "ca_cert", "truststore"),
    "client_certificate": ("cert", "certificate", "client_cert", "keystore"),
    "kerberos": ("auth", "auth_mechanism", "gssapi", "kerberos_authentication", "sasl"),
    "kerberos_principal": ("kerberos_service_name", "principal", "service_principal"),
}
_KEYTAB_HINT = (
    "Name the file of the client's keytab in the environment variable KRB5_CLIENT_KTNAME."
)
_FLAGS = {"true": True, "false": False}


class _SecretText(str):
    """Text that can have secrets. Its representation, also in printed options, has none."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'…'"


class UnknownCatalog(ConfigError):
    """A name's catalog is not configured."""


@dataclass(frozen=True)
class CatalogSettings:
    """The settings of one catalog. The representation has no value that may be a secret."""

    name: str
    type: Literal["hive", "glue", "polaris"]
    properties: Mapping[str, str] = field(repr=False)
    """Settings of the connection."""
    storage_options: Mapping[str, str] = field(default_factory=StorageOptions)
    """Access to the storage of the catalog's tables."""
    options: Mapping[str, object] = field(default_factory=dict, repr=False)
    """`hoodie.…` options of each handle."""

    @property
    def displayed_properties(self) -> dict[str, str]:
        """Settings of the connection, without secrets."""
        return {name: each for name, each in self.properties.items() if name not in _SECRETS}

    def to_json(self) -> str:
        """Return the name and the connection as text, without the access to the storage.

        The text has the secrets of the connection; its representation has none.
        """
        return _SecretText(json.dumps({"name": self.name, "type": self.type, **self.properties}))

    def connect(self, sync: SyncOptions | None = None) -> NamespaceCatalog:
        """Return the catalog, which connects on its first use. sync: settings of its sync."""
        arguments: dict[str, Any] = {
            key: _FLAGS[value] if _KEYS[self.type][key] is bool else value
            for key, value in self.properties.items()
        }
        if self.type == "hive":
            from pyhudi.catalog.hive import HiveCatalog  # noqa: PLC0415 - an extra

            return HiveCatalog(**arguments)
        if self.type == "polaris":
            from pyhudi.catalog.polaris import PolarisCatalog  # noqa: PLC0415 - few have it

            return PolarisCatalog(**arguments)
        from pyhudi.catalog.glue import GlueCatalog  # noqa: PLC0415 - an extra

        return GlueCatalog(
            **arguments,
            metadata_listing=sync is not None and sync.metadata_listing,
            skip_archive=sync is None or sync.skip_archive,
        )


def settings_of(name: str, overrides: Mapping[str, object] | None = None) -> CatalogSettings:
    """Return the settings of a configured catalog.

    Raises `ConfigError` if it is not configured, or its configuration is wrong.

    overrides: entries that replace those of the configuration, or are the only ones.
    """
    catalogs = read_catalogs()
    entries = {**catalogs.get(name, {}), **(overrides or {})}
    if not entries:
        raise catalog_error(name, sorted(catalogs))
    check_name(name, "the catalog")
    return _check(name, entries)


def settings_from_json(text: str) -> CatalogSettings:
    """Return the settings that `to_json` wrote."""
    properties = json.loads(text)
    return CatalogSettings(properties.pop("name"), properties.pop("type"), properties)


def catalog_error(name: str, configured: list[str]) -> UnknownCatalog:
    """Return the error for a catalog that is not configured."""
    file = find_file()
    place = f"{file}" if file is not None else "no pyhudi.toml was found"
    hint = did_you_mean(name, configured) or (
        f"Write [catalog.{name}] into pyhudi.toml, or set {PREFIX}{name.upper()}__TYPE."
    )
    return UnknownCatalog(
        f"no catalog {name!r} is configured ({place}); configured catalogs: "
        f"{', '.join(configured) or 'none'}",
        hint=hint,
    )


def _check(name: str, entries: Mapping[str, object]) -> CatalogSettings:
    catalog_type = entries.get("type")
    if catalog_type not in ("hive", "glue", "polaris"):
        if "type" not in entries:
            msg = f"the catalog {name!r} has no type"
            raise ConfigError(msg, hint=f"Set type to one of {', '.join(_KEYS)}.")
        msg = f"the catalog {name!r} has the type {catalog_type!r}"
        hint = f"pyhudi has the types {', '.join(_KEYS)}."
        raise ConfigError(msg, hint=_REFUSED.get(str(catalog_type), hint))
    known = {**_COMMON, **_KEYS[catalog_type]}
    for key, value in entries.items():
        _check_entry(name, key, value, known)
    for key in _REQUIRED[catalog_type]:
        if not entries.get(key):
            raise ConfigError(f"the catalog {name!r} of type {catalog_type} needs {key}")
    storage = entries.get("storage_options", {})
    options = entries.get("options", {})
    return CatalogSettings(
        name,
        catalog_type,
        {
            key: str(entries[key]).lower() if type_ is bool else str(entries[key])
            for key, type_ in _KEYS[catalog_type].items()
            if key in entries
        },
        StorageOptions(_as_texts(name, storage)),
        dict(options) if isinstance(options, dict) else {},
    )


def _check_entry(name: str, key: str, value: object, known: Mapping[str, type]) -> None:
    if key not in known:
        other = next((each for each, keys in _KEYS.items() if key in keys), None)
        hint = did_you_mean(key, sorted(known), synonyms=_SYNONYMS)
        if other is not None and not hint:
            hint = f"It belongs to the type {other}."
        if "keytab" in key:
            hint = _KEYTAB_HINT
        raise ConfigError(f"the catalog {name!r} has the unknown key {key!r}", hint=hint)
    if known[key] is bool:
        # Environment variables are text.
        if str(value).lower() not in _FLAGS:
            raise ConfigError(f"{key} of the catalog {name!r} is neither true nor false")
        return
    if not isinstance(value, known[key]):
        expected = "text" if known[key] is str else "a table of names and values"
        raise ConfigError(f"{key} of the catalog {name!r} is not {expected}")
    if key in ("uris", "uri", "endpoint_url") and mask_credentials(str(value)) != value:
        raise ConfigError(f"{key} of the catalog {name!r} contains credentials")


def _as_texts(name: str, values: object) -> dict[str, str]:
    texts: dict[str, str] = {}
    for key, value in values.items() if isinstance(values, dict) else ():
        if not isinstance(value, (str, int, float)):
            raise ConfigError(f"storage_options.{key} of the catalog {name!r} is not text")
        texts[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts
