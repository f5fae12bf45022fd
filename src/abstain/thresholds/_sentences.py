"""Policies and their checks in sentences, with risks and coverages in percent. Nothing is computed here."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from abstain.inference import Estimate
    from abstain.thresholds._check import PolicyCheck
    from abstain.thresholds._policy import GroupThreshold, Observed, Policy

_TESTS = {
    "binomial": "exact binomial test: it holds for any number of items, as long as they are independent of one another",
    "sgr": "selection with guaranteed risk (SGR), exact binomial bounds: items must be independent of one another",
    "hoeffding-bentkus": "test of Hoeffding and Bentkus: it holds for any number of {units}",
    "betting": "test by betting: it holds for any number of {units}, whatever they share",
    "cluster-t": "t test over {units}: asymptotic, so it is close for many {units} and holds exactly for none; betting "
    "holds for any number (--finite-sample, finite_sample=True), and answers less",
    "crc": "conformal risk control: it holds on average over data sets like this one, not with a given sureness",
}


def format_percent(proportion: float) -> str:
    """Return a proportion in percent, with at most three significant digits.

    >>> format_percent(0.05), format_percent(0.5684), format_percent(0.0012), format_percent(1.0)
    ('5%', '56.8%', '0.12%', '100%')
    """
    return f"{float(f'{100 * proportion:.3g}'):g}%"


def _whole_percent(proportion: float) -> str:
    """Return a proportion in whole percent; with digits if rounding would wrongly give 0% or 100%."""
    rounded = round(100 * proportion)
    return (
        format_percent(proportion) if rounded in (0, 100) and proportion not in (0.0, 1.0) else f"{rounded}%"
    )


def guarantee_clause(policy: Policy) -> str:
    """Return the risk guarantee as a clause.

    >>> from abstain import Items, choose_threshold
    >>> items = Items.from_arrays([1] * 100, [1] * 100, confidence=[0.9] * 100)
    >>> guarantee_clause(choose_threshold(items, risk=0.05))
    'at most 5% of answers are wrong'
    """
    risk = format_percent(policy.risk)
    selective, binary = policy.risk_type == "selective", policy.loss.name == "zero_one"
    if binary:
        clause = f"at most {risk} of {'answers are wrong' if selective else 'items are answered wrongly'}"
    else:
        what = "answers" if selective else "items asked"
        largest = "largest" if policy.loss.largest == 1.0 else f"largest, {policy.loss.largest:g}"
        clause = f"the mean loss of {what} is at most {risk} of the {largest} ({policy.loss.name})"
    if policy.needless is not None:
        clause += f" and at most {format_percent(policy.needless)} of items are deferred although the answer was right"
    return clause


def policy_lines(policy: Policy) -> list[str]:
    """Return a policy in sentences: the guarantee, the groups, the test and the observed results."""
    lines = [_headline(policy), *(_group_line(policy, group) for group in policy.groups)]
    if policy.reason and not policy.groups:
        lines.append(_explain_none(policy, policy))
    units = f"{policy.data.cluster_noun}s"
    how = _TESTS[policy.method].format(units=units)
    lines.append(f"Shown by the {how}." if policy.has_guarantee else f"Tried: the {how}.")
    seen = policy.observed
    if seen is not None and seen.risk is not None and policy.threshold is not None:
        lines.append(f"On the data that it was chosen on, {_observed_errors(policy, seen)}.")
    if policy.must_decline > 0.0:
        lines.append(
            f"Any policy with this risk has to decline at least {_whole_percent(policy.must_decline)} of the answers: "
            f"of all of them, {_overall_risk(policy)}."
        )
    return lines


def _headline(policy: Policy) -> str:
    aim = "So that on average" if policy.sure is None else f"To be {format_percent(policy.sure)} sure that"
    aim += f" {guarantee_clause(policy)}"
    if policy.by is not None and policy.worst:
        aim += f" in every group of {policy.by}"
    if policy.by is not None and not policy.worst:
        guaranteed = sum(group.threshold is not None for group in policy.groups)
        aim += f", for each {policy.by} by itself"
        return f"{aim}, {guaranteed} of {len(policy.groups)} groups have a threshold."
    if policy.threshold is None:
        return f"Nothing can be promised: {aim[0].lower()}{aim[1:]}, no threshold will do."
    return f"{aim}, answer {_answer_rule(policy)}."


def _answer_rule(chosen: GroupThreshold | Policy) -> str:
    seen = chosen.observed
    words = f"those with a confidence of at least {chosen.shown_threshold:.10g}"
    if seen is None:
        return words
    return f"{words}: {_whole_percent(seen.coverage)} of items, {seen.answered:,} of {seen.items:,}"


def _group_line(policy: Policy, chosen: GroupThreshold) -> str:
    name = f"{policy.by} {chosen.group or '(none)'}"
    if chosen.threshold is None:
        if policy.worst and chosen.observed is not None:
            return f"{name}: {_observed_errors(policy, chosen.observed)}."
        return f"{name}: nothing can be promised. {_explain_none(policy, chosen)}"
    return f"{name}: answer {_answer_rule(chosen)}."


def _explain_none(policy: Policy, chosen: GroupThreshold | Policy) -> str:
    """Return why there is no guarantee, what could have been guaranteed, and what it would take."""
    noun = policy.data.cluster_noun
    sentences = [f"{chosen.reason[0].upper()}{chosen.reason[1:]}."] if chosen.reason else []
    instead = chosen.alternative
    if instead is None:
        return " ".join(sentences)
    if instead.risk is None:
        sentences.append("No risk below 100% can be promised with these data.")
    else:
        sentences.append(
            f"The best that could have been promised with these data is a risk of {format_percent(instead.risk)}; "
            "whoever takes that now chooses after looking, and needs new data for it."
        )
    if policy.needless is None and instead.clusters is None:
        sentences.append(
            f"More {noun}s alone would not help: no threshold was seen to keep to {format_percent(policy.risk)}. A "
            "larger risk would, or a confidence that ranks better."
        )
    elif policy.needless is None:
        sentences.append(
            f"About {instead.clusters:,} {noun}s like these would do; here are {policy.data.clusters:,}."
        )
    return " ".join(sentences)


def _observed_errors(policy: Policy, observed: Observed) -> str:
    if observed.risk is None:
        return "nothing is answered"
    error_rate = format_percent(observed.wrong / max(observed.answered, 1))
    errors = f"{observed.wrong:,} of {observed.answered:,} answers are wrong ({error_rate})"
    if policy.loss.name == "zero_one":
        return errors
    return f"the mean loss is {format_percent(observed.risk)} of the largest, and {errors}"


def _overall_risk(policy: Policy) -> str:
    amount = "nothing" if policy.data.risk is None else format_percent(policy.data.risk)
    if policy.loss.name == "zero_one":
        return f"{amount} are wrong"
    return f"the mean loss is {amount} of the largest"


def check_lines(check: PolicyCheck) -> list[str]:
    """Return a check in sentences: the verdict, then risk and coverage with intervals."""
    policy = check.policy
    risk_type = f"the promise that {guarantee_clause(policy)} is"
    verdict = {
        "kept": f"{risk_type} kept",
        "broken": f"{risk_type} broken",
        "inconclusive": f"inconclusive: the data do not show whether {risk_type} kept",
    }[check.verdict]
    lines = [f"{verdict[0].upper()}{verdict[1:]}."]
    if check.reason:
        lines.append(f"{check.reason[0].upper()}{check.reason[1:]}.")
    what = "Risk of what is answered" if policy.risk_type == "selective" else "Risk per item asked"
    level = f"{format_percent(check.risk.level)} intervals over {check.clusters:,} {check.cluster_noun}s"
    lines.append(
        f"{what} {_format_estimate(check.risk)}, coverage {_format_estimate(check.coverage)} ({level})."
    )
    lines += [
        f"{policy.by} {group.group or '(none)'}: {group.verdict}, risk {_format_estimate(group.risk)}, coverage "
        f"{_format_estimate(group.coverage)}."
        for group in check.groups
    ]
    lines.append(
        f"Answered are {check.answered:,} of {check.items:,} items; {check.wrong:,} of them are wrong."
    )
    return lines


def _format_estimate(estimate: Estimate) -> str:
    if not estimate.defined:
        return str(estimate)
    if estimate.interval is None:
        return format_percent(estimate.value)
    return (
        f"{format_percent(estimate.value)} [{format_percent(estimate.low)}, {format_percent(estimate.high)}]"
    )
