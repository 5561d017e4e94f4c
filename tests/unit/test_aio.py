"""The table for asyncio: the same results, without blocking the event loop."""

from __future__ import annotations

import asyncio
import inspect
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import aio
from pyhudi.storage.storage import Storage
from tests.helpers.table_builder import SMALL, TableBuilder

ROWS = TableBuilder({"id": (pa.string(), str), "v": (pa.int64(), 0)}, options=SMALL, metadata=False)
NOT_AWAITED = {"alter", "merge", "transaction", "with_validators", "writer", "to_reader"}
"""Methods that `run` and `table` are for."""


def test_async_table_has_methods_of_table() -> None:
    methods = {
        name
        for name, _ in inspect.getmembers(pyhudi.HudiTable, inspect.isfunction)
        if not name.startswith("_")
    }
    lazy = {"scan", "incremental", "changes", "diff", "stream"}
    own = {name for name in methods if hasattr(aio.AsyncTable, name)}
    assert own == methods - NOT_AWAITED
    for name in own - lazy:
        assert inspect.iscoroutinefunction(getattr(aio.AsyncTable, name)), name


def test_async_table_reads_and_writes(tmp_path: Path) -> None:
    async def use() -> None:
        uri = str(tmp_path / "t")
        assert not await aio.table_exists(uri)
        cdc = {**ROWS.options, "hoodie.table.cdc.enabled": True}
        table = await aio.create_table(uri, ROWS.rows(["a"]), key="id", options=cdc)
        first = table.table.history()["instant"][0].as_py()
        result = await table.upsert(ROWS.rows(["a", "b"], v=1))
        assert result.rows_updated == 1
        opened = await aio.open_table(uri)
        assert (await opened.to_arrow()).num_rows == await opened.count() == 2
        assert (await opened.scan(where="id = 'b'").to_arrow())["v"].to_pylist() == [1]
        assert await opened.incremental(start=first).count() == 2
        assert (await opened.changes(start=first).head(1)).num_rows == 1
        assert await opened.diff(first, result.instant).count() == 2
        assert (await opened.get(["b"]))["id"].to_pylist() == ["b"]
        assert len(await opened.to_pandas()) == len(await opened.scan().to_pandas()) == 2
        assert [batch.num_rows async for batch in opened.scan().batches()] == [2]
        merged = await table.run(
            lambda each: each.merge(ROWS.rows(["c"])).when_not_matched_insert_all().execute()
        )
        assert merged.rows_inserted == 1
        assert await (await opened.refresh()).count() == 3
        with pytest.raises(pyhudi.SchemaMismatch):
            await opened.scan(columns=["nope"]).to_arrow()
        await aio.drop_table(uri)

    asyncio.run(use())


def test_async_stream_returns_each_commit(tmp_path: Path) -> None:
    async def follow() -> list[list[str]]:
        table = await aio.create_table(tmp_path / "t", ROWS.rows(["a"]), key="id")
        read = []
        async with table.stream(consumer="c", poll=0.01) as stream:
            async for batch in stream:
                read.append((await batch.to_arrow())["id"].to_pylist())
                await batch.commit()
                if len(read) == 3:
                    break
                await table.upsert(ROWS.rows([f"k{len(read)}"]))
        assert [batch async for batch in stream] == []
        assert [b.instants async for b in table.stream(consumer="c", wait=False)] == []
        rest = aio.stream(table.table, batch.position, wait=False)
        assert [each async for each in rest] == []
        return read

    assert asyncio.run(follow()) == [["a"], ["k1"], ["k2"]]


def test_canceled_wait_for_batch_loses_none(tmp_path: Path) -> None:
    """Neither in the pause between two polls nor while a thread reads."""

    async def follow() -> None:
        table = await aio.create_table(tmp_path / "t", ROWS.rows(["a"]), key="id")
        stream = table.stream("latest", poll=0.01)
        for number in range(5):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(anext(stream), 0.05)
            await table.upsert(ROWS.rows([f"k{number}"]))
            while True:
                try:
                    batch = await asyncio.wait_for(anext(stream), 0.002)
                except asyncio.TimeoutError:
                    continue
                break
            assert (await batch.to_arrow())["id"].to_pylist() == [f"k{number}"]

    asyncio.run(follow())


def test_canceled_stream_leaves_no_thread(tmp_path: Path) -> None:
    async def follow() -> None:
        table = await aio.create_table(tmp_path / "t", ROWS.rows(["a"]), key="id")
        reached = asyncio.Event()

        async def read() -> None:
            async for _ in table.stream(poll="1h"):
                reached.set()

        task = asyncio.create_task(read())
        await reached.wait()
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(follow(), 30))
    assert not [each for each in threading.enumerate() if each.name.startswith("asyncio")]


def test_async_stream_does_not_block_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_dir, threads = Storage.list_dir, set()

    def watch(self: Storage, *arguments: Any) -> Any:
        threads.add(threading.current_thread())
        return list_dir(self, *arguments)

    async def follow() -> None:
        table = await aio.create_table(tmp_path / "t", ROWS.rows(["a"]), key="id")
        monkeypatch.setattr(Storage, "list_dir", watch)
        async for batch in table.stream(consumer="c", wait=False):
            await batch.count()
            await batch.commit()
        await asyncio.gather(*(table.count() for _ in range(4)))

    asyncio.run(follow())
    assert threads
    assert threading.main_thread() not in threads


def test_async_stream_ends_when_it_is_closed(tmp_path: Path) -> None:
    async def follow() -> int:
        table = await aio.create_table(tmp_path / "t", ROWS.rows(["a"]), key="id")
        stream, number = table.stream(poll="1h"), 0
        asyncio.get_running_loop().call_later(0.2, lambda: asyncio.ensure_future(stream.aclose()))
        async for _ in stream:
            number += 1
        return number

    assert asyncio.run(asyncio.wait_for(follow(), 30)) == 1


def test_async_table_says_what_to_write(tmp_path: Path) -> None:
    """For names of other libraries, and for what `HudiTable` alone has."""
    table = aio.AsyncTable(pyhudi.create_table(tmp_path / "t", ROWS.rows(["a"]), key="id"))
    for rows, name, hint in (
        (table, "vacuum", r"Write table.clean\(\).* await it"),
        (table, "transaction", r"await table.run\(lambda t: t.transaction\(…\)\)"),
        (table, "schema", r"await table.run\(lambda t: t.schema\)"),
        (table.scan(), "schema", r"await table.run\(lambda t: t.scan\(…\).schema\)"),
        (table.scan(), "fetchall", r"to_pylist\(\)"),
        (table, "nonsense", "no attribute 'nonsense'$"),
    ):
        with pytest.raises(AttributeError, match=hint):
            getattr(rows, name)
    with pytest.raises(TypeError, match=r"await table.count\(\)"):
        len(table)
    assert table
