"""Metrics for Inspect AI, for the ``metrics`` of a scorer or for ``--metric`` on Inspect's command line.

    from abstain.integrations.inspect import augrc, aurc, coverage, selective_accuracy

    @scorer(metrics=[accuracy(), coverage(), selective_accuracy(), aurc("token_msp", cluster="patient")])
    def graded(): ...

Every selective, safety and calibration metric of `abstain.metrics` is registered by its name, so
``inspect score log.eval --metric abstain/augrc`` finds it; `METRICS` contains all of them. Scores are read like a log
in `abstain.read` and evaluated by `abstain.evaluate`, so ``abstain evaluate log.eval`` gives the same value.

- A score with the value N, or with the reason refusal or no_response, is an abstention. NaN is unscored and excluded.
- Every epoch counts as a separate answer, because Inspect's reduction of epochs turns an abstention into a zero.
- Answers are ranked by a confidence from the numbers in ``Score.metadata``. `token_confidence` computes such numbers
  from the model's log-probabilities.
- An undefined metric is NaN, with a warning in the log, so that a long evaluation does not fail because of one number.
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


def _inspect_metric(name: str, *, inspect_name: str | None = None) -> Callable[..., Metric]:
    """Return a metric of the registry as an Inspect metric, by default with the same name."""
    specification = find_metric(name)
    shown = inspect_name or name

    def create(
        confidence: str | None = None,
        convention: str = "trapezoid",
        *,
        cluster: str | None = None,
        interval: str | None = None,
        at: float | None = None,
    ) -> Metric:
        chosen = specification if at is None else specification.at(at)
        method = interval or ("none" if cluster is None else "jackknife")

        def compute(scores: list[SampleScore]) -> float | dict[str, float]:
            settings = {"confidence": confidence, "convention": convention, "interval": method}
            value, low, high = _estimate(chosen, scores, cluster, settings)
            if method == "none":
                return value
            return {shown: value, f"{shown}_low": low, f"{shown}_high": high}

        return compute

    create.__name__ = create.__qualname__ = shown
    create.__doc__ = f"""{specification.summary[:1].upper()}{specification.summary[1:]}.

    Args:
        confidence: the confidence that ranks answers: a variant, or a key of ``Score.metadata``. Default: that of
            `abstain.evaluate`.
        convention: how areas are integrated; see `abstain.metrics.selective`.
        cluster: the metadata key of the cluster. Default: each sample is its own cluster. With a key, the metric has a
            confidence interval in the additional values ``_low`` and ``_high``.
        interval: "jackknife", "percentile", "bca" or "none". Default: "jackknife" with `cluster`, otherwise "none".
        at: the parameter of the metric, such as the coverage, if it has one.
    """
    return metric(name=shown, scores="unreduced")(create)


def _estimate(
    chosen: Any, scores: list[SampleScore], cluster: str | None, settings: dict[str, Any]
) -> tuple[float, float, float]:
    nothing = (math.nan, math.nan, math.nan)
    if not scores:
        return nothing
    try:
        items = _items(scores, cluster)
        if ("loss" in chosen.needs or chosen.ranked) and chosen.name != "cmax" and not items.answered.any():
            _LOG.warning("%s: no sample was answered", chosen.name)
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
    """Return the items that a log of these scores would contain."""
    epochs: Counter[object] = Counter()
    samples = []
    for score in scores:
        epochs[score.sample_id] += 1
        content = score.score.model_dump(mode="python", include={"value", "answer", "reason", "metadata"})
        sample = {
            "id": score.sample_id,
            "epoch": epochs[score.sample_id],
            # Inspect does not pass the target to a metric, so `abstain.runs.answer_scorer` stores it in the metadata.
            "target": str((score.score.metadata or {}).get("target", "")),
            "scores": {"score": content},
            "metadata": score.sample_metadata,
        }
        samples.append(json.dumps(sample, default=str).encode())
    return items_of_samples(samples, cluster=cluster, label="the scores")


coverage = _inspect_metric("answer_rate", inspect_name="coverage")
METRICS: dict[str, Callable[..., Metric]] = {"coverage": coverage}
for _module in (selective, abstention, calibration):
    METRICS |= {_metric.name: _inspect_metric(_metric.name) for _metric in _module.METRICS}
METRICS["correctness_auroc"] = _inspect_metric("correctness_auroc")
selective_accuracy, aurc, augrc = METRICS["selective_accuracy"], METRICS["aurc"], METRICS["augrc"]


def token_confidence(state: TaskState) -> dict[str, float]:
    """Return token signals of an answer for ``Score.metadata``; empty without log-probabilities.

    ``Score(value=..., metadata=token_confidence(state))`` stores ``token_msp``, ``token_pe`` and ``token_energy``, and
    the first of them also as ``confidence``.
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
    computed = token_signals(tokens)
    signals = {"confidence": computed.token_msp, "token_msp": computed.token_msp}
    if all(token.top_logprobs for token in logprobs.content):
        signals |= {"token_pe": computed.token_pe, "token_energy": computed.token_energy}
    return signals
