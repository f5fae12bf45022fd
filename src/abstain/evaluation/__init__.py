"""Evaluation: from systems and metrics to one `Result`.

`evaluate` evaluates one system, or several on the same items, with one or more confidences and any metrics. `compare`
does so for two or more systems. `gate` passes or fails a run by conditions, `check` reports which confidences and
metrics a source supports, and `power` computes sample sizes. Results are frozen. Every number has a confidence
interval, and warnings appear in every output.

The modules of `gate`, `check`, `power` and of profiles are imported when one of their names is first used, because
together they would make the start of every evaluation a tenth slower.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from abstain.evaluation._differences import OWN_COVERAGES, Difference, Headline, Rank
from abstain.evaluation._evaluate import DEFAULT_AREA_COVERAGE, DEFAULT_GRID, compare, evaluate
from abstain.evaluation._metric_tables import GroupGap, GroupResult, Key, MetricTable
from abstain.evaluation._result import ConfidenceResult, Deltas, Population, Result, Settings, SystemResult
from abstain.evaluation._warnings import (
    NEVER_EQUAL,
    POSSIBLE_SCALE,
    nothing_evaluated,
    refusal_hint,
    scale_hint,
)

if TYPE_CHECKING:
    from abstain.evaluation._check import Availability, ClusterSizes, SignalSummary, SourceCheck, check
    from abstain.evaluation._gate import GateCheck, GateResult, gate
    from abstain.evaluation._gate_conditions import GateCondition, parse_condition
    from abstain.evaluation._power import PowerAnswer, power
    from abstain.evaluation._profile import Line, OperatingPoints, Profile

__all__ = [
    "DEFAULT_AREA_COVERAGE",
    "DEFAULT_GRID",
    "NEVER_EQUAL",
    "OWN_COVERAGES",
    "POSSIBLE_SCALE",
    "Availability",
    "ClusterSizes",
    "ConfidenceResult",
    "Deltas",
    "Difference",
    "GateCheck",
    "GateCondition",
    "GateResult",
    "GroupGap",
    "GroupResult",
    "Headline",
    "Key",
    "Line",
    "MetricTable",
    "OperatingPoints",
    "Population",
    "PowerAnswer",
    "Profile",
    "Rank",
    "Result",
    "Settings",
    "SignalSummary",
    "SourceCheck",
    "SystemResult",
    "check",
    "compare",
    "evaluate",
    "gate",
    "nothing_evaluated",
    "parse_condition",
    "power",
    "refusal_hint",
    "scale_hint",
]

_NAMES = {
    "abstain.evaluation._check": ("Availability", "ClusterSizes", "SignalSummary", "SourceCheck", "check"),
    "abstain.evaluation._gate": ("GateCheck", "GateResult", "gate"),
    "abstain.evaluation._gate_conditions": ("GateCondition", "parse_condition"),
    "abstain.evaluation._power": ("PowerAnswer", "power"),
    "abstain.evaluation._profile": ("Line", "Profile", "OperatingPoints"),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value
