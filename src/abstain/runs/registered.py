"""The entry point of the group ``inspect_ai``: everything that Inspect finds under ``abstain/``."""

from __future__ import annotations

from abstain.integrations.inspect import METRICS
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
from abstain.runs.tasks import questions

__all__ = [
    "METRICS",
    "ask",
    "consistency",
    "evidence",
    "judged",
    "may_abstain",
    "p_true",
    "questions",
    "semantic_entropy",
    "token_signals",
    "verbalized_confidence",
]
