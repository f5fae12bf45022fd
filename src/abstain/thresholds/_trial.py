"""The trial of a question: rows summed at the thresholds that are gone through, and which of those is promised.

Where none is, it says why, which risk could have been promised, and how many clusters would do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from abstain.inference import clusters_needed
from abstain.thresholds import _search
from abstain.thresholds._evidence import JOINT, RiskTable, Steps
from abstain.thresholds._policy import Instead
from abstain.thresholds._rows import hashed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abstain.thresholds._question import ThresholdRequest
    from abstain.thresholds._rows import AnsweredRows

    Floats = NDArray[np.float64]

# The coverage at which a fixed sequence begins: higher up there are too few answers to show anything.
_START = 0.2
# How many thresholds are gone through at most; finer ones give chance more occasions to end the sequence early.
STEPS = 100
# Betting finds its thresholds on this share of the clusters, at least so many, and tests them on the others. It begins
# where an answer without error would be promised with some room: this many times the coverage that this takes.
_SPLIT, _LEAST_SPLIT, _ROOM = 0.1, 10, 1.75
_SURE_ROUNDS = 30


@dataclass(frozen=True, eq=False, slots=True)
class Trial:
    """Evidence for a question, and that about needless deferrals where those are limited.

    `coverage` is that of every step where the sequence was found, which says where it begins; None where it never does.
    """

    question: ThresholdRequest
    evidence: RiskTable
    coverage: Floats | None
    groups: tuple[RiskTable, ...] = ()
    deferred: RiskTable | None = None
    everything: RiskTable | None = None

    def at(self, risk: float) -> Trial:
        """The same evidence, had another risk been asked for."""
        return replace(self, question=replace(self.question, risk=risk))

    @property
    def start(self) -> int:
        """The step at which the sequence begins."""
        if self.coverage is None:
            return len(self.evidence)
        return _begin(self.question, self.coverage, self.evidence)

    def p_values(self) -> Floats:
        """The p-values of all steps; where one threshold holds for every group, the largest of theirs."""
        parts = self.groups or (self.evidence,)
        return np.max([_tested(part, self.question, self.question.risk) for part in parts], axis=0)

    def step(self) -> tuple[int | None, Floats]:
        """The step that is promised, and all p-values."""
        question, evidence, risk = self.question, self.evidence, self.question.risk
        if question.method == "crc":
            return _on_average(evidence, risk), np.full(len(evidence), np.nan)
        if question.method == "sgr":
            found, _ = _search.selection_with_guaranteed_risk(
                np.rint(evidence.loss), np.rint(evidence.answered), risk, question.delta
            )
            return found, evidence.binomial(risk)
        p_values = self.p_values()
        if self.deferred is not None:
            return self._both(p_values), p_values
        if question.search == "holm":
            return _search.holm_search(p_values, question.delta), p_values
        return _search.fixed_sequence(p_values, question.delta, self.start), p_values

    def _both(self, p_values: Floats) -> int | None:
        """The last step at which both limits are promised.

        Holm takes the larger of both p-values at each step. The fixed sequences share delta: one comes from the top,
        the other, about what is deferred, from the bottom, and what both have passed is promised twice.
        """
        question = self.question
        assert self.deferred is not None
        assert question.needless is not None
        others = _tested(self.deferred, question, question.needless)[::-1]
        if question.search == "holm":
            return _search.holm_search(np.maximum(p_values, others), question.delta)
        last = _search.fixed_sequence(p_values, question.delta / 2.0, self.start)
        turned = _search.fixed_sequence(others[::-1], question.delta / 2.0)
        if last is None or turned is None:
            return None
        return last if last >= len(others) - 1 - turned else None


def _tested(evidence: RiskTable, question: ThresholdRequest, risk: float) -> Floats:
    if question.method == "binomial":
        return evidence.binomial(risk)
    if question.method == "cluster-t":
        return evidence.cluster_t(risk, question.delta)
    if question.method == "betting":
        return evidence.betting(risk)
    return evidence.hoeffding_bentkus(risk)


def _on_average(evidence: RiskTable, risk: float) -> int | None:
    """Conformal risk control: over items, or over the means of clusters where there are clusters."""
    if evidence.independent:
        return _search.conformal_risk_control(evidence.loss / evidence.items, evidence.clusters, risk)
    tally, steps = evidence.tally, len(evidence)
    shares = tally.sums[1] / evidence.asked[tally.unit]
    means = np.cumsum(np.bincount(tally.key, weights=shares, minlength=steps + 1)[:steps]) / evidence.clusters
    return _search.conformal_risk_control(means, evidence.clusters, risk)


def trial_of(question: ThresholdRequest, rows: AnsweredRows) -> Trial:
    """Sum rows at the thresholds that are gone through."""
    if question.method == "betting" and question.grid is None:
        return _split_trial(question, rows)
    evidence = _evidence(question, rows, question.grid)
    return _finished(question, rows, evidence, evidence.coverage)


def _split_trial(question: ThresholdRequest, rows: AnsweredRows) -> Trial:
    """Find the thresholds, and where to begin, on a few clusters, and test them on the others, which did not choose."""
    rank = np.argsort(hashed(rows.names, "grid"), kind="stable")
    few = min(max(round(_SPLIT * len(rank)), min(_LEAST_SPLIT, len(rank) // 3)), len(rank) - 1)
    first = np.zeros(len(rank), np.bool_)
    first[rank[: max(few, 1)]] = True
    scouts, others = rows.of_clusters(first), rows.of_clusters(~first)
    if not len(scouts.confidence) or not len(others.confidence):
        evidence = _evidence(question, rows, None)
        return _finished(question, rows, evidence, None)
    scouted = _evidence(question, scouts, None)
    evidence = _evidence(question, others, scouted.steps)
    trial = _finished(question, others, evidence, scouted.coverage)
    return replace(trial, everything=_evidence(question, rows, scouted.steps))


def _finished(
    question: ThresholdRequest, rows: AnsweredRows, evidence: RiskTable, coverage: Floats | None
) -> Trial:
    groups: tuple[RiskTable, ...] = ()
    if question.worst and rows.groups is not None:
        groups = tuple(
            _evidence(question, rows.take(rows.groups == name), evidence.steps)
            for name in sorted(set(rows.groups.tolist()))
        )
    deferred = None if question.needless is None else _deferred(question, rows, evidence.steps)
    return Trial(question, evidence, coverage, groups, deferred)


def _evidence(
    question: ThresholdRequest, rows: AnsweredRows, steps: Steps | None, *, promise: str = ""
) -> RiskTable:
    """Sum rows; every confidence is a step where the search needs no p-value at each."""
    betting = question.method == "betting"
    alone = not rows.clustered and not betting
    kept = rows.answered
    return RiskTable.of_rows(
        rows.confidence,
        rows.loss,
        cluster=None if alone else rows.cluster[kept],
        asked=np.array([float(len(rows))]) if alone else rows.asked,
        weight=None if rows.weight is None or alone else rows.weight[kept],
        most=None if question.search in ("binary-search", "none") else STEPS,
        steps=steps,
        order=np.argsort(hashed(rows.names, "order"), kind="stable") if betting else None,
        largest=question.largest(rows),
        promise=promise or question.promise,
    )


def _deferred(question: ThresholdRequest, rows: AnsweredRows, steps: Steps) -> RiskTable:
    """What is deferred although it was right: the same rows from the least confident on, with their losses turned."""
    # Below a threshold lies what is at most the next number down; turned round, that is at least its negative.
    below = -np.nextafter(steps.threshold[::-1], -np.inf)
    turned = replace(rows, confidence=-rows.confidence, loss=1.0 - rows.loss)
    return _evidence(question, turned, Steps(below), promise=JOINT)


def _begin(question: ThresholdRequest, coverage: Floats, evidence: RiskTable) -> int:
    """The step at which a fixed sequence begins, from what does not depend on which answers are wrong."""
    if question.promise == JOINT or not len(coverage):
        return 0  # the joint risk only falls towards the top
    reach = float(coverage[-1])
    wanted = _START if question.start is None else question.start
    least = math.log(question.delta) / math.log1p(-question.risk)
    if question.start is None:
        # So many answers without an error, or as many clusters of the largest size, are needed to promise anything at
        # all. With room for errors, but not so much that little is left to go through.
        units = evidence.largest if question.method in ("betting", "hoeffding-bentkus") else 1.0
        needed = least * units / evidence.items
        wanted = min(max(wanted, min(_ROOM * needed, (needed + reach) / 2.0)), 0.9 * reach)
    return min(int(np.searchsorted(coverage, min(wanted, reach) - 1e-9)), len(coverage) - 1)


def reason_for_none(trial: Trial, rows: AnsweredRows, noun: str) -> str:
    """Why nothing is promised: too little data even for no error at all, or risks that were seen to be too high."""
    question, evidence = trial.question, trial.everything or trial.evidence
    if question.method == "crc":
        return "even one more wrong answer would exceed the risk on average"
    by_cluster = question.method in ("betting", "hoeffding-bentkus") and not evidence.independent
    count = evidence.clusters if by_cluster else float(evidence.answered[-1])
    least = math.ceil(math.log(question.delta) / math.log1p(-question.risk))
    if count < least:
        what = f"{noun}s" if by_cluster else "answers"
        return f"even without a single error it would take {least:,} {what}, and here are {count:,.0f}"
    if rows.constant_confidence:
        return (
            "a constant confidence ranks nothing, and all answers together are not shown to keep to the risk"
        )
    if question.needless is not None and trial.step()[0] is None:
        return "no threshold is shown to keep to both limits"
    lowest = float(np.nanmin(evidence.risk)) if np.isfinite(evidence.risk).any() else math.nan
    if lowest > question.risk:
        return "no threshold was even seen to keep to the risk"
    return "the data are too few to show that any threshold keeps to the risk"


def instead(trial: Trial) -> Instead:
    """The smallest risk that could have been promised, by halving, and how many clusters would do."""
    low, high = trial.question.risk, 1.0 - 1e-9
    if trial.at(high).step()[0] is None:
        return Instead(risk=None, clusters=_clusters_needed(trial))
    for _ in range(_SURE_ROUNDS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if trial.at(middle).step()[0] is not None else (middle, high)
    # Said in tenths of a per cent, upwards, so that it could have been promised as it is said.
    rounded = math.ceil(high * 1000.0 - 1e-6) / 1000.0
    return Instead(risk=rounded if rounded < 1.0 else None, clusters=_clusters_needed(trial))


def _clusters_needed(trial: Trial) -> int | None:
    """How many clusters would show the threshold that comes nearest, if their answers are like these."""
    question, evidence = trial.question, trial.evidence
    if question.sure is None or question.delta >= 0.5:
        return None
    room = question.risk - evidence.risk
    error = evidence.standard_error()
    # Where no error was seen, the error of one that was not is taken.
    floor = np.sqrt(question.risk * (1.0 - question.risk) / np.maximum(evidence.count, 1.0)) / 2.0
    with np.errstate(invalid="ignore"):
        score = np.where(evidence.answered > 0, room / np.fmax(error, floor), -np.inf)
    best = int(np.nanargmax(score))
    if not room[best] > 0.0 or question.needless is not None:
        return None
    # A sequence that did not even begin has to pass its first test; where it has no beginning, any will do.
    begins = question.search == "fixed-sequence" and trial.start < len(room)
    first = begins and bool(room[trial.start] > 0.0)
    best = trial.start if first else best
    whole = trial.everything or evidence
    if question.method == "cluster-t":
        found = clusters_needed(
            float(room[best]),
            float(np.fmax(error, floor)[best]),
            whole.clusters,
            level=max(1.0 - 2.0 * question.delta, 1e-6),
        )
    else:
        # The logarithms of these p-values grow with the number of clusters.
        smallest = float(trial.p_values()[best])
        found = whole.clusters * math.log(question.delta) / math.log(smallest) if smallest < 1.0 else math.inf
    return None if not math.isfinite(found) else max(math.ceil(found), whole.clusters + 1)
