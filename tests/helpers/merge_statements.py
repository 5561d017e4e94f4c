"""Random MERGE statements on one table, for pyhudi, DuckDB and Apache Hudi."""

from __future__ import annotations

import random

COLUMNS = {"id": "STRING", "n": "INT", "ts": "BIGINT", "city": "STRING"}
_CITIES = ("oslo", "rome", "lima")
_VALUES = (
    "0",
    "s.n",
    "t.n + s.n",
    "coalesce(t.n, 0) + 1",
    "CASE WHEN s.n > 2 THEN s.n ELSE t.n END",
)
_MATCHED = ("s.n > 2", "t.n < s.n", "t.n IS NULL OR s.n = 1", "t.city = 'oslo'", "s.n <> t.n")
_UNMATCHED = ("s.n > 1", "s.n IS NOT NULL", "s.city = 'rome'")
_ABSENT = ("t.n > 1", "t.n IS NULL", "t.city <> 'oslo'", "t.n + 1 = 3")


class MergeStatements:
    """Statements on a table `trips` with the columns of `COLUMNS`; the city depends on the id."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._time = 0

    def rows(self, count: int = 6) -> str:
        """Return rows with distinct keys as SQL, newer than all earlier ones."""
        self._time += 1
        return ", ".join(
            f"('k{key}', {self._random.choice((0, 1, 2, 3, 'NULL'))}, {self._time}, "
            f"'{_CITIES[key % len(_CITIES)]}')"
            for key in self._random.sample(range(10), count)
        )

    def merge(self, *, by_source: bool) -> str:
        """Return a statement with at most one UPDATE, DELETE and INSERT for each kind of rows.

        UPDATE comes first, as in Hudi. by_source: it may have clauses of NOT MATCHED BY SOURCE.
        """
        clauses = self._changes("MATCHED", _MATCHED, _VALUES, ", ts = s.ts")
        if self._random.random() < 0.7 or not clauses:
            condition = self._condition(_UNMATCHED)
            clauses.append(
                f"WHEN NOT MATCHED{condition} THEN INSERT (id, n, ts, city) "
                f"VALUES (s.id, {self._random.choice(('s.n', 's.n * 2'))}, s.ts, s.city)"
            )
        if by_source:
            new = ("t.n + 10", "NULL", "7")
            clauses += self._changes("NOT MATCHED BY SOURCE", _ABSENT, new, "")
        values = f"(VALUES {self.rows()}) AS v(id, n, ts, city)"
        source = f"SELECT id, n, CAST(ts AS BIGINT) AS ts, city FROM {values}"
        return f"MERGE INTO trips AS t USING ({source}) AS s ON t.id = s.id " + " ".join(clauses)

    def _changes(
        self, kind: str, conditions: tuple[str, ...], values: tuple[str, ...], more: str
    ) -> list[str]:
        actions = [f"UPDATE SET n = {self._random.choice(values)}{more}", "DELETE"]
        actions = [action for action in actions if self._random.random() < 0.6]
        clauses = [
            f"WHEN {kind} AND {self._random.choice(conditions)} THEN {action}"
            for action in actions[:-1]
        ]
        last = [
            f"WHEN {kind}{self._condition(conditions)} THEN {action}" for action in actions[-1:]
        ]
        return clauses + last

    def _condition(self, conditions: tuple[str, ...]) -> str:
        return f" AND {self._random.choice(conditions)}" if self._random.random() < 0.6 else ""
