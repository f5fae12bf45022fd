"""Consistency: which answer and which proportion of agreeing samples give the smallest AUGRC.

A model answers questions with four choices. The probability that it gives the right one is uniform between 0 and 1 over
the questions, and the wrong ones share the rest at random. `abstain run` draws one answer and N further samples from
these probabilities. Three records of such a run are compared:

- "modal": the first answer, ranked by the proportion of the most frequent answer, which may be a different one.
- "agreement": the first answer, ranked by the proportion of samples that agree with it.
- "mode": the most frequent answer if at least half of the samples give it, otherwise the first one, ranked by the
  proportion of the most frequent answer. `abstain run` records this one by default.

Run it with `python -m simulations.consistency`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from abstain.metrics import augrc
from abstain.runs import measures

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RECORDS", "simulate_consistency"]

RECORDS = ("modal", "agreement", "mode")
CHOICES = 4


def simulate_consistency(items: int = 20_000, samples: int = 5, *, seed: int = 1) -> dict[str, float]:
    """Return the AUGRC of each record in one simulated run.

    Args:
        items: the number of questions.
        samples: the number of further samples of each answer.
        seed: the seed of the random numbers.
    """
    rng = np.random.default_rng(seed)
    drawn = _draw(_probabilities(rng, items), 1 + samples, rng)
    losses: dict[str, list[bool]] = {name: [] for name in RECORDS}
    confidences: dict[str, list[float]] = {name: [] for name in RECORDS}
    for first, *others in drawn.astype(str).tolist():
        signals = measures.answer_consistency(others)
        modal = signals["consistency_modal_confidence"]
        position = measures.modal_sample(others)
        mode = first if position is None else others[position]
        agreement = measures.answer_agreement(first, others)
        assert agreement is not None
        for name, answer, confidence in zip(
            RECORDS, (first, first, mode), (modal, agreement, modal), strict=True
        ):
            # Choice 0 is the right one of every question.
            losses[name].append(answer != "0")
            confidences[name].append(confidence)
    return {name: augrc(np.array(losses[name], dtype=float), np.array(confidences[name])) for name in RECORDS}


def _probabilities(rng: np.random.Generator, items: int) -> NDArray[np.float64]:
    """Return the probability of each choice by question; the right choice is the first column."""
    right = rng.uniform(size=(items, 1))
    return np.hstack([right, (1.0 - right) * rng.dirichlet(np.ones(CHOICES - 1), items)])


def _draw(probabilities: NDArray[np.float64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return `count` choices per question."""
    cumulative = probabilities.cumsum(axis=1)[:, None, :]
    uniform = rng.uniform(size=(len(probabilities), count, 1))
    return (uniform > cumulative[..., :-1]).sum(axis=2)


def main() -> None:
    """Print the AUGRC of each record."""
    for name, value in simulate_consistency().items():
        print(f"{name}: {value:.3f}")


if __name__ == "__main__":
    main()
