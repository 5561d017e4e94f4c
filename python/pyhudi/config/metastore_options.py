"""Options of the connection to a Hive metastore: of the lock there, and of a sync by the options.

A configured catalog has settings of the same names.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from pyhudi.config.option_parsing import OptionGroup, flag, option_names, text
from pyhudi.errors import ConfigError

_PREFIX = "pyhudi.metastore."
_SWITCHES = {
    "ca_file": "tls",
    "client_certificate": "tls",
    "client_key": "tls",
    "check_hostname": "tls",
    "kerberos_principal": "kerberos",
}
"""The switch of each setting that has no effect without it."""


@dataclass(frozen=True)
class MetastoreOptions(OptionGroup):
    """TLS and Kerberos of a connection to a Hive metastore."""

    tls: bool = flag(
        f"{_PREFIX}tls", "the lock in a metastore, and the sync with one, use TLS", default=False
    )
    ca_file: str = text(
        f"{_PREFIX}ca_file",
        "PEM file of the accepted authorities",
        displayed="those of the system",
    )
    client_certificate: str = text(
        f"{_PREFIX}client_certificate", "PEM file, if the server asks for a certificate"
    )
    client_key: str = text(f"{_PREFIX}client_key", "PEM file of its key, if that is another file")
    check_hostname: bool = flag(
        f"{_PREFIX}check_hostname", "the certificate must have the host of the URI", default=True
    )
    kerberos: bool = flag(f"{_PREFIX}kerberos", "they use Kerberos", default=False)
    kerberos_principal: str = text(
        f"{_PREFIX}kerberos_principal",
        "principal of the metastore, such as `hive/_HOST@LAKE.EXAMPLE`",
        default="hive",
    )

    def __post_init__(self) -> None:
        """Check the settings. Raises `ConfigError` for one without effect."""
        for setting in fields(self):
            switch = _SWITCHES.get(setting.name)
            if switch is None or getattr(self, switch):
                continue
            if getattr(self, setting.name) != setting.default:
                msg = f"{setting.name} of the metastore is set without {switch}"
                raise ConfigError(msg, hint=f"Set {switch} to true, too.")


METASTORE_OPTIONS = option_names(MetastoreOptions)
