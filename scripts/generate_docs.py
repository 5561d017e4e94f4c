"""Write the generated sections of the reference pages from the code.

A section stands between `<!-- generated: NAME -->` and `<!-- end of generated section -->`. It is
committed, so that the page is complete wherever it is read. A test fails if it is out of date.

    python scripts/generate_docs.py   # rewrites the sections
"""

from __future__ import annotations

import inspect
import json
import re
import runpy
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from pyhudi import aio
from pyhudi.admin.reader_limits import ENGINES, FEATURES, NEEDS, limits_of
from pyhudi.config.catalog_sync_options import SyncOptions
from pyhudi.config.clustering_options import ClusteringOptions, ResizeOptions
from pyhudi.config.compaction_options import CompactionOptions, LogCompactionOptions
from pyhudi.config.index_options import IndexOptions
from pyhudi.config.lock_options import LockOptions
from pyhudi.config.metadata_options import MetadataOptions
from pyhudi.config.metastore_options import MetastoreOptions
from pyhudi.config.option_parsing import Option, as_tuple, list_options
from pyhudi.config.options import (
    DELETE_RULE,
    TIME_PARTITIONS,
    CreateOptions,
    ReadOptions,
    ServiceOptions,
)
from pyhudi.config.retention_options import ArchiveOptions, CleanOptions, HistoryOptions, TtlOptions
from pyhudi.config.write_options import OrcOptions, RowOptions, WriteOptions
from pyhudi.storage import option_names as storage_options

DOCS = Path(__file__).parents[1] / "docs"
OPTION_TABLE = DOCS.parent / "python" / "pyhudi" / "spark" / "hudi_option_table.py"
ANOMALIES = DOCS.parent / "tests" / "anomalies" / "page.py"
DEFAULTS = OPTION_TABLE.with_name("hudi_defaults.py")
COUNTS = DOCS.parent / "tests" / "sim" / "counts.json"
SECTION = re.compile(
    r"(?P<begin>^<!-- generated: (?P<name>\w+) -->\n).*?"
    r"(?P<end>^<!-- end of generated section -->$)",
    re.MULTILINE | re.DOTALL,
)
HANDLING = {"translated": "translated", "ignored": "ignored", "refused": "not supported"}


_NONE = "\u2013"
"""In place of a default that does not exist."""


def spark_options() -> str:
    """The options of Hudi's Spark data source: a row for each, or for several with one meaning."""
    # By its path: the package around it needs PySpark.
    options = runpy.run_path(str(OPTION_TABLE))["OPTIONS"]
    lines = ["| Option | Side | Handling | Replacement or reason |", "|---|---|---|---|"]
    for option in options:
        accepted = f"; accepted: `{'`, `'.join(option.harmless)}`" if option.harmless else ""
        names = ", ".join(f"`{name}`" for name in as_tuple(option.names))
        handling = HANDLING[option.fate]
        lines.append(f"| {names} | {option.side} | {handling} | {option.note}{accepted} |")
    return "\n".join(lines)


def hudi_defaults() -> str:
    """The defaults of an options map that differ from Hudi's."""
    differences = runpy.run_path(str(DEFAULTS))["DIFFERENCES"]
    lines = ["| Option | Hudi | pyhudi | Reason and effect | Warns |", "|---|---|---|---|---|"]
    for each in differences:
        names = ", ".join(f"`{name}`" for name in each.names)
        lines.append(f"| {names} | {each.hudis} | {each.own} | {each.reason} | {each.when} |")
    return "\n".join(lines)


def commands() -> str:
    """The commands of the command line with their arguments and options."""
    from typer.main import get_command  # noqa: PLC0415 - an extra of pyhudi

    from pyhudi.cli.app import application  # noqa: PLC0415

    top: Any = get_command(application())
    blocks = []
    for name, command in _leaves(top, ""):
        arguments = [_argument(param) for param in command.params if not _is_option(param)]
        usage = " ".join(["pyhudi", name, *arguments])
        lines = [f"### `{usage}`", "", _sentence(command.help), ""]
        lines += [
            f"- {_option(param)}: {_sentence(param.help)}{_default(param)}"
            for param in command.params
            if _is_option(param) and not param.hidden and param.rich_help_panel is None
        ]
        blocks.append("\n".join(lines).strip())
    return "\n\n".join(blocks)


def _leaves(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _leaves(command, f"{prefix}{name} ")
        else:
            yield prefix + name, command


def _is_option(param: Any) -> bool:
    return str(param.opts[0]).startswith("-")


def _argument(param: Any) -> str:
    name = (param.metavar or param.name).upper()
    return name if param.required else f"[{name}]"


def _option(param: Any) -> str:
    names = ", ".join(f"`{name}`" for name in [*param.opts, *param.secondary_opts])
    if param.is_flag:
        return names
    return f"{names} `{param.metavar or _values(param)}`"


def _values(param: Any) -> str:
    kind = param.type_descriptor.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(choice.value) for choice in kind)
    return {"str": "TEXT", "int": "NUMBER", "Path": "FILE", "float": "NUMBER"}.get(
        getattr(kind, "__name__", ""), "VALUE"
    )


def _default(param: Any) -> str:
    value = param.default.value if isinstance(param.default, Enum) else param.default
    return f" Default: `{value}`." if value not in (None, False, "", (), []) else ""


def _sentence(text: str | None) -> str:
    words = " ".join((text or "").split())
    return words if words.endswith((".", "!")) else f"{words}."


def option_table(declared: Iterable[Option]) -> str:
    """A table of options with their defaults and meanings."""
    lines = ["| Option | Default | Meaning |", "|---|---|---|"]
    for option in declared:
        names = ", ".join(f"`{name}`" for name in option.names)
        lines.append(f"| {names} | {option.default or _NONE} | {option.meaning} |")
    return "\n".join(lines)


def meanings_table(meanings: Mapping[tuple[str, ...], str]) -> str:
    """A table of storage options with their meanings."""
    lines = ["| Option | Meaning |", "|---|---|"]
    for names, meaning in meanings.items():
        lines.append(f"| {', '.join(f'`{name}`' for name in names)} | {meaning} |")
    return "\n".join(lines)


def simulation_counts() -> str:
    """The last run of each simulation, by kind of table."""
    sections = []
    for run in json.loads(COUNTS.read_text(encoding="utf-8")).values():
        units = [*dict.fromkeys(unit for counts in run["kinds"].values() for unit in counts)]
        units.sort(key=lambda unit: unit not in ("seeds", "schedules"))
        lines = [
            f"`{run['command']}` on {run['date']}, commit `{run['commit']}`:",
            "",
            f"| Table | {' | '.join(unit.capitalize() for unit in units)} |",
            f"|---|{'---:|' * len(units)}",
        ]
        total = {unit: sum(kind.get(unit, 0) for kind in run["kinds"].values()) for unit in units}
        for name, counts in [*run["kinds"].items(), ("all", total)]:
            figures = " | ".join(f"{counts.get(unit, 0):,}" for unit in units)
            lines.append(f"| {name} | {figures} |")
        sections.append("\n".join(lines))
    return "\n\n".join(sections)


def of_groups(*groups: type[Any]) -> Callable[[], str]:
    """The table of the options that groups declare, without those of their base classes."""
    own = [
        option
        for group in groups
        for option in list_options(group)
        if all(option not in list_options(base) for base in group.__bases__)
    ]
    return lambda: option_table(own)


def reader_limits() -> str:
    """The limits of each engine that reads Hudi tables."""
    blocks = []
    for engine in ENGINES:
        lines = [f"### {engine}", ""]
        if NEEDS[engine]:
            lines += [NEEDS[engine], ""]
        lines += ["| Table has | Answer | What you get | What you can do | Source |"]
        lines += ["|---|---|---|---|---|"]
        for limit in limits_of(engine):
            cells = (
                FEATURES[limit.feature],
                limit.answer,
                limit.effect,
                limit.change,
                limit.source,
            )
            lines.append(f"| {' | '.join(cell or _NONE for cell in cells)} |")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def aio_members(prefix: str, owner: type | None = None) -> str:
    """A table of the functions of `pyhudi.aio`, or of the methods of one of its classes."""
    members = vars(aio if owner is None else owner)
    names = aio.__all__ if owner is None else [name for name in members if name[0] != "_"]
    lines = ["| Call | What it does |", "|---|---|"]
    for name in names:
        member = members[name]
        if not inspect.isfunction(member):
            continue
        parameters = ", ".join(_parameters(member, is_method=owner is not None))
        call = f"{prefix}{name}({parameters})".replace("(self,", "(table,")
        if name == "stream" or inspect.isasyncgenfunction(member):
            call = f"async for batch in {call}"
        elif inspect.iscoroutinefunction(member):
            call = f"await {call}"
        text = " ".join((inspect.getdoc(member) or "").split("\n\n")[0].split())
        lines.append(f"| `{call}` | {text} |")
    return "\n".join(lines)


def _parameters(call: Callable[..., Any], *, is_method: bool) -> list[str]:
    """The parameters of a call: required ones by name, others with `=`."""
    parameters = list(inspect.signature(call).parameters.values())[1 if is_method else 0 :]
    kinds = {inspect.Parameter.VAR_KEYWORD: "**", inspect.Parameter.VAR_POSITIONAL: "*"}
    return [
        kinds.get(each.kind, "") + each.name + ("" if each.default is each.empty else "=")
        for each in parameters
    ]


def measured_anomalies(table: str) -> Callable[[], str]:
    """Return the generator of a table of measured anomalies."""
    # By its path: the tests are no package of this environment's path.
    return lambda: str(runpy.run_path(str(ANOMALIES))[table]())


GENERATORS: dict[str, Callable[[], str]] = {
    "anomaly_table": measured_anomalies("anomaly_table"),
    "anomaly_figures": measured_anomalies("anomaly_figures"),
    "commands": commands,
    "simulation_counts": simulation_counts,
    "reader_limits": reader_limits,
    "spark_options": spark_options,
    "hudi_defaults": hudi_defaults,
    "new_table_options": lambda: option_table((*list_options(CreateOptions), *DELETE_RULE)),
    "time_options": lambda: option_table(TIME_PARTITIONS),
    "row_options": of_groups(RowOptions),
    "file_options": of_groups(WriteOptions, OrcOptions),
    "index_options": of_groups(IndexOptions, ResizeOptions),
    "metadata_options": of_groups(MetadataOptions),
    "read_options": of_groups(ReadOptions),
    "catalog_options": of_groups(SyncOptions),
    "metastore_options": of_groups(MetastoreOptions),
    "clean_options": of_groups(
        ServiceOptions, CleanOptions, ArchiveOptions, HistoryOptions, TtlOptions
    ),
    "compaction_options": of_groups(CompactionOptions, LogCompactionOptions),
    "clustering_options": of_groups(ClusteringOptions),
    "lock_options": of_groups(LockOptions),
    "client_options": lambda: meanings_table(storage_options.CLIENT_MEANINGS),
    "s3_options": lambda: meanings_table(storage_options.AWS_MEANINGS),
    "gcs_options": lambda: meanings_table(storage_options.GOOGLE_MEANINGS),
    "azure_options": lambda: meanings_table(storage_options.AZURE_MEANINGS),
    "aio_functions": lambda: aio_members("aio."),
    "aio_table": lambda: aio_members("table.", aio.AsyncTable),
    "aio_rows": lambda: aio_members("rows.", aio.AsyncRows),
    "hdfs_options": lambda: meanings_table(storage_options.HADOOP_MEANINGS),
}


def generate(text: str) -> str:
    """Return a page with its generated sections written anew."""
    return SECTION.sub(
        lambda match: match["begin"] + "\n" + GENERATORS[match["name"]]() + "\n\n" + match["end"],
        text,
    )


def main() -> None:
    """Rewrite the sections of all pages."""
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (fresh := generate(text)) != text:
            page.write_text(fresh, encoding="utf-8")


if __name__ == "__main__":
    main()
