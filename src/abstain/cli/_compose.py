"""Verbs that share their options: one function reads and judges, and each verb adds what it does with the result."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Later", "with_options_of"]


@dataclass(frozen=True, slots=True)
class Later:
    """Work that waits until it is called, and what was asked of it."""

    work: Callable[..., Any]
    options: Mapping[str, Any]

    def but(self, **options: Any) -> Later:
        """Return the same work with other options where none were given."""
        given = {name: value for name, value in self.options.items() if value is not None}
        return Later(self.work, {**self.options, **options, **given})

    def __call__(self) -> Any:
        """Do the work."""
        return self.work(**self.options)


def with_options_of(
    base: Callable[..., Any], verb: Callable[..., None], *, without: tuple[str, ...] = ()
) -> Callable[..., None]:
    """Return a verb that has the options of `base` and then its own.

    The verb's first parameter is `Later`: it knows the options given to `base` and runs it when called, so that
    a verb can check its own first.

    Args:
        base: a function whose parameters are options.
        verb: a function whose parameters after the first are options.
        without: options of `base` that the verb does not offer.
    """
    shared = [option for option in _options(base) if option.name not in without]
    own = _options(verb)[1:]

    def combined(**given: Any) -> None:
        mine = {option.name: given.pop(option.name) for option in own}
        verb(Later(base, given), **mine)

    order = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in (*shared, *own)]
    combined.__signature__ = inspect.Signature(order)  # type: ignore[attr-defined]
    combined.__annotations__ = {option.name: option.annotation for option in order}
    combined.__doc__ = verb.__doc__
    combined.__name__ = verb.__name__
    return combined


def _options(function: Callable[..., Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(function, include_extras=True)
    found = inspect.signature(function).parameters.values()
    return [option.replace(annotation=hints.get(option.name, option.annotation)) for option in found]
