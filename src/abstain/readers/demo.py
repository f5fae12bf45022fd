"""The run of the demo: two real classifiers on real images, as the content of a run file.

The careful one is a logistic regression, whose probabilities are well calibrated. The overconfident one is a naive
Bayes classifier, whose probabilities are mostly near 0 and 1. Both abstain below the same probability. Each image is a
participant with a single item.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CAREFUL", "LEAST_PROBABILITY", "OVERCONFIDENT", "demo_run"]

CAREFUL = "careful"
OVERCONFIDENT = "overconfident"
LEAST_PROBABILITY = 0.7
_SPLIT_SEED = 7
_PIXEL_MAX = 16.0


def demo_run() -> dict[str, Any]:
    """Train both classifiers and return their answers to the images that neither has seen."""
    from sklearn.datasets import load_digits  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.model_selection import train_test_split  # noqa: PLC0415
    from sklearn.naive_bayes import GaussianNB  # noqa: PLC0415

    images, labels = load_digits(return_X_y=True)
    rng = np.random.default_rng(_SPLIT_SEED)
    # Noise makes the images about as hard as scanned forms; without it there would be hardly any abstention.
    noisy = images / _PIXEL_MAX + rng.normal(scale=0.25, size=images.shape)
    learn, test, learn_labels, test_labels = train_test_split(
        noisy, labels, test_size=0.5, random_state=_SPLIT_SEED, stratify=labels
    )
    models = {
        CAREFUL: LogisticRegression(C=1.0, max_iter=500),
        OVERCONFIDENT: GaussianNB(),
    }
    experiments = []
    for mode, model in models.items():
        probabilities = model.fit(learn, learn_labels).predict_proba(test)
        experiments.append(_experiment(mode, type(model).__name__, probabilities, test_labels))
    return {"run_metadata": {"run_id": "abstain-demo", "git_commit": None}, "experiments": experiments}


def _experiment(
    mode: str, model: str, probabilities: NDArray[np.float64], labels: NDArray[np.int64]
) -> dict[str, Any]:
    ranked = np.sort(probabilities, axis=1)
    records = [
        {
            "participant_id": image,
            "success": True,
            "ground_truth_items": {"digit": int(labels[image])},
            "predicted_items": {"digit": int(np.argmax(row)) if row.max() >= LEAST_PROBABILITY else None},
            "item_signals": {
                "digit": {
                    "probability": float(ranked[image, -1]),
                    "margin": float(ranked[image, -1] - ranked[image, -2]),
                }
            },
        }
        for image, row in enumerate(probabilities)
    ]
    return {
        "provenance": {"mode": mode, "split": "test", "scale": [0, 9]},
        "results": {"mode": mode, "model": model, "results": records},
    }
