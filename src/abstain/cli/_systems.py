"""Reading several systems for a verb that sets them side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abstain.cli import _source_options as options

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from abstain.items import Items
    from abstain.metrics.registry import MetricLike


def read_systems(
    paths: Mapping[str, Path],
    *,
    modes: Mapping[str, str | None],
    confidences: Mapping[str, str | None],
    metrics: MetricLike | list[MetricLike],
    loss: str | None,
    scale: str | None,
    quiet: bool,
    **reading: Any,
) -> dict[str, Items]:
    """Return the items of every system."""
    from abstain import _validate, read  # noqa: PLC0415
    from abstain.cli.evaluate import numbers  # noqa: PLC0415
    from abstain.confidence import signals_needed  # noqa: PLC0415
    from abstain.losses import LOSS_NAMES  # noqa: PLC0415
    from abstain.metrics.registry import select_metrics  # noqa: PLC0415

    if loss is not None:
        _validate.choice(loss, "loss", LOSS_NAMES)
    everything = any({"should_abstain", "results"} & set(metric.needs) for metric in select_metrics(metrics))
    systems = {
        name: read(
            path,
            mode=modes[name],
            scale=None if scale is None else numbers(scale, "--scale"),
            # Of a table only the columns that the judgement needs are read.
            signals=None if everything else signals_needed(confidences[name] or "default"),
            metadata=None if everything else (),
            **reading,
        )
        for name, path in paths.items()
    }
    if not quiet:
        options.announce(systems.values(), settled=("confidence",) if any(confidences.values()) else ())
    return systems
