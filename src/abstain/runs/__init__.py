"""Runs: from a table of questions to a judged model, on Inspect AI (the extra ``inspect``).

`may_abstain` and the solvers beside it ask with leave to decline and record signals, `judged` scores what they find,
`abstain.runs.tasks` makes a task of a table; all are known to Inspect by name (``abstain/ask``). `RunPlan` says what
`abstain run` does, `prepare` checks it without a call, `execute` does it. Providers, concurrency, retries, caching and
logs are Inspect's own: nothing of them is written again here.

Each name is loaded when it is first used, so that what needs Inspect is only imported where it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abstain._doors import door

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
else:
    __getattr__, __dir__ = door(__name__)

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
