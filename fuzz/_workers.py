"""Workers run cases in child processes, with a time limit, and replace children that hang or die."""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
from typing import TYPE_CHECKING

from fuzz._case import Case, Outcome

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerProcess
    from types import TracebackType

__all__ = ["CONTEXT", "Worker"]

# Children are forked from a server process that has imported all modules and has no threads.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["fuzz._child"])
# Elapsed time, which includes waiting while other processes use the machine. The oracles check the CPU time.
PATIENCE_SECONDS = 30.0
# A new child releases the memory that engines keep from case to case.
CASES_PER_CHILD = 300


class Worker:
    """Runs cases in a child process; use it as a context manager."""

    def __init__(self, planted: str | None = None, patience: float = PATIENCE_SECONDS) -> None:
        self._planted = planted
        self._patience = patience
        self._folder = tempfile.mkdtemp(prefix="abstain-fuzz-")
        self._child: ForkServerProcess | None = None
        self._connection: Connection | None = None
        self._left = 0

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, case: Case) -> list[Outcome]:
        """Return the outcome of each command of a case."""
        return [self._run(case, command) for command in case.commands]

    def _run(self, case: Case, command: tuple[str, ...]) -> Outcome:
        outcome = self._try(case, command)
        if outcome.crash.startswith(("dies", "MemoryError")):
            # Earlier cases in the same child may be the reason, so the command is tried again in a new child.
            self._end()
            outcome = self._try(case, command)
        return outcome

    def _try(self, case: Case, command: tuple[str, ...]) -> Outcome:
        connection = self._ready()
        self._left -= 1
        try:
            connection.send((case, command))
            if connection.poll(self._patience):
                outcome: Outcome = connection.recv()
                return outcome
            crash = "hangs"
        except (EOFError, ConnectionError):
            crash = "dies"
        self._end()
        return Outcome(crash=crash)

    def _ready(self) -> Connection:
        from fuzz._child import serve  # noqa: PLC0415  (imports many modules)

        if self._left <= 0:
            self._end()
        if self._connection is None:
            self._connection, other = CONTEXT.Pipe()
            self._child = CONTEXT.Process(
                target=serve, args=(other, self._folder, self._planted), daemon=True
            )
            self._child.start()
            other.close()
            self._left = CASES_PER_CHILD
        return self._connection

    def _end(self) -> None:
        if self._connection is not None and self._child is not None:
            self._connection.close()
            self._child.kill()
            self._child.join()
        self._child = self._connection = None
