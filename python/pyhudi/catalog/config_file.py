"""The catalogs of a configuration file, and those of environment variables, before any check.

The file is the first that exists of: the one that `PYHUDI_CONFIG` names, `pyhudi.toml` in the
working directory, and `pyhudi/pyhudi.toml` in the user's directory for configuration. Variables
such as `PYHUDI_CATALOG__PROD__TYPE` are added to the file's entries, or replace them. Errors name
keys and files, and no values: a value may be a secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from pyhudi.errors import ConfigError
from pyhudi.suggestions import did_you_mean

FILE_VARIABLE = "PYHUDI_CONFIG"
FILE_NAME = "pyhudi.toml"
PREFIX = "PYHUDI_CATALOG__"
SECTION = "catalog"
_STORAGE = "storage_options"
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_WITH_OPTION = 3
"""Parts of a variable that sets a storage option."""


def read_catalogs() -> dict[str, dict[str, Any]]:
    """Return the entries of each configured catalog by its name.

    Raises `ConfigError` for a file that cannot be read, and for a section or variable that does not
    configure a catalog.
    """
    file = find_file()
    catalogs = {} if file is None else _read_file(file)
    for variable, value in sorted(os.environ.items()):
        if variable.startswith(PREFIX):
            _add_variable(catalogs, variable, value)
    return catalogs


def find_file() -> Path | None:
    """Return the configuration file, None if it does not exist."""
    named = os.environ.get(FILE_VARIABLE)
    if named:
        if not Path(named).is_file():
            msg = f"{FILE_VARIABLE} is {named!r}, which is not a file"
            raise ConfigError(msg, hint="Set it to the path of a configuration file, or unset it.")
        return Path(named)
    files = (Path(FILE_NAME), _user_directory() / "pyhudi" / FILE_NAME)
    return next((file for file in files if file.is_file()), None)


def _user_directory() -> Path:
    """Return the user's directory for configuration (XDG base directories)."""
    directory = os.environ.get("XDG_CONFIG_HOME", "")
    # A relative path in this variable is invalid.
    return Path(directory) if Path(directory).is_absolute() else Path("~/.config").expanduser()


def _read_file(file: Path) -> dict[str, dict[str, Any]]:
    content = _parse(file)
    for section in content:
        if section != SECTION:
            hint = did_you_mean(section, [SECTION], synonyms={SECTION: ("catalogs",)})
            raise ConfigError(f"{file} has {section!r}, which is unknown", hint=hint)
    catalogs = content.get(SECTION, {})
    if not isinstance(catalogs, dict):
        raise ConfigError(f"{file}: {SECTION} is not a section", hint=_example("prod"))
    for name, entries in catalogs.items():
        if not isinstance(entries, dict):
            msg = f"{file}: {SECTION}.{name} is not a section"
            raise ConfigError(msg, hint=_example("prod"))
        check_name(name, str(file))
    return {name: _resolve(entries, f"{file}: {name}") for name, entries in catalogs.items()}


def check_name(name: str, where: str) -> None:
    """Raise `ConfigError` for a catalog's name that a variable or a table's name cannot contain."""
    if not _NAME.fullmatch(name):
        msg = f"{where}: {name!r} cannot be a catalog's name"
        raise ConfigError(msg, hint="Use lower-case letters, digits and single underscores.")


def _parse(file: Path) -> dict[str, Any]:
    parser = _toml_parser(file)
    try:
        parsed: dict[str, Any] = parser.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
    except parser.TOMLDecodeError as error:
        hint = "Correct the file at this place; text needs quotes."
        raise ConfigError(f"{file} is not TOML: {error}", hint=hint) from error
    return parsed


def _toml_parser(file: Path) -> Any:
    """Return the parser of the standard library; on Python 3.10 that of tomli."""
    for module in ("tomllib", "tomli"):
        with suppress(ImportError):
            return import_module(module)
    raise ConfigError(
        f"{file} cannot be read: this needs Python 3.11 or tomli",
        hint=f"pip install tomli, or set variables such as {PREFIX}PROD__TYPE.",
    )


def _resolve(value: Any, where: str) -> Any:
    """Return an entry with the values of the environment variables that it refers to."""
    if isinstance(value, dict):
        return {key: _resolve(each, f"{where}.{key}") for key, each in value.items()}
    if not isinstance(value, str):
        return value

    def look_up(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            raise ConfigError(
                f"{where} needs the environment variable {match[1]}, which is not set"
            )
        return os.environ[match[1]]

    return _REFERENCE.sub(look_up, value)


def _add_variable(catalogs: dict[str, dict[str, Any]], variable: str, value: str) -> None:
    name, *parts = variable.removeprefix(PREFIX).lower().split("__")
    if not parts or len(parts) > _WITH_OPTION - 1 or not all((name, *parts)):
        raise ConfigError(
            f"the environment variable {variable} does not name an entry of a catalog",
            hint=f"Names are {PREFIX}PROD__TYPE or {PREFIX}PROD__STORAGE_OPTIONS__REGION.",
        )
    check_name(name, variable)
    entries = catalogs.setdefault(name, {})
    if len(parts) == 1:
        entries[parts[0]] = value
        return
    if parts[0] != _STORAGE:
        msg = f"the environment variable {variable} is unknown: {parts[0]} has no parts"
        raise ConfigError(msg, hint=f"Only {_STORAGE} has parts.")
    options = entries.get(_STORAGE, {})
    before: Mapping[str, Any] = options if isinstance(options, dict) else {}
    entries[_STORAGE] = {**_without(before, parts[1]), parts[1]: value}


def _without(options: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return options without one; their names have no case."""
    return {key: value for key, value in options.items() if key.lower() != name}


def _example(name: str) -> str:
    return f'Write [{SECTION}.{name}] and below it, for example, type = "hive".'
