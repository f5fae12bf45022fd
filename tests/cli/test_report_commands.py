from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from abstain.report.charts import COMPARISON_CHARTS, SYSTEM_CHARTS
from examples import EXAMPLES

ROOT = Path(__file__).parents[2]
RUN = ["run.json", "--mode", "few_shot", "--bootstrap-resamples", "50"]


def abstain(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    (cwd / "run.json").write_bytes((EXAMPLES / "run_a.json").read_bytes())
    command = [sys.executable, "-m", "abstain", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


@pytest.mark.slow
def test_a_report_shows_the_command_that_made_it(tmp_path: Path) -> None:
    done = abstain("report", *RUN, "--confidence", "llm", "-o", "my report.html", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "report: my report.html\n"
    page = (tmp_path / "my report.html").read_text()
    assert "run.json (few_shot)" in page
    assert "abstain report run.json --mode few_shot --bootstrap-resamples 50" in page
    assert "my report.html" in page


@pytest.mark.slow
def test_a_report_with_a_default_name_does_not_replace_a_file(tmp_path: Path) -> None:
    first = abstain("report", *RUN, "-q", cwd=tmp_path)
    assert first.stdout == "run-few_shot-report.html\n"
    second = abstain("report", *RUN, "-q", cwd=tmp_path)
    assert (second.returncode, second.stdout) == (2, "")
    assert "run-few_shot-report.html exists already; name the output file with -o" in second.stderr
    assert [path.name for path in tmp_path.glob("*.html")] == ["run-few_shot-report.html"]


@pytest.mark.slow
def test_report_compares_two(tmp_path: Path) -> None:
    inputs = ["--input", "run.json", "--mode", "zero_shot", "--input", "run.json", "--mode", "few_shot"]
    done = abstain("report", *inputs, "--bootstrap-resamples", "50", "-o", "two.html", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert '<section id="comparison"' in (tmp_path / "two.html").read_text()


@pytest.mark.slow
def test_the_option_simultaneous_makes_bands_hold_for_all_thresholds(tmp_path: Path) -> None:
    """The report and the chart both name the type of their band."""
    for flags, of_report, of_chart in (
        ([], "at each threshold by itself", "at each threshold"),
        (["--simultaneous"], "at all thresholds together", "for all thresholds together"),
    ):
        abstain("report", *RUN, "--confidence", "llm", *flags, "-o", "page.html", cwd=tmp_path)
        abstain("plot", *RUN, "--confidence", "llm", *flags, "-o", "figure.svg", cwd=tmp_path)
        assert of_report in (tmp_path / "page.html").read_text()
        assert of_chart in (tmp_path / "figure.svg").read_text()


@pytest.mark.slow
def test_plot_writes_the_requested_chart(tmp_path: Path) -> None:
    done = abstain("plot", *RUN, "--confidence", "llm", "-o", "figure.svg", cwd=tmp_path)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "chart: figure.svg\n")
    assert "Selective risk, llm" in (tmp_path / "figure.svg").read_text()
    done = abstain(
        "plot", *RUN, "--confidence", "llm,token_msp", "--chart", "reliability", "--of", "token_msp", "-o", "r.png",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_chart_of_the_readme_has_a_band(tmp_path: Path) -> None:
    """The chart shows one confidence with its interval, and not all of them without intervals."""
    (line,) = re.findall(r"^abstain (plot run\.json .*?) +#", (ROOT / "README.md").read_text(), re.M)
    done = abstain(*line.split(), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "band: 95% confidence intervals" in (tmp_path / "figure.svg").read_text()


@pytest.mark.slow
def test_plot_draws_two_systems_together_or_one_by_name(tmp_path: Path) -> None:
    both = ["run.json", "run.json", "--mode", "zero_shot", "--mode", "few_shot", "--confidence", "llm"]
    done = abstain("plot", *both, "--chart", "curve", "-o", "both.svg", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    drawn = (tmp_path / "both.svg").read_text()
    assert "Selective risk, zero_shot and few_shot" in drawn
    abstain("plot", *both, "--of-system", "few_shot", "-o", "one.svg", cwd=tmp_path)
    assert "Selective risk, llm" in (tmp_path / "one.svg").read_text()
    done = abstain("plot", *both, "--chart", "areas", "-o", "areas.svg", cwd=tmp_path)
    assert done.returncode == 2
    assert "areas is of one system; name it (system=, --of-system): zero_shot, few_shot" in done.stderr


@pytest.mark.slow
def test_plot_draws_five_systems_together(tmp_path: Path) -> None:
    files = []
    for wrong in range(5):
        files.append(f"s{wrong}.csv")
        lines = [f"{row},1,{int(row % 5 >= wrong)},0.{row}" for row in range(10, 60)]
        (tmp_path / files[-1]).write_text("\n".join(["item,truth,prediction,confidence", *lines]) + "\n")
    for chart, title in (("curve", "Selective risk, 5 systems"), ("difference", "Differences in AUGRC")):
        done = abstain("plot", *files, "--chart", chart, "--quiet", "-o", "five.svg", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        drawn = (tmp_path / "five.svg").read_text()
        assert title in drawn
        assert all(f"s{wrong}" in drawn for wrong in range(5))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["report", *RUN, "-o", "nowhere/report.html"], 2, "the directory nowhere does not exist"),
        (["report", *RUN, "--responses"], 2, "--responses requires --mistakes N"),
        (["report", *RUN, "--mistakes", "-1"], 2, "mistakes must be at least 0"),
        (["report", *RUN, "--confidence", "lmm"], 2, "did you mean 'llm'"),
        (
            ["plot", *RUN, "-o", "figure.gif"],
            2,
            "a chart ends in .png, .svg, .html, .pdf, .json, not in '.gif'",
        ),
        (["plot", *RUN, "--chart", "pie", "-o", "figure.svg"], 2, "unknown chart 'pie'"),
        (["plot", *RUN, "--chart", "reliability", "-o", "figure.svg"], 3, "known not to be a probability"),
        (["plot", *RUN], 2, "Missing option"),
    ],
)
def test_a_wrong_call_ends_with_an_error_message_and_no_file(
    arguments: list[str], code: int, message: str, tmp_path: Path
) -> None:
    done = abstain(*arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"run.json"}


@pytest.mark.slow
def test_the_ending_html_makes_intervals_and_compare_write_reports(tmp_path: Path) -> None:
    lines = ["y,lo,hi", *(f"{row / 40},{row / 40 - 0.1},{row / 40 + 0.2}" for row in range(40))]
    (tmp_path / "intervals.csv").write_text("\n".join(lines))
    columns = [
        "--truth",
        "y",
        "--low",
        "lo",
        "--high",
        "hi",
        "--nominal",
        "0.9",
        "--bootstrap-resamples",
        "20",
    ]
    done = abstain("intervals", "intervals.csv", *columns, "-q", "-o", "intervals.html", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "intervals.html\n"), done.stderr
    assert "Intervals: coverage" in (tmp_path / "intervals.html").read_text()
    modes = [
        "--mode",
        "zero_shot",
        "--mode",
        "few_shot",
        "--intersection-only",
        "--bootstrap-resamples",
        "50",
    ]
    done = abstain("compare", "run.json", "run.json", *modes, "-q", "-o", "systems.html", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "systems.html\n"), done.stderr
    assert '<section id="comparison"' in (tmp_path / "systems.html").read_text()
    third = ["run.json", "--mode", "few_shot", "--confidence", "token_msp"]
    done = abstain(
        "compare", "run.json", "run.json", *third, "--mode", "zero_shot", "--mode", "few_shot",
        "--confidence", "llm", "--confidence", "llm", "--bootstrap-resamples", "50", "-o", "three.html", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("\n\nreport: three.html\n")
    assert "Ranking of the systems" in (tmp_path / "three.html").read_text()


def test_help_names_every_chart(tmp_path: Path) -> None:
    text = " ".join(abstain("plot", "--help-all", cwd=tmp_path).stdout.split())
    for name in (*SYSTEM_CHARTS, *COMPARISON_CHARTS):
        assert re.search(rf"\b{name}\b", text), name
