"""Spells the hints of errors as a front end's users write: commands, SQL and dbt.

Hints are written for Python: `Pass schema_mode="merge"`, `Call compact()`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pyhudi.errors import HudiError

COMMAND_OPTIONS = {
    name: f"--{name.replace('_', '-')}"
    for name in (
        *("as_of", "bad_records", "checkpoint", "columns", "deep", "end", "format", "index", "key"),
        *("max_bad_records", "memory_limit", "mode", "operation", "order_by", "partial", "pattern"),
        *("partition_by", "policy", "registry", "repair", "retain", "schedule", "schema_mode"),
        *("servers", "sort", "sort_by", "start", "type", "where"),
    )
} | {
    "client_options": "--client-option",
    "options": "--option",
    "storage_options": "--storage-option",
    "version": "--table-version",
}
"""Options of commands by the arguments of methods."""
COMMANDS = {
    **{
        name: name.replace("_", "-")
        for name in (
            *("check", "clean", "cluster", "compact", "delete", "diff", "history", "maintain"),
            *("rebuild_metadata", "restore", "rollback", "upgrade", "upsert"),
        )
    },
    "downgrade": "downgrade --to",
    "inspect.commits": "commits",
    "inspect.timeline": "timeline",
    "create_table": "create",
    "create_index": "index create",
    "drop_index": "index drop",
    "delete_savepoint": "savepoint delete",
    "delete_consumer": "consumer delete",
    "reset_consumer": "consumer reset",
}
"""Commands by the functions and methods that they call."""
_SQL_CLAUSES = {
    "key": "primaryKey = '{}'",
    "order_by": "orderingFields = '{}'",
    "type": "type = '{}'",
    "partition_by": "PARTITIONED BY ({})",
    "options": "TBLPROPERTIES ({})",
    "schema_mode": "ALTER TABLE ... ADD COLUMNS",
    "partial": "UPDATE",
    "mode=ignore": "IF NOT EXISTS",
    "mode=overwrite": "DROP TABLE first",
}
_DBT_SETTINGS = {
    "schema_mode": "on_schema_change: append_new_columns",
    "key": "key: {}",
    "order_by": "order_by: {}",
    "partition_by": "partition_by: {}",
    "options": "options: {{{}}}",
}
_TRANSACTION_METHODS = {"partial": "update()", "schema_mode": "table.alter()"}
_ARGUMENT = re.compile(
    r"""(?<![\w.])(?P<name>[a-z_]+)=
    (?P<value>"[^"]*"|'[^']*'|\[[^]]*]|\{[^}]*}|True|False|None|\.\.\.|…|\d+(?![\w.])
    |(?=[,;. )]))""",
    re.VERBOSE,
)
_CALL = re.compile(
    r"`?(?<![\w.])(?:pyhudi\.|table\.)?(?P<name>[a-z_]+(?:\.[a-z_]+)?)\((?P<arguments>[^()]*)\)`?"
)
_QUOTES = re.compile(r"[\"'\[\]{}]")


@contextmanager
def spell_hints(spell: Callable[[str], str]) -> Iterator[None]:
    """Spell the hint of an error of the block for the users of a front end."""
    try:
        yield
    except HudiError as error:
        error.hint = spell(error.hint)
        raise


def for_commands(hint: str) -> str:
    """Return a hint with options and commands of the command line."""

    def option(name: str, value: str) -> str | None:
        spelled = COMMAND_OPTIONS.get(name)
        if spelled is None:
            return None
        if value in ("True", "False", ""):
            return spelled if value != "False" else spelled.replace("--", "--no-")
        if (name, value) == ("key", "None"):
            return "--no-key"
        text = _plain(value)
        if name.endswith("options"):
            text = text.replace(": ", "=")
        return f"{spelled} '{text}'" if " " in text else f"{spelled} {text}"

    def command(match: re.Match[str]) -> str:
        name, arguments = COMMANDS.get(match["name"]), match["arguments"]
        if name is None:
            return match[0]
        words = _ARGUMENT.sub(lambda argument: _replace(argument, option), arguments)
        words = re.sub(r"\bto=", "", words)  # of restore, an argument of the command
        words = " ".join(_plain(word) for word in words.split(", ") if word.strip(" .…"))
        return f"`pyhudi {name} {words}".rstrip() + "`"

    with_commands = _CALL.sub(command, hint)
    return _ARGUMENT.sub(lambda argument: _replace(argument, option), with_commands)


def for_sql(hint: str) -> str:
    """Return a hint with clauses and properties of SQL statements."""
    return _with_templates(hint, _SQL_CLAUSES)


def for_dbt(hint: str) -> str:
    """Return a hint with settings of dbt models."""
    return _with_templates(hint, _DBT_SETTINGS)


def for_transactions(hint: str) -> str:
    """Return a hint without arguments that the methods of a transaction do not have."""
    return _with_templates(hint, _TRANSACTION_METHODS)


def _with_templates(hint: str, templates: Mapping[str, str]) -> str:
    def fill(name: str, value: str) -> str | None:
        template = templates.get(name) or templates.get(f"{name}={_plain(value)}")
        return None if template is None else template.format(_plain(value) or "…")

    spelled = _ARGUMENT.sub(lambda argument: _replace(argument, fill), hint)
    if spelled == hint:
        return hint
    return re.sub(r"\b(p|P)ass\b", lambda word: "use" if word[1] == "p" else "Use", spelled)


def _replace(argument: re.Match[str], spell: Callable[[str, str], str | None]) -> str:
    spelled = spell(argument["name"], argument["value"])
    return argument[0] if spelled is None else spelled


def _plain(value: str) -> str:
    text = _QUOTES.sub("", value).strip()
    return text.replace(", ", ",") if value.startswith("[") else text
