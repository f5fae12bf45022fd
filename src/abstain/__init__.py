"""abstain evaluates models that may decline to answer.

    import abstain

    items = abstain.read("run.json", mode="few_shot")
    result = abstain.evaluate(items, confidence="llm", loss="abs")
    print(result["llm"].aurc)

Each public name is imported when it is first used, so that importing abstain costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from abstain import calibrators, metrics
    from abstain.confidence import register_confidence
    from abstain.errors import AbstainError, ArgumentError, DataError, FormatError, ResultWarning, SignalError
    from abstain.evaluation import Difference, Result, SystemResult, check, compare, evaluate, gate, power
    from abstain.evaluation.conformal import (
        CoverageResult,
        evaluate_intervals,
        evaluate_quantiles,
        evaluate_sets,
    )
    from abstain.inference import Estimate, bootstrap, jackknife, paired_delta
    from abstain.items import Items, Outcome, OutcomeCounts, Signal
    from abstain.readers import AbstentionRule, read
    from abstain.thresholds import Policy, PolicyCheck, choose_threshold, read_policy

__version__ = "0.2.0"

__all__ = [
    "AbstainError",
    "AbstentionRule",
    "ArgumentError",
    "CoverageResult",
    "DataError",
    "Difference",
    "Estimate",
    "FormatError",
    "Items",
    "Outcome",
    "OutcomeCounts",
    "Policy",
    "PolicyCheck",
    "Result",
    "ResultWarning",
    "Signal",
    "SignalError",
    "SystemResult",
    "__version__",
    "bootstrap",
    "calibrators",
    "check",
    "choose_threshold",
    "compare",
    "evaluate",
    "evaluate_intervals",
    "evaluate_quantiles",
    "evaluate_sets",
    "gate",
    "jackknife",
    "metrics",
    "paired_delta",
    "power",
    "read",
    "read_policy",
    "register_confidence",
]

# The public names of each module within abstain.
_NAMES = {
    "confidence": ("register_confidence",),
    "errors": ("AbstainError", "ArgumentError", "DataError", "FormatError", "ResultWarning", "SignalError"),
    "evaluation": ("Difference", "Result", "SystemResult", "check", "compare", "evaluate", "gate", "power"),
    "evaluation.conformal": ("CoverageResult", "evaluate_intervals", "evaluate_quantiles", "evaluate_sets"),
    "inference": ("Estimate", "bootstrap", "jackknife", "paired_delta"),
    "items": ("Items", "Outcome", "OutcomeCounts", "Signal"),
    "readers": ("AbstentionRule", "read"),
    "thresholds": ("Policy", "PolicyCheck", "choose_threshold", "read_policy"),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}
_PACKAGES = (
    "calibrators",
    "compat",
    "evaluation",
    "inference",
    "integrations",
    "metrics",
    "readers",
    "report",
    "thresholds",
)


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"abstain.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"abstain.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
