"""Runs: ask a model the questions of a table with Inspect AI (the extra ``inspect``).

`may_abstain` and the other solvers allow the model to decline and record signals, `answer_scorer` scores the answers,
and `abstain.runs.tasks` makes a task from a table. All are registered in Inspect under names such as ``abstain/ask``.
`RunPlan` has the arguments of `abstain run`, `prepare` checks it without a call, and `execute` runs it. Inspect handles
providers, concurrency, retries, caching and logs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from abstain.runs._costs import estimated_costs
from abstain.runs._plan import Prepared, RunPlan, prepare, shown_prompts
from abstain.runs._prompts import Wording
from abstain.runs._run_file import confidences_of, run_content
from abstain.runs._signal_plan import SignalPlan
from abstain.runs.questions import QuestionSet, read_examples, read_questions

if TYPE_CHECKING:
    from abstain.runs._execution import FinishedLog, check_failures, execute
    from abstain.runs.scoring import answer_scorer
    from abstain.runs.solvers import (
        ask,
        consistency,
        evidence,
        may_abstain,
        p_true,
        semantic_entropy,
        token_signals,
        verbalized_confidence,
    )

__all__ = [
    "FinishedLog",
    "Prepared",
    "QuestionSet",
    "RunPlan",
    "SignalPlan",
    "Wording",
    "answer_scorer",
    "ask",
    "check_failures",
    "confidences_of",
    "consistency",
    "estimated_costs",
    "evidence",
    "execute",
    "may_abstain",
    "p_true",
    "prepare",
    "read_examples",
    "read_questions",
    "run_content",
    "semantic_entropy",
    "shown_prompts",
    "token_signals",
    "verbalized_confidence",
]


def __getattr__(name: str) -> Any:
    """Import the names that need Inspect when they are first used; all others are imported above."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    executing = dict.fromkeys(("execute", "check_failures", "FinishedLog"), "_execution")
    module = {**executing, "answer_scorer": "scoring"}.get(name, "solvers")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
