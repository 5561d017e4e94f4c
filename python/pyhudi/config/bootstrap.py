"""What a table's properties say about bootstrapping. The index itself is `slices/bootstrap.py`'s.

Source: `HoodieTableConfig`, `BootstrapIndexType` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.config import property_names as names
from pyhudi.errors import UnsupportedTableFeature

_INDEX_CLASSES = frozenset(
    {
        "org.apache.hudi.common.bootstrap.index.HFileBootstrapIndex",
        "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex",
    }
)
"""The class moved between Hudi 0.14 and 0.15; both write the same files."""


def check_bootstrap(properties: Mapping[str, str]) -> None:
    """Raises `UnsupportedTableFeature` for a bootstrapped table without the HFile index.

    Nothing else tells where the rows of a skeleton are; Hudi then reads nulls.
    """
    if not properties.get(names.BOOTSTRAP_PATH):
        return
    enabled = properties.get(names.BOOTSTRAP_INDEX_ENABLE) or "true"
    kind = properties.get(names.BOOTSTRAP_INDEX_TYPE)
    class_name = properties.get(names.BOOTSTRAP_INDEX_CLASS)
    if enabled.strip().lower() != "true":
        _refuse(names.BOOTSTRAP_INDEX_ENABLE, enabled)
    if kind and kind.upper() != "HFILE":
        _refuse(names.BOOTSTRAP_INDEX_TYPE, kind)
    if not kind and class_name and class_name not in _INDEX_CLASSES:
        _refuse(names.BOOTSTRAP_INDEX_CLASS, class_name)


def _refuse(key: str, value: str) -> None:
    msg = f"{key} is {value}: pyhudi finds a bootstrapped table's rows by the HFile index only"
    raise UnsupportedTableFeature(msg)
