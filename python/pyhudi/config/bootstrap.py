"""Bootstrap properties of a table. `slices/bootstrap.py` reads the index itself.

Source: `HoodieTableConfig`, `BootstrapIndexType` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.config import property_names as names
from pyhudi.errors import UnsupportedTableFeature

_INDEX = "org.apache.hudi.common.bootstrap.index."
_HFILE_INDEX = _INDEX + "hfile.HFileBootstrapIndex"
_NO_INDEX = _INDEX + "NoOpBootstrapIndex"
_INDEX_CLASSES = frozenset({_INDEX + "HFileBootstrapIndex", _HFILE_INDEX})
"""The class moved between Hudi 0.14 and 0.15; both write the same files."""


def check_bootstrap(properties: Mapping[str, str]) -> None:
    """Raise `UnsupportedTableFeature` for a bootstrapped table without the HFile index.

    Only the index shows where the rows of a skeleton are; without it, Hudi reads nulls.
    """
    if not properties.get(names.BOOTSTRAP_PATH):
        return
    enabled = properties.get(names.BOOTSTRAP_INDEX_ENABLE) or "true"
    index_type = properties.get(names.BOOTSTRAP_INDEX_TYPE)
    class_name = properties.get(names.BOOTSTRAP_INDEX_CLASS)
    if enabled.strip().lower() != "true":
        _refuse(names.BOOTSTRAP_INDEX_ENABLE, enabled)
    if index_type and index_type.upper() != "HFILE":
        _refuse(names.BOOTSTRAP_INDEX_TYPE, index_type)
    if not index_type and class_name and class_name not in _INDEX_CLASSES:
        _refuse(names.BOOTSTRAP_INDEX_CLASS, class_name)


def bootstrap_index(properties: Mapping[str, str]) -> tuple[str, str] | None:
    """Return class and type of the bootstrap index; None if the properties name neither.

    Versions up to 6 store the class, those from 8 on both (`BootstrapIndexType.
    getBootstrapIndexClassName`).
    """
    class_name = properties.get(names.BOOTSTRAP_INDEX_CLASS)
    index_type = properties.get(names.BOOTSTRAP_INDEX_TYPE)
    if not class_name and not index_type:
        return None
    enabled = properties.get(names.BOOTSTRAP_INDEX_ENABLE) or "true"
    if not class_name:
        class_name = _NO_INDEX if index_type == "NONE" else _HFILE_INDEX
    if enabled.strip().lower() != "true":
        class_name = _NO_INDEX
    return class_name, "NONE" if class_name == _NO_INDEX else "HFILE"


def _refuse(key: str, value: str) -> None:
    msg = f"{key} is {value}: pyhudi finds a bootstrapped table's rows by the HFile index only"
    raise UnsupportedTableFeature(msg)
