"""Confidence: the number, computed from signals, that ranks items.

A variant is a named function of signals that returns one number per item; higher is more confident. It declares which
signals it needs, and the value of a null or missing one. Any other missing signal is an error that names the
participant, the item, the key and the variant. Proportions and probabilities are clipped to [0, 1], and so is every
part of a hybrid. Raw similarities and counts are not. `register_confidence` adds a custom variant.

`select` converts a request (``default``, ``all``, names, ``secondary:a+b:average``) to names, and `confidence_values`
returns one number per item for a name. A name is a registered variant, otherwise a signal. This module knows the names
of calibrated variants; `abstain.calibrators` computes their values. `no_confidence` is the message for a source without
any confidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from abstain import _validate
from abstain._signals import ConsistencySignals, TokenSignals, consistency_signals, token_signals
from abstain.errors import ArgumentError, DataError, SignalError, list_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from abstain._types import Floats
    from abstain.items import Items

    VariantFunction = Callable[..., Any]

__all__ = [
    "CALIBRATED_VARIANTS",
    "ConsistencySignals",
    "Need",
    "TokenSignals",
    "Variant",
    "confidence_values",
    "consistency_signals",
    "find_variant",
    "is_calibrated",
    "no_confidence",
    "register_confidence",
    "select",
    "servable",
    "signals_needed",
    "token_signals",
    "unregister_confidence",
    "variants",
]

DEFAULT = ("llm", "total_evidence")
_NO_CONFIDENCE = "no confidence in this source; name one (--confidence, confidence=) or record one"
# How to record a confidence, by format.
_RECORDING = {
    "inspect": "request log-probabilities (logprobs=True) or epochs, or put a number into Score.metadata",
    "lm-eval": "multiple choice has log-likelihoods; a generation task needs repeats",
}
_RECORDING_A_TABLE = "add a column with one number per answer, such as the probability that the model states"
_HOW = "docs/guides/tables.md#recording-a-confidence"
# The variants of token probabilities, repeated answers and stated confidence, by the signal that a log records.
_RECORDED = {
    "token_msp": "token_msp",
    "consistency_modal_confidence": "consistency",
    "verbalized_confidence": "verbalized",
}
CALIBRATED_VARIANTS = ("verbalized_calibrated", "calibrated")
_COMBINATIONS = {"average": lambda a, b: 0.5 * (a + b), "product": lambda a, b: a * b}


@dataclass(frozen=True, slots=True)
class Need:
    """A signal that a variant needs.

    Attributes:
        key: the signal's name.
        null: the value of a null; None makes a null an error.
        absent: the value of a missing key that other items have; None makes a missing key an error.
        within: the lowest and highest possible value.
    """

    key: str
    null: float | None = None
    absent: float | None = None
    within: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """A named confidence.

    Attributes:
        name: its name in requests.
        needs: the signals that are passed to the function, in order.
        function: takes arrays of those signals and returns one confidence per item.
        description: one line for help texts.
        in_all: False if ``all`` does not include it.
    """

    name: str
    needs: tuple[Need, ...]
    function: VariantFunction
    description: str
    in_all: bool = True

    def values(self, items: Items) -> Floats:
        """Return one confidence for every item."""
        columns = [_column(items, need, self.name) for need in self.needs]
        result = _validate.floats(self.function(*columns), f"confidence {self.name}")
        _validate.same_length(len(items), **{f"confidence {self.name}": result})
        wrong = ~np.isfinite(result) & _is_required(items)
        if wrong.any():
            value = result[items.first_row(wrong)]
            raise DataError(f"confidence {self.name} is {value} for {items.where(wrong)}; it must be finite")
        return result


def _is_required(items: Items) -> NDArray[np.bool_]:
    """Return True for each item that needs a signal: answered ones, and in a run file every item."""
    return np.ones(len(items), np.bool_) if _is_run(items) else items.answered


def _is_run(items: Items) -> bool:
    return items.provenance.get("format") == "run" and not items.provenance.get("exported")


def _column(items: Items, need: Need, variant: str) -> Floats:
    signal = items.signals.get(need.key)
    if signal is None and need.key in items.metadata:
        # True and false are not numbers, although bool is a subclass of int.
        others = [
            value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)))
            for value in items.metadata[need.key].tolist()
        ]
        problem = f"confidence {variant} needs numbers in {need.key}, which contains other values"
        _refuse(items, np.array(others, np.bool_), problem)
    if signal is None:
        raise SignalError(
            f"confidence {variant} needs the signal {need.key}, which no item has; "
            f"signals here: {list_names(sorted(items.signals)) or 'none'}"
        )
    values = signal.values
    required = _is_required(items)
    for state, rows, default in (("missing", signal.absent, need.absent), ("null", signal.null, need.null)):
        if default is None and find_variant(variant) is None:
            items.check_stated(variant, rows & required)
        elif default is None:
            problem = f"confidence {variant} needs the signal {need.key}, which is {state}"
            _refuse(items, rows & required, problem)
        elif rows.any():
            values = np.where(rows, default, values)
    if need.within is not None:
        low, high = need.within
        problem = f"confidence {variant} needs {need.key} from {low:g} to {high:g}, and it is outside"
        _refuse(items, (values < low) | (values > high), problem)
    return values


def _refuse(items: Items, rows: NDArray[np.bool_], problem: str) -> None:
    if rows.any():
        raise SignalError(f"{problem} for {items.where(rows)}")


def _unit(values: Floats) -> Floats:
    return np.clip(values, 0.0, 1.0)


def _evidence_proportion(count: Floats) -> Floats:
    return _unit(count / 3.0)


def _verbal_proportion(verbalized: Floats) -> Floats:
    return (verbalized - 1.0) / 4.0


def _unchanged(values: Floats) -> Floats:
    return values


def _inverse(spread: Floats) -> Floats:
    return 1.0 / (1.0 + spread)


def _with_evidence(proportion: Floats, count: Floats, similarity: Floats) -> Floats:
    return _unit(0.4 * _unit(proportion) + 0.3 * _evidence_proportion(count) + 0.3 * _unit(similarity))


_EVIDENCE = Need("llm_evidence_count", null=0.0, absent=0.0)
_SIMILARITY = Need("retrieval_similarity_mean", null=0.0)
# A null verbalized confidence counts as the middle of its scale of 1 to 5, which becomes 0.5.
_VERBALIZED = Need("verbalized_confidence", null=3.0, within=(1.0, 5.0))
_MODAL = Need("consistency_modal_confidence")

_BUILT_IN = (
    Variant("llm", (_EVIDENCE,), _unchanged, "number of quotes that the model found as evidence"),
    Variant("total_evidence", (_EVIDENCE,), _unchanged, "older name of llm"),
    Variant(
        "retrieval_similarity_mean", (_SIMILARITY,), _unchanged, "mean similarity of the retrieved references"
    ),
    Variant(
        "retrieval_similarity_max",
        (Need("retrieval_similarity_max", null=0.0),),
        _unchanged,
        "largest similarity of the retrieved references",
    ),
    Variant(
        "hybrid_evidence_similarity",
        (_EVIDENCE, _SIMILARITY),
        lambda count, similarity: _unit(0.5 * _evidence_proportion(count) + 0.5 * _unit(similarity)),
        "half evidence (capped at 3), half similarity",
    ),
    Variant(
        "verbalized",
        (_VERBALIZED,),
        _verbal_proportion,
        "confidence that the model states, 1 to 5, as 0 to 1",
    ),
    Variant(
        "hybrid_verbalized",
        (_VERBALIZED, _EVIDENCE, _SIMILARITY),
        lambda verbalized, *evidence: _with_evidence(_verbal_proportion(verbalized), *evidence),
        "0.4 stated confidence, 0.3 evidence, 0.3 similarity",
    ),
    Variant("token_msp", (Need("token_msp"),), _unit, "mean probability of the chosen tokens"),
    Variant("token_pe", (Need("token_pe"),), _inverse, "1 / (1 + mean token entropy)"),
    Variant(
        "token_energy",
        (Need("token_energy"),),
        # The probability mass is at most 1, so a positive energy (from rounding, or of another sign) counts as 1.
        lambda energy: np.exp(np.minimum(energy, 0.0)),
        "probability mass that the top tokens hold",
    ),
    Variant("consistency", (_MODAL,), _unit, "proportion of samples that agree with the most frequent one"),
    Variant(
        "consistency_inverse_std",
        (Need("consistency_score_std"),),
        _inverse,
        "1 / (1 + standard deviation over samples)",
    ),
    Variant(
        "hybrid_consistency",
        (_MODAL, _EVIDENCE, _SIMILARITY),
        _with_evidence,
        "0.4 consistency, 0.3 evidence, 0.3 similarity",
    ),
    # `abstain run` records these only on request, so `all`, which every run file must support, excludes them.
    Variant(
        "consistency_agreement",
        (Need("consistency_agreement"),),
        _unit,
        "proportion of samples that agree with the answer",
        in_all=False,
    ),
    Variant(
        "answer_token_probability",
        (Need("answer_token_probability"),),
        _unit,
        "probability of the tokens of the answer, without the rest of the reply",
        in_all=False,
    ),
    Variant(
        "p_true", (Need("p_true"),), _unit, "probability that the model calls its answer true", in_all=False
    ),
    Variant(
        "semantic_entropy",
        (Need("semantic_entropy"),),
        _inverse,
        "1 / (1 + entropy over the meanings of samples)",
        in_all=False,
    ),
    Variant(
        "evidence_unsupported_share",
        # Without any quote, no quote is in the source text.
        (Need("evidence_unsupported_share", null=1.0),),
        lambda proportion: _unit(1.0 - proportion),
        "proportion of quotes that are in the source text",
        in_all=False,
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
    """Add a custom confidence; usable as a decorator.

    Args:
        name: its name in requests; letters, digits, dots, dashes and underscores.
        function: takes arrays of the needed signals, in order, and returns one confidence per item, higher is more
            confident.
        needs: names of signals, or `Need`s, which also declare the value of a null.
        description: one line for help texts.

    >>> @register_confidence("evidence_by_length", needs=["evidence", "tokens"])
    ... def evidence_by_length(evidence, tokens):
    ...     return evidence / tokens
    >>> unregister_confidence("evidence_by_length")
    """
    if not name or not all(letter.isalnum() or letter in "._-" for letter in name):
        raise ArgumentError(
            f"the name of a confidence may contain only letters, digits, '.', '-' and '_', got {name!r}"
        )
    if name in _REGISTRY or name in ("default", "all"):
        raise ArgumentError(f"the confidence {name!r} already exists; choose another name")
    if function is None:
        return partial(register_confidence, name, needs=needs, description=description)
    signals = tuple(need if isinstance(need, Need) else Need(need) for need in needs)
    _REGISTRY[name] = Variant(name, signals, function, description)
    return function


def unregister_confidence(name: str) -> None:
    """Remove a confidence that `register_confidence` added."""
    if name not in _REGISTRY or _REGISTRY[name] in _BUILT_IN:
        raise ArgumentError(
            f"{name!r} is not a confidence that was added with register_confidence; it cannot be removed"
        )
    del _REGISTRY[name]


def no_confidence(items: Items) -> str:
    """Return the message for a source without any confidence, with a way to record one."""
    remedy = _RECORDING.get(items.provenance.get("format", ""), _RECORDING_A_TABLE)
    return f"{_NO_CONFIDENCE}: {remedy} ({_HOW})"


def select(requested: str | Iterable[str], items: Items, *, calibration: bool = False) -> tuple[str, ...]:
    """Return the requested names, each once, in order; the error for an unknown one suggests the nearest.

    ``default`` is ``llm, total_evidence`` for run files, otherwise the first of: the signal ``confidence``, a signal
    with another usual name (`abstain.items.CONFIDENCE_NAMES`), token probabilities, repeated answers, a stated
    confidence. It is empty if the items have none of these; see `no_confidence`. ``all`` is every variant with
    `Variant.in_all`; none of them is calibrated. Names may be separated by commas. Calibrated variants need
    `calibration`.
    """
    names: dict[str, None] = {}
    parts = _split_names(requested)
    if not parts:
        raise ArgumentError("no confidence was requested; name one, or request default or all")
    for part in parts:
        if part == "default":
            names.update(dict.fromkeys(_default(items)))
        elif part == "all":
            names.update(dict.fromkeys(variant.name for variant in variants() if variant.in_all))
        else:
            _check_name(part, items, calibration=calibration)
            names[part] = None
    return tuple(names)


def _split_names(requested: str | Iterable[str]) -> list[str]:
    parts = [requested] if isinstance(requested, str) else list(requested)
    if not all(isinstance(part, str) for part in parts):
        raise ArgumentError(
            "confidence must be the name of a signal or a column, got values; pass the name of the column"
        )
    return [piece.strip() for text in parts for piece in text.split(",")]


def signals_needed(requested: str | Iterable[str]) -> tuple[str, ...] | None:
    """Return the signals that the requested confidences need; None if that depends on the items.

    >>> signals_needed("hybrid_evidence_similarity,margin")
    ('llm_evidence_count', 'retrieval_similarity_mean', 'margin')
    >>> signals_needed("default") is None
    True
    """
    keys: dict[str, None] = {}
    for name in _split_names(requested):
        if name in ("default", "all") or is_calibrated(name):
            return None
        for base in _split_secondary(name)[:2] if name.startswith("secondary:") else (name,):
            variant = find_variant(base)
            keys.update(dict.fromkeys(need.key for need in variant.needs) if variant else {base: None})
    return tuple(keys)


def _default(items: Items) -> tuple[str, ...]:
    if _is_run(items) or "llm_evidence_count" in items.signals:
        return DEFAULT
    if items.usual_confidence is not None:
        return (items.usual_confidence,)
    return tuple(name for signal, name in _RECORDED.items() if signal in items.signals)[:1]


def confidence_values(items: Items, name: str) -> Floats:
    """Return one confidence for every item.

    >>> from abstain import Items
    >>> items = Items.from_arrays([1, 0], [1, 1], signals={"token_msp": [0.9, 0.4], "margin": [2, 1]})
    >>> confidence_values(items, "margin")
    array([2., 1.])
    >>> confidence_values(items, "secondary:token_msp+margin:product")
    array([1.8, 0.4])
    """
    _check_name(name, items)
    if name.startswith("secondary:"):
        first, second, combination = _split_secondary(name)
        # Not clipped: if one of the two is a count, values above 1 must keep their order.
        combined: Floats = _COMBINATIONS[combination](
            confidence_values(items, first), confidence_values(items, second)
        )
        return combined
    variant = find_variant(name) or Variant(name, (Need(name),), _unchanged, "an unchanged signal")
    try:
        return variant.values(items)
    except SignalError as problem:
        possible = servable(items)
        hint = f"; this source can serve: {list_names(possible)}" if possible else ""
        raise SignalError(f"{problem}{hint}") from None


def servable(items: Items) -> tuple[str, ...]:
    """Return the names of the registered variants whose signals these items have."""
    names = []
    for variant in variants():
        try:
            variant.values(items)
        except SignalError:
            continue
        names.append(variant.name)
    return tuple(names)


def is_calibrated(name: str) -> bool:
    """Return whether the values of a variant come from a calibration file."""
    return name in CALIBRATED_VARIANTS or name.startswith("calibrated:")


def _check_name(name: str, items: Items, *, calibration: bool = False) -> None:
    if is_calibrated(name) and calibration:
        if name in CALIBRATED_VARIANTS:
            return
        base = name.removeprefix("calibrated:")
        if is_calibrated(base):
            raise ArgumentError(f"confidence {name!r} calibrates a base confidence, not a calibrated one")
        _check_name(base, items)
    elif name.startswith("secondary:"):
        for part in _split_secondary(name)[:2]:
            if part.startswith(("secondary:", "calibrated")):
                raise ArgumentError(f"confidence {name!r} combines base confidences only, not {part!r}")
            _check_name(part, items)
    elif is_calibrated(name):
        raise ArgumentError(
            f"confidence {name!r} needs a calibration file, and none was passed; pass one with --calibration "
            "(calibration= in Python), made by abstain calibrate"
        )
    elif find_variant(name) is None and name not in items.signals:
        names = [*(variant.name for variant in variants()), *items.signals]
        raise ArgumentError(
            f"unknown confidence {name!r}{_validate.suggestion(name, names)}; known: default, all, "
            f"{', '.join(dict.fromkeys(names))}, secondary:<a>+<b>:<average|product>"
        )


def _split_secondary(name: str) -> tuple[str, str, str]:
    pair, _, combination = name.removeprefix("secondary:").rpartition(":")
    first, plus, second = pair.partition("+")
    if not (first and plus and second and combination in _COMBINATIONS):
        raise ArgumentError(f"confidence {name!r} must have the form secondary:<a>+<b>:<average|product>")
    return first, second, combination
