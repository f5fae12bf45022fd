"""A policy in sentences, each of which somebody will act on.

Risks, sureness and coverages are in per cent. Every number is read off the policy or its check; none is computed here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from abstain.inference import Estimate
    from abstain.thresholds._check import PolicyCheck
    from abstain.thresholds._policy import Chosen, Policy, Seen

_KINDS = {
    "binomial": "exact binomial test: it holds for any number of items, as long as they are independent of one another",
    "sgr": "selection with guaranteed risk (SGR), exact binomial bounds: items must be independent of one another",
    "hoeffding-bentkus": "test of Hoeffding and Bentkus: it holds for any number of {units}",
    "betting": "test by betting: it holds for any number of {units}, whatever they share",
    "cluster-t": "t test over {units}: asymptotic, so it is close for many {units} and holds exactly for none; betting "
    "holds for any number (--finite-sample, finite_sample=True), and answers less",
    "crc": "conformal risk control: it holds on average over data sets like this one, not with a given sureness",
}


def per_cent(share: float) -> str:
    """Return a share in per cent, with as many digits as it has, at most three that count.

    >>> per_cent(0.05), per_cent(0.5684), per_cent(0.0012), per_cent(1.0)
    ('5%', '56.8%', '0.12%', '100%')
    """
    return f"{float(f'{100 * share:.3g}'):g}%"


def _whole_per_cent(share: float) -> str:
    """Return a share in whole per cent, and with digits where that would be 0 or 100 and the share is not."""
    rounded = round(100 * share)
    return per_cent(share) if rounded in (0, 100) and share not in (0.0, 1.0) else f"{rounded}%"


def promise_words(policy: Policy) -> str:
    """Return what is promised, as a clause.

    >>> from abstain import Items, choose_threshold
    >>> items = Items.from_arrays([1] * 100, [1] * 100, confidence=[0.9] * 100)
    >>> promise_words(choose_threshold(items, risk=0.05))
    'at most 5% of answers are wrong'
    """
    risk = per_cent(policy.risk)
    selective, binary = policy.promise == "selective", policy.loss.name == "zero_one"
    if binary:
        clause = f"at most {risk} of {'answers are wrong' if selective else 'items are answered wrongly'}"
    else:
        what = "answers" if selective else "items asked"
        largest = "largest" if policy.loss.largest == 1.0 else f"largest, {policy.loss.largest:g}"
        clause = f"the mean loss of {what} is at most {risk} of the {largest} ({policy.loss.name})"
    if policy.needless is not None:
        clause += (
            f" and at most {per_cent(policy.needless)} of items are deferred although the answer was right"
        )
    return clause


def policy_lines(policy: Policy) -> list[str]:
    """Return a policy in sentences: what is promised and how, for whom, by which test, and what it rests on."""
    lines = [_headline(policy)]
    if policy.groups:
        lines += [_group_line(policy, each) for each in policy.groups]
    if policy.reason and not policy.groups:
        lines.append(_because(policy, policy))
    units = f"{policy.data.cluster_noun}s"
    how = _KINDS[policy.method].format(units=units)
    lines.append(f"Shown by the {how}." if policy.promises else f"Tried: the {how}.")
    seen = policy.seen
    if seen is not None and seen.risk is not None and policy.threshold is not None:
        lines.append(f"On the data that it was chosen on, {_seen_words(policy, seen)}.")
    if policy.must_decline > 0.0:
        lines.append(
            f"Any policy with this risk has to decline at least {_whole_per_cent(policy.must_decline)} of the answers: "
            f"of all of them, {_risk_words(policy, policy.data.risk)}."
        )
    return lines


def _headline(policy: Policy) -> str:
    clause = promise_words(policy)
    aim = "So that on average" if policy.sure is None else f"To be {per_cent(policy.sure)} sure that"
    aim += f" {clause}"
    if policy.by is not None and policy.worst:
        aim += f" in every group of {policy.by}"
    if policy.by is not None and not policy.worst:
        promised = sum(each.threshold is not None for each in policy.groups)
        aim += f", for each {policy.by} by itself"
        return f"{aim}, {promised} of {len(policy.groups)} groups have a threshold."
    if policy.threshold is None:
        return f"Nothing can be promised: {aim[0].lower()}{aim[1:]}, no threshold will do."
    return f"{aim}, answer {_answer_words(policy, policy.seen)}."


def _answer_words(chosen: Chosen | Policy, seen: Seen | None) -> str:
    words = f"those with a confidence of at least {chosen.shown:.10g}"
    if seen is None:
        return words
    return f"{words}: {_whole_per_cent(seen.coverage)} of items, {seen.answered:,} of {seen.items:,}"


def _group_line(policy: Policy, chosen: Chosen) -> str:
    name = f"{policy.by} {chosen.group or '(none)'}"
    if chosen.threshold is None:
        if policy.worst and chosen.seen is not None:
            return f"{name}: {_seen_words(policy, chosen.seen)}."
        return f"{name}: nothing can be promised. {_because(policy, chosen)}"
    return f"{name}: answer {_answer_words(chosen, chosen.seen)}."


def _because(policy: Policy, chosen: Chosen | Policy) -> str:
    """Why nothing can be promised, what could have been, and what it would take."""
    noun = policy.data.cluster_noun
    sentences = [f"{chosen.reason[0].upper()}{chosen.reason[1:]}."] if chosen.reason else []
    instead = chosen.instead
    if instead is not None:
        if instead.risk is None:
            sentences.append("No risk below 100% can be promised with these data.")
        else:
            sentences.append(
                f"The best that could have been promised with these data is a risk of {per_cent(instead.risk)}; "
                "whoever takes that now chooses after looking, and needs new data for it."
            )
        if policy.needless is not None:
            return " ".join(sentences)
        if instead.clusters is None:
            sentences.append(
                f"More {noun}s alone would not help: no threshold was seen to keep to {per_cent(policy.risk)}. A "
                "larger risk would, or a confidence that ranks better."
            )
        else:
            sentences.append(
                f"About {instead.clusters:,} {noun}s like these would do; here are {policy.data.clusters:,}."
            )
    return " ".join(sentences)


def _seen_words(policy: Policy, seen: Seen) -> str:
    if seen.risk is None:
        return "nothing is answered"
    if policy.loss.name == "zero_one":
        return f"{seen.wrong:,} of {seen.answered:,} answers are wrong ({per_cent(seen.wrong / max(seen.answered, 1))})"
    return (
        f"the mean loss is {per_cent(seen.risk)} of the largest, and {seen.wrong:,} of {seen.answered:,} answers are "
        f"wrong ({per_cent(seen.wrong / max(seen.answered, 1))})"
    )


def _risk_words(policy: Policy, risk: float | None) -> str:
    told = "nothing" if risk is None else per_cent(risk)
    return (
        f"{told} are wrong" if policy.loss.name == "zero_one" else f"the mean loss is {told} of the largest"
    )


def check_lines(check: PolicyCheck) -> list[str]:
    """Return a check in sentences: the verdict, the risk and the coverage with their intervals."""
    policy = check.policy
    promise = f"the promise that {promise_words(policy)} is"
    verdict = {
        "kept": f"{promise} kept",
        "broken": f"{promise} broken",
        "inconclusive": f"inconclusive: the data do not show whether {promise} kept",
    }[check.verdict]
    lines = [f"{verdict[0].upper()}{verdict[1:]}."]
    if check.reason:
        lines.append(f"{check.reason[0].upper()}{check.reason[1:]}.")
    what = "Risk of what is answered" if policy.promise == "selective" else "Risk per item asked"
    level = f"{per_cent(check.risk.level)} intervals over {check.clusters:,} {check.cluster_noun}s"
    lines.append(f"{what} {_estimate(check.risk)}, coverage {_estimate(check.coverage)} ({level}).")
    lines += [
        f"{policy.by} {each.group or '(none)'}: {each.verdict}, risk {_estimate(each.risk)}, coverage "
        f"{_estimate(each.coverage)}."
        for each in check.groups
    ]
    lines.append(
        f"Answered are {check.answered:,} of {check.items:,} items; {check.wrong:,} of them are wrong."
    )
    return lines


def _estimate(estimate: Estimate) -> str:
    if math.isnan(estimate.value):
        return f"undefined ({estimate.reason})" if estimate.reason else "undefined"
    ends = estimate.interval
    told = per_cent(estimate.value)
    return told if ends is None else f"{told} [{per_cent(ends[0])}, {per_cent(ends[1])}]"
