"""abstain judges models that may decline to answer.

    import abstain

    items = abstain.read("run.json", mode="few_shot")
    result = abstain.evaluate(items, confidence="llm", loss="abs")
    print(result["llm"].aurc)

The public names are below; each is loaded when it is first used, so that importing abstain costs next to
nothing. This is the one place that may know every room, and so it says who shows results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abstain._doors import door
from abstain._presenting import present_with

if TYPE_CHECKING:
    from abstain import calibrators, metrics
    from abstain._presenting import Presenter
    from abstain.confidence import register_confidence
    from abstain.errors import AbstainError, ArgumentError, DataError, FormatError, ResultWarning, SignalError
    from abstain.evaluation import (
        Difference,
        Result,
        SystemResult,
        check,
        compare,
        evaluate,
        gate,
        power,
    )
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
else:
    __getattr__, __dir__ = door(__name__)

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


def _presenter() -> Presenter:
    from abstain import report  # noqa: PLC0415

    return report


present_with(_presenter)
