"""Scan: the metrics of a table that need not fit into memory.

The same curve, areas and population as `evaluate` without resamples, from one pass over the file: rows that
are alike count once, with a weight. Intervals need every cluster in memory, and so `evaluate`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from abstain.evaluation._evaluate import DEFAULT_GRID, evaluate
from abstain.sources import scan_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from abstain.evaluation._result import Result
    from abstain.losses import Loss

__all__ = ["scan"]


def scan(
    source: Any,
    *,
    truth: str | None = None,
    prediction: str | None = None,
    confidence: str | None = None,
    abstained: str | None = None,
    failed: str | None = None,
    cluster: str | None = None,
    null_prediction: str | None = None,
    scale: Sequence[float] | None = None,
    loss: Loss | None = None,
    coverage_grid: Iterable[float] = DEFAULT_GRID,
    area_coverage: float = 0.5,
    convention: str = "trapezoid",
    format: str | None = None,  # noqa: A002
) -> Result:
    r"""Judge a CSV, Parquet or JSONL table without loading it; no intervals.

    Args:
        source: a path, a pattern, or several paths.
        truth: the column of what is right.
        prediction: the column of what the model said.
        confidence: the column of its confidence.
        abstained: the boolean column of abstentions.
        failed: the boolean column of items for which the run produced nothing.
        cluster: the column of cluster ids, which are counted.
        null_prediction: what a missing prediction means, "abstained" or "failed".
        scale: lowest and highest score there can be, for loss "abs_norm".
        loss: "abs", "abs_norm", "zero_one", or a function of (truth, prediction); else what the rows imply.
        coverage_grid: coverages at which the selective risk is asked for.
        area_coverage: coverage at which the truncated areas end.
        convention: how areas are integrated.
        format: "csv", "parquet" or "jsonl", where the content does not tell.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "preds.csv"
    >>> _ = path.write_text("label,pred,prob\n1,1,0.9\n0,1,0.4\n")
    >>> print(scan(path, truth="label", prediction="pred", confidence="prob"))
    Result of 2 items
      prob: AURC 0.125, AUGRC 0.125
    """
    found = scan_table(
        source,
        format=format,
        truth=truth,
        prediction=prediction,
        confidence=confidence,
        abstained=abstained,
        failed=failed,
        cluster=cluster,
        null_prediction=null_prediction,
        scale=scale,
    )
    result = evaluate(
        found.items,
        confidence=tuple(found.items.signals),
        loss=loss,
        coverage_grid=coverage_grid,
        area_coverage=area_coverage,
        convention=convention,
        interval="none",
    )
    name, system = next(iter(result.systems.items()))
    # Rows that are alike stand for all of them, and their clusters were counted in the file.
    population = replace(
        system.population,
        total=found.clusters,
        included=found.judged_clusters,
        failed=found.clusters - found.judged_clusters,
        items_failed=found.counts.failed,
        items_unscored=found.counts.unscored,
    )
    return replace(result, systems={name: replace(system, population=population)})
