"""Jobs: the corpus and the batches of all rounds, divided among processes."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, NamedTuple

from fuzz._hunt import Finding, Hunt, replay
from fuzz._rounds import ROUNDS
from fuzz._workers import CONTEXT, Worker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

__all__ = ["CaseBatch", "Job", "Report", "run_jobs"]

# The number of cases per batch. A batch ends with the first new defect.
SHORT_BATCH, LONG_BATCH = 10, 40


class CaseBatch(NamedTuple):
    """Some cases of a round, determined by a seed."""

    name: str
    seed: int
    examples: int


class Job(NamedTuple):
    """The work of one process."""

    number: int
    jobs: int
    seconds: float
    seed: int
    rounds: tuple[str, ...]


class Report(NamedTuple):
    """The number of commands of a job, the failing cases of the corpus, and the new defects."""

    commands: int
    failing: dict[str, str]
    findings: list[Finding]


def run_jobs(jobs: list[Job]) -> Iterator[Report]:
    """Run every job in a separate process, because Hypothesis uses one thread per process."""
    running = []
    for job in jobs:
        receiver, sender = CONTEXT.Pipe(duplex=False)
        process = CONTEXT.Process(target=_work, args=(job, sender))
        process.start()
        sender.close()
        running.append((process, receiver))
    for process, receiver in running:
        yield receiver.recv()
        process.join()


def _work(job: Job, sender: Connection) -> None:
    with Worker() as worker:
        failing: dict[str, str] = {}
        hunt = Hunt(worker)
        for path, violations in replay(worker, job.number, job.jobs):
            hunt.cases += 1
            if violations:
                failing[path.name] = violations[0]
        hunt.passed_over |= set(failing.values())
        if job.seconds:
            hunt.deadline = time.monotonic() + job.seconds
        for batch in _batches(job):
            hunt.batch(ROUNDS[batch.name].cases, batch.seed, batch.examples)
            if time.monotonic() > hunt.deadline:
                break
        sender.send(Report(hunt.cases, failing, list(hunt.findings.values())))


def _batches(job: Job) -> Iterator[CaseBatch]:
    """Yield the batches of a job: a few fixed batches, or random batches without end if there is a time limit."""
    if not job.seconds:
        counts = {name: ROUNDS[name].every_commit or ROUNDS[name].proportion for name in job.rounds}
        names = [name for name, count in counts.items() for _ in range(count)]
        batches = [CaseBatch(name, job.seed + number, SHORT_BATCH) for number, name in enumerate(names)]
        yield from batches[job.number :: job.jobs]
        return
    proportions = [name for name in job.rounds for _ in range(ROUNDS[name].proportion)]
    for number in itertools.count(job.number, job.jobs):
        yield CaseBatch(proportions[number % len(proportions)], job.seed + number, LONG_BATCH)
