"""The sentences of the report: the verdict, and the exact definitions that were used.

No number is computed here, and which system is better is the verdict of each difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abstain.inference import Estimate, number_text
from abstain.losses import SHARES
from abstain.report.charts import describe_interval, metric_name
from abstain.report.views import conclusion_lines, is_usual, requested_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from abstain.evaluation import Difference, Profile, Result, Settings, SystemResult
    from abstain.evaluation.conformal import CoverageResult
    from abstain.thresholds import Policy

_MANY = 4
_MOST_SENTENCES = 12
_HALF = 0.5

_CONVENTIONS = {
    "trapezoid": "straight lines between working points, flat from 0 to the first one",
    "interpolated": "inside a plateau the loss sum grows straight, and the hyperbola of its risk is integrated exactly",
    "mean": "the mean of the selective risks after each single item, ties in expectation",
    "torch-uncertainty": "trapezoid over single items from the first item on, divided by 1 - 1/n",
}


def system_verdict(system: SystemResult, profile: Profile | None) -> list[str]:
    """Return the verdict on one system, a sentence or two per paragraph."""
    population = system.population
    if not population.answered:
        return [
            f"Nothing was answered: all {population.items:,} items were declined. There is no risk to judge, and an "
            "area of 0 over an empty range is no achievement."
        ]
    if profile is None or not profile.leader:
        return [
            f"The model answers {population.answered:,} of {population.items:,} items and declines "
            f"{population.abstained:,}."
        ]
    leader = system[profile.leader]
    points = profile.points[profile.leader]
    full = Estimate(points.selective_risk[-1], points.selective_low[-1], points.selective_high[-1])
    wrong = int(points.wrong[-1])
    lines = [
        f"The model answers {population.answered:,} of {population.items:,} items and declines "
        f"{population.abstained:,}: its coverage ends at {leader.cmax}. Of what it answers, {wrong:,} "
        f"{'is' if wrong == 1 else 'are'} wrong; the mean loss is {full}."
    ]
    order = f"Ordered by {leader.name}" if len(system) == 1 else f"{leader.name} orders the answers best"
    lines.append(
        f"{order}: AUGRC {leader.augrc}, where a perfect order of the same answers would have "
        f"{number_text(leader.augrc_optimal.value)} and a random one {number_text(profile.random_augrc)}."
    )
    half = leader.risk_at_coverage.get(_HALF)
    if half is not None and half.defined:
        lines[-1] += (
            f" At the first threshold that answers at least half of all items, the mean loss is {half}."
        )
    if profile.contrasts:
        lines.append(_contrasts(list(profile.contrasts.values()), system.settings))
    return lines


def guarantee_sentences(policies: Mapping[str, Policy]) -> list[str]:
    """Return what may be answered at the requested risk: the first sentences of a page."""
    lines = []
    for name, policy in policies.items():
        text = str(policy)
        lines.append(text if len(policies) == 1 else f"{name}: {text[0].lower()}{text[1:]}")
        if policy.threshold is None:
            lines.append(policy.lines[1])
    return lines


def guarantee_definitions(result: Result, policies: Mapping[str, Policy]) -> dict[str, str]:
    """Return what a risk guarantee is, if the page has one."""
    systems = result.systems.values()
    if not any(system and system.loss is not None and system.loss.name in SHARES for system in systems):
        return {}
    definitions = {
        "Promised risk": "A threshold whose risk was tested: with the sureness that is told, the share of wrong "
        "answers among items to come is at most what was asked for, if they are drawn like these. Each risk by itself, "
        "decided on before looking; trying several and keeping the best is no promise."
    }
    for policy in policies.values():
        how = next(
            (line for line in policy.lines if line.startswith(("The guarantee comes from", "Tested with"))),
            "",
        )
        definitions["How it is promised"] = f"{how} It rests on this: {'; '.join(policy.assumptions)}."
    return definitions


def _contrasts(contrasts: Sequence[Difference], settings: Settings) -> str:
    """Return how the other confidences compare with the leader, which is the left side of each contrast."""
    close = [each.right for each in contrasts if each.compared and each.winner is None]
    worse = [each.right for each in contrasts if each.winner == each.left]
    not_comparable = [each.right for each in contrasts if not each.compared]
    parts = []
    if close:
        parts.append(f"{join_names(close)} cannot be told apart from it")
    if worse:
        what = (
            f"{len(worse)} other{'s are' if len(worse) > 1 else ' is'}"
            if close or not_comparable
            else "All others are"
        )
        parts.append(f"{what} worse by more than chance")
    if not_comparable:
        parts.append(f"{join_names(not_comparable)} cannot be compared with it")
    corrected = f", corrected for {len(contrasts)} by Holm's method" if len(contrasts) > 1 else ""
    return (
        f"{'; '.join(parts)} (paired differences in AUGRC, jackknife, at a level of {settings.level:g}{corrected}; "
        "whoever picks the best of many should judge it on new data)."
    )


def headline_metrics(result: Result) -> list[str]:
    """Return the metrics that a comparison's verdict is about: AUGRC and Cmax, or those requested by name."""
    compared = list(dict.fromkeys(each.metric for each in result.differences if not each.matched))
    headline = ["augrc", "cmax"] if result.first.variants else requested_metrics(result.first)
    return [key for key in headline if key in compared] or compared[:1]


def comparison_verdict(result: Result) -> list[str]:
    """Return the conclusion, then the finding on every pair by the headline metrics."""
    # The selective risk at matched coverage comes last.
    metrics = [*headline_metrics(result), "risk"]
    shown = [each for each in result.differences if not each.group and each.metric in metrics]
    shown.sort(key=lambda each: metrics.index(each.metric))
    lines = [f"{line}." for line in conclusion_lines(result, shown)]
    if len(lines) > _MOST_SENTENCES:
        more = len(lines) - _MOST_SENTENCES
        lines = [*lines[:_MOST_SENTENCES], f"The table below has the other {more:,} differences."]
    return lines


def coverage_verdict(result: CoverageResult) -> list[str]:
    """Return whether coverage holds, one sentence per claim."""
    return [
        f"At a claim of {each.nominal:g} the "
        f"{'verdict is' if each.verdict.verdict == 'inconclusive' else f'{result.kind} are'} "
        f"{each.verdict.verdict}: coverage {each.verdict.estimate} ({each.verdict.reason})."
        for each in result.by_nominal
    ]


def describe_band(system: SystemResult) -> str:
    """Return the level and the method of the band around a curve."""
    settings = system.settings
    if settings.interval == "none":
        return "There is no band, because no intervals were asked for."
    held = "at all thresholds together" if settings.simultaneous else "at each threshold by itself"
    return (
        f"The band holds the {100 * settings.level:g}% {settings.interval} interval of the risk {held}, made over "
        f"{system.cluster_noun}s as the intervals of single numbers are. Where nothing was wrong, it reaches up to the "
        "exact bound."
    )


def describe_family(result: Result) -> str:
    """Return whether the intervals of differences hold together or each by itself; empty for one difference."""
    if len(result.systems) < 3:
        return ""
    if result.settings.simultaneous:
        return "Their intervals hold for all pairs of systems together."
    return (
        "Each interval is for one comparison by itself; the verdict and p (Holm) are corrected for all pairs."
    )


def definitions(result: Result) -> dict[str, str]:
    """Return the definitions that the numbers about answers and abstentions follow."""
    terms = {
        "Items": "An item is one decision that was asked for. N counts answered and abstained items, K the answered "
        "ones; failed and unscored items are counted and enter no metric."
    }
    loss = result.loss
    if loss is not None:
        wrong = "An answer is called wrong where its loss is above 0."
        terms["Loss"] = f"{loss.rule}. {loss.name} = {loss.definition}. {wrong}"
    if any(result.systems.values()):
        terms |= _selective_definitions(result.settings)
    requested = requested_metrics(result.first)
    for name, specification in result.specifications.items():
        if name in requested:
            terms.setdefault(metric_name(name), specification.summary.replace("``", ""))
    return terms | _inference_definitions(result)


def _selective_definitions(settings: Settings) -> dict[str, str]:
    end = f"{settings.area_coverage:g}"
    return {
        "Working point": "Answered items are sorted by confidence, descending; each distinct confidence is one working "
        "point, and all items that share it enter at once. After k items with loss sum S: coverage k/N, selective risk "
        "S/k, generalized risk S/N, threshold that confidence.",
        "Cmax": "K / N, the largest coverage that can be reached.",
        "AURC": "Area under selective risk over coverage from 0 to Cmax. Convention "
        f"{settings.convention}: {_CONVENTIONS[settings.convention]}.",
        "AUGRC": "Area under generalized risk over coverage from 0 to Cmax, starting at 0.",
        "e-AURC, e-AUGRC": "The area less that of a perfect ranking, which takes the same answers by their loss, "
        "smallest first.",
        f"AURC@{end}, AUGRC@{end}": f"The areas up to a coverage of {end}, or Cmax if that is less.",
        "Risk at a coverage": "Selective risk of the first working point that reaches the coverage; none beyond Cmax.",
    }


def typical_estimate(estimates: Iterable[Estimate]) -> Estimate | None:
    """Return an estimate that shows how intervals are computed: preferably not an exact bound or a constant."""
    with_interval = [each for each in estimates if each.interval is not None]
    usual = [each for each in with_interval if is_usual(each.method)]
    return next(iter(usual or with_interval), None)


def _inference_definitions(result: Result) -> dict[str, str]:
    """Return what intervals and verdicts are: of single numbers, and of differences."""
    settings, system = result.settings, result.first
    terms = {}
    typical = typical_estimate(system.estimates.values())
    if typical is not None:
        how = (
            f"{system.cluster_noun.capitalize()}s are left out in turn; where nothing varied, the interval is an exact "
            "bound."
        )
        if typical.drawn is not None:
            how = (
                f"Whole {system.cluster_noun}s are drawn (seed {typical.seed}); resamples in which a metric is "
                "undefined are dropped."
            )
        terms["Intervals"] = f"Of single numbers, {describe_interval(typical, system.cluster_noun)}. {how}"
    compared = next((each for each in result.differences if each.compared), None)
    if compared is None:
        return terms
    how = describe_interval(compared.estimate, system.cluster_noun)
    two = len(result.systems) == 2
    first, second = result.systems if two else ("the first", "The second system")
    terms["Difference"] = (
        f"{second} less {first} over the same items, {how}. {describe_family(result)}".strip()
    )
    terms["Better"] = (
        f"A system is better if the p-value is at most {1 - settings.level:.2g}, after Holm's correction for all pairs "
        "of systems by one metric, confidence and group. The p-value comes from the same statistic as the interval. A "
        "system that answers nothing never wins. Metrics without a better direction, such as Cmax, have no winner."
    )
    if any(each.matched for each in result.differences):
        terms["At coverage c"] = (
            "Declining alone lowers areas and error rates. Systems with different coverages are therefore compared at "
            "the largest coverage that both reach, each limited to its most confident items. Differences over whole "
            "curves are shown, but have no verdict."
        )
    return terms


def coverage_definitions(result: CoverageResult) -> dict[str, str]:
    """Return the definitions that the numbers about intervals or sets follow."""
    settings = result.settings
    terms = {
        "Coverage": "The share of truths that lie within their closed interval, or in their set.",
        "Claim": "The coverage that the predictions promise.",
        "Verdict on coverage": f"It depends on the {100 * settings.level:g}% confidence interval of the coverage over "
        f"clusters and on a margin of {settings.margin:g}. Under-covered: the whole interval is below the claim minus "
        "the margin. Over-covered: the whole interval is above the claim plus the margin. Covered: the interval is at "
        "or above the claim minus the margin, but not over-covered. Otherwise inconclusive.",
    }
    metrics = next(iter(result.by_nominal[0].values()), None)
    if metrics is not None and metrics.method != "none":
        how = describe_interval(metrics, "cluster")
        terms["Intervals of coverage metrics"] = f"{how} (seed {settings.seed})."
    return terms


def join_names(names: Sequence[str]) -> str:
    """Return names as a list in words, shortened when there are many.

    >>> join_names(["a", "b", "c"])
    'a, b and c'
    """
    if len(names) > _MANY + 1:
        return f"{', '.join(names[:_MANY])} and {len(names) - _MANY} others"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
