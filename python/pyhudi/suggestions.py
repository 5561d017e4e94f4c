"""Suggestions of a similar name, for "Did you mean" in errors. Names themselves match exactly."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

SIMILAR = 0.6
"""Minimum similarity of two names, from 0 to 1; the default of `difflib`."""


def did_you_mean(
    name: str,
    names: Sequence[str],
    *,
    synonyms: Mapping[str, Collection[str]] | None = None,
    prefix: str = "",
    similarity: float = SIMILAR,
) -> str:
    """Return a question that suggests a name in place of an unknown one, or "".

    Args:
        name: the unknown name.
        names: the known names.
        synonyms: other names for some of them, which other libraries use.
        prefix: the text before the suggested name.
        similarity: minimum similarity of the suggested name.
    """
    closest = closest_name(name, names, synonyms=synonyms, similarity=similarity)
    return f"Did you mean {prefix + closest!r}?" if closest is not None else ""


def case_hint(unknown: Iterable[object], names: Collection[str]) -> str:
    """Return a hint that names the column that an unknown one means but for its case, or ""."""
    by_case = {name.casefold(): name for name in names}
    folded = (name.casefold() for name in unknown if isinstance(name, str))
    meant = next((by_case[name] for name in folded if name in by_case), None)
    return f"Did you mean {meant!r}? Column names are case-sensitive." if meant else ""


def closest_name(
    name: str,
    names: Sequence[str],
    *,
    synonyms: Mapping[str, Collection[str]] | None = None,
    similarity: float = SIMILAR,
) -> str | None:
    """Return the name that `did_you_mean` suggests, or None. Arguments are the same."""
    same_but_case = [candidate for candidate in names if candidate.casefold() == name.casefold()]
    if len(same_but_case) == 1:
        return same_but_case[0]
    meant = next(
        (candidate for candidate in names if name in (synonyms or {}).get(candidate, ())), None
    )
    if meant is not None:
        return meant
    import difflib  # noqa: PLC0415 - only errors need it

    return next(iter(difflib.get_close_matches(name, names, n=1, cutoff=similarity)), None)
