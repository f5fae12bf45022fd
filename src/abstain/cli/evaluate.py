"""`abstain evaluate`: from one or two inputs to a summary and an artifact."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from abstain.cli import _source_options as options
from abstain.cli._compose import Later, with_options_of
from abstain.cli._tables import SummaryFormat, print_tables, summary_format
from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abstain.evaluation import Comparison, Evaluation
    from abstain.items import Items
    from abstain.report.tables import Table

_INPUT = (
    "A run or evaluation file, table or log to judge, or two to compare left with right; a pattern in quotes is one "
    "input."
)
_MODE = "Which experiment of each input, in order; given once it serves all."
_CONFIDENCE = (
    "Variants or signals, separated by commas: names, `default` (when left out), `all`, or "
    "`secondary:<a>+<b>:<average|product>`."
)
_CALIBRATION = (
    "Artifact of `abstain calibrate`, for the confidences `calibrated`, `verbalized_calibrated` and "
    "`calibrated:<name>`."
)
_METRIC = (
    "Metrics or bundles, separated by commas, such as default_benchmark; `abstain metrics` lists them. Your own: "
    "package.module:Class. Without --confidence, these alone are judged."
)
_BY = "Metadata columns, separated by commas: every metric by group, too."
_INSTRUMENT = "Judge one total a participant in place of items: PHQ-8, or a JSON file that declares another."
_LOSS = "abs, abs_norm or zero_one; else abs_norm over a declared scale, or zero_one for labels."
_SCALE = "Lowest and highest score there can be; else what the file declares."
_OUTPUT = "Where the artifact goes; else into a new file here, whose name is printed."
_INTERSECTION = "Compare the participants that are in both inputs when the sets differ."

# Without intervals, a table of more bytes is scanned and not loaded.
SCAN_BYTES = 1 << 28

EXAMPLES = """\b
Examples:
  abstain evaluate run.json --mode few_shot --loss abs
  abstain evaluate run.json --mode few_shot --confidence all -o metrics.json
  abstain evaluate --input run.json --mode zero_shot --input run.json --mode few_shot
  abstain evaluate --input results.json --metric default_benchmark --by ckd_stage
  abstain evaluate preds.csv --truth label --prediction pred --confidence prob --cluster patient_id --loss zero_one
  abstain evaluate logs/2026-11-15_task.eval --cluster-by doc
  abstain evaluate samples_arc_easy.jsonl
"""


class Judged(NamedTuple):
    """The judgement on the inputs, and the stem of a name for what is written about it."""

    stem: str
    result: Evaluation | Comparison


def judged_inputs(
    inputs: Annotated[
        list[Path] | None, typer.Argument(metavar="INPUT", help=_INPUT, show_default=False)
    ] = None,
    further_inputs: Annotated[
        list[Path] | None,
        typer.Option("--input", metavar="FILE", help="The same, as an option.", show_default=False),
    ] = None,
    modes: Annotated[
        list[str] | None, typer.Option("--mode", metavar="MODE", help=_MODE, show_default=False)
    ] = None,
    confidence: Annotated[
        list[str] | None, typer.Option("--confidence", metavar="NAMES", help=_CONFIDENCE, show_default=False)
    ] = None,
    calibration: Annotated[
        list[Path] | None,
        typer.Option("--calibration", metavar="FILE", help=_CALIBRATION, show_default=False),
    ] = None,
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", metavar="NAMES", help=_METRIC, show_default=False)
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option("--by", metavar="COLUMNS", help=_BY, show_default=False)
    ] = None,
    instrument: Annotated[
        str | None, typer.Option("--instrument", metavar="NAME", help=_INSTRUMENT, show_default=False)
    ] = None,
    loss: Annotated[str | None, typer.Option(metavar="NAME", help=_LOSS, show_default=False)] = None,
    scale: Annotated[str | None, typer.Option(metavar="LOW,HIGH", help=_SCALE, show_default=False)] = None,
    coverage_grid: Annotated[
        str, typer.Option(metavar="LIST", help="Coverages at which the risk is reported.")
    ] = "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9",
    area_coverage: Annotated[
        float, typer.Option(metavar="C", help="Coverage at which the truncated areas end.")
    ] = 0.5,
    convention: Annotated[
        str, typer.Option(metavar="NAME", help="trapezoid, interpolated, mean or torch-uncertainty.")
    ] = "trapezoid",
    resamples: Annotated[
        int, typer.Option("--bootstrap-resamples", metavar="N", help="Cluster resamples; 0 for no intervals.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same intervals.")] = 42,
    level: Annotated[float, typer.Option(metavar="P", help="Confidence level of the intervals.")] = 0.95,
    intersection_only: Annotated[bool, typer.Option("--intersection-only", help=_INTERSECTION)] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the path of what was written alone.")
    ] = False,
    source_format: options.Format = None,
    truth: options.Truth = None,
    prediction: options.Prediction = None,
    abstained: options.Abstained = None,
    failed: options.Failed = None,
    item: options.Item = None,
    cluster: options.Cluster = None,
    null_prediction: options.NullPrediction = None,
    abstain_rule: options.AbstainRule = None,
    scorer: options.Scorer = None,
    filter: options.Filter = None,  # noqa: A002
) -> Judged:
    """Read one or two inputs and judge them: the options that every verb which judges has."""
    pairs = _pair([*(inputs or []), *(further_inputs or [])], modes or [])
    groups = [name.strip() for part in by for name in part.split(",")] if by else None
    settings = {
        "confidence": confidence or None,
        "calibration": calibration,
        "metrics": metrics or None,
        "by": groups,
        "coverage_grid": numbers(coverage_grid, "--coverage-grid"),
        "area_coverage": area_coverage,
        "convention": convention,
        "resamples": resamples,
        "seed": seed,
        "level": level,
    }
    bounds = None if scale is None else numbers(scale, "--scale")
    from abstain import _validate, read  # noqa: PLC0415
    from abstain.confidence import signals_needed  # noqa: PLC0415
    from abstain.losses import LOSS_NAMES  # noqa: PLC0415

    if loss is not None:
        _validate.choice(loss, "loss", LOSS_NAMES)
    reading: dict[str, Any] = {
        "scale": bounds,
        "format": source_format,
        "truth": truth,
        "prediction": prediction,
        "abstained": abstained,
        "failed": failed,
        "item": item,
        "cluster": cluster,
        "null_prediction": null_prediction,
        "abstain_rule": abstain_rule,
        "scorer": scorer,
        "filter": filter,
        # Of a table only the columns that the judgement needs are read; what metrics need they find themselves.
        "signals": None if metrics or groups else signals_needed(confidence or "default"),
        "metadata": None if metrics or groups else (),
    }
    if not (metrics or groups or instrument or calibration or resamples) and len(pairs) == 1:
        scanned = _scanned(pairs[0][0], confidence or [], {**settings, "loss": loss}, reading)
        if scanned is not None:
            return Judged(Path(str(pairs[0][0])).stem, scanned)
    items = [read(path, mode=mode, **reading) for path, mode in pairs]
    items = [_with_groups(side, groups or ()) for side in items]
    if not quiet:
        options.announce(items, settled=("confidence",) if confidence else ())
    settings["loss"] = loss
    if instrument is not None:
        items = totals(items, instrument)
    result = judge(items, settings, intersection_only=intersection_only, show_progress=not quiet)
    return Judged(result_name(items), result)


def _evaluate(
    judged: Later,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help=_OUTPUT, show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Artifact to stdout; no summary.")] = False,
    table_format: SummaryFormat = None,
) -> None:
    """Judge one run, or compare two, with intervals."""
    from abstain import _files  # noqa: PLC0415

    quiet = judged.options["quiet"]
    if as_json and quiet:
        raise ArgumentError(
            "--json and --quiet exclude each other: one prints the artifact, the other its path"
        )
    form = summary_format(table_format, as_json=as_json, quiet=quiet)
    if output is not None:
        _files.check_output(output)
    done: Judged = judged()
    if output is None and not as_json and form == "text":
        output = new_name(done.stem, "-metrics.json")
    _publish(done.result, output, form, as_json=as_json, quiet=quiet)


evaluate_command = with_options_of(judged_inputs, _evaluate)


def _scanned(
    path: Path, confidence: Sequence[str], settings: Mapping[str, Any], reading: Mapping[str, Any]
) -> Evaluation | None:
    """Judge a table that is too large to be loaded, if it is one and one column is asked for; else None."""
    from abstain import scan  # noqa: PLC0415
    from abstain.confidence import signals_needed  # noqa: PLC0415
    from abstain.sources import expand, recognise  # noqa: PLC0415

    paths = expand(path)
    if sum(part.stat().st_size for part in paths) < SCAN_BYTES or reading["abstain_rule"]:
        return None
    columns = signals_needed(confidence or "confidence") or ()
    if len(columns) != 1 or (reading["format"] or recognise(paths[0])) not in ("csv", "parquet", "jsonl"):
        return None
    roles = ("truth", "prediction", "abstained", "failed", "cluster", "null_prediction", "scale", "format")
    return scan(
        path,
        confidence=columns[0] if confidence else None,
        loss=settings["loss"],
        coverage_grid=settings["coverage_grid"],
        area_coverage=settings["area_coverage"],
        convention=settings["convention"],
        **{role: reading[role] for role in roles},
    )


def totals(items: Sequence[Items], instrument: str) -> list[Items]:
    """Return the totals of an instrument, which is known by name or declared in a JSON file."""
    from abstain import _files  # noqa: PLC0415
    from abstain.metrics.instruments import INSTRUMENTS, Instrument, find_instrument, total_items  # noqa: PLC0415

    if instrument not in INSTRUMENTS and instrument.endswith(".json"):
        declared = _files.parse_json(_files.read_bytes(instrument), instrument)
        form = Instrument.from_mapping(declared)
    else:
        form = find_instrument(instrument)
    return [total_items(side, form) for side in items]


def _with_groups(items: Items, names: Sequence[str]) -> Items:
    """Let numeric columns serve as groups, too; a table's reader takes every number for a signal."""
    numeric = {name: items.signals[name].values for name in names if name in items.signals}
    return replace(items, metadata={**numeric, **items.metadata}) if numeric else items


def judge(
    items: Sequence[Items],
    settings: Mapping[str, Any],
    *,
    intersection_only: bool = False,
    show_progress: bool = True,
) -> Evaluation | Comparison:
    """Evaluate one input or compare two, with a progress bar where a person would see it."""
    from abstain import compare, evaluate  # noqa: PLC0415
    from abstain.cli._progress import progress_bar  # noqa: PLC0415

    with progress_bar("resampling", settings["resamples"], wanted=show_progress) as progress:
        if len(items) == 1:
            return evaluate(items[0], **settings, progress=progress)
        return compare(items[0], items[1], **settings, intersection_only=intersection_only, progress=progress)


def show(result: Evaluation | Comparison) -> None:
    """Print the summary."""
    from abstain.evaluation import Evaluation  # noqa: PLC0415
    from abstain.report import console  # noqa: PLC0415

    screen = console.console_for()
    if isinstance(result, Evaluation):
        screen.print(console.evaluation_summary(result, screen.width))
    else:
        screen.print(console.comparison_summary(result, screen.width))


def table(result: Evaluation | Comparison) -> Table:
    """Return every figure as one table."""
    from abstain.evaluation import Evaluation  # noqa: PLC0415
    from abstain.report.estimates import comparison_table, evaluation_table  # noqa: PLC0415

    return evaluation_table(result) if isinstance(result, Evaluation) else comparison_table(result)


def artifact(result: Evaluation | Comparison) -> bytes:
    """Return the artifact as JSON."""
    from abstain.evaluation import Evaluation  # noqa: PLC0415
    from abstain.report.artifact import comparison_artifact, encode, evaluation_artifact  # noqa: PLC0415

    now = datetime.now(UTC)
    if isinstance(result, Evaluation):
        return encode(evaluation_artifact(result, now))
    return encode(comparison_artifact(result, now))


def result_name(items: Sequence[Items]) -> str:
    """Return the stem of an artifact's name: the inputs and their modes."""
    parts = []
    for side in items:
        parts += [Path(str(side.provenance["path"])).stem, side.provenance.get("mode")]
    return "-".join(dict.fromkeys(str(part) for part in parts if part))


def _publish(
    result: Evaluation | Comparison, output: Path | None, form: str, *, as_json: bool, quiet: bool
) -> None:
    from abstain import _files  # noqa: PLC0415

    content = artifact(result)
    if output is not None:
        _files.write_whole(output, content)
    if as_json:
        typer.echo(content.decode(), nl=False)
    elif quiet:
        typer.echo(str(output))
    elif form != "text":
        print_tables([table(result)], form)
    else:
        show(result)
        typer.echo(f"\nartifact: {output}")


def _pair(paths: Sequence[Path], modes: Sequence[str]) -> list[tuple[Path, str | None]]:
    if not 1 <= len(paths) <= 2:
        raise ArgumentError(
            f"give one input to judge or two to compare, got {len(paths)}; see abstain evaluate --help"
        )
    if len(modes) > len(paths):
        raise ArgumentError(
            f"{len(modes)} modes were given for {len(paths)} input{'s' * (len(paths) > 1)}; give --input again"
        )
    if len(modes) <= 1:
        return [(path, modes[0] if modes else None) for path in paths]
    return list(zip(paths, modes, strict=True))


def numbers(text: str, name: str) -> tuple[float, ...]:
    """Return numbers separated by commas."""
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise ArgumentError(f"{name} must be numbers separated by commas, got {text!r}") from None


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
