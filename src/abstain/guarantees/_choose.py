"""Choose a threshold whose risk is promised, or say why there is none.

The question has defaults that cannot mislead: items in clusters are tested over clusters, few clusters by a test that
holds for any number, and where nothing can be promised there is no threshold, never the one that merely looked good.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _files, _validate
from abstain._confidences import load_calibrations
from abstain.errors import ArgumentError, DataError, ResultWarning
from abstain.guarantees import _search
from abstain.guarantees._evidence import JOINT, SELECTIVE, Evidence, Steps, shortest_between
from abstain.guarantees._policy import (
    GUARANTEES,
    METHODS,
    SEARCHES,
    CalibrationHash,
    Chosen,
    Instead,
    Policy,
    PolicyConfidence,
    PolicyData,
    PolicyLoss,
    Seen,
    known,
)
from abstain.guarantees._rows import Rows, hashed, one_confidence, rows_of
from abstain.inference import clusters_needed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abstain._confidences import CalibrationLike, VariantConfidence
    from abstain.items import Items
    from abstain.losses import ItemLoss, Loss

    Floats = NDArray[np.float64]

__all__ = ["FEW_CLUSTERS", "START", "choose_threshold", "promised_thresholds", "rate"]

# Fewer clusters than this are too few for a t test to be near anything.
FEW_CLUSTERS = 20
# The coverage at which a fixed sequence begins: higher up there are too few answers to show anything.
START = 0.2
# How many thresholds are gone through at most; finer ones give chance more occasions to end the sequence early.
STEPS = 100
# Betting finds its thresholds on this share of the clusters, at least so many, and tests them on the others. It begins
# where an answer without error would be promised with some room: this many times the coverage that this takes.
_SPLIT, _LEAST_SPLIT, _ROOM = 0.1, 10, 1.75
_QUANTILES = 101
_SURE_ROUNDS = 30


def rate(value: float | str, name: str = "risk") -> float:
    """Return a share strictly between 0 and 1, from a number or from text such as "5%".

    >>> rate("5%"), rate(0.05), rate("0.05")
    (0.05, 0.05, 0.05)
    >>> rate(5)
    Traceback (most recent call last):
        ...
    abstain.errors.ArgumentError: risk must lie strictly between 0 and 1 (0% and 100%), got 5; did you mean 5%?
    """
    text = str(value).strip()
    marked = text.endswith("%")
    number = _validate.real(text[:-1] if marked else text, name)  # type: ignore[arg-type]
    share = number / 100.0 if marked else number
    if 0.0 < share < 1.0:
        return share
    hint = f"; did you mean {number:g}%?" if not marked and 1.0 <= number < 100.0 else ""
    raise ArgumentError(f"{name} must lie strictly between 0 and 1 (0% and 100%), got {text}{hint}")


def choose_threshold(
    items: Items,
    *,
    risk: float | str = 0.05,
    sure: float | str | None = 0.95,
    promise: str = SELECTIVE,
    confidence: str | None = None,
    calibration: CalibrationLike = None,
    loss: Loss | None = None,
    largest_loss: float | None = None,
    method: str | None = None,
    finite_sample: bool = False,
    search: str | None = None,
    start: float | None = None,
    grid: Sequence[float] | None = None,
    largest_cluster: int | None = None,
    needless: float | str | None = None,
    by: str | None = None,
    worst: bool = False,
) -> Policy:
    """Return the policy that answers most and whose risk is promised; without a threshold where nothing can be.

    The promise "selective" is about the risk among answers, and "joint" about the risk per item asked, which deferring
    lowers by itself. When no `method` is named: items in clusters are tested by a t test over clusters, which is
    asymptotic; fewer than 20 clusters, or where `finite_sample` asks for it, by betting; items without clusters by the
    exact binomial test where the loss is 0 or 1, else by that of Hoeffding and Bentkus; and without `sure`, the joint
    risk is kept to on average (conformal risk control).

    Args:
        items: the data to choose on; whoever checks the promise needs others.
        risk: the largest risk that is acceptable, such as 0.05 or "5%", decided before looking.
        sure: how sure the promise shall be; None for one that holds on average.
        promise: "selective" or "joint".
        confidence: what ranks the answers; the default of the source when left out.
        calibration: the artifact that a calibrated confidence needs, or its path.
        loss: "zero_one", "abs_norm", a function of (truth, prediction), or one number per item.
        largest_loss: the most that a loss of your own can be.
        method: "binomial", "cluster-t", "betting", "hoeffding-bentkus", "sgr" or "crc".
        finite_sample: take a test that holds for any number of clusters.
        search: "fixed-sequence", or "holm" to test all thresholds at once.
        start: the coverage at which the fixed sequence begins; 0.2 when left out.
        grid: thresholds that were decided on before looking; else they are read off the data.
        largest_cluster: the most items that a cluster can have, for betting; the most seen when left out.
        needless: the largest share of items that may be deferred although the answer was right.
        by: a metadata column: one threshold per group.
        worst: with `by`: one threshold that holds for every group.

    >>> from abstain import Items
    >>> truth = [1] * 200
    >>> sure = [(200 - row) / 200 for row in range(200)]
    >>> items = Items.from_arrays(truth, [1] * 150 + [0] * 50, confidence=sure)
    >>> policy = choose_threshold(items, risk=0.1)
    >>> print(policy)
    To be 95% sure that at most 10% of answers are wrong, answer those with a confidence of at least 0.215: 79% of
    items, 158 of 200.
    >>> choose_threshold(items, risk=0.001).threshold is None
    True
    """
    question = _Question.checked(
        risk=risk,
        sure=sure,
        promise=promise,
        method=method,
        search=search,
        start=start,
        grid=grid,
        largest_cluster=largest_cluster,
        needless=needless,
        by=by,
        worst=worst,
    )
    stated = one_confidence(items, confidence, calibration)
    rows, measured, largest = rows_of(items, stated, loss, largest_loss, by)
    _check_rows(rows, items)
    question = question.settled(rows, items.cluster_noun, finite_sample=finite_sample)
    chosen, groups = _chosen(question, rows, items.cluster_noun)
    return _policy(question, items, rows, stated, measured, largest, chosen, groups, calibration)


@dataclass(frozen=True, eq=False, slots=True)
class _Question:
    """What was asked, checked."""

    risk: float
    sure: float | None
    promise: str
    method: str
    search: str
    start: float | None
    grid: Steps | None
    largest_cluster: int | None
    needless: float | None
    by: str | None
    worst: bool

    @classmethod
    def checked(
        cls,
        *,
        risk: float | str,
        sure: float | str | None,
        promise: str,
        method: str | None,
        search: str | None,
        start: float | None,
        grid: Sequence[float] | None,
        largest_cluster: int | None,
        needless: float | str | None,
        by: str | None,
        worst: bool,
    ) -> _Question:
        _validate.choice(promise, "promise", (SELECTIVE, JOINT))
        if method is not None:
            _validate.choice(method, "method", METHODS)
        if search is not None:
            _validate.choice(search, "search", SEARCHES)
        if (sure is None or method == "crc") and promise != JOINT:
            raise ArgumentError(
                "a risk that is kept to on average (crc) is the joint one, which never falls when more is answered; "
                "choose promise joint, or say how sure (sure=, --sure)"
            )
        if sure is None and method not in (None, "crc"):
            raise ArgumentError(f"{method} makes a promise with some sureness; say which (sure=, --sure)")
        if worst and by is None:
            raise ArgumentError("worst is about groups; name their column (by=, --by)")
        if needless is not None and (by is not None or method in ("crc", "sgr") or sure is None):
            raise ArgumentError(
                "needless goes with one threshold for all, and with a test; leave by, crc and sgr out"
            )
        return cls(
            risk=rate(risk),
            sure=None if sure is None or method == "crc" else rate(sure, "sure"),
            promise=promise,
            method=method or "",
            search=search or "",
            start=None if start is None else _validate.coverage(start, "start"),
            grid=None if grid is None else _declared(grid),
            largest_cluster=None
            if largest_cluster is None
            else _validate.whole(largest_cluster, "largest_cluster", least=1),
            needless=None if needless is None else rate(needless, "needless"),
            by=by,
            worst=worst,
        )

    @property
    def delta(self) -> float:
        """How often the promise may be broken."""
        return math.nan if self.sure is None else 1.0 - self.sure

    def settled(self, rows: Rows, noun: str, *, finite_sample: bool) -> _Question:
        """Return the question with the test and the search that these rows call for."""
        method = self.method
        if self.sure is None:
            method = "crc"
        elif not method and not rows.clustered:
            method = "binomial" if rows.binary else "hoeffding-bentkus"
        elif not method:
            method = "betting" if finite_sample or len(rows.names) < FEW_CLUSTERS else "cluster-t"
        if finite_sample and method == "cluster-t":
            raise ArgumentError(
                "cluster-t is asymptotic, and finite_sample asks for a test that is not; leave one out"
            )
        if method in ("binomial", "sgr") and rows.clustered:
            raise ArgumentError(
                f"{method} takes items as independent, and some {noun}s have several here: such promises are broken "
                "far too often; choose cluster-t or betting"
            )
        if method in ("binomial", "sgr") and not rows.binary:
            raise ArgumentError(
                f"{method} needs answers that are right or wrong; choose hoeffding-bentkus or betting"
            )
        if method == "sgr" and self.promise == JOINT:
            raise ArgumentError(
                "sgr is about the risk among answers; choose promise selective, or another method"
            )
        search = {"sgr": "binary-search", "crc": "none"}.get(method) or self.search or "fixed-sequence"
        return replace(self, method=method, search=search)


def _declared(grid: Sequence[float]) -> Steps:
    values = sorted({_validate.real(value, "grid") for value in grid}, reverse=True)
    if not values:
        raise ArgumentError("grid must name at least one threshold")
    thresholds = np.array(values)
    return Steps(thresholds)


def _check_rows(rows: Rows, items: Items) -> None:
    if not len(rows):
        raise DataError("there is no item to choose on: none is answered or abstained")
    if not len(rows.confidence):
        raise DataError("nothing was answered, so that there is no confidence to choose a threshold of")
    if len(rows.names) < 2:
        raise DataError(
            f"one {items.cluster_noun} alone says nothing about others; a promise needs items of several"
        )


@dataclass(frozen=True, eq=False, slots=True)
class _Trial:
    """Evidence for a question, and that about needless deferrals where those are limited.

    `coverage` is that of every step where the sequence was found, which says where it begins; None where it never does.
    """

    question: _Question
    evidence: Evidence
    coverage: Floats | None
    groups: tuple[Evidence, ...] = ()
    deferred: Evidence | None = None
    everything: Evidence | None = None

    def at(self, risk: float) -> _Trial:
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


def _tested(evidence: Evidence, question: _Question, risk: float) -> Floats:
    if question.method == "binomial":
        return evidence.binomial(risk)
    if question.method == "cluster-t":
        return evidence.cluster_t(risk, question.delta)
    if question.method == "betting":
        return evidence.betting(risk)
    return evidence.hoeffding_bentkus(risk)


def _on_average(evidence: Evidence, risk: float) -> int | None:
    """Conformal risk control: over items, or over the means of clusters where there are clusters."""
    if evidence.independent:
        return _search.conformal_risk_control(evidence.loss / evidence.items, evidence.clusters, risk)
    tally, steps = evidence.tally, len(evidence)
    shares = tally.sums[1] / evidence.asked[tally.unit]
    means = np.cumsum(np.bincount(tally.key, weights=shares, minlength=steps + 1)[:steps]) / evidence.clusters
    return _search.conformal_risk_control(means, evidence.clusters, risk)


def _trial(question: _Question, rows: Rows) -> _Trial:
    """Sum rows at the thresholds that are gone through."""
    if question.method == "betting" and question.grid is None:
        return _split_trial(question, rows)
    evidence = _evidence(question, rows, question.grid)
    return _finished(question, rows, evidence, evidence.coverage)


def _split_trial(question: _Question, rows: Rows) -> _Trial:
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


def _finished(question: _Question, rows: Rows, evidence: Evidence, coverage: Floats | None) -> _Trial:
    groups: tuple[Evidence, ...] = ()
    if question.worst and rows.groups is not None:
        groups = tuple(
            _evidence(question, rows.take(rows.groups == name), evidence.steps)
            for name in sorted(set(rows.groups.tolist()))
        )
    deferred = None if question.needless is None else _deferred(question, rows, evidence.steps)
    return _Trial(question, evidence, coverage, groups, deferred)


def _evidence(question: _Question, rows: Rows, steps: Steps | None, *, promise: str = "") -> Evidence:
    """Sum rows; every confidence is a step where the search needs no p-value at each."""
    betting = question.method == "betting"
    alone = not rows.clustered and not betting
    kept = rows.answered
    return Evidence.of_rows(
        rows.confidence,
        rows.loss,
        cluster=None if alone else rows.cluster[kept],
        asked=np.array([float(len(rows))]) if alone else rows.asked,
        weight=None if rows.weight is None or alone else rows.weight[kept],
        most=None if question.search in ("binary-search", "none") else STEPS,
        steps=steps,
        order=np.argsort(hashed(rows.names, "order"), kind="stable") if betting else None,
        largest=_largest(question, rows),
        promise=promise or question.promise,
    )


def _largest(question: _Question, rows: Rows) -> float:
    if not rows.clustered:
        return 1.0
    seen, declared = float(rows.asked.max()), question.largest_cluster
    if declared is not None and seen > declared:
        raise DataError(
            f"a cluster has {seen:g} items, and largest_cluster says that none has more than {declared}"
        )
    return seen if declared is None else float(declared)


def _deferred(question: _Question, rows: Rows, steps: Steps) -> Evidence:
    """What is deferred although it was right: the same rows from the least confident on, with their losses turned."""
    # Below a threshold lies what is at most the next number down; turned round, that is at least its negative.
    below = -np.nextafter(steps.threshold[::-1], -np.inf)
    turned = replace(rows, confidence=-rows.confidence, loss=1.0 - rows.loss)
    return _evidence(question, turned, Steps(below), promise=JOINT)


def _begin(question: _Question, coverage: Floats, evidence: Evidence) -> int:
    """The step at which a fixed sequence begins, from what does not depend on which answers are wrong."""
    if question.promise == JOINT or not len(coverage):
        return 0  # the joint risk only falls towards the top
    reach = float(coverage[-1])
    wanted = START if question.start is None else question.start
    least = math.log(question.delta) / math.log1p(-question.risk)
    if question.start is None:
        # So many answers without an error, or as many clusters of the largest size, are needed to promise anything at
        # all. With room for errors, but not so much that little is left to go through.
        units = evidence.largest if question.method in ("betting", "hoeffding-bentkus") else 1.0
        needed = least * units / evidence.items
        wanted = min(max(wanted, min(_ROOM * needed, (needed + reach) / 2.0)), 0.9 * reach)
    return min(int(np.searchsorted(coverage, min(wanted, reach) - 1e-9)), len(coverage) - 1)


def _chosen(question: _Question, rows: Rows, noun: str) -> tuple[Chosen, tuple[Chosen, ...]]:
    """What is chosen for all rows, and for each group."""
    if question.by is None or rows.groups is None:
        return _choice(question, rows, noun), ()
    names = sorted(set(rows.groups.tolist()))
    if question.worst:
        chosen = _choice(question, rows, noun)
        parts = tuple(
            Chosen(group=name, seen=_seen_at(question, rows.take(rows.groups == name), chosen.threshold))
            for name in names
        )
        return chosen, parts
    parts = tuple(_group_choice(question, rows.take(rows.groups == name), noun, name) for name in names)
    return Chosen(reason=f"there is one threshold per {question.by}, see groups"), parts


def _group_choice(question: _Question, rows: Rows, noun: str, name: str) -> Chosen:
    own = question
    if question.method == "cluster-t" and len(rows.names) < FEW_CLUSTERS:
        own = replace(question, method="betting")
    if not len(rows.confidence) or len(rows.names) < 2:
        return Chosen(group=name, reason=f"fewer than two {noun}s, or no answer")
    found = _choice(own, rows, noun)
    return Chosen(
        group=name,
        threshold=found.threshold,
        shown=found.shown,
        reason=found.reason,
        seen=found.seen,
        instead=found.instead,
    )


def _choice(question: _Question, rows: Rows, noun: str) -> Chosen:
    trial = _trial(question, rows)
    step, p_values = trial.step()
    shown = trial.everything or trial.evidence
    if step is None:
        return Chosen(reason=_reason(trial, noun), instead=_instead(trial))
    threshold = float(shown.steps.threshold[step])
    below = rows.confidence[rows.confidence < threshold]
    here = rows.confidence[rows.confidence >= threshold]
    lowest = float(here.min()) if len(here) else threshold
    if question.method == "crc":  # which is about the confidences that were seen
        threshold = lowest
    parted = shortest_between(float(below.max(initial=-math.inf)), lowest)
    return Chosen(
        threshold=threshold,
        shown=threshold if question.grid is not None else parted,
        seen=_seen_at(question, rows, threshold, known(float(p_values[step]))),
    )


def _seen_at(
    question: _Question, rows: Rows, threshold: float | None, p_value: float | None = None
) -> Seen | None:
    if threshold is None:
        return None
    mass = rows.mass
    total, weight = float(mass.sum()), mass[rows.answered]
    kept = rows.confidence >= threshold
    answered = float(weight[kept].sum())
    loss = float((weight * rows.loss)[kept].sum())
    over = answered if question.promise == SELECTIVE else total
    return Seen(
        items=round(total),
        answered=round(answered),
        coverage=answered / total,
        wrong=round(float(weight[kept & (rows.loss > 0.0)].sum())),
        risk=loss / over if over else None,
        p_value=p_value,
    )


def _reason(trial: _Trial, noun: str) -> str:
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
    if question.needless is not None and trial.step()[0] is None:
        return "no threshold is shown to keep to both limits"
    lowest = float(np.nanmin(evidence.risk)) if np.isfinite(evidence.risk).any() else math.nan
    if lowest > question.risk:
        return "no threshold was even seen to keep to the risk"
    return "the data are too few to show that any threshold keeps to the risk"


def _instead(trial: _Trial) -> Instead:
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


def _clusters_needed(trial: _Trial) -> int | None:
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
    # A sequence that did not even begin has to pass its first test.
    first = question.search == "fixed-sequence" and bool(room[trial.start] > 0.0)
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


def promised_thresholds(
    items: Items, values: Floats, loss: Floats, risks: Sequence[float], *, sure: float = 0.95
) -> dict[float, float]:
    """Return, for each risk by itself, the threshold that is promised by default; those without one are left out.

    Args:
        items: judged items.
        values: the confidence of each.
        loss: the loss of each, on [0, 1]; NaN where it is not answered.
        risks: which risks are asked for, each decided on before looking.
        sure: how sure each promise is.
    """
    answered = items.answered
    rows = Rows(
        answered, values[answered], loss[answered], items.cluster_index, items.cluster_ids, items.weight
    )
    if not len(rows.confidence) or len(rows.names) < 2:
        return {}
    asked = _Question(risks[0], sure, SELECTIVE, "", "", None, None, None, None, None, False)
    question = asked.settled(rows, items.cluster_noun, finite_sample=False)
    trial = _trial(question, rows)
    found = {}
    for risk in risks:
        step, _ = trial.at(risk).step()
        if step is not None:
            found[risk] = float(trial.evidence.steps.threshold[step])
    return found


def _policy(
    question: _Question,
    items: Items,
    rows: Rows,
    stated: VariantConfidence,
    measured: ItemLoss,
    largest: float,
    chosen: Chosen,
    groups: tuple[Chosen, ...],
    calibration: CalibrationLike,
) -> Policy:
    weight = rows.mass[rows.answered]
    overall = float(weight @ rows.loss) / float(weight.sum())
    must = (
        max((overall - question.risk) / (1.0 - question.risk), 0.0) if question.promise == SELECTIVE else 0.0
    )
    calibrations = load_calibrations(calibration)
    return Policy(
        threshold=chosen.threshold,
        shown=chosen.shown,
        reason=chosen.reason,
        seen=chosen.seen,
        instead=chosen.instead,
        abstain_version=version("abstain"),
        promise=question.promise,  # type: ignore[arg-type]
        risk=question.risk,
        sure=question.sure,
        method=question.method,  # type: ignore[arg-type]
        search=question.search,  # type: ignore[arg-type]
        guarantee=GUARANTEES[question.method],  # type: ignore[arg-type]
        confidence=PolicyConfidence(
            name=_column_of(items, stated.name),
            calibration=CalibrationHash(
                method=calibrations[0].calibrator.method, sha256=_files.sha256(calibrations[0].to_json())
            )
            if calibrations
            else None,
            quantiles=_quantiles(rows.confidence),
            clusters=len(rows.names),
            percent=_column_of(items, stated.name) in items.provenance.get("percent", ()),
        ),
        loss=PolicyLoss(
            name=measured.name, definition=measured.definition, rule=measured.rule, largest=largest
        ),
        data=PolicyData(
            path=_text(items.provenance.get("path")),
            sha256=_text(items.provenance.get("sha256")),
            fingerprint=rows.fingerprint(),
            items=round(float(rows.mass.sum())),
            answered=round(float(weight.sum())),
            clusters=len(rows.names),
            cluster_noun=items.cluster_noun if rows.clustered else "item",
            largest_cluster=_largest(question, rows),
            risk=overall,
        ),
        needless=question.needless,
        by=question.by,
        worst=question.worst,
        groups=groups,
        must_decline=must,
        assumptions=_assumptions(question, rows, items.cluster_noun),
        warnings=(*stated.warnings, *_warnings(question, items, rows)),
    )


def _quantiles(values: Floats) -> tuple[float, ...]:
    ordered = np.sort(values)
    places = np.linspace(0.0, len(ordered) - 1.0, _QUANTILES)
    return tuple(np.interp(places, np.arange(len(ordered)), ordered).tolist())


def _column_of(items: Items, name: str) -> str:
    """The column that a confidence is, where it is one by another name."""
    columns = items.provenance.get("columns", {})
    return str(columns["confidence"]) if name == "confidence" and "confidence" in columns else name


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _assumptions(question: _Question, rows: Rows, noun: str) -> tuple[str, ...]:
    units = f"{noun}s" if rows.clustered else "items"
    found = [
        f"the {units} to come are drawn like those that the threshold was chosen on, and independently of one another",
        "the risk, the sureness and the method were decided on before looking at these data, and tried once",
    ]
    if not rows.clustered:
        found.append(
            "no two items belong to the same patient, document or conversation: no clusters are known here"
        )
    if question.method == "cluster-t":
        found.append(f"there are many {units}: the test is asymptotic")
    if question.method in ("betting", "hoeffding-bentkus") and rows.clustered:
        found.append(f"no {noun} has more than {_largest(question, rows):g} items")
    if question.method == "crc" and rows.clustered:
        found.append(f"the risk that is kept to is the mean over {units} of the risk within each")
    if question.needless is not None:
        found.append(
            "an item that the model itself declined has no answer, and counts as deferred for good reason"
        )
    return tuple(found)


def _warnings(question: _Question, items: Items, rows: Rows) -> list[ResultWarning]:
    found = []
    if not rows.clustered and "cluster" in items.unnamed:
        message = (
            "every item is taken as independent of all others, because no cluster was named; where several belong to "
            "one patient or document the promise does not hold (--cluster, cluster=)"
        )
        found.append(ResultWarning("clusters_unnamed", message))
    elif question.method == "cluster-t" and len(rows.names) < 2 * FEW_CLUSTERS:
        message = (
            f"{len(rows.names)} {items.cluster_noun}s are few for a t test; betting holds for any number "
            "(--finite-sample, finite_sample=True)"
        )
        found.append(ResultWarning("few_clusters", message))
    left = items.counts.failed + items.counts.unscored
    if left > 0.01 * max(items.counts.n, 1):
        message = f"{left:,} items failed or have no truth, and are not part of the promise"
        found.append(ResultWarning("left_out", message))
    return found
