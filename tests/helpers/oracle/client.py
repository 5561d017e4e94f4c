"""A client of the oracle: real Apache Hudi in a process of its own, spoken to in JSON lines.

Standard library only, so that it works in the project's own environment. Not for the server's side:
that is `hudi_oracle.py`, which runs in the oracle's environment.

    with HudiOracle("1.2.0") as hudi:
        hudi.write(base, rows=[{"id": 1}], schema="id int", options={...})
        rows = hudi.read(base, meta=True)["rows"]

The JVM starts once, at the first command; each later call costs only its own work.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

SERVER = Path(__file__).with_name("hudi_oracle.py")
START_SECONDS = 240
JSON = dict[str, Any]


class HudiError(Exception):
    """What Apache Hudi or Spark answered; `message` is the chain of Java causes."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        self.type: str = error.get("type", "")
        self.message: str = error.get("message", "")
        self.causes: list[str] = error.get("causes", [])
        self.trace: str = error.get("trace", "")
        super().__init__(f"{self.type}: {self.message}")


def oracle_home() -> Path:
    """Where `setup.sh` puts the oracle: HUDI_ORACLE_HOME or a folder of the user's cache."""
    named = os.environ.get("HUDI_ORACLE_HOME")
    return Path(named) if named else Path.home() / ".cache" / "hudi-oracle"


def available(hudi: str, home: Path | None = None) -> bool:
    """Whether `setup.sh` has run for this release of Hudi."""
    home = home or oracle_home()
    jar = home / "jars" / f"hudi-spark3.5-bundle_2.12-{hudi}.jar"
    return (home / "venv" / "bin" / "python").exists() and jar.exists()


class HudiOracle:
    """One release of Apache Hudi in one JVM, from the first command to `close`."""

    def __init__(
        self,
        hudi: str = "1.2.0",
        home: Path | None = None,
        *,
        memory: str = "3g",
        cores: int = 2,
        timeout: float = 900,
        log: str | None = None,
        conf: Mapping[str, str] | None = None,
    ) -> None:
        self.hudi = hudi
        self.home = home or oracle_home()
        self.memory = memory
        self.cores = cores
        self.timeout = timeout
        self.log = log
        self.conf = dict(conf or {})
        self._process: subprocess.Popen[str] | None = None
        self._threads: list[threading.Thread] = []
        self._answers: queue.Queue[str | None] = queue.Queue()
        self._tail: list[str] = []
        self._lock = threading.Lock()
        self._last_id = 0

    def start(self) -> HudiOracle:
        """Starts the JVM unless it runs."""
        if self._process is not None:
            return self
        if not available(self.hudi, self.home):
            message = f"no Apache Hudi {self.hudi} in {self.home}: run `make oracle`"
            raise RuntimeError(message)
        process = subprocess.Popen(
            self._command_line(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_clean_environment(),
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        self._process = process
        self._answers = queue.Queue()
        self._tail = []
        assert process.stdout is not None
        assert process.stderr is not None
        self._threads = [
            threading.Thread(target=self._pump_answers, args=(process.stdout,), daemon=True),
            threading.Thread(target=self._pump_log, args=(process.stderr,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        self._answer(START_SECONDS)
        return self

    def close(self) -> None:
        """Stops the JVM; the next command would start another."""
        process = self._process
        if process is None:
            return
        try:
            assert process.stdin is not None
            process.stdin.write('{"cmd": "stop"}\n')
            process.stdin.flush()
            process.stdin.close()
            process.wait(60)
        except (OSError, subprocess.TimeoutExpired):
            pass
        self.kill()

    def kill(self) -> None:
        """Ends the process whatever it does, and frees what belonged to it."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.kill()
        process.wait()
        for thread in self._threads:
            thread.join(10)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None and not pipe.closed:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue

    def __enter__(self) -> HudiOracle:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def command(self, cmd: str, *, timeout: float | None = None, **args: Any) -> Any:
        """One command of the server; its result, or `HudiError`."""
        with self._lock:
            self.start()
            assert self._process is not None
            assert self._process.stdin is not None
            self._last_id += 1
            request = {"id": self._last_id, "cmd": cmd, "args": args}
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            answer = self._answer(timeout or self.timeout)
            if answer.get("id") != self._last_id:
                self.kill()
                message = f"answers out of step: {answer!r}"
                raise RuntimeError(message)
        if not answer.get("ok"):
            raise HudiError(answer.get("error", {}))
        return answer.get("result")

    def read(self, base: str | Path, **arguments: Any) -> JSON:
        """Rows as JSON values, with `count` and `sha256`.

        query (snapshot, read_optimized, incremental, cdc), as_of, begin, end, metadata,
        data_skipping, filter, columns, options, meta, schema, out (a file for the rows).
        """
        answer: JSON = self.command("read", base=str(base), **arguments)
        return answer

    def write(
        self,
        base: str | Path,
        rows: Sequence[Mapping[str, Any]] | None = None,
        schema: str | None = None,
        input: str | Path | None = None,  # noqa: A002 - the server's own word
        operation: str | None = "upsert",
        options: Mapping[str, str] | None = None,
        mode: str = "append",
        partitions: int = 1,
    ) -> JSON:
        """One commit through Hudi's Spark data source; `instants` are the new ones."""
        answer: JSON = self.command(
            "write",
            base=str(base),
            rows=rows,
            schema=schema,
            input=None if input is None else str(input),
            operation=operation,
            options=dict(options or {}),
            mode=mode,
            partitions=partitions,
        )
        return answer

    def sql(
        self,
        base: str | Path,
        statement: str | Sequence[str],
        conf: Mapping[str, str] | None = None,
    ) -> JSON:
        """Spark SQL; `{table}` stands for a catalog table over `base`, `{base}` for the path."""
        answer: JSON = self.command(
            "sql", base=str(base), statement=statement, conf=dict(conf or {})
        )
        return answer

    def call(self, base: str | Path, procedure: str, conf: Mapping[str, str] | None = None) -> JSON:
        """A procedure such as `run_compaction(op => 'scheduleandexecute')`."""
        answer: JSON = self.command(
            "call", base=str(base), procedure=procedure, conf=dict(conf or {})
        )
        return answer

    def instants(self, base: str | Path, *, archived: bool = False) -> list[JSON]:
        """The timeline: action, state, requested and completed time."""
        answer: list[JSON] = self.command("instants", base=str(base), archived=archived)
        return answer

    def info(self, base: str | Path) -> JSON:
        """Table version, type and properties as Hudi sees them."""
        answer: JSON = self.command("info", base=str(base))
        return answer

    def schema(self, base: str | Path) -> JSON:
        """The Spark schema of a snapshot read, as JSON."""
        answer: JSON = self.command("schema", base=str(base))
        return answer

    def log_blocks(self, base: str | Path) -> list[JSON]:
        """Every log file's blocks as Hudi's reader sees them."""
        answer: list[JSON] = self.command("log_blocks", base=str(base))
        return answer

    def streamer_checkpoint(self, base: str | Path) -> JSON | None:
        """Class and key of the newest checkpoint of Hudi's streamer."""
        found: JSON | None = self.command("streamer_checkpoint", base=str(base))
        return found

    def validate(self, base: str | Path) -> JSON:
        """Hudi's cross-checks of a table; `ok` and `problems`."""
        answer: JSON = self.command("validate", base=str(base))
        return answer

    def _command_line(self) -> list[str]:
        python = self.home / "venv" / "bin" / "python"
        args = [str(python), str(SERVER), "--hudi", self.hudi, "--home", str(self.home)]
        args += ["--memory", self.memory, "--cores", str(self.cores)]
        for key, value in self.conf.items():
            args += ["--spark-conf", f"{key}={value}"]
        return [*args, "serve"]

    def _answer(self, timeout: float) -> JSON:
        try:
            line = self._answers.get(timeout=timeout)
        except queue.Empty:
            self.kill()
            message = f"no answer from the oracle in {timeout} s\n{''.join(self._tail[-40:])}"
            raise TimeoutError(message) from None
        if line is None:
            self.kill()
            message = f"the oracle ended\n{''.join(self._tail[-60:])}"
            raise RuntimeError(message)
        answer: JSON = json.loads(line)
        return answer

    def _pump_answers(self, pipe: IO[str]) -> None:
        for line in pipe:
            self._answers.put(line)
        self._answers.put(None)

    def _pump_log(self, pipe: IO[str]) -> None:
        for line in pipe:
            if self.log is not None:
                with Path(self.log).open("a", encoding="utf-8") as log:
                    log.write(line)
            self._tail.append(line)
            del self._tail[:-200]


def _clean_environment() -> dict[str, str]:
    ours = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "SPARK_HOME", "PYSPARK_PYTHON")
    return {key: value for key, value in os.environ.items() if key not in ours}
