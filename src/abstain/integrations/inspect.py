"""Metrics for Inspect AI: put them on a scorer, or name them on its command line.

    from abstain.integrations.inspect import augrc, aurc, coverage, selective_accuracy

    @scorer(metrics=[accuracy(), coverage(), selective_accuracy(), aurc("token_msp", cluster="patient")])
    def graded(): ...

Every selective, safety and calibration metric of `abstain.metrics` is registered by its name, so that
``inspect score log.eval --metric abstain/augrc`` finds it; `METRICS` holds them all. Scores are read by the rules by
which `abstain.read` reads a log, and judged by `abstain.evaluate`: a metric inside Inspect is the number that
``abstain evaluate log.eval`` gives. A score with the value N, or with the reason refusal or no_response, is an
abstention; NaN is unscored and left out. Every epoch counts as an answer of its own, before Inspect reduces epochs,
because that reduction turns an abstention into a zero. Answers are ranked by a confidence made of the numbers in
``Score.metadata``; `token_confidence` makes such numbers of the model's log-probabilities. A metric that is undefined
is NaN, and a warning in the log says why: an evaluation that took hours does not fail for want of a number.
"""

from __future__ import annotations

import json
import logging
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from inspect_ai.scorer import Metric, SampleScore, metric

from abstain.confidence import token_signals
from abstain.errors import AbstainError
from abstain.evaluation import evaluate
from abstain.metrics import abstention, calibration, selective
from abstain.metrics.registry import find_metric
from abstain.readers import items_of_samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspect_ai.solver import TaskState

    from abstain.items import Items

__all__ = ["METRICS", "augrc", "aurc", "coverage", "selective_accuracy", "token_confidence"]

_LOG = logging.getLogger(__name__)
# Beside the metrics of these modules, what ranks right answers before wrong ones.
_FURTHER = ("correctness_auroc",)


def _registered(name: str, *, known_as: str | None = None) -> Callable[..., Metric]:
    """Return a metric of the registry as one of Inspect's."""
    specification = find_metric(name)

    def create(
        confidence: str | None = None,
        convention: str = "trapezoid",
        *,
        cluster: str | None = None,
        interval: str | None = None,
        at: float | None = None,
    ) -> Metric:
        chosen = specification if at is None else specification.at(at)
        how = interval or ("none" if cluster is None else "jackknife")

        def measure(scores: list[SampleScore]) -> float | dict[str, float]:
            settings = {"confidence": confidence, "convention": convention, "interval": how}
            found = _estimate(chosen, scores, cluster, settings)
            if how == "none":
                return found[0]
            shown = known_as or name
            return {shown: found[0], f"{shown}_low": found[1], f"{shown}_high": found[2]}

        return measure

    create.__name__ = create.__qualname__ = known_as or name
    create.__doc__ = f"""{specification.summary[:1].upper()}{specification.summary[1:]}.

    Args:
        confidence: what ranks answers: a variant, or a key of ``Score.metadata``; the default of `abstain.evaluate`
            when left out.
        convention: how areas are integrated; see `abstain.metrics.selective`.
        cluster: the key of the sample's metadata that says what belongs together; the sample when left out. With it,
            the metric has an interval: its ends stand beside the value, as ``_low`` and ``_high``.
        interval: "jackknife", "percentile", "bca" or "none", where it does not go by the cluster.
        at: the metric's parameter, where it has one, such as the coverage.
    """
    return metric(name=known_as or name, scores="unreduced")(create)


def _estimate(
    chosen: Any, scores: list[SampleScore], cluster: str | None, settings: dict[str, Any]
) -> tuple[float, float, float]:
    nothing = (math.nan, math.nan, math.nan)
    if not scores:
        return nothing
    try:
        items = _items(scores, cluster)
        if ("loss" in chosen.needs or chosen.ranked) and chosen.name != "cmax" and not items.answered.any():
            _LOG.warning("%s: nothing was answered", chosen.name)
            return nothing
        result = evaluate(items, metrics=chosen, selective=False, resamples=None, **settings)
        estimate = next(iter(result.systems.values())).estimate(chosen.key)
    except AbstainError as problem:
        _LOG.warning("%s: %s", chosen.name, problem)
        return nothing
    if math.isnan(estimate.value):
        _LOG.warning("%s: %s", chosen.name, estimate.reason)
    return estimate.value, estimate.low, estimate.high


def _items(scores: list[SampleScore], cluster: str | None) -> Items:
    """Return the items that the log of these scores would hold."""
    epochs: Counter[object] = Counter()
    samples = []
    for score in scores:
        epochs[score.sample_id] += 1
        told = score.score.model_dump(mode="python", include={"value", "answer", "reason", "metadata"})
        sample = {
            "id": score.sample_id,
            "epoch": epochs[score.sample_id],
            # A metric is not told the target of a sample; `abstain.runs.judged` writes it down.
            "target": str((score.score.metadata or {}).get("target", "")),
            "scores": {"score": told},
            "metadata": score.sample_metadata,
        }
        samples.append(json.dumps(sample, default=str).encode())
    return items_of_samples(samples, cluster=cluster, what="the scores")


coverage = _registered("answer_rate", known_as="coverage")
selective_accuracy = _registered("selective_accuracy")
aurc = _registered("aurc")
augrc = _registered("augrc")

METRICS: dict[str, Callable[..., Metric]] = {
    "coverage": coverage,
    "selective_accuracy": selective_accuracy,
    "aurc": aurc,
    "augrc": augrc,
}
for _name in (
    *(found.name for module in (selective, abstention, calibration) for found in module.METRICS),
    *_FURTHER,
):
    if _name not in METRICS:
        METRICS[_name] = _registered(_name)


def token_confidence(state: TaskState) -> dict[str, float]:
    """Return what the log-probabilities of an answer say, for ``Score.metadata``; nothing when there are none.

    ``Score(value=..., metadata=token_confidence(state))`` gives ``token_msp``, ``token_pe`` and
    ``token_energy``, and under ``confidence`` the first of them.
    """
    choices = state.output.choices
    logprobs = choices[0].logprobs if choices else None
    if logprobs is None or not logprobs.content:
        return {}
    tokens = [
        {
            "logprob": token.logprob,
            "top_logprobs": [{"logprob": top.logprob} for top in token.top_logprobs or ()]
            or [{"logprob": token.logprob}],
        }
        for token in logprobs.content
    ]
    found = token_signals(tokens)
    signals = {"confidence": found.token_msp, "token_msp": found.token_msp}
    if all(token.top_logprobs for token in logprobs.content):
        signals |= {"token_pe": found.token_pe, "token_energy": found.token_energy}
    return signals
