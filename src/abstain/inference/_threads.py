"""Threads that evaluate statistics, and how an interrupt stops them.

Weights are drawn from one stream, one vector after the other, and evaluated in parallel. The values of each vector are
stored at its position, so results do not depend on the number of threads. The calling thread only waits: it receives an
interrupt at once and stops the others.
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
    """Return the number of threads that evaluate statistics. Default: one per core.

    >>> threads() >= 1
    True
    """
    if _set_count is not None:
        return _set_count
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def set_threads(count: int | None) -> None:
    """Set the number of threads for the whole process; None for one per core. Results do not depend on it.

    >>> set_threads(1)
    >>> threads()
    1
    >>> set_threads(None)
    """
    global _set_count  # noqa: PLW0603
    _set_count = None if count is None else _validate.whole(count, "threads", least=1)


def for_each(items: Iterator[T], work: Callable[[T], None], stop: StopFlag, *, workers: int) -> None:
    """Do some work for each of the items, in threads that take items from the same iterator (see `InTurn`).

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
    """An iterator that several threads may use: one waits for the other.

    >>> list(InTurn(range(3)))
    [0, 1, 2]
    """

    def __init__(self, items: Iterable[T]) -> None:
        self._items, self._lock = iter(items), threading.Lock()

    def __next__(self) -> T:
        with self._lock:
            return next(self._items)
