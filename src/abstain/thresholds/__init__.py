"""Guarantees: thresholds with a promise, the policies that carry them, and their check.

`choose_threshold` answers "at most 5% of answers wrong: what may it answer, and how sure are we?" with a `Policy`: a
threshold whose risk was tested on a ranked tally (`RiskTable`), so that the promise is broken at most as often as was
agreed, with clusters respected; or no threshold, and the reason. A policy decides for new rows (`apply_policy`) and is
checked on data that it was not chosen on (`check_policy`). Which confidence and which loss there are is known below;
what a report shows of it, above.
"""

from abstain.thresholds._apply import ANSWER, COLUMN, DEFER, Applied, apply_policy
from abstain.thresholds._check import BROKEN, KEPT, PolicyCheck, check_policy
from abstain.thresholds._choose import choose_threshold, promised_thresholds
from abstain.thresholds._evidence import RiskTable, Steps
from abstain.thresholds._p_values import (
    betting_wealth,
    binomial_p,
    binomial_upper,
    cluster_t_p,
    hoeffding_bentkus_p,
)
from abstain.thresholds._policy import (
    METHODS,
    SEARCHES,
    Policy,
    is_policy_file,
    policy_schema,
    read_policy,
)
from abstain.thresholds._question import rate
from abstain.thresholds._rows import split_by_cluster
from abstain.thresholds._search import (
    conformal_risk_control,
    fixed_sequence,
    holm_search,
    selection_with_guaranteed_risk,
)
from abstain.thresholds._words import per_cent, promise_words

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
    "Steps",
    "apply_policy",
    "betting_wealth",
    "binomial_p",
    "binomial_upper",
    "check_policy",
    "choose_threshold",
    "cluster_t_p",
    "conformal_risk_control",
    "fixed_sequence",
    "hoeffding_bentkus_p",
    "holm_search",
    "is_policy_file",
    "per_cent",
    "policy_schema",
    "promise_words",
    "promised_thresholds",
    "rate",
    "read_policy",
    "selection_with_guaranteed_risk",
    "split_by_cluster",
]
