"""The guarantees of the engine protocol, checked on every engine.

The tests simulate the two failures of clusters: a task that runs twice, and a task that fails after
it wrote. On Spark they are real: its scheduler runs the task again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.engine.protocol import Attempt, Step
from pyhudi.errors import ConfigError, CorruptTable, SchemaMismatch, StorageError
from tests.engine import jobs
from tests.engine.conftest import Bench
from tests.engine.faulty import DiedError, DiesAfterWriting, FaultyEngine, Twice
from tests.engine.jobs import Job, traces

pytestmark = [
    pytest.mark.spark35,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own warnings are not ours to mend
]

ERRORS = [
    CorruptTable("damaged", file="a/b.log", offset=17, hint="restore it"),
    StorageError("the store said no", hint="try again"),
    ConfigError("no such option"),
    KeyError("k"),
]


def routed(values: Sequence[str | None]) -> pa.Table:
    return pa.table({"to": pa.array(values, pa.string()), "n": range(len(values))})


def leftovers(folder: Path, results: list[str]) -> set[str]:
    """Files that were written and not returned; every file has its marker."""
    written, marked = traces(folder, ".data"), traces(folder, ".marker")
    assert {name.removesuffix(".data") for name in written} == {
        name.removesuffix(".marker") for name in marked
    }
    assert len(set(results)) == len(results)
    assert set(results) <= written
    return written - set(results)


class TestRun:
    def test_results_come_in_task_order(self, bench: Bench) -> None:
        assert bench.engine.run(jobs.early_tasks_last, range(8)) == list(range(8))

    def test_run_accepts_empty_task_list(self, bench: Bench) -> None:
        assert bench.engine.run(jobs.double, []) == []

    def test_run_accepts_more_tasks_than_one_message_holds(self, bench: Bench) -> None:
        assert bench.engine.run(jobs.double, range(150)) == [2 * task for task in range(150)]

    def test_run_label_does_not_change_results(self, bench: Bench) -> None:
        assert bench.engine.run(jobs.double, [1, 2, 3], label="doubling") == [2, 4, 6]

    def test_attempts_name_the_task_the_stage_and_the_run(self, bench: Bench) -> None:
        attempts = bench.engine.run(jobs.who, ["a", "b", "c", "d"], stage=3)
        assert [attempt.task for attempt in attempts] == [0, 1, 2, 3]
        assert {attempt.stage for attempt in attempts} == {3}
        assert len({attempt.attempt for attempt in attempts}) == 4
        assert attempts[1].write_token == f"1-3-{attempts[1].attempt}"

    @pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
    def test_run_failure_keeps_type_message_and_attributes(
        self, bench: Bench, error: Exception
    ) -> None:
        with pytest.raises(type(error)) as caught:
            bench.engine.run(jobs.fail, [error])
        assert str(caught.value) == str(error)
        assert vars(caught.value) == {**vars(error), **_notes(caught.value)}

    def test_run_failure_without_pickle_keeps_text(self, bench: Bench) -> None:
        with pytest.raises(Exception, match=r"here and there"):
            bench.engine.run(jobs.fail_oddly, [("here", "there")])

    def test_run_starts_no_task_after_failure(self, bench: Bench, tmp_path: Path) -> None:
        dead = Job(str(tmp_path), "dead", error=LookupError("gone"))
        others = [Job(str(tmp_path), f"other{n}", seconds=0.2) for n in range(60)]
        with pytest.raises(LookupError, match="gone"):
            bench.engine.run(jobs.write, [dead, *others])
        assert len({name.split("_")[0] for name in traces(tmp_path, ".marker")}) < 30

    def test_run_repeated_task_returns_one_of_its_files(self, bench: Bench, tmp_path: Path) -> None:
        engine = FaultyEngine(bench.engine, Twice)
        results = engine.run(jobs.write, [Job(str(tmp_path), f"f{n}") for n in range(4)])
        assert [name.split("_")[0] for name in results] == ["f0", "f1", "f2", "f3"]
        assert len(leftovers(tmp_path, results)) == 4

    def test_run_retried_task_leaves_first_file_with_marker(
        self, bench: Bench, tmp_path: Path
    ) -> None:
        tasks = [Job(str(tmp_path), f"f{n}", crash="once" if n == 1 else "") for n in range(3)]
        results = bench.retrying.run(jobs.write, tasks, stage=2)
        (left,) = leftovers(tmp_path, results)
        assert left.startswith("f1_1-2-")
        assert results[1].startswith("f1_1-2-")

    def test_run_returns_nothing_from_task_that_fails_after_writing(
        self, bench: Bench, tmp_path: Path
    ) -> None:
        engine = FaultyEngine(bench.engine, DiesAfterWriting)
        with pytest.raises(DiedError, match="after writing"):
            engine.run(jobs.write, [Job(str(tmp_path), "f")])
        left = leftovers(tmp_path, [])
        assert len(left) == (3 if bench.on_spark else 1)  # a file of each try


class TestScan:
    @pytest.mark.parametrize("work", [jobs.some_rows, jobs.slow_early_rows])
    def test_rows_come_in_task_order(self, bench: Bench, work: Any) -> None:
        rows = bench.table(bench.engine.scan(work, range(7), jobs.ROWS))
        wanted = [f"{task}/{part}/{row}" for task in range(7) for part in (0, 2) for row in (0, 1)]
        assert rows.column("text").to_pylist() == wanted
        assert rows.schema.equals(jobs.ROWS)

    def test_scan_without_tasks_returns_schema_and_no_rows(self, bench: Bench) -> None:
        rows = bench.table(bench.engine.scan(jobs.some_rows, [], jobs.ROWS))
        assert rows.num_rows == 0
        assert rows.schema.equals(jobs.ROWS)

    def test_scan_reads_nothing_before_first_batch(self, bench: Bench, tmp_path: Path) -> None:
        bench.engine.scan(jobs.endless, [str(tmp_path)] * 3, jobs.ROWS)
        assert not list(tmp_path.iterdir())

    def test_scan_failure_reports_cause(self, bench: Bench) -> None:
        scan = bench.engine.scan(jobs.rows_then_failure, range(5), jobs.ROWS)
        with pytest.raises(LookupError, match="no more rows of task 2"):
            bench.table(scan)

    def test_scan_raises_for_another_schema(self, bench: Bench) -> None:
        scan = bench.engine.scan(jobs.other_columns, [1], jobs.ROWS)
        with pytest.raises(SchemaMismatch, match="instead of"):
            bench.table(scan)


class TestExchange:
    def test_exchange_calls_once_per_route_with_all_rows(self, bench: Bench) -> None:
        values = ["b", "a", "ä", "", "b", "a", "b", "Z"]
        results = bench.engine.exchange(bench.rows(routed(values)), "to", jobs.write_group)
        seen = [(value, numbers) for value, numbers, _ in results if numbers != "first"]
        assert seen == [("", [3]), ("Z", [7]), ("a", [1, 5]), ("b", [0, 4, 6]), ("ä", [2])]
        assert results[-1][2] == ["to", "n"]

    def test_results_of_a_call_stay_together(self, bench: Bench) -> None:
        results = bench.engine.exchange(bench.rows(routed(["x", "y"])), "to", jobs.write_group)
        assert [(value, kind) for value, kind, _ in results] == [
            ("x", "first"),
            ("x", [0]),
            ("y", "first"),
            ("y", [1]),
        ]

    def test_many_routes_in_many_batches(self, bench: Bench) -> None:
        values = [f"r{n % 500:03}" for n in range(20_000)]
        table = pa.concat_tables([routed(values), routed(values)])
        results = bench.engine.exchange(bench.rows(table), "to", jobs.write_group)
        groups = [(value, len(numbers)) for value, numbers, _ in results if numbers != "first"]
        assert groups == [(f"r{n:03}", 80) for n in range(500)]

    def test_exchange_accepts_no_rows(self, bench: Bench) -> None:
        assert bench.engine.exchange(bench.rows(routed([])), "to", jobs.write_group) == []

    def test_rows_are_evaluated_once(self, bench: Bench, tmp_path: Path) -> None:
        rows = bench.counted(routed(["a", "b", "a"]), str(tmp_path))
        results = bench.engine.exchange(rows, "to", jobs.write_group)
        assert len(results) == 4
        assert len(traces(tmp_path, ".evaluated")) == 1

    def test_exchange_refuses_null_route(self, bench: Bench) -> None:
        with pytest.raises(ValueError, match="'to' holds nulls"):
            bench.engine.exchange(bench.rows(routed(["a", None])), "to", jobs.write_group)

    def test_exchange_refuses_route_that_is_not_string(self, bench: Bench) -> None:
        with pytest.raises(TypeError, match="'n' holds int64"):
            bench.engine.exchange(bench.rows(routed(["a"])), "n", jobs.write_group)

    def test_instants_arrive_in_utc(self, bench: Bench) -> None:
        instants = pa.array([0, 1], pa.timestamp("us", "UTC"))
        rows = pa.table({"to": ["a", "a"], "at": instants})
        (schema,) = bench.engine.exchange(bench.rows(rows), "to", jobs.schema_of)
        assert schema.field("at").type == pa.timestamp("us", "UTC")

    def test_attempts_carry_the_stage(self, bench: Bench) -> None:
        results = bench.engine.exchange(
            bench.rows(routed(["a", "b"])), "to", jobs.write_group, stage=5
        )
        tokens = [token for _, kind, token in results if kind == "first"]
        assert all(token.split("-")[1] == "5" for token in tokens)

    def test_exchange_failure_keeps_type(self, bench: Bench, tmp_path: Path) -> None:
        error = CorruptTable("damaged", file="x.log", offset=4)
        work = jobs.WriteGroup(Job(str(tmp_path), "", error=error))
        with pytest.raises(CorruptTable, match="damaged") as caught:
            bench.engine.exchange(bench.rows(routed(["a", "b"])), "to", work)
        assert (caught.value.file, caught.value.offset) == ("x.log", 4)

    def test_exchange_repeated_call_returns_one_of_its_files(
        self, bench: Bench, tmp_path: Path
    ) -> None:
        engine = FaultyEngine(bench.engine, Twice)
        work = jobs.WriteGroup(Job(str(tmp_path), ""))
        results = engine.exchange(bench.rows(routed(["a", "b", "a"])), "to", work)
        assert [name.split("_")[0] for name in results] == ["a-2", "b-1"]
        assert len(leftovers(tmp_path, results)) == 2

    def test_exchange_retried_call_gets_all_rows_again(self, bench: Bench, tmp_path: Path) -> None:
        work = jobs.WriteGroup(Job(str(tmp_path), "", crash="once"))
        results = bench.retrying.exchange(bench.rows(routed(["a", "b", "a"])), "to", work)
        assert [name.split("_")[0] for name in results] == ["a-2", "b-1"]
        left = {name.split("_")[0] for name in leftovers(tmp_path, results)}
        assert left == {"a-2", "b-1"}

    def test_exchange_returns_nothing_from_call_that_fails_after_writing(
        self, bench: Bench, tmp_path: Path
    ) -> None:
        engine = FaultyEngine(bench.engine, DiesAfterWriting)
        work = jobs.WriteGroup(Job(str(tmp_path), ""))
        with pytest.raises(DiedError, match="after writing"):
            engine.exchange(bench.rows(routed(["a"])), "to", work)
        assert leftovers(tmp_path, [])


class StepWatcher:
    """Keeps what an engine tells it, and calls a function with each step."""

    title = "pyhudi test of trips"
    needs_steps = True

    def __init__(self, on_step: Callable[[Step], object] = bool) -> None:
        self.on_step = on_step
        self.steps: list[Step] = []
        self.ended: list[tuple[str, int, int]] = []

    def begin(self, label: str, total: int) -> None:
        self.step(Step(label, 0, total))

    def step(self, step: Step) -> None:
        self.steps.append(step)
        self.on_step(step)

    def end(self, label: str, tasks: int, results: Sequence[Any]) -> None:
        self.ended.append((label, tasks, len(results)))


class TestWatcher:
    def test_run_reports_each_finished_task(self, bench: Bench, tmp_path: Path) -> None:
        """A task ends when the step of the one before it was reported."""
        watcher = StepWatcher(lambda step: jobs.leave(str(tmp_path), str(step.finished)))
        engine = bench.engine.with_watcher(watcher)
        engine.run(jobs.wait_for_own_file, [Job(str(tmp_path), "wait")] * 4, label="wait")
        assert watcher.steps == [Step("wait", finished, 4) for finished in range(5)]
        assert watcher.ended == [("wait", 4, 4)]
        assert bench.engine.watcher is None

    def test_exchange_reports_begin_and_end(self, bench: Bench) -> None:
        watcher = StepWatcher()
        rows = bench.rows(routed(["a", "b", "a"]))
        bench.engine.with_watcher(watcher).exchange(rows, "to", jobs.write_group, label="write")
        first, last = watcher.steps[0], watcher.steps[-1]
        assert (first.finished, {step.label for step in watcher.steps}) == (0, {"write"})
        assert last.finished == last.total >= 2
        assert watcher.ended == [("write", 2, 2)]

    @pytest.mark.parametrize("finished", [0, 1])
    def test_failure_of_watcher_ends_run(self, bench: Bench, tmp_path: Path, finished: int) -> None:
        def stop(step: Step) -> None:
            if step.finished == finished:
                raise LookupError("stopped by its watcher")

        watcher = StepWatcher(stop)
        tasks = [Job(str(tmp_path), f"f{n}") for n in range(4)]
        with pytest.raises(LookupError, match="stopped by its watcher"):
            bench.engine.with_watcher(watcher).run(jobs.write, tasks, label="write")
        assert not watcher.ended


def test_write_token_matches_hudi_format() -> None:
    assert Attempt(4, 1, 17).write_token == "4-1-17"


def _notes(error: BaseException) -> dict[str, Any]:
    """Notes that an engine may add to an exception."""
    notes = getattr(error, "__notes__", None)
    return {} if notes is None else {"__notes__": notes}
