"""What the verbs that judge have in common: read every input, evaluate all of them together, publish under a free name.

`evaluate`, `report` and `plot` ask the same question and differ in what they do with the result.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from abstain.cli._options import announce, numbers
from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abstain.cli._options import InputFile, Inputs, Judging, Pairing, Reading
    from abstain.evaluation import Result
    from abstain.items import Items
    from abstain.metrics.registry import MetricLike

__all__ = ["Judged", "Question", "evaluated", "judge", "new_name", "read_systems", "show", "summary_text"]

_CONFIDENCE = (
    "Variants or signals, separated by commas: names, `default` (when left out), `all`, or "
    "`secondary:<a>+<b>:<average|product>`."
)
_METRIC = (
    "Metrics or bundles, separated by commas, such as default_benchmark; `abstain metrics` lists them. Your own: "
    "package.module:Class. Without --confidence, these alone are judged."
)
_BY = "Columns, separated by commas: every metric by group, too."
_INSTRUMENT = (
    "Judge one total per participant in place of items: PHQ-8, or a JSON file that declares another."
)

# Without intervals, a table of more bytes is scanned and not loaded.
SCAN_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the inputs, in the words of `abstain.evaluate`."""

    confidence: Annotated[
        list[str] | None, typer.Option("--confidence", metavar="NAMES", help=_CONFIDENCE, show_default=False)
    ] = None
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", metavar="NAMES", help=_METRIC, show_default=False)
    ] = None
    by: Annotated[list[str] | None, typer.Option("--by", metavar="COLUMNS", help=_BY, show_default=False)] = (
        None
    )
    instrument: Annotated[
        str | None, typer.Option("--instrument", metavar="NAME", help=_INSTRUMENT, show_default=False)
    ] = None
    coverage_grid: Annotated[
        str, typer.Option(metavar="LIST", help="Coverages at which the risk is reported.")
    ] = "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9"
    area_coverage: Annotated[
        float, typer.Option(metavar="C", help="Coverage at which the truncated areas end.")
    ] = 0.5

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `abstain.evaluate`."""
        return {
            "confidence": self.confidence or None,
            "metrics": self.metrics or None,
            "by": [name.strip() for part in self.by for name in part.split(",")] if self.by else None,
            "coverage_grid": numbers(self.coverage_grid, "--coverage-grid"),
            "area_coverage": self.area_coverage,
        }


class Judged(NamedTuple):
    """The judgement on the inputs, and the stem of a name for what is written about it."""

    stem: str
    result: Result


def evaluated(
    inputs: Inputs,
    question: Question,
    reading: Reading,
    pairing: Pairing,
    judging: Judging,
    *,
    quiet: bool,
    most: int | None = 2,
    selective: bool | None = None,
    everything: bool = False,
) -> Judged:
    """Read the inputs and judge them together.

    Args:
        inputs: one input per system.
        question: what is asked.
        reading: how they are read.
        pairing: how their items are matched.
        judging: how they are judged.
        quiet: True where nothing is said of what was guessed, and no bar is shown.
        most: how many inputs the verb takes.
        selective: whether the selective metrics are wanted, where it does not go by the question.
        everything: True where columns are needed that the question does not name.
    """
    sources = inputs.sources
    if not sources or (most is not None and len(sources) > most):
        wanted = "one input to judge or two to compare" if most else "at least one input"
        raise ArgumentError(
            f"give {wanted}, got {len(sources)}{'; abstain compare takes more' if sources else ''}"
        )
    settings = {**question.options, **judging.options, **pairing.options, "selective": selective}
    if len(sources) == 1 and not (everything or question.instrument):
        (source,) = sources.values()
        scanned = _scanned(source, settings, reading.options)
        if scanned is not None:
            return Judged(source.path.stem, scanned)
    systems = read_systems(
        sources,
        reading,
        confidences=dict.fromkeys(sources, question.confidence),
        metrics=question.metrics,
        everything=everything or bool(settings["by"]),
        quiet=quiet,
    )
    if most is not None and len(systems) > most:
        raise ArgumentError(
            f"{next(iter(sources.values())).path}: holds {len(systems)} systems; abstain compare takes more than {most}"
        )
    if question.instrument is not None:
        systems = totals(systems, question.instrument)
    return Judged(_stem(systems.values()), judge(systems, settings, show_progress=not quiet))


def read_systems(
    sources: Mapping[str, InputFile],
    reading: Reading,
    *,
    confidences: Mapping[str, str | Sequence[str] | None],
    metrics: MetricLike | Sequence[MetricLike] | None,
    everything: bool = False,
    quiet: bool,
) -> dict[str, Items]:
    """Return the items of every system; of a table only the columns that the judgement needs are read."""
    from abstain import sources as doors  # noqa: PLC0415
    from abstain.confidence import signals_needed  # noqa: PLC0415
    from abstain.metrics.registry import select_metrics  # noqa: PLC0415

    asked = () if metrics is None else select_metrics(metrics)
    everything = everything or any({"should_abstain", "results"} & set(metric.needs) for metric in asked)
    systems: dict[str, Items] = {}
    for name, source in sources.items():
        found = doors.read_systems(
            source.path,
            mode=source.mode,
            signals=None if everything else signals_needed(confidences[name] or "default"),
            metadata=None if everything else (),
            **reading.options,
        )
        # A table of several systems gives their names; those of several inputs are told apart by the input.
        systems |= {
            (f"{name} {own}" if len(sources) > 1 else own) if own else name: part
            for own, part in found.items()
        }
    if not quiet:
        announce(systems.values(), settled=("confidence",) if any(confidences.values()) else ())
    return systems


def judge(systems: Mapping[str, Items], settings: Mapping[str, Any], *, show_progress: bool = True) -> Result:
    """Evaluate one or more systems, with a progress bar where a person would see it."""
    from abstain import evaluate  # noqa: PLC0415
    from abstain.cli._progress import progress_bar  # noqa: PLC0415

    with progress_bar("resampling", settings["resamples"], wanted=show_progress) as progress:
        return evaluate(systems, **settings, progress=progress)


def _scanned(source: InputFile, settings: Mapping[str, Any], reading: Mapping[str, Any]) -> Result | None:
    """Judge a table that is too large to be loaded, if it is one and one column is asked for; else None."""
    served = ("truth", "prediction", "abstained", "failed", "cluster", "null_prediction", "scale", "format")
    unserved = [settings[name] for name in ("metrics", "by", "calibration", "resamples")]
    if any(unserved) or source.mode is not None or not set(reading) <= set(served):
        return None
    from abstain import scan  # noqa: PLC0415
    from abstain.confidence import signals_needed  # noqa: PLC0415
    from abstain.sources import expand, recognise  # noqa: PLC0415

    paths = expand(source.path)
    if sum(part.stat().st_size for part in paths) < SCAN_BYTES:
        return None
    confidence = settings["confidence"]
    columns = signals_needed(confidence or "confidence") or ()
    if len(columns) != 1 or (reading.get("format") or recognise(paths[0])) not in ("csv", "parquet", "jsonl"):
        return None
    shared = ("loss", "coverage_grid", "area_coverage", "convention")
    return scan(
        source.path,
        confidence=columns[0] if confidence else None,
        **{name: settings[name] for name in shared},
        **reading,
    )


def totals(systems: Mapping[str, Items], instrument: str) -> dict[str, Items]:
    """Return the totals of an instrument, which is known by name or declared in a JSON file."""
    from abstain import _files  # noqa: PLC0415
    from abstain.metrics.instruments import INSTRUMENTS, Instrument, find_instrument, total_items  # noqa: PLC0415

    if instrument not in INSTRUMENTS and instrument.endswith(".json"):
        declared = _files.parse_json(_files.read_bytes(instrument), instrument)
        form = Instrument.from_mapping(declared)
    else:
        form = find_instrument(instrument)
    return {name: total_items(items, form) for name, items in systems.items()}


def show(result: Result) -> None:
    """Print the summary."""
    from abstain.report.console import console_for  # noqa: PLC0415
    from abstain.report.views import summary  # noqa: PLC0415

    screen = console_for()
    screen.print(summary(result, screen.width))


def summary_text(result: Result) -> str:
    """Return the summary for a file, which has no width and no colours."""
    from rich.console import Console  # noqa: PLC0415

    from abstain.report.console import WIDTH  # noqa: PLC0415
    from abstain.report.views import summary  # noqa: PLC0415

    paper = Console(file=io.StringIO(), width=WIDTH, highlight=False, color_system=None)
    with paper.capture() as printed:
        paper.print(summary(result, WIDTH))
    return printed.get()


def _stem(systems: Any) -> str:
    """The stem of an artifact's name: the inputs and their modes."""
    parts = []
    for items in systems:
        parts += [Path(str(items.provenance["path"])).stem, items.provenance.get("mode")]
    return "-".join(dict.fromkeys(str(part) for part in parts if part))


def new_name(stem: str, ending: str) -> Path:
    """A name that is not taken: what was written yesterday is not overwritten by what nobody named."""
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in stem)
    before, after = ending.rsplit(".", 1)
    place = Path(f"{safe}{ending}")
    number = 1
    while place.exists():
        number += 1
        place = Path(f"{safe}{before}-{number}.{after}")
    return place
