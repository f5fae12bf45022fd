"""Runs: from a table of questions to a judged model, on Inspect AI (the extra ``inspect``).

`may_abstain` and the solvers beside it ask with leave to decline and record signals, `judged` scores what they find,
`abstain.runs.tasks` makes a task of a table; all are known to Inspect by name (``abstain/ask``). `RunPlan` says what
`abstain run` does, `prepare` checks it without a call, `execute` does it. Providers, concurrency, retries, caching and
logs are Inspect's own: nothing of them is written again here.

Each name is loaded when it is first used, so that what needs Inspect is only imported where it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

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

_HOME = {
    "Prepared": "_running",
    "QuestionSet": "questions",
    "RunPlan": "_running",
    "Running": "_running",
    "SignalPlan": "_signal_plan",
    "ask": "solvers",
    "confidences_of": "_run_file",
    "consistency": "solvers",
    "evidence": "solvers",
    "execute": "_running",
    "judged": "scoring",
    "may_abstain": "solvers",
    "p_true": "solvers",
    "prepare": "_running",
    "read_examples": "questions",
    "read_questions": "questions",
    "run_content": "_run_file",
    "semantic_entropy": "solvers",
    "shown_prompts": "_running",
    "token_signals": "solvers",
    "verbalized_confidence": "solvers",
}

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


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'abstain.runs' has no attribute {name!r}")
    return getattr(import_module(f"abstain.runs.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
