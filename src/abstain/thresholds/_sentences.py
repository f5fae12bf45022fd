"""Policies and their checks in sentences, with risks and coverages in percent. Nothing is computed here."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from abstain.inference import Estimate
    from abstain.thresholds._check import PolicyCheck
    from abstain.thresholds._policy import GroupThreshold, Observed, Policy

_TESTS = {
    "binomial": "the exact binomial test, which is valid for any number of items if they are independent",
    "sgr": "selection with guaranteed risk (SGR) and exact binomial bounds, which are valid if items are independent",
    "hoeffding-bentkus": "the Hoeffding-Bentkus test, which is valid for any number of {units}",
    "pseudo-cluster": "random weights of the {units} and of one pseudo-cluster. This test is asymptotic: "
    "accurate for many {units}, but never exact. Gaffke's test does not need many {units} (--finite-sample, "
    "finite_sample=True), but answers less",
    "gaffke": "Gaffke's test. It is conjectured to be valid for any number of {units}: there is no proof, and no "
    "counterexample is known",
    "crc": "conformal risk control, whose guarantee holds on average over data sets like this one, and not with a "
    "stated probability",
}

# Below this probability, the limit of every finite-sample test is printed.
_LOW_POWER = 0.5


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
    lines.append(f"The guarantee comes from {how}." if policy.has_guarantee else f"Tested with {how}.")
    observed = policy.observed
    if observed is not None and observed.risk is not None and policy.threshold is not None:
        lines.append(f"On the data that the threshold was chosen on, {_observed_errors(policy, observed)}.")
    if policy.must_decline > 0.0:
        lines.append(
            f"Any policy with this risk must decline at least {_whole_percent(policy.must_decline)} of the answers, "
            f"because {_overall_risk(policy)}."
        )
    return lines


def _headline(policy: Policy) -> str:
    guarantee = guarantee_clause(policy)
    if policy.by is not None and policy.worst:
        guarantee += f" in every group of {policy.by}"
    if policy.threshold is None and (policy.by is None or policy.worst):
        certainty = "on average," if policy.sure is None else f"{format_percent(policy.sure)} sure that"
        return f"No threshold has this guarantee: {certainty} {guarantee}."
    aim = "So that on average" if policy.sure is None else f"To be {format_percent(policy.sure)} sure that"
    aim += f" {guarantee}"
    if policy.by is not None and not policy.worst:
        guaranteed = sum(group.threshold is not None for group in policy.groups)
        aim += f", for each {policy.by} separately"
        return f"{aim}, {guaranteed} of {len(policy.groups)} groups have a threshold."
    return f"{aim}, answer {_answer_rule(policy)}."


def _answer_rule(chosen: GroupThreshold | Policy) -> str:
    observed = chosen.observed
    rule = f"those with a confidence of at least {chosen.shown_threshold:.10g}"
    if observed is None:
        return rule
    coverage = _whole_percent(observed.coverage)
    return f"{rule}: {coverage} of items, {observed.answered:,} of {observed.items:,}"


def _group_line(policy: Policy, chosen: GroupThreshold) -> str:
    name = f"{policy.by} {chosen.group or '(none)'}"
    if chosen.threshold is None:
        if policy.worst and chosen.observed is not None:
            return f"{name}: {_observed_errors(policy, chosen.observed)}."
        return f"{name}: no threshold has this guarantee. {_explain_none(policy, chosen)}"
    return f"{name}: answer {_answer_rule(chosen)}."


def _explain_none(policy: Policy, chosen: GroupThreshold | Policy) -> str:
    """Return why there is no guarantee, the smallest risk that could have one, and the number of clusters needed."""
    noun = policy.data.cluster_noun
    sentences = [f"{chosen.reason[0].upper()}{chosen.reason[1:]}."] if chosen.reason else []
    alternative = chosen.alternative
    if alternative is None:
        return " ".join(sentences)
    available = policy.data.clusters if alternative.available is None else alternative.available
    if alternative.risk is None:
        sentences.append("No risk below 100% can be guaranteed with these data.")
    else:
        sentences.append(
            f"The smallest risk that these data could have guaranteed is {format_percent(alternative.risk)}, but to "
            "choose it now, after seeing the data, is not valid: it needs new data."
        )
    if policy.needless is None and alternative.clusters is None:
        sentences.append(
            f"More {noun}s would not help: no threshold has an observed risk of at most {format_percent(policy.risk)}. "
            "Accept a larger risk, or use a confidence that ranks better."
        )
    elif policy.needless is None:
        sentences.append(
            f"About {alternative.clusters:,} {noun}s like these would be enough; there are {available:,}."
        )
    power = alternative.finite_sample_power
    if power is not None and power < _LOW_POWER:
        sentences.append(
            f"With {available:,} {noun}s like these, no finite-sample test can give this guarantee in more than "
            f"{_whole_percent(power)} of data sets."
        )
    return " ".join(sentences)


def _observed_errors(policy: Policy, observed: Observed) -> str:
    if observed.risk is None:
        return "no item is answered"
    error_rate = format_percent(observed.wrong / max(observed.answered, 1))
    errors = f"{observed.wrong:,} of {observed.answered:,} answers are wrong ({error_rate})"
    if policy.loss.name == "zero_one":
        return errors
    return f"the mean loss is {format_percent(observed.risk)} of the largest, and {errors}"


def _overall_risk(policy: Policy) -> str:
    amount = "0%" if policy.data.risk is None else format_percent(policy.data.risk)
    if policy.loss.name == "zero_one":
        return f"{amount} of all answers are wrong"
    return f"the mean loss of all answers is {amount} of the largest"


def check_lines(check: PolicyCheck) -> list[str]:
    """Return a check in sentences: the verdict, then risk and coverage with intervals."""
    policy = check.policy
    guarantee = f"the risk guarantee that {guarantee_clause(policy)} is"
    verdict = {
        "kept": f"{guarantee} kept",
        "broken": f"{guarantee} broken",
        "inconclusive": f"inconclusive: the data do not show whether {guarantee} kept",
    }[check.verdict]
    lines = [f"{verdict[0].upper()}{verdict[1:]}."]
    if check.reason:
        lines.append(f"{check.reason[0].upper()}{check.reason[1:]}.")
    risk = "Risk among answers" if policy.risk_type == "selective" else "Risk per item asked"
    level = f"{format_percent(check.risk.level)} confidence intervals"
    intervals = f"{level} over {check.clusters:,} {check.cluster_noun}s"
    lines.append(
        f"{risk} {_format_estimate(check.risk)}, coverage {_format_estimate(check.coverage)} ({intervals})."
    )
    lines += [
        f"{policy.by} {group.group or '(none)'}: {group.verdict}, risk {_format_estimate(group.risk)}, coverage "
        f"{_format_estimate(group.coverage)}."
        for group in check.groups
    ]
    lines.append(
        f"The policy answers {check.answered:,} of {check.items:,} items; {check.wrong:,} of these answers are wrong."
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
