"""Jobs: the corpus and the batches of all rounds, shared out among processes."""

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

__all__ = ["Job", "Report", "WeightBatch", "together"]

# How many cases are drawn at once: a batch ends with the first new defect.
SHORT_BATCH, LONG_BATCH = 10, 40


class WeightBatch(NamedTuple):
    """Some cases of a round, told by a seed."""

    name: str
    seed: int
    examples: int


class Job(NamedTuple):
    """What one process does, beside others that do the rest."""

    number: int
    jobs: int
    seconds: float
    seed: int
    rounds: tuple[str, ...]


class Report(NamedTuple):
    """What a job did and found."""

    commands: int
    failing: dict[str, str]
    findings: list[Finding]


def together(jobs: list[Job]) -> Iterator[Report]:
    """Run every job in a process of its own: hypothesis keeps one thread per process busy."""
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
        for path, wrong in replay(worker, job.number, job.jobs):
            hunt.cases += 1
            if wrong:
                failing[path.name] = wrong[0]
        hunt.passed_over |= set(failing.values())
        if job.seconds:
            hunt.deadline = time.monotonic() + job.seconds
        for batch in _batches(job):
            hunt.batch(ROUNDS[batch.name].cases, batch.seed, batch.examples)
            if time.monotonic() > hunt.deadline:
                break
        sender.send(Report(hunt.cases, failing, list(hunt.findings.values())))


def _batches(job: Job) -> Iterator[WeightBatch]:
    """The batches of a job: a few, the same every time; or others without end."""
    if not job.seconds:
        counts = {name: ROUNDS[name].every_commit or ROUNDS[name].proportion for name in job.rounds}
        names = [name for name, count in counts.items() for _ in range(count)]
        batches = [WeightBatch(name, job.seed + number, SHORT_BATCH) for number, name in enumerate(names)]
        yield from batches[job.number :: job.jobs]
        return
    proportions = [name for name in job.rounds for _ in range(ROUNDS[name].proportion)]
    for number in itertools.count(job.number, job.jobs):
        yield WeightBatch(proportions[number % len(proportions)], job.seed + number, LONG_BATCH)
