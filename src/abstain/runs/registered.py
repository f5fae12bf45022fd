"""The entry point ``inspect_ai``: importing these modules registers all Inspect objects under ``abstain/``."""

from __future__ import annotations

from abstain.integrations import inspect
from abstain.runs import scoring, solvers, tasks

__all__ = ["inspect", "scoring", "solvers", "tasks"]
