"""Runs: from a table of questions to a judged model, on Inspect AI (the extra ``inspect``).

`may_abstain` and the solvers beside it ask with leave to decline and record signals, `judged` scores what they find,
`abstain.runs.tasks` makes a task of a table; all are known to Inspect by name (``abstain/ask``). `RunPlan` says what
`abstain run` does, `prepare` checks it without a call, `execute` does it. Providers, concurrency, retries, caching and
logs are Inspect's own: nothing of them is written again here.

Each name is loaded when it is first used, so that what needs Inspect is only imported where it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from abstain.runs._run_file import confidences_of, run_content
    from abstain.runs._running import Prepared, Running, RunPlan, execute, prepare, shown_prompts
    from abstain.runs._signal_plan import SignalPlan
    from abstain.runs.questions import QuestionSet, read_examples, read_questions
    from abstain.runs.scoring import judged
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

# The module of each public name: it is imported when the name is first used.
_NAMES = {
    "abstain.runs._run_file": (
        "confidences_of",
        "run_content",
    ),
    "abstain.runs._running": (
        "Prepared",
        "Running",
        "RunPlan",
        "execute",
        "prepare",
        "shown_prompts",
    ),
    "abstain.runs._signal_plan": ("SignalPlan",),
    "abstain.runs.questions": (
        "QuestionSet",
        "read_examples",
        "read_questions",
    ),
    "abstain.runs.scoring": ("judged",),
    "abstain.runs.solvers": (
        "ask",
        "consistency",
        "evidence",
        "may_abstain",
        "p_true",
        "semantic_entropy",
        "token_signals",
        "verbalized_confidence",
    ),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)


__all__ = [
    "Prepared",
    "QuestionSet",
    "RunPlan",
    "Running",
    "SignalPlan",
    "ask",
    "confidences_of",
    "consistency",
    "evidence",
    "execute",
    "judged",
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
