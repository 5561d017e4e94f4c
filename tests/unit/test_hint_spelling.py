"""Hints of errors in the words of commands, SQL and dbt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import pyhudi
from pyhudi.cli import main
from pyhudi.cli.app import application
from pyhudi.config.hint_spelling import COMMAND_OPTIONS, COMMANDS, for_commands, for_dbt, for_sql
from pyhudi.errors import ConfigError


@pytest.mark.parametrize(
    ("hint", "spelled"),
    [
        ("Pass mode=\"ignore\", or order_by=['a', 'b'].", "Pass --mode ignore, or --order-by a,b."),
        ("Find them with where='NOT (a > 0)'.", "Find them with --where 'NOT (a > 0)'."),
        ("Pass format=, one of a; or pattern=, such as 'b'.", None),
        ("give all, or pass partial=True, which", "give all, or pass --partial, which"),
        ("cluster(schedule=False) completes it", "`pyhudi cluster --no-schedule` completes it"),
        ("rollback('20261') cancels it", "`pyhudi rollback 20261` cancels it"),
        ("Call restore(to=...); it", "Call `pyhudi restore`; it"),
        ("Use delete(where=...) for", "Use `pyhudi delete --where ...` for"),
        ("create_table(version=6), or table.downgrade(6).", None),
        ('Pass key="id", or key=None for', "Pass --key id, or --no-key for"),
        ("Call reset_consumer(name, '2').", "Call `pyhudi consumer reset name 2`."),
        ('options={"hoodie.a.b": "x:y"} to', "--option hoodie.a.b=x:y to"),
        ("hoodie.index.type=SIMPLE, key=value pairs, table.sync(GlueCatalog())", ""),
    ],
)
def test_for_commands_names_options_and_commands(hint: str, spelled: str | None) -> None:
    expected = {
        "Pass format=, one of a; or pattern=, such as 'b'.": (
            "Pass --format, one of a; or --pattern, such as 'b'."
        ),
        "create_table(version=6), or table.downgrade(6).": (
            "`pyhudi create --table-version 6`, or `pyhudi downgrade --to 6`."
        ),
    }
    assert for_commands(hint) == (expected[hint] if spelled is None else spelled or hint)


def test_for_commands_names_what_exists() -> None:
    top: Any = get_command(application())
    groups = {
        name: each.commands for name, each in top.commands.items() if hasattr(each, "commands")
    }
    commands = {name: each for name, each in top.commands.items() if name not in groups}
    for group, members in groups.items():
        commands |= {f"{group} {name}": each for name, each in members.items()}
    options = {
        option
        for each in commands.values()
        for parameter in each.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    assert {name.split(" --")[0] for name in COMMANDS.values()} <= commands.keys()
    assert set(COMMAND_OPTIONS.values()) <= options


def test_for_sql_and_for_dbt_name_clauses_and_settings() -> None:
    hint = "Pass schema_mode=\"merge\" to add it, or order_by=['a', 'b']."
    assert for_sql(hint) == "Use ALTER TABLE ... ADD COLUMNS to add it, or orderingFields = 'a,b'."
    assert for_dbt(hint) == "Use on_schema_change: append_new_columns to add it, or order_by: a,b."
    assert for_sql("Pass True.") == "Pass True."


def test_front_ends_show_their_own_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pyhudi.create_table(tmp_path / "t", [{"id": "a", "n": 1}], key="id")
    new = tmp_path / "new.csv"
    new.write_text("id,n,more\nb,2,3\n")
    assert main(["upsert", table.uri, str(new)]) == 3
    assert "hint: Pass --schema-mode merge to add it" in capsys.readouterr().err
    create = f"CREATE TABLE u (id STRING, ts INT) USING hudi LOCATION '{tmp_path}/u' TBLPROPERTIES"
    with pytest.raises(ConfigError) as caught:
        pyhudi.sql(f"{create} (primaryKey = 'id', recordMergeMode = 'EVENT_TIME_ORDERING')")
    assert caught.value.hint == "Use orderingFields = 'ts'."
