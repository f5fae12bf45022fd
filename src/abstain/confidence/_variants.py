"""Confidence variants: named ways to turn signals into one number per item, higher is more confident.

A variant says which signals it needs and what a null or a missing one means; everything else is an error that
names the participant, the item, the key and the variant. Nothing is substituted in silence. Shares and
probabilities are clipped to [0, 1] and so is every part of a hybrid; raw similarities and counts are not. The
registry below is the whole list; a user's own variant joins it with `register_confidence`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError, DataError, SignalError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from abstain.items import Items

    Floats = NDArray[np.float64]
    VariantFunction = Callable[..., Any]

__all__ = ["Need", "Variant", "register_confidence", "unregister_confidence", "variants"]


@dataclass(frozen=True, slots=True)
class Need:
    """A signal that a variant is made of.

    Attributes:
        key: the signal's name.
        null: what a null counts as; None makes a null an error.
        absent: what a missing key counts as where other items have it; None makes a missing key an error.
        within: the lowest and highest value there can be.
    """

    key: str
    null: float | None = None
    absent: float | None = None
    within: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """A named confidence.

    Attributes:
        name: what the user asks for.
        needs: the signals that the function gets, in order.
        function: arrays of those signals in, one confidence per item out.
        description: one line for people.
    """

    name: str
    needs: tuple[Need, ...]
    function: VariantFunction
    description: str

    def values(self, items: Items) -> Floats:
        """Return one confidence for every item."""
        columns = [_column(items, need, self.name) for need in self.needs]
        result = _validate.floats(self.function(*columns), f"confidence {self.name}")
        _validate.same_length(len(items), **{f"confidence {self.name}": result})
        wrong = ~np.isfinite(result) & _asked_for(items)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(
                f"confidence {self.name} is {result[row]} for {items.describe_row(row)}; it must be finite"
            )
        return result


def _asked_for(items: Items) -> NDArray[np.bool_]:
    """True where a signal must be there: for every answer, and in a run file, which is strict, for every item."""
    if items.provenance.get("format") == "run" and not items.provenance.get("exported"):
        return np.ones(len(items), np.bool_)
    return items.answered


def _column(items: Items, need: Need, variant: str) -> Floats:
    signal = items.signals.get(need.key)
    if signal is None and need.key in items.metadata:
        found = items.metadata[need.key].tolist()
        odd = np.array([value is not None and not _is_number(value) for value in found], np.bool_)
        _refuse(items, odd, f"confidence {variant} needs numbers in {need.key}, which holds other things")
    if signal is None:
        raise SignalError(
            f"confidence {variant} needs the signal {need.key}, which no item has{_first(items)}; "
            f"signals here: {', '.join(sorted(items.signals)) or 'none'}"
        )
    values = signal.values
    asked_for = _asked_for(items)
    for state, rows, default in (("missing", signal.absent, need.absent), ("null", signal.null, need.null)):
        if default is None:
            _refuse(
                items, rows & asked_for, f"confidence {variant} needs the signal {need.key}, which is {state}"
            )
        elif rows.any():
            values = np.where(rows, default, values)
    if need.within is not None:
        low, high = need.within
        outside = (values < low) | (values > high)
        _refuse(
            items,
            outside,
            f"confidence {variant} needs {need.key} within {low:g} to {high:g}, which it is not",
        )
    return values


def _refuse(items: Items, rows: NDArray[np.bool_], problem: str) -> None:
    if rows.any():
        row = int(np.argmax(rows))
        raise SignalError(f"{problem} for {items.describe_row(row)} ({int(rows.sum())} such items)")


def _is_number(value: object) -> bool:
    # True and false are no numbers, though Python counts them among the whole ones.
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _first(items: Items) -> str:
    return f" (first: {items.describe_row(0)})" if len(items) else ""


def _unit(values: Floats) -> Floats:
    return np.clip(values, 0.0, 1.0)


def _evidence_share(count: Floats) -> Floats:
    return _unit(count / 3.0)


def _verbal_share(verbalized: Floats) -> Floats:
    return (verbalized - 1.0) / 4.0


def _as_it_is(values: Floats) -> Floats:
    return values


_EVIDENCE = Need("llm_evidence_count", null=0.0, absent=0.0)
_SIMILARITY = Need("retrieval_similarity_mean", null=0.0)
# A null verbalised confidence counts as the middle of its scale of 1 to 5, which is 0.5 once normalised.
_VERBALIZED = Need("verbalized_confidence", null=3.0, within=(1.0, 5.0))
_MODAL = Need("consistency_modal_confidence")

_BUILT_IN = (
    Variant("llm", (_EVIDENCE,), _as_it_is, "number of quotes that the model found as evidence"),
    Variant("total_evidence", (_EVIDENCE,), _as_it_is, "older name of llm"),
    Variant(
        "retrieval_similarity_mean", (_SIMILARITY,), _as_it_is, "mean similarity of the retrieved references"
    ),
    Variant(
        "retrieval_similarity_max",
        (Need("retrieval_similarity_max", null=0.0),),
        _as_it_is,
        "largest similarity of the retrieved references",
    ),
    Variant(
        "hybrid_evidence_similarity",
        (_EVIDENCE, _SIMILARITY),
        lambda count, similarity: _unit(0.5 * _evidence_share(count) + 0.5 * _unit(similarity)),
        "half evidence (capped at 3), half similarity",
    ),
    Variant(
        "verbalized", (_VERBALIZED,), _verbal_share, "confidence that the model states, 1 to 5, as 0 to 1"
    ),
    Variant(
        "hybrid_verbalized",
        (_VERBALIZED, _EVIDENCE, _SIMILARITY),
        lambda verbalized, count, similarity: _unit(
            0.4 * _unit(_verbal_share(verbalized)) + 0.3 * _evidence_share(count) + 0.3 * _unit(similarity)
        ),
        "0.4 stated confidence, 0.3 evidence, 0.3 similarity",
    ),
    Variant("token_msp", (Need("token_msp"),), _unit, "mean probability of the chosen tokens"),
    Variant(
        "token_pe", (Need("token_pe"),), lambda entropy: 1.0 / (1.0 + entropy), "1 / (1 + mean token entropy)"
    ),
    Variant(
        "token_energy",
        (Need("token_energy"),),
        # The mass is at most 1, so that a positive energy (rounding, or another sign) counts as all of it.
        lambda energy: np.exp(np.minimum(energy, 0.0)),
        "probability mass that the top tokens hold",
    ),
    Variant(
        "consistency",
        (_MODAL,),
        _unit,
        "share of samples that agree with the most frequent one",
    ),
    Variant(
        "consistency_inverse_std",
        (Need("consistency_score_std"),),
        lambda spread: 1.0 / (1.0 + spread),
        "1 / (1 + standard deviation over samples)",
    ),
    Variant(
        "hybrid_consistency",
        (_MODAL, _EVIDENCE, _SIMILARITY),
        lambda modal, count, similarity: _unit(
            0.4 * _unit(modal) + 0.3 * _evidence_share(count) + 0.3 * _unit(similarity)
        ),
        "0.4 consistency, 0.3 evidence, 0.3 similarity",
    ),
)

_REGISTRY: dict[str, Variant] = {variant.name: variant for variant in _BUILT_IN}


def variants() -> tuple[Variant, ...]:
    """Return every registered variant, built-in ones first."""
    return tuple(_REGISTRY.values())


def find_variant(name: str) -> Variant | None:
    """Return the variant of that name, or None."""
    return _REGISTRY.get(name)


@overload
def register_confidence(
    name: str, function: VariantFunction, *, needs: Sequence[str | Need], description: str = ""
) -> VariantFunction: ...
@overload
def register_confidence(
    name: str, *, needs: Sequence[str | Need], description: str = ""
) -> Callable[[VariantFunction], VariantFunction]: ...
def register_confidence(
    name: str,
    function: VariantFunction | None = None,
    *,
    needs: Sequence[str | Need],
    description: str = "",
) -> VariantFunction | Callable[[VariantFunction], VariantFunction]:
    """Add a confidence of your own; usable as a decorator.

    Args:
        name: how it is asked for; letters, digits, dots, dashes and underscores.
        function: arrays of the needed signals in, in order; one confidence per item out, higher is more
            confident.
        needs: names of signals, or `Need`s that say what a null counts as.
        description: one line for people.

    >>> @register_confidence("evidence_by_length", needs=["evidence", "tokens"])
    ... def evidence_by_length(evidence, tokens):
    ...     return evidence / tokens
    >>> unregister_confidence("evidence_by_length")
    """
    if not name or not all(letter.isalnum() or letter in "._-" for letter in name):
        raise ArgumentError(
            f"the name of a confidence holds letters, digits, '.', '-' and '_' only, got {name!r}"
        )
    if name in _REGISTRY or name in ("default", "all"):
        raise ArgumentError(f"there is a confidence {name!r} already; choose another name")

    def add(chosen: VariantFunction) -> VariantFunction:
        wanted = tuple(need if isinstance(need, Need) else Need(need) for need in needs)
        _REGISTRY[name] = Variant(name, wanted, chosen, description)
        return chosen

    return add if function is None else add(function)


def unregister_confidence(name: str) -> None:
    """Remove a confidence that `register_confidence` added."""
    if name not in _REGISTRY or _REGISTRY[name] in _BUILT_IN:
        raise ArgumentError(f"there is no confidence {name!r} of yours to remove")
    del _REGISTRY[name]
