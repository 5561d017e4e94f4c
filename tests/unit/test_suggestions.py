"""Suggestions of similar names in errors."""

from __future__ import annotations

import pytest

from pyhudi.suggestions import did_you_mean


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("fair", "Did you mean 'fare'?"),
        ("FARE", "Did you mean 'fare'?"),
        ("filter", "Did you mean 'where'?"),
        ("city", ""),
    ],
)
def test_did_you_mean_suggests_the_closest_name(name: str, suggested: str) -> None:
    names = ("fare", "where", "rider")
    assert did_you_mean(name, names, synonyms={"where": ("filter",)}) == suggested


def test_did_you_mean_needs_the_similarity_of_the_caller() -> None:
    assert did_you_mean("fair", ("fare",), similarity=0.9) == ""
    assert did_you_mean("fair", ("fare",), prefix="trip.") == "Did you mean 'trip.fare'?"


def test_did_you_mean_picks_the_more_similar_of_two_cases() -> None:
    """Two names that differ only in case: the more similar one is suggested."""
    assert did_you_mean("Fare", ("fare", "FARE")) == "Did you mean 'fare'?"
