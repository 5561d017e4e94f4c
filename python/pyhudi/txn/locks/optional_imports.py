"""Libraries that only some locks and catalogs need: extras, imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pyhudi.errors import ConfigError


def extra(module: str, name: str) -> Any:
    """Import a module of an extra. Raises `ConfigError` naming the extra if it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        msg = f"this needs {module.split('.', 1)[0]}: {error}"
        raise ConfigError(msg, hint=f"pip install 'pyhudi[{name}]'.") from error
