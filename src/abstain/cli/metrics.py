"""`abstain metrics`: list all metrics, or describe some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from abstain.cli import _options as opt
from abstain.cli._publishing import choose_formats, print_tables
from abstain.cli._terminal import print_json, print_sentences, print_summary, print_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain.metrics.registry import MetricSpecification

EXAMPLES = """\b
Examples:
  abstain metrics
  abstain metrics safety
  abstain metrics abstention_f1 coverage_at_risk@0.05 ece@10
"""
_NAME = "Metrics or bundles to describe. Default: list all metrics."


@opt.expand_option_groups
def metrics_command(
    *,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help=_NAME, show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the metrics as JSON.")] = False,
    table_format: opt.SummaryFormat = None,
) -> None:
    """List the metrics: definition, required data, and whether higher or lower is better.

    A parameter follows an @: ece@10 is the error in 10 bins.
    """
    from abstain.metrics.registry import BUNDLES, find_metric, known_metrics  # noqa: PLC0415

    formats = choose_formats(table_format, None, as_json=as_json)
    requested = [bundled for name in names or [] for bundled in BUNDLES.get(name, (name,))]
    metrics = [find_metric(name) for name in requested] or list(known_metrics().values())
    if as_json:
        import msgspec  # noqa: PLC0415

        content = msgspec.json.encode([_record(metric) for metric in metrics])
        print_json(msgspec.json.format(content, indent=2).decode() + "\n")
        return
    from abstain.report.listings import metrics_table  # noqa: PLC0415

    summary = _describe if names else _list
    print_tables(formats.printed, lambda: [metrics_table(metrics)], lambda: summary(metrics))


def _describe(metrics: Sequence[MetricSpecification]) -> None:
    print_text("\n\n".join(_described(metric) for metric in metrics))


def _list(metrics: Sequence[MetricSpecification]) -> None:
    from abstain.metrics.registry import BUNDLES  # noqa: PLC0415
    from abstain.report.console import format_item, format_table  # noqa: PLC0415
    from abstain.report.listings import metrics_table  # noqa: PLC0415

    print_summary(format_table, metrics_table(metrics))
    print_text("bundles")
    for bundle, members in BUNDLES.items():
        print_summary(format_item, f"{bundle}:", ", ".join(members))
    print_text()
    print_sentences(
        [
            "Compute metrics with `abstain evaluate --metric NAMES`. Describe one metric with `abstain metrics NAME`."
        ]
    )


def _record(metric: MetricSpecification) -> dict[str, object]:
    return {
        "name": metric.name,
        "summary": metric.summary,
        "direction": metric.direction,
        "needs": list(metric.needs),
        "unit": metric.unit,
        "parameter": metric.parameter.name if metric.parameter else None,
        "answered_only": metric.answered_only,
        "definition": metric.definition,
    }


def _described(metric: MetricSpecification) -> str:
    lines = [
        metric.key,
        f"  {metric.summary}".replace("``", ""),
        f"  better: {metric.direction}; unit: {metric.unit}",
    ]
    lines.append(f"  needs: {', '.join(metric.needs)}")
    if metric.answered_only:
        lines.append("  computed over the answered rows only; report the answer rate with it")
    if metric.parameter is not None:
        value = metric.parameter.text(metric.value)
        lines.append(f"  parameter: {metric.parameter.name} = {value}; set it with {metric.name}@VALUE")
    reasons = dict.fromkeys(condition.sentence for condition in metric.undefined)
    lines += [f"  undefined if: {'; '.join(reasons)}"] if reasons else []
    return "\n".join([*lines, f"  definition: {metric.definition}"])


COMMANDS: opt.Commands = {"metrics": (metrics_command, EXAMPLES)}
