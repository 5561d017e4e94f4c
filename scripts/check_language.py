"""Check names, docs, docstrings, error texts and commit titles against the language rules.

`docs/contributing/language.md` has the rules, `docs/contributing/glossary.md` the words.
`scripts/language_allowed.json` lists what broke a rule before the check began; the check fails on
anything beyond that list, and `--update` removes entries that are no longer needed, but adds none.

    python scripts/check_language.py            # fails on new violations
    python scripts/check_language.py --update   # shrinks the list
    python scripts/check_language.py --measure  # prints the measures
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALLOWED = ROOT / "scripts" / "language_allowed.json"
MAX_PAGE_WORDS = 1800
MAX_TITLE = 72
# Commits after this one follow the rule of titles.
TITLES_SINCE = "dc76d9b36aa0f7e6a1cc377ae997ba78f4cecbe5"
TITLE = re.compile(r"(Fix|Add|Remove|Rename|Refactor|Speed up|Document|Test) \S")
# Past participles that do not end in -ed. Words that are nouns or imperatives as well are left out.
IRREGULAR = frozenset(
    re.findall(
        r"\w+",
        """begun been born bought brought built caught chosen done drawn driven fallen fed felt
        forgotten found given gone grown held hidden kept known laid led left lent lost made meant
        met paid seen sent shown shrunk slept sold sought spent spoken stolen stood stuck sunk
        swept taken taught thought thrown told torn understood undone unknown went woken won worn
        written""",
    )
)
# They end in -ed and are no participles, or the field's own words for a thing.
NOT_PARTICIPLES = frozenset({"need", "feed", "seed", "embed", "exceed", "proceed", "speed", "bed"})
DIALECT = re.compile(
    r"\b(whoever|nobody|somebody|anybody|anew|beside|besides|meanwhile|likewise|stood still|"
    r"stands? still|standing still|gives? way|gave way|taken? back|takes? back|told|tells? of|"
    r"look(?:s|ed)? at|come(?:s)? late|came late|carried out|carr(?:y|ies) out|taken? away|"
    r"tak(?:es|ing) away|brings?|brought|lacks?|lacking|so many|such an?|is none|are none|"
    r"none at all|of then|of now|by now|goes by|went by|go by|put aside|in step(?! \d)|keep step|"
    r"mend(?:s|ed)?|lets? fail|lost answers?|answers? (?:was|is) lost|calls? off|called off|"
    r"made again|patience|companions?|asked? ahead|sparing(?:ly)?|tally|storable|recheck\w*|"
    r"taken? off|takes? off|at once|left over|hash rings?|rings? of nodes|hence|thus)\b",
    re.IGNORECASE,
)
# Looked for in docstrings and comments only: docs and messages may need these words. A name before
# a colon is an argument.
CODE_DIALECT = re.compile(
    r"\b((?:moments?|folders?|gone|facts)(?!:)|spelled|reckon\w*|overtak\w*|wording|habits?|"
    r"insists?|at work|stands?|standing|whole numbers?|floating numbers?|without a reason|undone|"
    r"unfinished|horizons?|refused|begun|spans?|rings?|pieces|whoever|whom)\b",
    re.IGNORECASE,
)
# Variables and arguments that do not say what they hold.
VAGUE_NAMES = frozenset(
    re.findall(
        r"\w+",
        """anew companion copies elsewhere given gone home homes horizon insists leaving mine ours
        patience ring rings span spans storable tally theirs wanted""",
    )
)
# Python's constant is no dialect.
NONE_AS_VALUE = re.compile(r"\b(is|are) None\b")
# A summary line begins with a verb or a noun. A participle is an adjective before a noun, and a
# riddle before a preposition: "Inserted rows ...", but not "Told by ...".
ODD_SUMMARY = re.compile(r"(Of|What|Where|Whoever|Who|Whose|Those|As|Than|Such)\b")
AFTER_PARTICIPLE = re.compile(
    r"(\w+) (by|as|in|at|if|once|when|where|while|until|to|from|under|with|for|on|only|after|"
    r"before)\b"
)
# Written by scripts/generate_docs.py.
GENERATED = re.compile(
    r"^<!-- generated: .*?^<!-- end of generated section -->$", re.MULTILINE | re.DOTALL
)
ODD_TEST = re.compile(
    r"test_(a|an|the|what|who|whoever|whose|it|one|no|none|nothing|nobody|all|each|every|as|of|where|"
    r"more|there|they|that|those|two|so|such|only|from|by|in|on|at|to|after|before|beside)(_|$)"
)
MESSAGE_CALLS = re.compile(
    r"(Error|Conflict|Feature|Warning|Unavailable|Timeout|Unknown|File|Table)$"
)


def python_files(*folders: str) -> Iterator[Path]:
    """The Python files below folders of the repository, in order of their names."""
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


@cache
def parse(file: Path) -> ast.Module:
    """Parse a Python file, once for all checks."""
    return ast.parse(file.read_text(encoding="utf-8"))


def is_participle(word: str) -> bool:
    """Return whether a word is a past participle, as far as its spelling tells."""
    if word in NOT_PARTICIPLES:
        return False
    return word in IRREGULAR or (len(word) > 4 and word.endswith("ed"))  # noqa: PLR2004


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All functions and methods of a module but properties and overloads."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            marks = {ast.unparse(mark).split(".")[-1] for mark in node.decorator_list}
            if not marks & {"property", "cached_property", "setter", "overload"}:
                yield node


def participle_names() -> Counter[str]:
    """Functions of the package whose name begins with a past participle: names and how many."""
    counts: Counter[str] = Counter()
    for file in python_files("python"):
        for function in functions(parse(file)):
            if is_participle(function.name.strip("_").split("_")[0]):
                counts[function.name] += 1
    return counts


def messages(tree: ast.Module) -> Iterator[str]:
    """Texts that a module gives to errors and warnings."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).split(".")[-1]
        if name == "warn" or MESSAGE_CALLS.search(name):
            for argument in [*node.args, *[keyword.value for keyword in node.keywords]]:
                for part in ast.walk(argument):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield part.value


def dialect_in_messages() -> Counter[str]:
    """Dialect words in the texts of errors, hints and warnings, by file."""
    counts: Counter[str] = Counter()
    for file in python_files("python"):
        texts = (NONE_AS_VALUE.sub("", text) for text in messages(parse(file)))
        if hits := sum(len(DIALECT.findall(text)) for text in texts):
            counts[str(file.relative_to(ROOT))] = hits
    return counts


def docstrings(tree: ast.Module) -> Iterator[str]:
    """Docstrings of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield text


def comments(file: Path) -> Iterator[str]:
    """Comments of a Python file."""
    lines = io.StringIO(file.read_text(encoding="utf-8")).readline
    for token in tokenize.generate_tokens(lines):
        if token.type == tokenize.COMMENT:
            yield token.string


def is_odd_summary(docstring: str) -> bool:
    """Return whether a docstring begins with neither a verb nor a noun."""
    participle = AFTER_PARTICIPLE.match(docstring.lstrip())
    return bool(ODD_SUMMARY.match(docstring.lstrip())) or (
        participle is not None and is_participle(participle[1].lower())
    )


def dialect_in_code(text: str) -> list[str]:
    """Dialect words in a docstring or a comment, without what is quoted as code."""
    plain = NONE_AS_VALUE.sub("", re.sub(r"`[^`\n]*`", "", text))
    return [match[0] for words in (DIALECT, CODE_DIALECT) for match in words.finditer(plain)]


def dialect_in_docstrings() -> Counter[str]:
    """Dialect words and odd summary lines in docstrings and comments, by file."""
    counts: Counter[str] = Counter()
    for file in python_files("python"):
        texts = [*docstrings(parse(file))]
        hits = sum(is_odd_summary(text) for text in texts)
        hits += sum(len(dialect_in_code(text)) for text in [*texts, *comments(file)])
        if hits:
            counts[str(file.relative_to(ROOT))] = hits
    return counts


def vague_names() -> Counter[str]:
    """Variables and arguments of the package with a name of `VAGUE_NAMES`, by file."""
    counts: Counter[str] = Counter()
    for file in python_files("python"):
        for node in ast.walk(parse(file)):
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    if name in VAGUE_NAMES:
                        counts[str(file.relative_to(ROOT))] += 1
    return counts


def pages() -> Iterator[Path]:
    """The pages that users and contributors read."""
    yield from (ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"))
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if page.name not in {"glossary.md", "language.md"}:  # they quote the words
            yield page


def prose(page: Path) -> str:
    """The text of a page without code."""
    text = re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    return re.sub(r"`[^`\n]*`", "", text)


def dialect_in_pages() -> Counter[str]:
    """Dialect words in pages, by page."""
    counts = {str(page.relative_to(ROOT)): len(DIALECT.findall(prose(page))) for page in pages()}
    return Counter({page: hits for page, hits in counts.items() if hits})


def long_pages() -> Counter[str]:
    """Pages of more than MAX_PAGE_WORDS words, without generated sections."""
    counts = {
        str(page.relative_to(ROOT)): len(GENERATED.sub("", page.read_text("utf-8")).split())
        for page in pages()
    }
    return Counter(page for page, words in counts.items() if words > MAX_PAGE_WORDS)


def odd_tests() -> Counter[str]:
    """Tests whose name begins with a word that names no unit, by file."""
    counts: Counter[str] = Counter()
    for file in python_files("tests"):
        for function in functions(parse(file)):
            if ODD_TEST.match(function.name):
                counts[str(file.relative_to(ROOT))] += 1
    return counts


def odd_titles() -> list[str]:
    """Titles of commits since the check began that break the rule; none in a shallow clone."""
    log = subprocess.run(  # noqa: S603 - fixed arguments
        ["git", "log", "--no-merges", "--format=%s", f"{TITLES_SINCE}..HEAD"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    titles = log.stdout.splitlines() if log.returncode == 0 else []
    return [title for title in titles if len(title) > MAX_TITLE or not TITLE.match(title)]


CHECKS = {
    "participles": (participle_names, "name functions by a verb or by what they return"),
    "messages": (dialect_in_messages, "use the glossary's words in errors and warnings"),
    "docstrings": (
        dialect_in_docstrings,
        "use the glossary's words in docstrings and comments, and begin with a verb or a noun",
    ),
    "variables": (vague_names, "name variables and arguments by what they hold"),
    "pages": (dialect_in_pages, "use the glossary's words in docs"),
    "long_pages": (long_pages, f"split pages of more than {MAX_PAGE_WORDS} words"),
    "tests": (odd_tests, "name tests test_<unit>_<behaviour>"),
}


def read_allowed() -> dict[str, dict[str, int]]:
    """What the list allows: for each check, names or files and how many violations."""
    loaded: dict[str, dict[str, int]] = json.loads(ALLOWED.read_text(encoding="utf-8"))
    return loaded


def find_violations(allowed: dict[str, dict[str, int]]) -> list[str]:
    """Return a line for each violation that the list does not allow."""
    lines = []
    for check, (count, rule) in CHECKS.items():
        for name, hits in sorted(count().items()):
            limit = allowed.get(check, {}).get(name, 0)
            if hits > limit:
                lines.append(f"{check}: {name}: {hits}, allowed {limit}: {rule}")
    lines += [f"commit title: {title}" for title in odd_titles()]
    return lines


def shrink(allowed: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """Return the list without what is no longer needed."""
    shrunk = {}
    for check, (count, _) in CHECKS.items():
        hits = count()
        limits = allowed.get(check, {})
        shrunk[check] = {
            name: min(limits[name], hits[name]) for name in sorted(limits) if hits[name]
        }
    return shrunk


def print_measures() -> None:
    """Print the measures that the rules are about."""
    total = sum(1 for file in python_files("python") for _ in functions(parse(file)))
    tests = sum(
        function.name.startswith("test_")
        for file in python_files("tests")
        for function in functions(parse(file))
    )
    text = " ".join(prose(page) for page in pages() if "decisions" not in page.parts)
    words = len(text.split())
    you = len(re.findall(r"\byour?\b", text, re.IGNORECASE))
    named = participle_names().total()
    odd = odd_tests().total()
    print(f"functions named by a participle: {named} of {total}, {named / total:.1%}")
    print(f"dialect words in messages: {dialect_in_messages().total()}")
    print(f"dialect words and odd summaries in docstrings: {dialect_in_docstrings().total()}")
    print(
        f"dialect words per 1,000 words of pages: {len(DIALECT.findall(text)) * 1000 / words:.1f}"
    )
    print(f"'you' per 1,000 words of pages: {you * 1000 / words:.1f}")
    print(f"pages of more than {MAX_PAGE_WORDS} words: {len(long_pages())}")
    print(f"test names that name no unit: {odd} of {tests}, {odd / tests:.1%}")


def main() -> int:
    """Run the check; the exit code is 1 where something breaks a rule."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--update", action="store_true", help="shrink the list of what is allowed")
    parser.add_argument("--measure", action="store_true", help="print the measures and end")
    arguments = parser.parse_args()
    if arguments.measure:
        print_measures()
        return 0
    allowed = read_allowed()
    if arguments.update:
        ALLOWED.write_text(json.dumps(shrink(allowed), indent=1) + "\n", encoding="utf-8")
        allowed = read_allowed()
    violations = find_violations(allowed)
    print("\n".join(violations) or "language: no new violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
