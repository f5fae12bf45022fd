"""The sentences of the report: the conclusion, and the definitions of the printed numbers.

They phrase the verdicts of the result. Nothing is decided here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from abstain.inference import Estimate, number_text
from abstain.losses import SHARES
from abstain.report.charts import describe_interval, metric_name
from abstain.report.views import (
    basis_line,
    choose_differences,
    conclusion_lines,
    format_count,
    is_usual,
    requested_metrics,
)
from abstain.thresholds import format_percent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from abstain.evaluation import Difference, Profile, Rank, Result, Settings, SystemResult
    from abstain.evaluation.conformal import CoverageResult
    from abstain.thresholds import Policy

_MANY = 4
_MOST_SENTENCES = 4
_MOST_FINDINGS = 40
_MOST_NAMED = 3
_HALF = 0.5
_EN_DASH = "\N{EN DASH}"
# A comparison by one of these metrics is about errors if the loss is 0 or 1, and otherwise about losses.
_LOSS_METRICS = ("augrc", "aurc", "eaugrc", "eaurc", "augrc_at_coverage", "aurc_at_coverage", "risk")

_CONVENTIONS = {
    "trapezoid": "straight lines between operating points, flat from 0 to the first one",
    "interpolated": "inside a tied block the loss sum grows linearly, and the curve of its risk is integrated exactly",
    "mean": "the mean of the selective risks after each single item, with tied items in expectation",
    "torch-uncertainty": "trapezoids over single items from the first item on, divided by 1 - 1/n",
}
OUTCOME_COUNTS = (
    "N1: right answers to items that should be answered. N2: wrong answers to these items. N3: abstentions from these "
    "items. N4: answers to items that should be declined. N5: abstentions from items that should be declined."
)


@dataclass(frozen=True, slots=True)
class Percentage:
    """A proportion that the page prints in percent; it has the attributes of an estimate that the template uses.

    >>> Percentage(Estimate(0.032, 0.021, 0.049)).texts
    ['3.2%', '2.1%', '4.9%']
    """

    estimate: Estimate

    @property
    def value(self) -> float:
        """The proportion."""
        return self.estimate.value

    @property
    def defined(self) -> bool:
        """True unless the value is NaN."""
        return self.estimate.defined

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of the interval, or None if there is none."""
        return self.estimate.interval

    @property
    def reason(self) -> str:
        """Why the value is undefined."""
        return self.estimate.reason

    @property
    def texts(self) -> list[str]:
        """The value and the ends of the interval in percent."""
        return [format_percent(number) for number in (self.value, *(self.interval or ()))]


def _interval_in_percent(estimate: Estimate) -> str:
    if estimate.interval is None:
        return ""
    return f" [{format_percent(estimate.low)}, {format_percent(estimate.high)}]"


def answers_loss(system: SystemResult, profile: Profile | None) -> Estimate | None:
    """Return the mean loss of all answers with its interval; None if it was not evaluated.

    With a loss of 0 or 1 it is the error rate. Otherwise it is the selective risk at the last operating point.
    """
    if not system.population.answered or system.loss is None:
        return None
    if system.loss.name == "zero_one":
        return system.error_rate if system.error_rate.defined else None
    points = next(iter(profile.points.values()), None) if profile is not None else None
    if points is None or not len(points):
        return None
    return Estimate(points.selective_risk[-1], points.selective_low[-1], points.selective_high[-1])


def _describe_answers(system: SystemResult, profile: Profile | None) -> str:
    """Return how many answers are wrong, as a clause about "its answers"."""
    loss = answers_loss(system, profile)
    population = system.population
    if loss is not None and system.loss is not None and system.loss.name == "zero_one":
        return f"{format_percent(loss.value)} of its answers are wrong{_interval_in_percent(loss)}"
    points = next(iter(profile.points.values()), None) if profile is not None else None
    count = int(points.wrong[-1]) if points is not None and len(points) else population.wrong
    wrong = f"{format_percent(count / population.answered)} of its answers are wrong"
    if loss is None or system.loss is None:
        return wrong
    return f"{wrong}, and the mean loss ({system.loss.name}) of all answers is {loss}"


def describe_system(system: SystemResult, profile: Profile | None) -> str:
    """Return the coverage and the error rate of one of several systems as a sentence."""
    if not system.population.answered:
        return f"{system.name} answers none of the items."
    coverage = format_percent(system.coverage.value)
    return f"{system.name} answers {coverage} of the items; {_describe_answers(system, profile)}."


def system_verdict(system: SystemResult, profile: Profile | None) -> list[str]:
    """Return the conclusion about one system, a sentence or two per paragraph."""
    population = system.population
    if not population.answered:
        return [
            f"Nothing was answered: all {population.items:,} items were declined. There is no risk to evaluate, and an "
            "area of 0 is then not a good result."
        ]
    lines = [
        f"The model answers {population.answered:,} of {population.items:,} items "
        f"({format_percent(system.coverage.value)}) and declines {population.abstained:,}; "
        f"{_describe_answers(system, profile)}."
    ]
    if profile is None or not profile.leader:
        return lines
    leader = system[profile.leader]
    ranked = f"The confidence {leader.name} ranks the answers with an AUGRC of {leader.augrc}"
    if len(system) > 1:
        ranked = f"Of {len(system)} confidences, {leader.name} ranks the answers best: AUGRC {leader.augrc}"
    lines.append(
        f"{ranked}. A random ranking of the same answers would have {number_text(profile.random_augrc)}, a perfect "
        f"ranking {number_text(leader.augrc_optimal.value)}."
    )
    half = leader.risk_at_coverage.get(_HALF)
    if half is not None and half.defined:
        loss = f"their mean loss is {half}"
        if system.loss is not None and system.loss.name == "zero_one":
            loss = f"{format_percent(half.value)} of the answers are wrong{_interval_in_percent(half)}"
        lines[-1] += f" At the first threshold that answers at least half of all items, {loss}."
    if profile.contrasts:
        lines.append(_contrasts(list(profile.contrasts.values()), system.settings))
    return lines


def guarantee_sentences(policies: Mapping[str, Policy]) -> list[str]:
    """Return the policy for the requested risk: the first sentences of a page."""
    lines = []
    for name, policy in policies.items():
        text = str(policy)
        lines.append(text if len(policies) == 1 else f"{name}: {text[0].lower()}{text[1:]}")
        if policy.threshold is None:
            lines.append(policy.lines[1])
    return lines


def guarantee_definitions(result: Result, policies: Mapping[str, Policy]) -> dict[str, str]:
    """Return the definition of a risk guarantee, if the page has one."""
    systems = result.systems.values()
    if not any(system and system.loss is not None and system.loss.name in SHARES for system in systems):
        return {}
    definitions = {
        "Guaranteed risk": "A threshold whose risk was tested. If future items are drawn like these, the risk of the "
        "answers is at most the guaranteed risk, with the printed certainty. The guarantee holds for one risk that was "
        "chosen before looking at the data, not for the best of several."
    }
    for policy in policies.values():
        # The test is the line after the headline, the groups and the reason.
        test = policy.lines[1 + len(policy.groups) + bool(policy.reason and not policy.groups)]
        definitions["Test of the guarantee"] = f"{test} Assumptions: {'; '.join(policy.assumptions)}."
    return definitions


def _contrasts(contrasts: Sequence[Difference], settings: Settings) -> str:
    """Return how the other confidences compare with the leader, which is the left side of each contrast."""
    close = [each.right for each in contrasts if each.compared and each.winner is None]
    worse = [each.right for each in contrasts if each.winner == each.left]
    not_comparable = [each.right for each in contrasts if not each.compared]
    sentences = []
    if close:
        sentences.append(f"The comparison with {join_names(close)} is inconclusive.")
    if worse:
        others = f"{len(worse)} other{'s are' if len(worse) > 1 else ' is'}"
        sentences.append(f"{others if close or not_comparable else 'All others are'} worse.")
    if not_comparable:
        sentences.append(f"{join_names(not_comparable)} cannot be compared with it.")
    corrected = f", corrected for {len(contrasts)} comparisons by Holm's method" if len(contrasts) > 1 else ""
    return (
        f"{' '.join(sentences)} (Paired differences in AUGRC at a level of {settings.level:g}{corrected}. The best of "
        "several confidences should be evaluated again on new data.)"
    )


def headline_metrics(result: Result) -> list[str]:
    """Return the metrics that the charts of a comparison draw: AUGRC and Cmax, or those requested by name."""
    compared = list(dict.fromkeys(each.metric for each in result.differences if not each.matched))
    headline = ["augrc", "cmax"] if result.first.variants else requested_metrics(result.first)
    return [key for key in headline if key in compared] or compared[:1]


def comparison_verdict(result: Result, profiles: Mapping[str, Profile | None]) -> list[str]:
    """Return the conclusion about several systems: the headline of the result, then each system or the ranks."""
    headline = result.headline
    if headline is None:
        return _compare_without_headline(result, profiles)
    if len(result.systems) == 2:
        left, right = result.systems
        difference = result.difference(left, right, headline.metric)
        return [
            _compare_two(result, difference),
            *(describe_system(system, profiles.get(name)) for name, system in result.systems.items()),
            *_compare_risks(result, difference),
        ]
    return _compare_many(result, profiles)


def _compare_without_headline(result: Result, profiles: Mapping[str, Profile | None]) -> list[str]:
    """Return the first systems, and the findings on them by the requested metrics."""
    metrics = headline_metrics(result)
    shown = [each for each in result.differences if not each.group and each.metric in metrics]
    lines = [describe_system(system, profiles.get(name)) for name, system in result.systems.items()]
    if all(each.no_verdict for each in shown):
        lines.insert(0, "No requested metric has a better direction, so that there is no verdict.")
    findings = [f"{line}." for line in conclusion_lines(result, shown)]
    return [*lines[:_MOST_SENTENCES], *findings[:_MOST_SENTENCES]]


def _compare_many(result: Result, profiles: Mapping[str, Profile | None]) -> list[str]:
    headline = result.headline
    assert headline is not None
    name = metric_name(headline.metric)
    if headline.winner is None:
        lines = [f"Inconclusive: no system is shown to be better than every other one by {name}."]
    else:
        leads = [each for each in result.differences if each.winner == headline.winner and not each.group]
        smallest = next(
            each
            for each in leads
            if each.metric == headline.metric and each.estimate.value == headline.difference
        )
        lines = [
            f"{headline.winner} is better than every other system by {name}. Its smallest lead: "
            f"{_lower_first(_compare_two(result, smallest))}"
        ]
    ranks = rank_by_headline(result)
    by_rank: dict[str, list[str]] = {}
    for system, rank in sorted(ranks.items(), key=lambda pair: pair[1] or (math.inf, math.inf)):
        by_rank.setdefault("no rank" if rank is None else f"rank {format_rank(rank)}", []).append(system)
    lines.append(f"{_upper_first('; '.join(f'{rank}: {join_names(s)}' for rank, s in by_rank.items()))}.")
    first = [system for system, rank in ranks.items() if rank is not None and rank.best == 1]
    described = [describe_system(result.systems[system], profiles.get(system)) for system in first]
    return [*lines, *described[:_MOST_NAMED]]


def shown_differences(result: Result, metrics: Collection[str]) -> list[Difference]:
    """Return the differences of a summary without the requested metrics that the page omits."""
    omitted = set(requested_metrics(result.first)) - set(metrics)
    return [each for each in choose_differences(result) if each.metric not in omitted]


def findings(result: Result, metrics: Collection[str]) -> list[str]:
    """Return the findings of a comparison in the words of every other output, at most 40 sentences."""
    differences = shown_differences(result, metrics)
    if len(result.systems) > 2:
        kept = {*headline_metrics(result), "risk"}
        differences = [each for each in differences if each.metric in kept]
    lines = [f"{line}." for line in conclusion_lines(result, differences)]
    if len(lines) > _MOST_FINDINGS:
        lines[_MOST_FINDINGS:] = [f"The table has {len(lines) - _MOST_FINDINGS:,} more differences."]
    return lines


def rank_by_headline(result: Result) -> dict[str, Rank | None]:
    """Return the rank of every system by the metric of the headline and the first confidence."""
    assert result.headline is not None
    confidences = ["", *result.first.confidences]
    ranks: dict[str, Rank | None] = {}
    for name in result.systems:
        keys = [(name, confidence, result.headline.metric) for confidence in confidences]
        ranks[name] = next((result.ranks[key] for key in keys if key in result.ranks), None)
    return ranks


def format_rank(rank: Rank | None) -> str:
    r"""Return a range of ranks.

    >>> from abstain.evaluation import Rank
    >>> ascii(format_rank(Rank(1, 2))), format_rank(Rank(3, 3)), format_rank(None)
    ("'1\\u20132'", '3', 'none')
    """
    if rank is None:
        return "none"
    return str(rank.best) if rank.best == rank.worst else f"{rank.best}{_EN_DASH}{rank.worst}"


def rank_verdict(result: Result, name: str, rank: Rank | None) -> str:
    """Return the place of a system in the ranking in one word."""
    if result.headline is not None and result.headline.winner == name:
        return "best"
    if rank is None:
        return "unranked"
    return "outperformed" if rank.best > 1 else "inconclusive"


def _compare_two(result: Result, each: Difference) -> str:
    """Return the finding on two systems as a sentence with both values and their difference."""
    if not each.compared:
        return f"{each.sentence}."
    several = len({other.confidence for other in result.differences} - {""}) > 1
    name = metric_name(each.metric) + (f" by {each.confidence}" if several and each.confidence else "")
    place = _describe_basis(each)
    winner, loser = (each.left, each.right) if each.winner == each.left else (each.right, each.left)
    values = {each.left: each.left_value, each.right: each.right_value}
    size = each.estimate if each.estimate.value >= 0.0 else each.estimate.turned
    half_width = (size.high - size.low) / 2.0
    first, second = (number_text(values[one], half_width) for one in (winner, loser))
    # The rest of the finding is about the margin and the number of clusters that would decide it.
    if each.winner is None:
        rest = each.finding.rpartition(str(each.estimate))[2]
        first, second = second, first
        return (
            f"{place}the comparison of {each.left} and {each.right} is inconclusive: {name} {first} against {second}, "
            f"difference {each.estimate}{rest}."
        )
    rest = each.finding.rpartition(str(size))[2]
    finding = f"{winner} {_is_better(result, each)} {loser}"
    return f"{place}{finding}: {name} {first} against {second}, difference {size}{rest}."


def _describe_basis(each: Difference) -> str:
    """Return the items that a difference is over, as the beginning of a sentence."""
    if each.basis == "matched coverage":
        return f"At the same coverage of {_whole_percent(each.coverage)}, "
    return (
        "Over all items, " if each.basis == "all items" else f"Over the answered items ({_coverages(each)}), "
    )


def _is_better(result: Result, each: Difference) -> str:
    if each.metric.partition("@")[0] not in _LOSS_METRICS or result.loss is None:
        return "is better than"
    return "makes fewer errors than" if result.loss.name == "zero_one" else "has lower losses than"


def _compare_risks(result: Result, headline: Difference) -> list[str]:
    """Return the selective risks of two systems at matched coverage as a sentence, if they were compared."""
    risks = [
        each for each in result.differences if each.metric == "risk" and not each.group and each.compared
    ]
    each = next((each for each in risks if headline.confidence in ("", each.confidence)), None)
    if each is None or headline.metric == "risk":
        return []
    place = f"At a coverage of {_whole_percent(each.coverage)}"
    conclusion = each.conclusion
    if result.loss is not None and result.loss.name == "zero_one":
        size = each.estimate if each.estimate.value >= 0.0 else each.estimate.turned
        numbers = [size.value] if size.interval is None else [size.value, size.low, size.high]
        value, *ends = (f"{100.0 * number:.1f}" for number in numbers)
        interval = f" [{', '.join(ends)}]" if ends else ""
        return [
            f"{place}, {format_percent(each.left_value)} of the answers of {each.left} and "
            f"{format_percent(each.right_value)} of those of {each.right} are wrong: difference {value} percentage "
            f"points{interval}, {conclusion}."
        ]
    left, right = (number_text(value) for value in (each.left_value, each.right_value))
    return [
        f"{place}, the mean loss of the answers is {left} for {each.left} and {right} for {each.right}: difference "
        f"{each.estimate}, {conclusion}."
    ]


def _coverages(each: Difference) -> str:
    left, right = (format_percent(value) for value in (each.left_coverage, each.right_coverage))
    return f"coverage {left}" if left == right else f"coverages {left} and {right}"


def _whole_percent(value: float) -> str:
    """Return a proportion in whole percent, with decimals if rounding would give 0% or 100%."""
    rounded = round(100.0 * value)
    return format_percent(value) if rounded in (0, 100) and value != rounded / 100 else f"{rounded}%"


def _upper_first(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def describe_items(result: Result, *, details: bool = True) -> str:
    """Return the number of items and clusters, and how the items of several systems were matched.

    Clusters that were left out of a comparison are in the details.
    """
    matching, noun = result.matching, result.cluster_noun
    if matching is not None and not matching.paired:
        return basis_line(result)
    items = result.population.items if matching is None else matching.evaluated
    clusters = result.population.included if matching is None else matching.clusters
    if noun == "row":
        text = f"{format_count(items, 'row')}, treated as independent"
    else:
        text = f"{format_count(items, 'item')} of {format_count(clusters, noun)}"
    if matching is None:
        return text
    text += f", matched by {' and '.join(noun if field == 'cluster' else field for field in matching.by)}"
    left_out = [f"{count:,} failed in {name}" for name, count in matching.clusters_failed.items() if count]
    missing = "only in" if len(result.systems) == 2 else "not in all systems, of"
    left_out += [
        f"{count:,} {missing} {name}" for name, count in matching.clusters_unmatched.items() if count
    ]
    return text + (f" ({noun}s left out: {', '.join(left_out)})" if left_out and details else "")


def describe_compared_items(result: Result) -> str:
    """Return whether systems are compared on the same items, and on which, as a sentence."""
    if result.matching is not None and not result.matching.paired:
        return f"The systems have different items and are compared as {describe_items(result)}."
    both = "Both" if len(result.systems) == 2 else "All"
    return f"{both} systems are compared on the same items: {describe_items(result)}."


_LOSSES = {
    "zero_one": "An answer is wrong if it differs from the label",
    "abs": "The loss of an answer is its distance from the label",
    "abs_norm": "The loss of an answer is its distance from the label, divided by the width of the scale",
}


def describe_loss(result: Result) -> str:
    """Return the loss as a sentence; empty if no metric needs a loss."""
    if result.loss is None:
        return ""
    words = _LOSSES.get(result.loss.name)
    return f"{words} (loss {result.loss.name})." if words else f"Loss: {result.loss.name}."


def coverage_verdict(result: CoverageResult) -> list[str]:
    """Return the verdict on coverage, one sentence per nominal coverage."""
    return [
        f"At a nominal coverage of {each.nominal:g} the "
        f"{'verdict is' if each.verdict.verdict == 'inconclusive' else f'{result.kind} are'} "
        f"{each.verdict.verdict}: coverage {each.verdict.estimate} ({each.verdict.reason})."
        for each in result.by_nominal
    ]


def describe_band(system: SystemResult) -> str:
    """Return the level and the method of the band around a curve."""
    settings = system.settings
    if settings.interval == "none":
        return "There is no band, because no confidence intervals were requested."
    held = "at all thresholds together" if settings.simultaneous else "at each threshold by itself"
    return (
        f"The band shows the {100 * settings.level:g}% confidence interval of the risk {held} ({settings.interval} "
        f"over {system.cluster_noun}s). If no answer was wrong, each counts as one answer."
    )


def describe_family(result: Result) -> str:
    """Return whether the intervals of differences hold together or each by itself; empty for one difference."""
    if len(result.systems) < 3:
        return ""
    if result.settings.simultaneous:
        return "The confidence intervals hold for all pairs of systems together."
    return (
        "Each confidence interval is for one comparison by itself. Verdicts and p (Holm) hold for all pairs."
    )


def definitions(result: Result, metrics: Iterable[str]) -> dict[str, str]:
    """Return the definitions of the numbers about answers and abstentions, and of the requested metrics shown."""
    terms = {
        "Items": "An item is one question that the model answers or declines. N is the number of answered and declined "
        "items, K the number of answered items. Failed items and items without a label are not part of any metric."
    }
    loss = result.loss
    if loss is not None:
        terms["Loss"] = (
            f"{loss.rule}. {loss.name} = {loss.definition}, with pred the prediction and gt the label. An answer is "
            "wrong if its loss is above 0."
        )
    if any(result.systems.values()):
        terms |= _selective_definitions(result.settings)
    summaries = {
        name: result.specifications[name].summary.replace("``", "")
        for name in metrics
        if name in result.specifications
    }
    for name, summary in summaries.items():
        terms.setdefault(metric_name(name), summary)
    if uses_outcome_counts(summaries.values()):
        terms["N1 to N5"] = OUTCOME_COUNTS
    return terms | _inference_definitions(result)


def uses_outcome_counts(summaries: Iterable[str]) -> bool:
    """Return whether any formula uses the counts N1 to N5."""
    return any(f"N{number}" in summary for summary in summaries for number in range(1, 6))


def _selective_definitions(settings: Settings) -> dict[str, str]:
    end = f"{settings.area_coverage:g}"
    return {
        "Operating point": "Answered items are sorted by confidence, highest first. Each distinct confidence is one "
        "operating point; items with the same confidence enter together. After k items with loss sum S: coverage k/N, "
        "selective risk S/k, generalized risk S/N.",
        "Cmax": "K / N, the largest coverage that can be reached.",
        "AURC": "Area under the selective risk over coverage from 0 to Cmax. Lower is better. Convention "
        f"{settings.convention}: {_CONVENTIONS[settings.convention]}.",
        "AUGRC": "Area under the generalized risk over coverage from 0 to Cmax, starting at 0. Lower is better.",
        "e-AURC, e-AUGRC": "The area minus the area of a perfect ranking, which takes the same answers with the "
        "smallest losses first.",
        f"AURC@{end}, AUGRC@{end}": f"The areas up to a coverage of {end}, or up to Cmax if that is less.",
        "Risk at a coverage": "Selective risk of the first operating point that reaches the coverage. Undefined beyond "
        "Cmax.",
    }


def typical_estimate(estimates: Iterable[Estimate]) -> Estimate | None:
    """Return an estimate that shows how intervals are computed: preferably not an exact bound or a constant."""
    with_interval = [each for each in estimates if each.interval is not None]
    usual = [each for each in with_interval if is_usual(each.method)]
    return next(iter(usual or with_interval), None)


def _inference_definitions(result: Result) -> dict[str, str]:
    """Return the definitions of intervals and verdicts: of single numbers, and of differences."""
    settings, system, noun = result.settings, result.first, result.cluster_noun
    terms = {}
    typical = typical_estimate(system.estimates.values())
    if typical is not None:
        how = f"Each {noun} is left out in turn. If nothing varies, each {noun} counts as one row."
        if typical.drawn is not None:
            how = f"Whole {noun}s are drawn (seed {typical.seed}). Resamples with an undefined metric are dropped."
        terms["Intervals"] = f"Of single numbers, {describe_interval(typical, noun)}. {how}"
    compared = next((each for each in result.differences if each.compared), None)
    if compared is None:
        return terms
    how = describe_interval(compared.estimate, noun)
    two = len(result.systems) == 2
    first, second = result.systems if two else ("the first", "The second system")
    items = "of independent samples" if settings.unpaired else "over the same items"
    terms["Difference"] = f"{second} minus {first} {items}, {how}. {describe_family(result)}".strip()
    terms["Better"] = (
        f"A system is better if the p-value is at most {1 - settings.level:.2g}, after Holm's correction for all pairs "
        "of systems by one metric, confidence and group. The p-value comes from the same statistic as the interval. A "
        "system that answers nothing never wins. Metrics without a better direction, such as Cmax, have no winner."
    )
    if any(each.matched for each in result.differences):
        terms["At the same coverage"] = (
            "Areas and error rates fall if a system declines more items. Systems with different coverages are "
            "therefore compared at the largest coverage that both reach, each limited to its most confident items. "
            "Differences over whole curves are shown, but have no verdict."
        )
    return terms


def coverage_definitions(result: CoverageResult) -> dict[str, str]:
    """Return the definitions of the numbers about prediction intervals or sets."""
    settings = result.settings
    terms = {
        "Coverage": "The proportion of labels that lie within their closed interval, or in their set.",
        "Nominal coverage": "The coverage that the predictions were made for.",
        "Verdict on coverage": f"It depends on the {100 * settings.level:g}% confidence interval of the coverage over "
        f"clusters and on a margin of {settings.margin:g}. Under-covered: the whole interval is below the nominal "
        "coverage minus the margin. Over-covered: the whole interval is above the nominal coverage plus the margin. "
        "Covered: the interval is at or above the nominal coverage minus the margin, but not over-covered. Otherwise "
        "inconclusive.",
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
