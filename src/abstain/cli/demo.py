"""`abstain demo`: two real classifiers that may abstain, trained, judged and compared in seconds."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from abstain import _outputs
from abstain.cli._terminal import say, show

if TYPE_CHECKING:
    from abstain.cli._options import Commands
    from abstain.evaluation import Result
    from abstain.items import Items

EXAMPLES = """\b
Examples:
  abstain demo
  abstain demo --directory demo
  abstain demo --bootstrap-resamples 2000
"""
RUN_NAME = "abstain-demo-run.json"
REPORT_NAME = "abstain-demo-report.html"


def demo_command(
    directory: Annotated[
        Path,
        typer.Option(
            "--directory", metavar="DIR", help="Directory for the run and the report; created if missing."
        ),
    ] = Path(),
    resamples: Annotated[
        int, typer.Option("--bootstrap-resamples", metavar="N", help="Cluster resamples of the bootstrap.")
    ] = 0,
) -> None:
    """Train a careful and an over-confident classifier, let both abstain, and judge them."""
    from abstain import _validate  # noqa: PLC0415

    _validate.whole(resamples, "resamples")
    _outputs.check_folder(directory)
    with _outputs.new_folder(directory):
        report = _run_demo(directory, resamples)
    if sys.stdin.isatty() and sys.stdout.isatty() and typer.confirm("Open it in the browser?", default=True):
        typer.launch(str(report))


def _run_demo(directory: Path, resamples: int) -> Path:
    """Train and judge the classifiers, write both files, and return where the report is."""
    from abstain.cli._pipeline import evaluate_systems  # noqa: PLC0415
    from abstain.cli._publishing import check_outputs, encode_text, write_files  # noqa: PLC0415
    from abstain.readers.demo import CAREFUL, LEAST_PROBABILITY, OVERCONFIDENT  # noqa: PLC0415
    from abstain.report.views import summary  # noqa: PLC0415

    run, report = directory / RUN_NAME, directory / REPORT_NAME
    check_outputs(run, report, inputs=[])
    say(
        "Two classifiers read handwritten digits: scikit-learn's 1,797 images with some noise, half of them to learn\n"
        f"from. Each declines to answer below a probability of {LEAST_PROBABILITY}. The {CAREFUL} one knows what it\n"
        f"does not know; the {OVERCONFIDENT} one exaggerates. Which may be trusted with what it answers?\n"
    )
    content, systems = _trained(run)
    options: dict[str, Any] = {
        "confidence": "probability",
        "loss": "zero_one",
        "interval": "jackknife",
        "resamples": resamples,
    }
    compared = evaluate_systems(systems, **options, quiet=False)
    page = _page(compared, report, run)
    show(summary, evaluate_systems({CAREFUL: systems[CAREFUL]}, **options, quiet=False))
    say("\n" + "-" * 80 + "\n")
    show(summary, compared)
    write_files({run: content, report: encode_text(page)}, inputs=[])
    say(
        f"\nThe run is in {run}. Try next:\n\n"
        f"  abstain evaluate {run} --mode {OVERCONFIDENT} --confidence probability,margin --loss zero_one\n"
        f"  abstain evaluate --input {run} --mode {CAREFUL} --input {run} --mode {OVERCONFIDENT} \\\n"
        "      --confidence margin --loss zero_one --json\n"
        f"  abstain evaluate --help\n{_where_abstain_is()}\n"
        f"The report with curves and a threshold explorer is in {report}."
    )
    return report


def _where_abstain_is() -> str:
    """What to write for `abstain` where the shell would not find it, as after `make demo` in a fresh clone."""
    own = Path(sys.executable).parent / "abstain"
    if shutil.which("abstain") or not own.exists():
        return ""
    near = own.relative_to(Path.cwd()) if own.is_relative_to(Path.cwd()) else own
    return f"\n(Your shell does not know `abstain` yet: write {near} for it.)\n"


def _trained(run: Path) -> tuple[bytes, dict[str, Items]]:
    """The run file, and what every reader of it will find: it goes to its place only when all is done."""
    import msgspec  # noqa: PLC0415

    from abstain import read  # noqa: PLC0415
    from abstain.readers.demo import CAREFUL, OVERCONFIDENT, demo_run  # noqa: PLC0415

    content = msgspec.json.format(msgspec.json.encode(demo_run()), indent=1) + b"\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / run.name
        path.write_bytes(content)
        systems = {
            mode: read(path, mode=mode).with_provenance(path=str(run)) for mode in (CAREFUL, OVERCONFIDENT)
        }
    return content, systems


def _page(compared: Result, report: Path, run: Path) -> str:
    from abstain.cli._publishing import command_line  # noqa: PLC0415
    from abstain.readers.demo import CAREFUL, OVERCONFIDENT  # noqa: PLC0415
    from abstain.report.html import report_html  # noqa: PLC0415

    inputs = [part for mode in (CAREFUL, OVERCONFIDENT) for part in ("--input", str(run), "--mode", mode)]
    again = ["report", *inputs, "--confidence", "probability", "--loss", "zero_one", "-o", str(report)]
    return report_html(
        compared,
        title="Two classifiers that may decline to answer: careful against over-confident",
        command=command_line(again),
    )


COMMANDS: Commands = {"demo": (demo_command, EXAMPLES)}
