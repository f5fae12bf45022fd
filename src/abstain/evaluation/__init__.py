"""Evaluation: what was asked, and the one `Result` that answers it.

`evaluate` judges one system, or several on the same items, under one or more confidences and by any metrics;
`compare` is the same for two or more. `gate` passes or fails a run by conditions; `check` says what a source
can serve. Results are frozen; their numbers carry their
intervals, and their warnings travel with them into every output.
"""

from abstain.evaluation._check import Availability, ClusterSizes, SignalSummary, SourceCheck, check
from abstain.evaluation._differences import OWN_COVERAGES, Difference, Headline, Rank
from abstain.evaluation._evaluate import DEFAULT_GRID, compare, evaluate
from abstain.evaluation._gate import GateCheck, GateResult, gate
from abstain.evaluation._gate_conditions import GateCondition, parse_condition
from abstain.evaluation._metric_tables import GroupGap, GroupResult, Key, MetricTable
from abstain.evaluation._power import PowerAnswer, power
from abstain.evaluation._profile import Line, Profile, WorkingPoints
from abstain.evaluation._result import (
    ConfidenceResult,
    Deltas,
    Population,
    Result,
    Settings,
    SystemResult,
)
from abstain.evaluation._warnings import (
    NEVER_EQUAL,
    POSSIBLE_SCALE,
    nothing_judged,
    refusal_hint,
    scale_hint,
)

__all__ = [
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
    "Population",
    "PowerAnswer",
    "Profile",
    "Rank",
    "Result",
    "Settings",
    "SignalSummary",
    "SourceCheck",
    "SystemResult",
    "WorkingPoints",
    "check",
    "compare",
    "evaluate",
    "gate",
    "nothing_judged",
    "parse_condition",
    "power",
    "refusal_hint",
    "scale_hint",
]
