"""`abstain demo`: train, evaluate and compare two classifiers that may abstain."""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from abstain import _outputs
from abstain.cli._terminal import print_sentences, print_text

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
_DIRECTORY = "Directory for the run file and the report; created if missing. Default: the working directory."
RUN_NAME = "abstain-demo-run.json"
REPORT_NAME = "abstain-demo-report.html"


def demo_command(
    directory: Annotated[
        Path, typer.Option("--directory", metavar="DIR", help=_DIRECTORY, show_default=False)
    ] = Path(),
    resamples: Annotated[
        int, typer.Option("--bootstrap-resamples", metavar="N", help="Resamples of the cluster bootstrap.")
    ] = 0,
) -> None:
    """Train a careful and an overconfident classifier that may abstain, and compare them."""
    from abstain import _validate  # noqa: PLC0415

    _validate.whole(resamples, "resamples")
    _outputs.check_folder(directory)
    with _outputs.new_folder(directory):
        report = _run_demo(directory, resamples)
    if (
        sys.stdin.isatty()
        and sys.stdout.isatty()
        and typer.confirm("Open the report in the browser?", default=True)
    ):
        typer.launch(str(report))


def _run_demo(directory: Path, resamples: int) -> Path:
    """Train and compare the classifiers, write the run file and the report, and return the path of the report."""
    from abstain.cli._pipeline import evaluate_systems  # noqa: PLC0415
    from abstain.cli._publishing import check_outputs, encode_text, write_files  # noqa: PLC0415
    from abstain.readers.demo import CAREFUL, LEAST_PROBABILITY, OVERCONFIDENT  # noqa: PLC0415

    run, report = directory / RUN_NAME, directory / REPORT_NAME
    check_outputs(run, report, inputs=[])
    content, systems = _train_systems(run)
    compared = evaluate_systems(
        systems,
        confidence="probability",
        loss="zero_one",
        interval="jackknife",
        resamples=resamples,
        quiet=False,
    )
    page = _page(compared, report, run)
    print_sentences(
        [
            f"Two classifiers, {CAREFUL} and {OVERCONFIDENT}, read noisy images of handwritten digits. Each declines "
            f"to answer if its probability is below {LEAST_PROBABILITY}.",
            "",
            *_conclusion(compared),
        ]
    )
    write_files({run: content, report: encode_text(page)}, inputs=[])
    print_text(
        f"\nrun file: {run}\nreport:   {report}\n\nTry next:\n"
        f"  abstain evaluate {run} --mode {OVERCONFIDENT} --loss zero_one \\\n"
        "      --confidence probability,margin\n"
        f"  abstain compare {run} {run} --mode {CAREFUL} --mode {OVERCONFIDENT} \\\n"
        "      --confidence margin --loss zero_one\n"
        f"  abstain threshold {run} --mode {CAREFUL} --confidence probability --loss zero_one --risk 10%"
        f"{_path_hint()}"
    )
    return report


def _conclusion(compared: Result) -> list[str]:
    """Return a sentence on each system, and the headline of the comparison."""
    sentences = []
    for name, system in compared.systems.items():
        population = system.population
        sentences.append(
            f"{name}: {population.answered:,} of {population.items:,} {system.cluster_noun}s answered, "
            f"{100 * population.error_rate:.1f}% of the answers wrong."
        )
    return sentences if compared.headline is None else [*sentences, compared.headline.sentence]


def _path_hint() -> str:
    """Return how to call abstain if the shell does not find it, as after `make demo` in a fresh clone."""
    own = Path(sys.executable).parent / "abstain"
    if shutil.which("abstain") or not own.exists():
        return ""
    near = own.relative_to(Path.cwd()) if own.is_relative_to(Path.cwd()) else own
    return f"\n\n(The shell does not find `abstain`: write {near} instead.)"


def _train_systems(run: Path) -> tuple[bytes, dict[str, Items]]:
    """Return the content of the run file and its items; the run file itself is written at the end."""
    import msgspec  # noqa: PLC0415

    from abstain import read  # noqa: PLC0415
    from abstain.readers.demo import CAREFUL, OVERCONFIDENT, demo_run  # noqa: PLC0415

    content = msgspec.json.format(msgspec.json.encode(demo_run()), indent=1) + b"\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / run.name
        path.write_bytes(content)
        items = {mode: read(path, mode=mode) for mode in (CAREFUL, OVERCONFIDENT)}
    return content, {
        mode: replace(each, cluster_noun="image").with_provenance(path=str(run))
        for mode, each in items.items()
    }


def _page(compared: Result, report: Path, run: Path) -> str:
    from abstain.cli._publishing import command_line  # noqa: PLC0415
    from abstain.readers.demo import CAREFUL, OVERCONFIDENT  # noqa: PLC0415
    from abstain.report.html import report_html  # noqa: PLC0415

    inputs = [part for mode in (CAREFUL, OVERCONFIDENT) for part in ("--input", str(run), "--mode", mode)]
    again = ["report", *inputs, "--confidence", "probability", "--loss", "zero_one", "-o", str(report)]
    return report_html(
        compared,
        title="Two classifiers that may decline to answer: careful and overconfident",
        command=command_line(again),
    )


COMMANDS: Commands = {"demo": (demo_command, EXAMPLES)}
