"""Groups of options: flags that several verbs share are written once, as the fields of a dataclass.

A verb takes a group as one parameter; `spelled_out` gives the command line the fields, and the verb the group.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from typing import TYPE_CHECKING, Any, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["spelled_out"]


def spelled_out(verb: Callable[..., None]) -> Callable[..., None]:
    """Return a verb with an option for every field of the groups among its parameters.

    >>> @dataclasses.dataclass
    ... class Reading:
    ...     truth: str = "label"
    >>> @spelled_out
    ... def verb(path: str, reading: Reading) -> None:
    ...     print(path, reading)
    >>> inspect.signature(verb)
    <Signature (*, path: str, truth: str = 'label') -> None>
    >>> verb(path="t.csv", truth="gold")
    t.csv Reading(truth='gold')
    """
    options: list[inspect.Parameter] = []
    groups: dict[str, list[str]] = {}
    hints = get_type_hints(verb, include_extras=True)
    for option in _parameters(verb):
        if isinstance(option.annotation, type) and dataclasses.is_dataclass(option.annotation):
            own = _parameters(option.annotation)
            groups[option.name] = [part.name for part in own]
            options += own
        else:
            options.append(option)

    @functools.wraps(verb)
    def with_groups(**given: Any) -> None:
        for name, parts in groups.items():
            given[name] = hints[name](**{part: given.pop(part) for part in parts})
        verb(**given)

    # Keywords have no order, so that an option that must be given may stand after one that need not.
    options = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]
    with_groups.__signature__ = inspect.Signature(options, return_annotation=None)  # type: ignore[attr-defined]
    with_groups.__annotations__ = {option.name: option.annotation for option in options}
    del with_groups.__wrapped__
    return with_groups


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function, or the fields of a dataclass, with their annotations looked up."""
    hints = get_type_hints(function, include_extras=True)
    found = inspect.signature(function).parameters.values()
    return [option.replace(annotation=hints.get(option.name, option.annotation)) for option in found]
