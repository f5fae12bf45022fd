"""Confidence: from signals to the number that ranks items.

`select` turns what a user asks for (``default``, ``all``, names, ``secondary:a+b:average``) into names;
`confidence_values` turns one name into one number per item. Registered variants come first, then any signal by
its own name. Calibrated variants, which need an artifact, have their names here and their values from
`abstain.calibrators`. A confidence is never made up: a source that has none has none, and `NO_CONFIDENCE` is
what its user is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abstain import _validate
from abstain._signals import ConsistencySignals, TokenSignals, consistency_signals, token_signals
from abstain.confidence._variants import (
    Need,
    Variant,
    find_variant,
    register_confidence,
    unregister_confidence,
    variants,
)
from abstain.errors import ArgumentError, SignalError
from abstain.items import CONFIDENCE_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from abstain.items import Items

    Floats = NDArray[np.float64]

__all__ = [
    "CALIBRATED_VARIANTS",
    "NO_CONFIDENCE",
    "ConsistencySignals",
    "Need",
    "TokenSignals",
    "Variant",
    "confidence_values",
    "consistency_signals",
    "find_variant",
    "is_calibrated",
    "register_confidence",
    "select",
    "servable",
    "signals_needed",
    "token_signals",
    "unregister_confidence",
    "variants",
]

DEFAULT = ("llm", "total_evidence")
NO_CONFIDENCE = "no confidence in this source; name one (--confidence, confidence=) or record one"
# What the readers of logs make of token probabilities and of repeated answers, by the signal it is made of.
_RECORDED = {"token_msp": "token_msp", "consistency_modal_confidence": "consistency"}
CALIBRATED_VARIANTS = ("verbalized_calibrated", "calibrated")
_COMBINATIONS = {"average": lambda a, b: 0.5 * (a + b), "product": lambda a, b: a * b}


def select(asked: str | Iterable[str], items: Items, *, calibration: bool = False) -> tuple[str, ...]:
    """Return the names that were asked for, each once, in order; an unknown one is an error that suggests the nearest.

    ``default`` is ``llm, total_evidence`` for run files; else the signal ``confidence``; else a signal by one of
    its usual names (`abstain.items.CONFIDENCE_NAMES`); else what a log's reader made of token probabilities or
    of repeated answers; else nothing, and the result is empty: see `NO_CONFIDENCE`.
    ``all`` is every variant that needs no calibration artifact. Names may be
    separated by commas. Calibrated variants can be asked for where there is a `calibration` to serve them.
    """
    names: dict[str, None] = {}
    parts = _pieces(asked)
    if not parts:
        raise ArgumentError("no confidence was asked for; name one, or ask for default or all")
    for part in parts:
        if part == "default":
            names.update(dict.fromkeys(_default(items)))
        elif part == "all":
            names.update(dict.fromkeys(variant.name for variant in variants()))
        else:
            _check_name(part, items, calibration=calibration)
            names[part] = None
    return tuple(names)


def _pieces(asked: str | Iterable[str]) -> list[str]:
    parts = [asked] if isinstance(asked, str) else list(asked)
    return [piece.strip() for text in parts for piece in str(text).split(",")]


def signals_needed(asked: str | Iterable[str]) -> tuple[str, ...] | None:
    """Return the signals that the confidences asked for are made of; None where only the items can tell.

    >>> signals_needed("hybrid_evidence_similarity,margin")
    ('llm_evidence_count', 'retrieval_similarity_mean', 'margin')
    >>> signals_needed("default") is None
    True
    """
    keys: dict[str, None] = {}
    for name in _pieces(asked):
        if name in ("default", "all", *CALIBRATED_VARIANTS) or name.startswith("calibrated:"):
            return None
        for base in _split_secondary(name)[:2] if name.startswith("secondary:") else (name,):
            variant = find_variant(base)
            keys.update(dict.fromkeys(need.key for need in variant.needs) if variant else {base: None})
    return tuple(keys)


def _default(items: Items) -> tuple[str, ...]:
    of_a_run = items.provenance.get("format") == "run" and not items.provenance.get("exported")
    if of_a_run or "llm_evidence_count" in items.signals:
        return DEFAULT
    lowered = {name.casefold(): name for name in reversed(list(items.signals))}
    for usual in CONFIDENCE_NAMES:
        if usual in lowered:
            return (lowered[usual],)
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
        pair = (confidence_values(items, first), confidence_values(items, second))
        # Not clipped: with a count among the two, it is the values above 1 that rank.
        combined: Floats = _COMBINATIONS[combination](*pair)
        return combined
    variant = find_variant(name) or Variant(name, (Need(name),), lambda values: values, "a signal as it is")
    try:
        return variant.values(items)
    except SignalError as problem:
        possible = servable(items)
        hint = f"; this source can serve: {', '.join(possible)}" if possible else ""
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
    """True for a variant whose values come from a calibration artifact."""
    return name in CALIBRATED_VARIANTS or name.startswith("calibrated:")


def _check_name(name: str, items: Items, *, calibration: bool = False) -> None:
    if is_calibrated(name) and calibration:
        base = name.removeprefix("calibrated:")
        if name not in CALIBRATED_VARIANTS and is_calibrated(base):
            raise ArgumentError(f"confidence {name!r} calibrates a base confidence, not a calibrated one")
        if name not in CALIBRATED_VARIANTS:
            _check_name(base, items)
    elif name.startswith("secondary:"):
        for part in _split_secondary(name)[:2]:
            if part.startswith(("secondary:", "calibrated")):
                raise ArgumentError(f"confidence {name!r} combines base confidences only, not {part!r}")
            _check_name(part, items)
    elif is_calibrated(name):
        raise ArgumentError(
            f"confidence {name!r} needs a calibration artifact, and none was given; pass one with --calibration "
            "(calibration= in Python), made by abstain calibrate"
        )
    elif find_variant(name) is None and name not in items.signals:
        known = [*(variant.name for variant in variants()), *items.signals]
        raise ArgumentError(
            f"unknown confidence {name!r}{_validate.suggestion(name, known)}; known: default, all, "
            f"{', '.join(dict.fromkeys(known))}, secondary:<a>+<b>:<average|product>"
        )


def _split_secondary(name: str) -> tuple[str, str, str]:
    pair, _, combination = name.removeprefix("secondary:").rpartition(":")
    first, plus, second = pair.partition("+")
    if not (first and plus and second and combination in _COMBINATIONS):
        raise ArgumentError(f"confidence {name!r} must have the form secondary:<a>+<b>:<average|product>")
    return first, second, combination
