"""What a table's properties say about bootstrapping. The index itself is `slices/bootstrap.py`'s.

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


def bootstrap_index(properties: Mapping[str, str]) -> tuple[str, str] | None:
    """Class and type of the bootstrap index; None where the properties name neither.

    Versions up to 6 store the class, those from 8 on both (`BootstrapIndexType.
    getBootstrapIndexClassName`).
    """
    class_name = properties.get(names.BOOTSTRAP_INDEX_CLASS)
    kind = properties.get(names.BOOTSTRAP_INDEX_TYPE)
    if not class_name and not kind:
        return None
    enabled = properties.get(names.BOOTSTRAP_INDEX_ENABLE) or "true"
    if not class_name:
        class_name = _NO_INDEX if kind == "NONE" else _HFILE_INDEX
    if enabled.strip().lower() != "true":
        class_name = _NO_INDEX
    return class_name, "NONE" if class_name == _NO_INDEX else "HFILE"


def _refuse(key: str, value: str) -> None:
    msg = f"{key} is {value}: pyhudi finds a bootstrapped table's rows by the HFile index only"
    raise UnsupportedTableFeature(msg)
