"""How many threads weigh, and how a stop reaches them.

Weights are drawn from one stream, one vector after the other, and counted and weighed side by side; what comes of each
goes to its own place, so that the numbers are the same however many threads there are. The thread that asked only
waits: an interrupt wakes it at once, and it asks the others to leave off.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from abstain import _validate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from abstain.resampling import StopFlag

T = TypeVar("T")
# The number that was set for the whole process; None for one thread per core.
_set_count: int | None = None


def threads() -> int:
    """Return how many threads weigh: as many as were asked for, else as the process has cores.

    >>> threads() >= 1
    True
    """
    if _set_count is not None:
        return _set_count
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def set_threads(count: int | None) -> None:
    """Say how many threads weigh, for the whole process; None for as many as it has cores. It changes no number.

    >>> set_threads(1)
    >>> threads()
    1
    >>> set_threads(None)
    """
    global _set_count  # noqa: PLW0603
    _set_count = None if count is None else _validate.whole(count, "threads", least=1)


def for_each(items: Iterator[T], work: Callable[[T], None], stop: StopFlag, *, workers: int) -> None:
    """Do some work for each of the items in threads that all take items from the same iterator, see `InTurn`.

    The first error, or an interrupt, stops all threads and is raised here.
    """
    from concurrent.futures import ThreadPoolExecutor, wait  # noqa: PLC0415  (small evaluations need no threads)

    errors = list[BaseException]()

    def take_items() -> None:
        try:
            for item in items:
                work(item)
                if stop.asked:
                    return
        except BaseException as problem:  # the others may raise, too, once they are stopped
            errors.append(problem)
            stop.set()

    with ThreadPoolExecutor(workers, "abstain") as pool:
        try:
            wait([pool.submit(take_items) for _ in range(workers)])
        except BaseException:
            stop.set()
            raise
    if errors:
        raise errors[0]


class InTurn(Iterator[T]):
    """The items of an iterator, which several threads may ask for: one waits for the other.

    >>> list(InTurn(range(3)))
    [0, 1, 2]
    """

    def __init__(self, items: Iterable[T]) -> None:
        self._items, self._asking = iter(items), threading.Lock()

    def __next__(self) -> T:
        with self._asking:
            return next(self._items)
