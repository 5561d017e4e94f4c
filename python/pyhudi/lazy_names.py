"""Names of a package that are imported on first use, so that the package itself imports quickly."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
"""True for type checkers, as in `pyhudi`: the import of `typing` takes long."""
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any


def lazy_names(
    package: str,
    modules: Mapping[str, str],
    public: Iterable[str],
    foreign: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package.

    modules: the module of each name, relative to the package. public: the package's `__all__`.
    foreign: names of other libraries, and the sentences that say what to write instead.
    """

    def load(name: str) -> Any:
        if name not in modules:
            message = f"module {package!r} has no attribute {name!r}"
            hint = (foreign or {}).get(name)
            raise AttributeError(f"{message}\nHint: {hint}" if hint else message)
        from importlib import import_module  # noqa: PLC0415 - only for this

        value = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *public})

    return load, names
