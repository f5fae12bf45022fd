"""`abstain intervals`: from a table of truths and prediction intervals to a verdict."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from abstain.cli import _conformal
from abstain.cli._options import CROSSED
from abstain.cli._tables import SummaryFormat, summary_format
from abstain.errors import ArgumentError

EXAMPLES = """\b
Examples:
  abstain intervals preds.parquet --truth y --low lo --high hi --claim 0.9
  abstain intervals preds.csv --truth y --low lo --high hi --claim 0.9 --cluster patient --by site --charts charts
  abstain intervals preds.csv --truth y --low lo50 --high hi50 --claim 0.5 --low lo90 --high hi90 --claim 0.9
"""


def intervals_command(
    table: _conformal.Source,
    truth: _conformal.Truth,
    low: Annotated[
        list[str],
        typer.Option(metavar="COLUMN", help="Lower bound; once per claim.", show_default=False),
    ],
    high: Annotated[
        list[str],
        typer.Option(metavar="COLUMN", help="Upper bound; once per claim.", show_default=False),
    ],
    claims: _conformal.Claims,
    cluster: _conformal.Cluster = None,
    by: _conformal.By = None,
    features: _conformal.Features = None,
    weight: _conformal.Weight = None,
    bins: Annotated[int, typer.Option(metavar="N", help="Strata of width.")] = 3,
    eta: Annotated[
        float, typer.Option(metavar="X", help="How hard the width criterion punishes coverage off its claim.")
    ] = 30.0,
    crossed: Annotated[
        str | None, typer.Option("--crossed", metavar="HOW", help=CROSSED, show_default=False)
    ] = None,
    margin: _conformal.Margin = 0.0,
    resamples: _conformal.Resamples = 2_000,
    seed: _conformal.Seed = 42,
    level: _conformal.Level = 0.95,
    output: _conformal.Output = None,
    charts: _conformal.Charts = None,
    chart_format: _conformal.ChartFormat = "svg",
    as_json: _conformal.AsJson = False,
    quiet: _conformal.Quiet = False,
    table_format: SummaryFormat = None,
) -> None:
    """Judge prediction intervals: does coverage hold, where does it fail, how certain is that?"""
    if not len(low) == len(high) == len(claims):
        raise ArgumentError(
            f"give --low, --high and --claim equally often, got {len(low)}, {len(high)} and {len(claims)}"
        )
    _conformal.check_outputs(output, charts, chart_format, as_json=as_json, quiet=quiet)
    form = summary_format(table_format, as_json=as_json, quiet=quiet)
    import numpy as np  # noqa: PLC0415

    from abstain.evaluation.conformal import evaluate_intervals  # noqa: PLC0415
    from abstain.sources import open_table  # noqa: PLC0415

    source = open_table(table)
    truths = source.numbers(truth)
    pairs = [source.bounds(lower, upper, truths, crossed) for lower, upper in zip(low, high, strict=True)]
    bounds = np.stack(pairs, axis=2)
    judge = partial(
        evaluate_intervals,
        truths,
        bounds,
        claim=claims,
        bins=bins,
        eta=eta,
        margin=margin,
        resamples=resamples,
        seed=seed,
        level=level,
        **_conformal.options_of(source, cluster, by or [], features or [], weight),
    )
    columns = {"truth": truth, "low": low, "high": high, "cluster": cluster, "by": by, "weight": weight}
    columns["feature"] = features
    result = _conformal.judged(source, columns, judge, resamples, show_progress=not (quiet or as_json))
    _conformal.publish(result, output, charts, chart_format, form, as_json=as_json, quiet=quiet)
