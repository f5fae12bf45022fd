"""`abstain demo`: two real classifiers that may abstain, trained, judged and compared in seconds."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from abstain.evaluation import Result

RUN_NAME = "abstain-demo-run.json"
REPORT_NAME = "abstain-demo-report.html"


def demo_command(
    directory: Annotated[
        Path, typer.Option("--directory", metavar="DIR", help="Where the demo writes its run and its report.")
    ] = Path(),
    resamples: Annotated[
        int, typer.Option("--bootstrap-resamples", metavar="N", help="Cluster resamples of the bootstrap.")
    ] = 0,
) -> None:
    """Train a careful and an over-confident classifier, let both abstain, and judge them."""
    from abstain import _files, _validate, read  # noqa: PLC0415
    from abstain.cli._steps import judge, show_result  # noqa: PLC0415
    from abstain.sources.demo import CAREFUL, LEAST_PROBABILITY, OVERCONFIDENT, demo_run  # noqa: PLC0415

    _validate.whole(resamples, "resamples")
    place = _files.check_output(directory / RUN_NAME)
    typer.echo(
        "Two classifiers read handwritten digits: scikit-learn's 1,797 images with some noise, half of them to learn\n"
        f"from. Each declines to answer below a probability of {LEAST_PROBABILITY}. The {CAREFUL} one knows what it\n"
        f"does not know; the {OVERCONFIDENT} one exaggerates. Which may be trusted with what it answers?\n"
    )
    import msgspec  # noqa: PLC0415

    _files.write_whole(place, msgspec.json.format(msgspec.json.encode(demo_run()), indent=1) + b"\n")
    systems = {mode: read(place, mode=mode) for mode in (CAREFUL, OVERCONFIDENT)}
    settings = {"confidence": "probability", "loss": "zero_one", "resamples": resamples}
    show_result(judge({CAREFUL: systems[CAREFUL]}, settings))
    typer.echo("\n" + "-" * 80 + "\n")
    compared = judge(systems, settings)
    show_result(compared)
    report = _write_report(compared, directory / REPORT_NAME, place)
    run = str(place)
    typer.echo(
        f"\nThe run is in {run}. Try next:\n\n"
        f"  abstain evaluate {run} --mode {OVERCONFIDENT} --confidence probability,margin --loss zero_one\n"
        f"  abstain evaluate --input {run} --mode {CAREFUL} --input {run} --mode {OVERCONFIDENT} \\\n"
        "      --confidence margin --loss zero_one --json\n"
        f"  abstain evaluate --help\n{_where_abstain_is()}\n"
        f"The report with curves and a threshold explorer is in {report}."
    )
    if sys.stdin.isatty() and sys.stdout.isatty() and typer.confirm("Open it in the browser?", default=True):
        typer.launch(str(report))


def _where_abstain_is() -> str:
    """What to write for `abstain` where the shell would not find it, as after `make demo` in a fresh clone."""
    own = Path(sys.executable).parent / "abstain"
    if shutil.which("abstain") or not own.exists():
        return ""
    near = own.relative_to(Path.cwd()) if own.is_relative_to(Path.cwd()) else own
    return f"\n(Your shell does not know `abstain` yet: write {near} for it.)\n"


def _write_report(compared: Result, place: Path, run: Path) -> Path:
    from abstain.cli._steps import command_line  # noqa: PLC0415
    from abstain.sources.demo import CAREFUL, OVERCONFIDENT  # noqa: PLC0415

    inputs = [part for mode in (CAREFUL, OVERCONFIDENT) for part in ("--input", str(run), "--mode", mode)]
    again = ["report", *inputs, "--confidence", "probability", "--loss", "zero_one", "-o", str(place)]
    return compared.report(
        place,
        title="Two classifiers that may decline to answer: careful against over-confident",
        command=command_line(again),
    )
