"""Thresholds with a risk guarantee: choose, apply and check a policy.

`choose_threshold` returns a `Policy`: a threshold whose risk was tested on a `RiskTable`, with clusters respected, so
that the guarantee fails at most with the agreed probability. If there is no such threshold, the policy has a reason
instead. `apply_policy` decides for new rows, and `check_policy` checks a policy on data that it was not chosen on.
"""

from abstain.thresholds._answered_rows import split_by_cluster
from abstain.thresholds._apply import ANSWER, COLUMN, DEFER, Applied, apply_policy
from abstain.thresholds._check import BROKEN, KEPT, PolicyCheck, check_policy
from abstain.thresholds._choose import choose_threshold, guaranteed_thresholds
from abstain.thresholds._p_values import (
    binomial_p,
    binomial_upper,
    exponential_weights_p,
    hoeffding_bentkus_p,
)
from abstain.thresholds._policy import METHODS, SEARCHES, Policy, is_policy_file, policy_schema, read_policy
from abstain.thresholds._request import rate
from abstain.thresholds._risk_table import RiskTable, thresholds_between
from abstain.thresholds._search import (
    conformal_risk_control,
    fixed_sequence,
    holm_search,
    selection_with_guaranteed_risk,
)
from abstain.thresholds._sentences import format_percent, guarantee_clause

__all__ = [
    "ANSWER",
    "BROKEN",
    "COLUMN",
    "DEFER",
    "KEPT",
    "METHODS",
    "SEARCHES",
    "Applied",
    "Policy",
    "PolicyCheck",
    "RiskTable",
    "apply_policy",
    "binomial_p",
    "binomial_upper",
    "check_policy",
    "choose_threshold",
    "conformal_risk_control",
    "exponential_weights_p",
    "fixed_sequence",
    "format_percent",
    "guarantee_clause",
    "guaranteed_thresholds",
    "hoeffding_bentkus_p",
    "holm_search",
    "is_policy_file",
    "policy_schema",
    "rate",
    "read_policy",
    "selection_with_guaranteed_risk",
    "split_by_cluster",
    "thresholds_between",
]
