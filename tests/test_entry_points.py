"""Every entry point gives the same results: Python, every command, and the engines.

Each question is some data, a loss, a confidence and a metric. The result in Python is the reference. Every other entry
point must give the same numbers, the same verdict and the same words.
"""

from __future__ import annotations

import csv
import html
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typer.testing import CliRunner

import abstain
from abstain.cli import app
from examples import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RESAMPLES = 40
COUNTED = ("--bootstrap-resamples", RESAMPLES)


def call(*arguments: object, code: int = 0) -> Any:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done


def as_json(*arguments: object, code: int = 0) -> Any:
    return json.loads(call(*arguments, code=code).stdout)


def write(path: Path, columns: Mapping[str, Sequence[object]], order: Sequence[int] | None = None) -> Path:
    rows = list(zip(*columns.values(), strict=True))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows if order is None else [rows[row] for row in order])
    return path


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# ---------------------------------------------------------------------------------------------- one system


@dataclass(frozen=True)
class Question:
    """One source with its options, and the expected confidence, loss and rule."""

    truth: Sequence[object]
    prediction: Sequence[object]
    confidence: str | None
    loss: str
    rule: str
    options: Mapping[str, str] = field(default_factory=dict)
    # Worked out by hand from the definition if the data are small enough, otherwise None.
    aurc: float | None = None

    @property
    def flags(self) -> list[str]:
        return [part for name, value in self.options.items() for part in (f"--{name}", value)]

    @property
    def keywords(self) -> dict[str, Any]:
        parsers = {"scale": lambda text: tuple(float(part) for part in text.split(","))}
        return {name: parsers.get(name, str)(value) for name, value in self.options.items()}


def digits(count: int = 40) -> tuple[list[int], list[int]]:
    truth = [(7 * row) % 10 for row in range(count)]
    return truth, [value if row % 4 else (value + 1) % 10 for row, value in enumerate(truth)]


def ratings(count: int = 40) -> tuple[list[int], list[int]]:
    truth = [1 + (3 * row) % 10 for row in range(count)]
    return truth, [min(10, value + 2 * (row % 3 == 0)) for row, value in enumerate(truth)]


QUESTIONS = {
    # By descending confidence: right, wrong, right, right. Selective risks are 0, 1/2, 1/3, 1/4 at coverages 1/4 to 1.
    # The first quarter of the area is 0, then come (0 + 1/2)/2/4 + (1/2 + 1/3)/2/4 + (1/3 + 1/4)/2/4.
    "0/1 labels": Question(
        [1, 0, 1, 0],
        [1, 1, 1, 0],
        "confidence",
        "zero_one",
        "loss zero_one: whole-number labels, no scale declared",
        aurc=(1 / 4 + 5 / 12 + 7 / 24) / 4,
    ),
    "class numbers": Question(
        *digits(), "confidence", "zero_one", "loss zero_one: whole-number labels, no scale declared"
    ),
    "ratings": Question(
        *ratings(), "confidence", "zero_one", "loss zero_one: whole-number labels, no scale declared"
    ),
    "ratings on a scale": Question(
        *ratings(),
        "confidence",
        "abs_norm",
        "loss abs_norm: the source declares a scale of 1 to 10",
        {"scale": "1,10"},
    ),
    "a loss by name": Question(*ratings(), "confidence", "abs", "loss abs: requested", {"loss": "abs"}),
    "text labels": Question(
        ["a", "b", "c", "a"] * 8,
        ["a", "b", "a", "a"] * 8,
        "confidence",
        "zero_one",
        "loss zero_one: text labels, no scale declared",
    ),
}


def source_of(question: Question, name: str = "preds.csv", column: str | None = "prob") -> Path:
    count = len(question.truth)
    columns: dict[str, Sequence[object]] = {
        "id": [f"q{row}" for row in range(count)],
        "label": question.truth,
        "pred": question.prediction,
        # A column of numbers that no entry point may use as a confidence.
        "index": list(range(count)),
    }
    if column is not None:
        columns[column] = [round(0.99 - 0.9 * row / count, 6) for row in range(count)]
    return write(Path(name), columns)


def in_python(source: Path, question: Question, **options: Any) -> abstain.Result:
    keywords = question.keywords
    loss = keywords.pop("loss", None)
    return abstain.evaluate(abstain.read(source, **keywords), loss=loss, resamples=RESAMPLES, **options)


@pytest.fixture(params=QUESTIONS)
def question(request: pytest.FixtureRequest) -> Question:
    return QUESTIONS[request.param]


def test_python_follows_the_rules(question: Question) -> None:
    result = in_python(source_of(question), question)
    assert result.loss is not None
    assert (result.loss.name, result.loss.rule) == (question.loss, question.rule)
    assert list(result) == [question.confidence]
    if question.aurc is not None:
        assert result["confidence"].aurc.value == pytest.approx(question.aurc, abs=1e-15)


def test_evaluate_agrees_with_python(question: Question) -> None:
    source = source_of(question)
    expected = in_python(source, question)["confidence"]
    results_json = as_json("evaluate", source, *question.flags, *COUNTED, "--json")
    assert (results_json["loss"]["name"], results_json["loss"]["rule"]) == (question.loss, question.rule)
    (found,) = results_json["confidence_variants"].values()
    for key, name in (("aurc_full", "aurc"), ("augrc_full", "augrc"), ("cmax", "cmax")):
        assert found[key] == expected.estimates[name].value
        assert tuple(found["bootstrap"]["ci95"][key]) == expected.estimates[name].percentile
    text = call("evaluate", source, *question.flags, *COUNTED, "-o", "m.json").stdout
    assert str(expected.aurc) in text
    assert question.rule.partition(": ")[2] in text


def test_compare_agrees_with_python(question: Question) -> None:
    source, same = source_of(question), source_of(question, "same.csv")
    expected = in_python(source, question)["confidence"]
    for metric in ("augrc", "aurc"):
        tables = as_json(
            "compare", source, same, *question.flags, *COUNTED, "--metric", metric, "--format", "json"
        )["tables"]
        (row,) = tables[0]["rows"]
        assert row["left_value"] == row["right_value"]
        # Matched items are sorted by name, and sums in another order differ in their last digit.
        assert row["left_value"] == pytest.approx(expected.estimates[metric].value, abs=1e-12)
        assert (row["difference"], row["verdict"]) == (0.0, "inconclusive")
        assert (row["left"], row["right"]) == ("preds", "same")
    text = call("compare", source, same, *question.flags, *COUNTED).stdout
    assert question.rule.partition(": ")[2] in text


def test_a_gate_agrees_with_python(question: Question) -> None:
    source = source_of(question)
    expected = in_python(source, question)["confidence"].aurc
    flags = ("gate", source, *question.flags, *COUNTED, "--format", "json", "--fail-if")
    (row, bound) = as_json(*flags, "aurc above 99", "--fail-if", "cmax below 0.01")["tables"][0]["rows"]
    assert (row["measured"], row["measured_low"], row["measured_high"]) == (
        expected.value,
        expected.low,
        expected.high,
    )
    assert row["verdict"] == bound["verdict"] == "pass"
    call(*flags, f"aurc above {expected.low / 2}", code=1 if expected.low else 4)
    keywords = question.keywords
    loss = keywords.pop("loss", None)
    own = abstain.gate(
        abstain.read(source, **keywords), ["aurc above 99", "cmax below 0.01"], loss=loss, resamples=RESAMPLES
    ).checks[0]
    assert own.sentence == row["conclusion"]


def test_a_report_agrees_with_python(question: Question) -> None:
    source = source_of(question)
    expected = in_python(source, question)["confidence"]
    call("report", source, *question.flags, *COUNTED, "-o", "page.html")
    page = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", Path("page.html").read_text())).split())
    assert str(expected.aurc) in page
    assert str(expected.augrc) in page
    assert question.rule.partition(": ")[2] in page


def test_check_reports_the_defaults_that_evaluate_uses(question: Question) -> None:
    if "loss" in question.options:
        return  # a named loss is not a default
    defaults = as_json("check", source_of(question), *question.flags, "--json")["defaults"]
    assert (defaults["loss"], defaults["loss_rule"]) == (question.loss, question.rule)
    assert defaults["confidence"] == question.confidence


def test_an_engine_agrees_with_python(question: Question) -> None:
    source = source_of(question)
    expected = in_python(source, question)["confidence"]
    result = abstain.evaluate(source, engine="duckdb", interval="none", **question.keywords)
    assert result.loss is not None
    assert (result.loss.name, result.loss.rule) == (question.loss, question.rule)
    (found,) = result.values()
    for name in ("aurc", "augrc", "cmax", "eaurc"):
        assert found.estimates[name].value == pytest.approx(expected.estimates[name].value, abs=1e-12)


def test_a_run_file_has_the_same_results_through_every_entry_point() -> None:
    run, mode = EXAMPLES / "run_a.json", ("--mode", "few_shot")
    expected = abstain.evaluate(abstain.read(run, mode="few_shot"), resamples=RESAMPLES)
    assert expected.loss is not None
    assert expected.loss.rule == "loss abs_norm: the source declares a scale of 0 to 3"
    assert list(expected) == ["llm", "total_evidence"]
    results_json = as_json("evaluate", run, *mode, *COUNTED, "--json")
    for name, variant in results_json["confidence_variants"].items():
        assert variant["augrc_full"] == expected[name].augrc.value
    defaults = as_json("check", run, *mode, "--json")["defaults"]
    assert (defaults["confidence"], defaults["loss_rule"]) == ("llm, total_evidence", expected.loss.rule)
    conditions = ("--fail-if", "augrc above 1", "--fail-if", "cmax below 0.1")
    flags = ("gate", run, *mode, *COUNTED, "--format", "json", *conditions)
    assert as_json(*flags)["tables"][0]["rows"][0]["measured"] == expected["llm"].augrc.value
    (row, *_) = as_json("compare", run, run, *mode, *COUNTED, "--format", "json")["tables"][0]["rows"]
    assert row["left_value"] == row["right_value"] == pytest.approx(expected["llm"].augrc.value, abs=1e-12)
    call("report", run, *mode, *COUNTED, "-o", "page.html")
    assert str(expected["llm"].augrc) in Path("page.html").read_text()


def test_a_table_without_confidence_has_no_areas_through_any_entry_point() -> None:
    source = source_of(QUESTIONS["class numbers"], column=None)
    result = abstain.evaluate(abstain.read(source), resamples=RESAMPLES)
    assert list(result) == []
    assert [warning.code for warning in result.warnings if warning.code == "no_confidence"] == [
        "no_confidence"
    ]
    done = call("evaluate", source, *COUNTED, "-o", "m.json")
    assert "no confidence in this source" in done.stdout
    assert "AURC" not in done.stdout.replace("(AURC", "")
    assert "index" not in done.stderr
    assert json.loads(Path("m.json").read_text())["confidence_variants"] == {}
    assert as_json("check", source, "--json")["defaults"]["confidence"] == "none"
    call("report", source, *COUNTED, "-o", "page.html")
    assert "no confidence in this source" in Path("page.html").read_text()
    # Metrics that need no confidence are evaluated as usual.
    expected = abstain.evaluate(abstain.read(source), metrics="accuracy", resamples=RESAMPLES).metrics
    assert expected is not None
    flags = ("gate", source, *COUNTED, "--format", "json", "--fail-if", "accuracy below 0.1")
    (row,) = as_json(*flags)["tables"][0]["rows"]
    assert row["measured"] == expected["accuracy"].value == 0.75


def several_systems(path: Path) -> Path:
    """Write a table of two systems with ten items: `first` answers all of them right, `second` half of them."""
    columns: dict[str, Sequence[object]] = {
        "model": ["first"] * 10 + ["second"] * 10,
        "item": [*range(10), *range(10)],
        "truth": ["a", "b"] * 10,
        "prediction": ["a", "b"] * 5 + ["a", "a"] * 5,
        "confidence": [row / 20 for row in range(20)],
    }
    return write(path, columns)


def test_a_table_of_several_systems_is_compared_by_every_entry_point() -> None:
    source = several_systems(Path("long.csv"))
    result = abstain.compare(source, metrics="accuracy")
    assert list(result.systems) == ["first", "second"]
    assert result.difference("first", "second").estimate.value == pytest.approx(-0.5)
    assert list(abstain.evaluate(source, metrics="accuracy").systems) == ["first", "second"]
    (row, *_) = as_json("compare", source, "-m", "accuracy", "--format", "json")["tables"][0]["rows"]
    assert (row["left"], row["right"], row["left_value"], row["right_value"]) == ("first", "second", 1.0, 0.5)
    found = as_json("check", source, "--json")
    assert {name: counts["answered"] for name, counts in found["systems"].items()} == {
        "first": 10,
        "second": 10,
    }
    assert found["outcomes"]["answered"] == 20
    assert found["signals"]["confidence"]["tied_proportion"] == 0.0
    assert found["problems"] == []
    assert "Systems: first (10 items), second (10 items)" in call("check", source).stdout
    for refused in (
        lambda: abstain.gate(source, "accuracy below 0.5"),
        lambda: abstain.gate(source, "accuracy worse by 0.1", baseline=source),
    ):
        with pytest.raises(
            abstain.ArgumentError, match="a gate evaluates one system, but a table contains several"
        ):
            refused()  # type: ignore[no-untyped-call]
    with pytest.raises(abstain.ArgumentError, match="unknown reference 'third'; known: first, second"):
        abstain.compare(source, reference="third")


def test_a_comparison_of_a_table_of_one_system_is_an_error() -> None:
    source = source_of(QUESTIONS["class numbers"])
    with pytest.raises(abstain.ArgumentError, match="at least two systems, got 1"):
        abstain.compare(source)
    assert "at least two inputs to compare" in call("compare", source, code=2).stderr


def test_groups_need_no_named_metric() -> None:
    source = several_systems(Path("long.csv"))
    one = write(
        Path("one.csv"),
        {"item": ["p", "q"] * 5, "truth": [1] * 10, "prediction": [1, 0] * 5, "who": [*range(10)]},
    )
    flags = (one, "--cluster", "who", "--by", "item")
    table = abstain.evaluate(one, cluster="who", by="item").metrics
    assert table is not None
    assert [group.label for group in table.groups] == ["item=p", "item=q"]
    assert table.groups[1].estimates["accuracy"].value == 0.0
    assert "item=q" in call("evaluate", *flags).stdout
    call("report", *flags, "-o", "page.html")
    assert "item=q" in Path("page.html").read_text()
    for command in ("evaluate", "report"):
        assert "unknown group column 'site'" in call(command, source, "--by", "site", code=2).stderr


def test_check_reports_the_losses_that_evaluate_accepts() -> None:
    columns: dict[str, Sequence[object]] = {
        "truth": [0, 1, 2, 3],
        "prediction": [0, 1, 1, 3],
        "confidence": [0.9, 0.8, 0.7, 0.6],
    }
    source = write(Path("t.csv"), columns)
    kind = "normalized absolute error (abs_norm)"
    state = as_json("check", source, "--json")["metrics"][kind]
    refused = call("evaluate", source, "--loss", "abs_norm", code=2).stderr
    assert not state["possible"]
    assert state["reason"] in refused
    assert as_json("check", source, "--scale", "0,3", "--json")["metrics"][kind]["possible"]
    call("evaluate", source, "--loss", "abs_norm", "--scale", "0,3")


def test_the_first_warning_of_every_entry_point_is_about_scores_without_a_scale() -> None:
    columns: dict[str, Sequence[object]] = {
        "item": [1, 2, 3, 4],
        "truth": [0, 1, 2, 3],
        "prediction": [0, 1, 1, 3],
        "confidence": [0.9, 0.8, 0.8, 0.6],
    }
    source = write(Path("t.csv"), columns)
    message = (
        "truth and prediction are whole numbers from 0 to 3, but every answer counts only as right or wrong (loss "
        'zero_one). If these are scores, add --scale 0,3 --loss abs (scale=(0, 3), loss="abs"). If they are classes, '
        'add --loss zero_one (loss="zero_one")'
    )
    results = (
        abstain.evaluate(source),
        abstain.evaluate(source, engine="duckdb"),
        abstain.compare({"a": source, "b": source}),
        abstain.gate(source, "aurc above 1"),
    )
    for result in results:
        assert (result.warnings[0].code, result.warnings[0].message) == ("possible_scale", message)
    assert as_json("evaluate", source, "--json")["warnings"][0]["code"] == "possible_scale"
    call("report", source, "-o", "page.html")
    assert message in html.unescape(Path("page.html").read_text())
    for done in (
        call("evaluate", source),
        call("compare", source, source, "--name", "a", "--name", "b"),
        call("gate", source, "--fail-if", "accuracy below 0.01"),
        call("check", source),
    ):
        assert message in " ".join(done.stdout.split())
    # It is the first line of the summary, before any number.
    assert (
        call("evaluate", source)
        .stdout.lstrip()
        .startswith("! truth and prediction are whole numbers from 0 to 3")
    )
    assert (
        as_json("compare", source, source, "--name", "a", "--name", "b", "--json")["warnings"][0]["message"]
        == message
    )
    for settled in (("--loss", "zero_one"), ("--loss", "abs"), ("--scale", "0,3")):
        assert "whole numbers from" not in call("evaluate", source, *settled).stdout


def test_the_positive_class_of_text_labels_is_named_in_the_same_way_for_every_entry_point() -> None:
    # 2 true positives, 1 false positive, 1 false negative.
    columns: dict[str, Sequence[object]] = {
        "truth": ["yes", "yes", "no", "yes", "no"],
        "prediction": ["yes", "Yes ", "yes", "no", "no"],
        "confidence": [0.9, 0.8, 0.6, 0.7, 0.9],
    }
    source = write(Path("t.csv"), columns)
    names = ("precision", "recall", "f1", "auroc", "brier_score", "accuracy")
    # The stated probability of yes: 0.9, 0.8, 0.6, 0.3, 0.1.
    expected = {
        "precision": 2 / 3,
        "recall": 2 / 3,
        "f1": 2 / 3,
        "auroc": 5 / 6,
        "brier_score": (0.01 + 0.04 + 0.36 + 0.49 + 0.01) / 5,
        "accuracy": 3 / 5,
    }
    arrays: dict[str, Any] = {name: columns[name] for name in ("truth", "prediction", "confidence")}
    results = (
        abstain.evaluate(source, positive="yes", metrics=names),
        abstain.evaluate(source, positive="yes", metrics=names, engine="duckdb"),
        abstain.evaluate(abstain.Items.from_arrays(**arrays, positive="YES"), metrics=names),
    )
    for result in results:
        table = result.only.metrics
        assert table is not None
        for name in names:
            assert table[name].value == pytest.approx(expected[name]), name
    flags = ("gate", source, "--positive", "yes", "--format", "json", "--fail-if", "f1 below 0.1")
    (row,) = as_json(*flags)["tables"][0]["rows"]
    assert row["measured"] == pytest.approx(2 / 3)
    # Without the positive class, the reason explains how to name it.
    unnamed = abstain.evaluate(source, metrics=names).only.metrics
    assert unnamed is not None
    for name in names[:-1]:
        assert unnamed[name].reason == "the labels are text; name the positive class (--positive, positive=)"
    assert unnamed["accuracy"].value == 3 / 5
    message = "the positive label 'maybe' never occurs in the truth"
    for refused in (
        lambda: abstain.read(source, positive="maybe"),
        lambda: abstain.evaluate(source, positive="maybe", engine="duckdb"),
        lambda: abstain.Items.from_arrays(**arrays, positive="maybe"),
    ):
        with pytest.raises(abstain.DataError, match=message):
            refused()
    assert message in call("evaluate", source, "--positive", "maybe", code=3).stderr


def test_real_numbers_without_a_loss_are_an_error_for_every_entry_point() -> None:
    columns: dict[str, Sequence[object]] = {
        "id": [1, 2, 3, 4],
        "label": [0.5, 1, 2, 3],
        "pred": [1, 1, 2, 2],
        "prob": [0.9, 0.8, 0.7, 0.6],
    }
    source = write(Path("real.csv"), columns)
    with pytest.raises(abstain.ArgumentError, match="not a whole number in every answered row"):
        abstain.evaluate(abstain.read(source))
    with pytest.raises(abstain.ArgumentError, match="not a whole number in every answered row"):
        abstain.evaluate(source, engine="duckdb")
    for command in (
        ("evaluate", source),
        ("compare", source, source),
        ("gate", source, "--fail-if", "aurc above 1"),
        ("report", source),
    ):
        assert "not a whole number in every answered row" in call(*command, code=2).stderr


# --------------------------------------------------------------------------------------------- two systems

BETTER, WORSE, EVEN = "better", "worse", "even"
SIDES = {
    # (wrong answers of a.csv, wrong answers of b.csv), among 40 items of 20 patients
    BETTER: (range(0, 40, 2), range(2)),
    WORSE: (range(2), range(0, 40, 2)),
    EVEN: ((3, 12, 25), (7, 18, 30)),
}
VERDICTS = {BETTER: "right", WORSE: "left", EVEN: "inconclusive"}
NAMES = ("a.csv", "b.csv")


def columns_of(wrong: Sequence[int], count: int = 40) -> dict[str, list[object]]:
    truth = [row % 2 for row in range(count)]
    return {
        "patient_id": [f"p{row // 2}" for row in range(count)],
        "id": [f"q{row}" for row in range(count)],
        "label": list(truth),
        "pred": [1 - value if row in wrong else value for row, value in enumerate(truth)],
        "prob": [round(0.5 + ((37 * row) % 40) / 100, 3) for row in range(count)],
    }


def two(case: str) -> tuple[Path, Path]:
    left, right = (
        write(Path(name), columns_of(list(side))) for name, side in zip(NAMES, SIDES[case], strict=True)
    )
    return left, right


@pytest.fixture(params=SIDES)
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def compared(paths: Sequence[Path], **options: Any) -> abstain.Result:
    systems = {path.stem: abstain.read(path) for path in paths}
    return abstain.compare(systems, resamples=RESAMPLES, **options)


def test_every_entry_point_gives_the_same_verdict(case: str) -> None:
    left, right = two(case)
    expected = compared((left, right)).difference("a", "b", "augrc")
    assert expected.verdict == VERDICTS[case]
    assert expected.sentence.startswith(
        {
            BETTER: "AUGRC at coverage 1.00: b is better than a by 0.",
            WORSE: "AUGRC at coverage 1.00: a is better than b by 0.",
            EVEN: "AUGRC at coverage 1.00: inconclusive, b - a = ",
        }[case]
    )

    results_json = as_json("evaluate", left, right, *COUNTED, "--json")
    (deltas,) = results_json["comparison"]["deltas"].values()
    found = deltas["augrc_full"]
    assert (found["verdict"], found["left"], found["right"]) == (VERDICTS[case], "a", "b")
    assert found["delta"] == expected.estimate.value
    assert found["p"] == expected.p

    (row, *_) = as_json("compare", left, right, *COUNTED, "--format", "json")["tables"][0]["rows"]
    assert (row["verdict"], row["left"], row["right"]) == (VERDICTS[case], "a", "b")
    assert (row["difference"], row["difference_low"], row["difference_high"]) == (
        expected.estimate.value,
        expected.estimate.low,
        expected.estimate.high,
    )
    assert (row["conclusion"], row["sentence"]) == (expected.conclusion, expected.sentence)

    # Worse than the baseline fails, better passes, and anything else is inconclusive.
    code = {BETTER: 0, WORSE: 1, EVEN: 4}[case]
    call("gate", right, "--baseline", left, "--fail-if", "augrc worse by 0", *COUNTED, code=code)
    gated = abstain.gate(
        abstain.read(right), "augrc worse by 0", baseline=abstain.read(left), resamples=RESAMPLES
    )
    assert gated.exit_code == code


def test_every_entry_point_uses_the_same_words(case: str) -> None:
    left, right = two(case)
    difference = compared((left, right)).difference("a", "b", "augrc")
    by_evaluate = call("evaluate", left, right, *COUNTED).stdout
    by_compare = call("compare", left, right, *COUNTED).stdout
    call("report", left, right, *COUNTED, "-o", "page.html")
    call("compare", left, right, *COUNTED, "-o", "systems.html")
    pages = [
        " ".join(html.unescape(re.sub(r"<[^>]+>", " ", Path(name).read_text())).split())
        for name in ("page.html", "systems.html")
    ]
    conclusion = {
        BETTER: f"{difference.right} is better",
        WORSE: f"{difference.left} is better",
        EVEN: "inconclusive",
    }
    assert difference.conclusion == conclusion[case]
    for output in (by_evaluate, by_compare, *pages):
        text = " ".join(output.split())
        assert difference.sentence in text
        for other in {BETTER: (WORSE,), WORSE: (BETTER,), EVEN: (BETTER, WORSE)}[case]:
            assert conclusion[other] not in text
        assert not re.search(r"right - left|\b(?:left|right) is\b", text)
    assert conclusion[case] in " ".join(by_evaluate.split())


def test_the_order_of_rows_changes_nothing(case: str) -> None:
    left, right = two(case)
    before = compared((left, right)).difference("a", "b", "augrc")
    commands = (
        ("evaluate", left, right, *COUNTED, "--format", "csv"),
        ("compare", left, right, *COUNTED, "--format", "csv"),
        (
            "gate",
            right,
            "--baseline",
            left,
            "--fail-if",
            "augrc worse by 0",
            "--inconclusive",
            "pass",
            *COUNTED,
        ),
    )
    code = {BETTER: 0, WORSE: 1, EVEN: 0}[case]
    outputs = [call(*command, code=code if command[0] == "gate" else 0).stdout for command in commands]
    order = np.random.default_rng(5).permutation(40).tolist()
    write(right, columns_of(list(SIDES[case][1])), order)
    after = compared((left, right)).difference("a", "b", "augrc")
    assert (after.estimate.low, after.estimate.high, after.p) == pytest.approx(
        (before.estimate.low, before.estimate.high, before.p), abs=1e-12
    )
    for command, text in zip(commands, outputs, strict=True):
        again = call(*command, code=code if command[0] == "gate" else 0).stdout
        assert numbers_of(again) == pytest.approx(numbers_of(text), abs=1e-9), command


def numbers_of(text: str) -> list[float]:
    return [float(found) for found in re.findall(r"-?\d+\.\d+", text)]


def commands_for_two(left: Path, right: Path, *flags: object) -> list[tuple[object, ...]]:
    return [
        ("evaluate", left, right, *flags, *COUNTED, "--json"),
        ("compare", left, right, *flags, *COUNTED),
        ("gate", right, "--baseline", left, "--fail-if", "augrc worse by 0.9", *flags, *COUNTED),
        ("report", left, right, *flags, *COUNTED, "-o", "page.html"),
        ("plot", left, right, *flags, *COUNTED, "-o", "chart.json"),
    ]


@pytest.mark.slow
def test_items_that_one_side_lacks_are_an_error_unless_allowed() -> None:
    left = write(Path("a.csv"), columns_of([1, 2], 320))
    right = write(Path("b.csv"), columns_of([3, 4], 160))
    for command in commands_for_two(left, right):
        message = call(*command, code=3).stderr
        assert "of 320 items b lacks 160" in message or "of 320 items new lacks 160" in message, command[0]
    with pytest.raises(abstain.DataError, match="of 320 items b lacks 160"):
        compared((left, right))
    for command in commands_for_two(left, right, "--intersection-only"):
        call(*command)
    found = compared((left, right), intersection_only=True)
    assert found.matching is not None
    assert (found.matching.total, found.matching.shared) == (320, 160)


@pytest.mark.slow
def test_different_labels_are_an_error_unless_allowed() -> None:
    left = write(Path("a.csv"), columns_of([1, 2]))
    other = columns_of([3, 4])
    other["label"][:7] = [1 - value for value in other["label"][:7]]  # type: ignore[operator]
    right = write(Path("b.csv"), other)
    for command in commands_for_two(left, right):
        assert "the truth of 7 of 40 shared items" in call(*command, code=3).stderr, command[0]
    with pytest.raises(abstain.DataError, match="the truth of 7 of 40 shared items"):
        compared((left, right))
    for command in commands_for_two(left, right, "--truth-may-differ"):
        call(*command)
    warned = compared((left, right), truth_may_differ=True).warnings
    assert "truths_differ" in [warning.code for warning in warned]
    assert (
        "7 of 40 items have different truths"
        in call(*commands_for_two(left, right, "--truth-may-differ")[1]).stdout
    )


@pytest.mark.slow
def test_rows_without_names_are_matched_only_if_the_order_of_rows_is_requested() -> None:
    left, right = (
        write(
            Path(name),
            {key: column for key, column in columns_of(wrong).items() if key not in ("patient_id", "id")},
        )
        for name, wrong in zip(NAMES, ([1, 2], list(range(0, 40, 2))), strict=True)
    )
    for command in commands_for_two(left, right):
        assert "--match rows" in call(*command, code=3).stderr, command[0]
    for command in commands_for_two(left, right, "--match", "rows"):
        call(*command)
    (row, *_) = as_json("compare", left, right, "--match", "rows", *COUNTED, "--format", "json")["tables"][0][
        "rows"
    ]
    assert (
        row["verdict"]
        == compared((left, right), match="rows").difference("a", "b", "augrc").verdict
        == "left"
    )


def test_equivalence_within_a_margin_is_a_separate_verdict() -> None:
    left, right = two(EVEN)
    expected = compared((left, right), margin=0.2, metrics="augrc").difference("a", "b")
    assert "they are within 0.2 of each other" in expected.sentence
    output = call("compare", left, right, "--margin", 0.2, *COUNTED).stdout
    assert "they are within 0.2 of each other" in " ".join(output.split())


def test_three_systems_are_one_family_for_every_entry_point() -> None:
    third = write(Path("c.csv"), columns_of(list(range(0, 40, 4))))
    left, right = two(BETTER)
    result = compared((left, right, third), metrics="augrc")
    rows = as_json("compare", left, right, third, *COUNTED, "--format", "json")["tables"][0]["rows"]
    assert len(rows) == 3
    for row, difference in zip(rows, result.differences, strict=True):
        assert (row["left"], row["right"], row["verdict"]) == (
            difference.left,
            difference.right,
            difference.verdict,
        )
        assert (row["p"], row["p_holm"]) == (difference.p, difference.p_adjusted)
    assert "abstain compare" in call("evaluate", left, right, third, code=2).stderr
    call("report", left, right, third, *COUNTED, "-o", "page.html")
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", Path("page.html").read_text())).split())
    assert "b is better than a by" in text
    wider = compared((left, right, third), metrics="augrc", simultaneous=True).differences[0].estimate
    row = as_json("compare", left, right, third, "--simultaneous", *COUNTED, "--format", "json")["tables"][0][
        "rows"
    ][0]
    assert (row["difference_low"], row["difference_high"]) == (wider.low, wider.high)
    assert wider.low < result.differences[0].estimate.low


def test_a_guaranteed_threshold_is_the_same_through_every_entry_point(tmp_path: Path) -> None:
    """Python, the result of an evaluation, the command line and the first sentence of a report."""
    import polars as pl  # noqa: PLC0415

    from guaranteed import drawn  # noqa: PLC0415

    table = tmp_path / "answers.csv"
    pl.DataFrame(drawn(200, seed=5)).write_csv(table)
    items = abstain.read(table, cluster="patient")
    policy = abstain.choose_threshold(items, risk=0.12)
    result = abstain.evaluate(items)
    assert policy.has_guarantee
    assert result.only.policy(0.12).threshold == policy.threshold
    command = ["threshold", str(table), "--cluster", "patient", "--risk", "12%"]
    done = CliRunner().invoke(app, command)
    assert " ".join(done.stdout.split()).startswith(f"{policy} ")
    assert json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)["threshold"] == policy.threshold
    page = result.report(tmp_path / "report.html", risk=0.12).read_text()
    assert f'<p class="headline">{policy}</p>' in page
    points = result.profile().points[next(iter(result.only))]
    index = points.guaranteed[0.12]
    assert policy.observed is not None
    assert points.answered[index] == policy.observed.answered
