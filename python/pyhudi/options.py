"""The `hoodie.…` options that a table handle takes. What each means is said where it is read."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from pyhudi.errors import ConfigError
from pyhudi.index.options import BUCKET_FIELDS, BUCKETS, IndexOptions
from pyhudi.metadata.options import METADATA_ENABLE, METADATA_OPTIONS, MetadataOptions
from pyhudi.metadata.service_options import SERVICE_OPTIONS, ServiceOptions
from pyhudi.option_values import switch
from pyhudi.txn.options import WRITE_OPTIONS

DATA_SKIPPING = "hoodie.enable.data.skipping"
"""Whether files are left out by indexes; true by default."""
READ_OPTIONS = (METADATA_ENABLE, DATA_SKIPPING, BUCKETS, BUCKET_FIELDS)

KNOWN_OPTIONS = frozenset((*WRITE_OPTIONS, *READ_OPTIONS, *METADATA_OPTIONS, *SERVICE_OPTIONS))
"""Names and meanings are Hudi's."""

COMMIT_METADATA_PREFIX = "_"
"""Options whose names begin so go into the extra metadata of commits, as in Hudi by the default of
`hoodie.datasource.write.commitmeta.key.prefix`."""

_SWITCHES = (METADATA_ENABLE, DATA_SKIPPING)


def check_options(options: Mapping[str, object] | None) -> dict[str, str]:
    """The options as text. Raises `ConfigError` for an unknown one, with the nearest known."""
    checked = {}
    for name, value in (options or {}).items():
        if name not in KNOWN_OPTIONS and not name.startswith(COMMIT_METADATA_PREFIX):
            near = difflib.get_close_matches(name, sorted(KNOWN_OPTIONS), n=1)
            raise ConfigError(
                f"the option {name!r} is not known",
                hint=f"Did you mean {near[0]}?" if near else "",
            )
        checked[name] = str(value).lower() if isinstance(value, bool) else str(value)
    for name in _SWITCHES:
        switch(checked, name, default=True)
    IndexOptions.of(checked)
    MetadataOptions.of(checked)
    ServiceOptions.of(checked)
    return checked


def commit_metadata(options: Mapping[str, str]) -> dict[str, str]:
    """What the options add to the extra metadata of each commit."""
    return {name: text for name, text in options.items() if name.startswith(COMMIT_METADATA_PREFIX)}


def is_enabled(options: Mapping[str, str], name: str) -> bool:
    """Whether a switch is on; all are by default."""
    return options.get(name, "true").lower() == "true"
