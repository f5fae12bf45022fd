"""The entry point of the group ``inspect_ai``: these modules register everything that is under ``abstain/``."""

from __future__ import annotations

from abstain.integrations import inspect
from abstain.runs import scoring, solvers, tasks

__all__ = ["inspect", "scoring", "solvers", "tasks"]
