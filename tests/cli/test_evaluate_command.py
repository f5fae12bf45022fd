"""`abstain evaluate`: results, files, messages, exit codes, progress bar and interrupts."""

from __future__ import annotations

import copy
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from abstain import cli
from abstain.inference import set_threads
from examples import EXAMPLES, differences, load

if TYPE_CHECKING:
    from collections.abc import Callable

RUN = EXAMPLES / "run_a.json"


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., Outcome]:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["abstain", *(str(argument) for argument in arguments)])
        code: object = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code
        text = capsys.readouterr()
        assert isinstance(code, int)
        return Outcome(code, text.out, text.err)

    return call


def test_one_input(run: Callable[..., Outcome], tmp_path: Path) -> None:
    done = run(
        "evaluate", "--input", RUN, "--mode", "few_shot", "--confidence", "all", "--loss", "abs",
        "--bootstrap-resamples", 300, "--seed", 42, "--output", "m.json",
    )  # fmt: skip
    assert (done.code, done.err) == (0, "")
    assert differences(load("expected_single_all.json"), json.loads((tmp_path / "m.json").read_text())) == []
    assert "hybrid_evidence_similarity" in done.out
    assert "0.256 [0.145, 0.435]" in done.out
    assert done.out.rstrip().endswith("results: m.json")


@pytest.mark.parametrize("interval", ["jackknife", "percentile", "bca"])
def test_intervals_by_another_method(interval: str, run: Callable[..., Outcome], tmp_path: Path) -> None:
    """The bootstrap block does not change; the other intervals and the summary use the requested method."""
    done = run(
        "evaluate", RUN, "--mode", "few_shot", "--confidence", "all", "--loss", "abs", "--interval", interval,
        "--bootstrap-resamples", 300, "-o", "m.json",
    )  # fmt: skip
    assert (done.code, done.err) == (0, "")
    results_json = json.loads((tmp_path / "m.json").read_text())
    assert differences(load("expected_single_all.json"), results_json) == []
    variant = results_json["confidence_variants"]["llm"]
    own, drawn = variant["intervals"], variant["bootstrap"]["ci95"]
    assert interval in own["method"].lower()
    assert own["level"] == 0.95
    assert (own["aurc_full"] == drawn["aurc_full"]) == (interval == "percentile")
    assert (own["mae_at_coverage"] == drawn["mae_at_coverage"]) == (interval == "percentile")
    low, high = own["aurc_full"]
    assert f"{variant['aurc_full']:.3f} [{low:.3f}, {high:.3f}]" in done.out
    assert ("0.256 [0.137, 0.374]" in done.out) == (interval == "percentile")


def test_two_inputs_as_options_and_as_arguments(run: Callable[..., Outcome], tmp_path: Path) -> None:
    common = ("--bootstrap-resamples", 300)
    modes = ("--mode", "zero_shot", "--mode", "few_shot")
    first = run(
        "evaluate", "--input", RUN, "--mode", "zero_shot", "--input", RUN, "--mode", "few_shot", *common,
        "-o", "o.json",
    )  # fmt: skip
    assert first.code == 0
    second = run("evaluate", RUN, RUN, *modes, *common, "-o", "p.json")
    assert second.code == 0
    expected = load("expected_paired_default.json")
    for name in ("o.json", "p.json"):
        assert differences(expected, json.loads((tmp_path / name).read_text())) == []
    assert "few_shot - zero_shot" in first.out
    assert "inconclusive" in first.out


def test_one_mode_serves_every_input(run: Callable[..., Outcome]) -> None:
    done = run(
        "evaluate", RUN, EXAMPLES / "run_a.json", "--mode", "few_shot", "--bootstrap-resamples", 10, "--json"
    )
    assert json.loads(done.out)["comparison"]["deltas"]["llm"]["cmax"]["delta"] == 0.0


ONE = ("evaluate", RUN, "--mode", "few_shot", "--resamples", 5)
KEEP = "\n\nTo save it: -o NAME.json (all results), .html (a report), .md .csv .tex .txt\n"


def test_no_file_is_written_without_output(run: Callable[..., Outcome], tmp_path: Path) -> None:
    done = run(*ONE)
    assert done.out.endswith(KEEP)
    assert KEEP.strip() not in run(*ONE, "--quiet").out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "begins", "label"),
    [
        ("a.json", "{", "results:"),
        ("a.HTML", "<!DOCTYPE html>", "report:"),
        ("a.htm", "<!DOCTYPE html>", "report:"),
        ("a.md", "**", "table:"),
        ("a.csv", "confidence,metric,value,", "table:"),
        ("a.tex", "% needs", "table:"),
        ("a.txt", str(RUN), "summary:"),
        ("a", "{", "results:"),
    ],
)
def test_the_ending_of_the_output_file_sets_its_format(
    name: str, begins: str, label: str, run: Callable[..., Outcome], tmp_path: Path
) -> None:
    done = run(*ONE, "-o", name)
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith(f"\n\n{label} {name}\n")
    assert (tmp_path / name).read_text().startswith(begins)
    assert run(*ONE, "-q", "-o", name).out == f"{name}\n"


def test_a_format_that_contradicts_the_ending_is_refused(run: Callable[..., Outcome], tmp_path: Path) -> None:
    done = run(*ONE, "--format", "csv", "-o", "t.tex")
    assert (done.code, done.out) == (2, "")
    assert "t.tex: the ending means latex, but --format is csv; leave one of them out" in done.err
    assert run(*ONE, "-o", "t.docx").code == 2
    assert list(tmp_path.iterdir()) == []
    assert run(*ONE, "--format", "latex", "-o", "t.tex").code == 0
    assert "toprule" in (tmp_path / "t.tex").read_text()


def test_the_option_name_names_systems(run: Callable[..., Outcome]) -> None:
    both = ("evaluate", RUN, RUN, "--mode", "zero_shot", "--mode", "few_shot", "--resamples", 5)
    out = run(*both, "--name", "old", "--name", "new").out
    assert "\nnew: " in out
    assert "new - old" in out
    for names in (("--name", "old"), ("--name", "x", "--name", "x")):
        done = run(*both, *names)
        assert done.code == 2
        assert "pass --name once per input, with different names" in done.err


def test_explain_adds_the_meaning_of_the_numbers(run: Callable[..., Outcome]) -> None:
    short, long = run(*ONE).out, run(*ONE, "--explain").out
    assert len(long.splitlines()) > len(short.splitlines())
    both = ("compare", RUN, RUN, "--mode", "zero_shot", "--mode", "few_shot")
    assert len(run(*both, "--explain").out) > len(run(*both).out)


def test_json_is_printed_and_not_written(run: Callable[..., Outcome], tmp_path: Path) -> None:
    done = run("evaluate", RUN, "--mode", "few_shot", "--bootstrap-resamples", 5, "--json")
    assert json.loads(done.out)["schema_version"] == "1"
    assert list(tmp_path.iterdir()) == []


def test_the_results_json_has_the_settings(run: Callable[..., Outcome]) -> None:
    done = run(
        "evaluate", RUN, "--mode", "few_shot", "--confidence", "token_msp,retrieval_reference_count",
        "--confidence", "secondary:token_msp+consistency:product", "--coverage-grid", "0.25,0.5",
        "--area-coverage", 0.3, "--convention", "interpolated", "--level", 0.9, "--loss", "abs_norm", "--scale", "0,6",
        "--bootstrap-resamples", 20, "--json",
    )  # fmt: skip
    results_json = json.loads(done.out)
    assert list(results_json["confidence_variants"]) == [
        "token_msp",
        "retrieval_reference_count",
        "secondary:token_msp+consistency:product",
    ]
    variant = results_json["confidence_variants"]["token_msp"]
    assert list(variant["mae_at_coverage"]) == ["0.25", "0.50"]
    assert variant["aurc_at_c"]["requested"] == 0.3
    assert variant["bootstrap"]["level"] == 0.9
    assert results_json["convention"] == "interpolated"
    assert results_json["loss"] == {
        "name": "abs_norm",
        "definition": "abs(pred - gt) / 6",
        "raw_multiplier": 6,
        "rule": "loss abs_norm: requested",
    }


def test_schema(run: Callable[..., Outcome]) -> None:
    assert json.loads(run("schema", "metrics").out)["title"] == "abstain results JSON"
    done = run("schema", "metric")
    assert done.code == 2
    assert "did you mean 'metrics'" in done.err


def test_the_number_of_threads_does_not_change_the_results(run: Callable[..., Outcome]) -> None:
    call = ("evaluate", RUN, "--mode", "few_shot", "--bootstrap-resamples", 50, "--json")
    documents = [json.loads(run(*call, "--threads", count).out) for count in (1, 3)]
    assert {results_json.pop("kernel") for results_json in documents} <= {"compiled", "numpy"}
    for results_json in documents:
        del results_json["created_at"]
    assert documents[0] == documents[1]
    refused = run(*call, "--threads", 0)
    assert refused.code == 2
    assert "threads must be" in refused.err
    set_threads(None)


def test_version_and_help(run: Callable[..., Outcome]) -> None:
    assert re.fullmatch(r"abstain \d+\.\d+\.\d+\nkernel: (compiled|numpy( \(.*\))?)\n", run("--version").out)
    text = run("evaluate", "--help-all").out
    for flag in (
        "--input", "--mode", "--loss", "--confidence", "--coverage-grid", "--area-coverage", "--bootstrap-resamples",
        "--seed", "--output", "--match", "--intersection-only", "--truth-may-differ", "--quiet", "--json", "--weight",
        "--low", "--high", "--set", "--correct", "Examples:",
    ):  # fmt: skip
        assert flag in text


def _edited(change: Callable[[Any], object]) -> str:
    content = load("run_a.json")
    content["experiments"] = content["experiments"][1:]
    change(content["experiments"][0]["results"]["results"])
    return json.dumps(content)


def _duplicate(records: list[Any]) -> None:
    records.append(copy.deepcopy(records[0]))


BAD: dict[str, tuple[str, list[object], int, str]] = {
    "not JSON": ("{", [], 3, "bad.json: not JSON"),
    "NaN": ('{"experiments": [NaN]}', [], 3, "bad.json: NaN is not JSON"),
    "no experiments": ('{"experiments": []}', [], 3, "has no experiments"),
    "unknown mode": (RUN.read_text(), ["--mode", "one_shot"], 2, "modes here: zero_shot, few_shot"),
    "no mode": (RUN.read_text(), [], 2, "choose a mode: zero_shot, few_shot"),
    "lacks an item": (
        _edited(lambda records: records[3]["predicted_items"].pop("Sleep")),
        [],
        3,
        "participant 303: predicted_items lacks Sleep",
    ),
    "outside the scale": (
        _edited(lambda records: records[0]["predicted_items"].update(Sleep=7)),
        [],
        3,
        "participant 300, item Sleep: the prediction is 7, outside the scale of 0 to 3",
    ),
    "missing signal": (
        _edited(lambda records: records[2]["item_signals"]["Tired"].pop("token_msp")),
        ["--confidence", "token_msp"],
        3,
        "confidence token_msp needs the signal token_msp, which is missing for participant 302, item Tired of bad.json",
    ),
    "null signal": (
        _edited(lambda records: records[2]["item_signals"]["Tired"].update(token_pe=None)),
        ["--confidence", "all"],
        3,
        "confidence token_pe needs the signal token_pe, which is null for participant 302, item Tired",
    ),
    "unknown variant": (_edited(len), ["--confidence", "tokenmsp"], 2, "did you mean 'token_msp'?"),
    "calibrated": (_edited(len), ["--confidence", "calibrated"], 2, "needs a calibration file"),
    "coverage 0": (_edited(len), ["--coverage-grid", "0,0.5"], 2, "coverage_grid must be in (0, 1], got 0"),
    "coverage 50": (_edited(len), ["--area-coverage", 50], 2, "did you mean 0.5?"),
    "no number": (_edited(len), ["--coverage-grid", "a"], 2, "--coverage-grid must be numbers"),
    "negative resamples": (
        _edited(len),
        ["--bootstrap-resamples", -5],
        2,
        "resamples must be at least 0, got -5",
    ),
    "seed": (_edited(len), ["--seed", -1], 2, "seed must be from 0"),
    "unknown loss": (_edited(len), ["--loss", "square"], 2, "unknown loss 'square'"),
    "scale": (_edited(len), ["--scale", "3"], 2, "scale must be two numbers"),
    "duplicate participant": (_edited(_duplicate), [], 3, "participant 300 appears twice"),
    "sets differ": (_edited(list.pop), [RUN, "--mode", "few_shot"], 3, "--intersection-only"),
    "three inputs": (
        _edited(len),
        [RUN, RUN],
        2,
        "one input to evaluate or two to compare, got 3; abstain compare takes more",
    ),
    "too many modes": (
        _edited(len),
        ["--mode", "a", "--mode", "b"],
        2,
        "--mode was passed 2 times for 1 input",
    ),
    "output directory": (_edited(len), ["--output", "none/m.json"], 2, "the directory none does not exist"),
    "output is a directory": (_edited(len), ["--output", "."], 2, "is a directory"),
    "both outputs": (_edited(len), ["--json", "--quiet"], 2, "exclude each other"),
    "unknown flag": (_edited(len), ["--confidense", "llm"], 2, "--confidense"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_ends_with_a_message_and_an_exit_code_and_no_file(
    name: str, run: Callable[..., Outcome], tmp_path: Path
) -> None:
    content, arguments, code, message = BAD[name]
    (tmp_path / "bad.json").write_text(content)
    done = run("evaluate", "bad.json", *arguments)
    assert message in " ".join(done.err.split())
    assert done.code == code
    assert "Traceback" not in done.err
    assert done.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["bad.json"]


def test_no_input(run: Callable[..., Outcome]) -> None:
    done = run("evaluate")
    assert done.code == 2
    assert "pass one input to evaluate or two to compare, got 0" in done.err
    assert run("evaluate", "nowhere.json").err == "abstain: nowhere.json: no such file\n"


def test_markup_in_a_label_is_only_text(run: Callable[..., Outcome], tmp_path: Path) -> None:
    content = load("run_a.json")
    hostile = "[red]</script>[/red]"
    content["experiments"] = content["experiments"][1:]
    content["experiments"][0]["provenance"]["mode"] = hostile
    for record in content["experiments"][0]["results"]["results"]:
        for signals in record.get("item_signals", {}).values():
            signals["[bold]x"] = 1.0
    (tmp_path / "run.json").write_text(json.dumps(content))
    done = run("evaluate", "run.json", "--confidence", "[bold]x", "--bootstrap-resamples", 5)
    assert done.code == 0
    assert hostile in done.out
    assert "[bold]x" in done.out


# The command line, with the limit of a minute shortened to 1.5 seconds.
_IN_A_HURRY = "from abstain.cli import _terminal, main; _terminal._LONG_SECONDS = 1.5; main()"


@pytest.mark.slow
def test_a_progress_bar_shows_on_a_terminal_and_only_there(tmp_path: Path) -> None:
    """Long work shows a bar on stderr, here a real terminal; the results JSON on stdout is not affected."""
    master, slave = pty.openpty()
    command = [
        sys.executable,
        "-c",
        _IN_A_HURRY,
        "evaluate",
        str(RUN),
        "--mode",
        "few_shot",
        "--confidence",
        "all",
    ]
    process = subprocess.Popen(
        [*command, "--bootstrap-resamples", "60000", "--json"],
        stdout=subprocess.PIPE,
        stderr=slave,
        cwd=tmp_path,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100", "ABSTAIN_KERNEL": "skip"},
    )
    os.close(slave)
    shown = bytearray()
    # A terminal buffers only a few kilobytes; if they were not read, the process would wait.
    reader = threading.Thread(target=_drain, args=(master, shown))
    reader.start()
    output, _ = process.communicate(timeout=300)
    reader.join(timeout=30)
    os.close(master)
    assert process.returncode == 0
    assert json.loads(output)["schema_version"] == "1"
    assert b"resampling" in shown
    # The remaining time, and after a minute one hint at shorter work.
    assert re.search(rb"\d:\d\d:\d\d", shown)
    advice = b"resampling takes more than a minute; fewer --resamples, fewer metrics or confidences, or none"
    plain = b" ".join(re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", shown).split())
    assert plain.count(advice) == 1
    quiet = subprocess.run([*command, "--json"], capture_output=True, cwd=tmp_path, check=True)
    assert quiet.stderr == b""


def _drain(terminal: int, shown: bytearray) -> None:
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            return
        if not part:
            return
        shown.extend(part)


def _wait_until_at_work(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process has used two seconds of CPU time: by then it resamples."""
    ticks = os.sysconf("SC_CLK_TCK")
    while process.poll() is None:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        if (int(fields[11]) + int(fields[12])) / ticks > 2.0:
            return
        time.sleep(0.1)


@pytest.mark.slow
def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "abstain",
        "evaluate",
        str(RUN),
        "--mode",
        "few_shot",
        "--confidence",
        "all",
    ]
    process = subprocess.Popen(
        [*command, "--bootstrap-resamples", "100000000", "-o", "m.json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    _wait_until_at_work(process)
    process.send_signal(signal.SIGINT)
    _, problem = process.communicate()
    assert process.returncode == 130
    assert problem == b"abstain: interrupted; nothing was written\n"
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_closes_the_pipe_is_not_an_error(tmp_path: Path) -> None:
    line = f"{sys.executable} -m abstain schema metrics | head -n 1"
    done = subprocess.run(["bash", "-c", line], capture_output=True, cwd=tmp_path, check=True)
    assert done.stderr == b""
