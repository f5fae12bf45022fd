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
_chosen: list[int] = []


def threads() -> int:
    """Return how many threads weigh: as many as were asked for, else as the process has cores.

    >>> threads() >= 1
    True
    """
    if _chosen:
        return _chosen[-1]
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
    _chosen.clear()
    if count is not None:
        _chosen.append(_validate.whole(count, "threads", least=1))


def for_each(items: Iterator[T], work: Callable[[T], None], stop: StopFlag, *, workers: int) -> None:
    """Do some work for each of the items, in threads of their own, all of which ask for items: see `InTurn`.

    The first error ends all of them and is raised here; so does an interrupt.
    """
    errors = list[BaseException]()

    def labour() -> None:
        try:
            for item in items:
                work(item)
                if stop.asked:
                    return
        except BaseException as problem:
            errors.append(problem)
            stop.set()

    begun = list[threading.Thread]()
    try:
        for number in range(workers):
            begun.append(threading.Thread(target=labour, name=f"abstain-{number}"))
            begun[-1].start()
        _wait_for(begun)
    except BaseException:
        stop.set()
        _wait_for(begun)
        raise
    if errors:
        raise errors[0]


def _wait_for(begun: list[threading.Thread]) -> None:
    for thread in begun:
        if thread.ident is not None:
            thread.join()


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
