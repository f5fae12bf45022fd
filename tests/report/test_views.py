"""Views of a result: verdicts with a known better side, tables that fit, warnings, and text that stays text."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from abstain import Items, read
from abstain.evaluation import compare, evaluate
from abstain.report import views
from abstain.report.html import result_html
from abstain.report.tables import FORMATS, render
from abstain.report.text import display_width
from examples import EXAMPLES
from systems import careless_and_careful

if TYPE_CHECKING:
    from abstain.evaluation import Result

HOSTILE = "</td><script>alert(1)</script>[red]\x1b[31m"


def printed(result: Result, width: int = 120) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(views.summary(result, width))
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def pair(*, mirrored: bool = False, **options: Any) -> Result:
    careless, careful = careless_and_careful()
    sides = {"B": careful, "A": careless} if mirrored else {"A": careless, "B": careful}
    return compare(sides, **{"resamples": 50, **options})


def words_of(text: str, metric: str) -> str:
    """The last cell of the row of a metric in the table of a summary."""
    return next(re.split(r"\s{2,}", line)[-1] for line in text.splitlines() if f"  {metric}  " in line)


def design_effect_of(*correct: int) -> str:
    """Return the line about clusters of three answers, of which so many are right."""
    answers = [int(place < right) for right in correct for place in range(3)]
    cluster = [place // 3 for place in range(len(answers))]
    items = Items.from_arrays([1] * len(answers), answers, cluster=cluster)
    return views.design_effect_line(evaluate(items, metrics=["accuracy"]).only)


def test_clusters_that_vary_less_than_independent_answers_do_not_add_answers() -> None:
    """By hand: half of 12 answers are right; e = 1/2, cluster sums of e are +-1/2, so (4/3 * 1) / (12/11 * 3)."""
    assert design_effect_of(1, 2, 1, 2) == "design effect 0.41: clusters do not widen the intervals"
    # Cluster sums of 3/2: (4/3 * 9) / (12/11 * 3) = 3.67, and 12 / 3.67 = 3.3.
    assert design_effect_of(0, 3, 0, 3) == "design effect 3.67: 12 answers are worth 3 independent ones"


@pytest.mark.parametrize("mirrored", [False, True])
def test_sentences_and_the_table_name_the_better_side(mirrored: bool) -> None:
    text = printed(pair(mirrored=mirrored))
    assert words_of(text, "augrc") == words_of(text, "aurc") == "B is better"
    # Both answer everything, and answering more is neither better nor worse.
    assert words_of(text, "cmax") == "no winner"
    # The conclusion comes first.
    assert text.split("\n\n")[1].startswith("AUGRC at coverage 1.00: B is better than A by 0.2")
    assert "A is better" not in text
    heading = next(line for line in text.splitlines() if line.startswith("confidence  metric"))
    assert re.split(r"\s{2,}", heading)[2:5] == (["B", "A", "A - B"] if mirrored else ["A", "B", "B - A"])
    assert not re.search(r"\b(left|right)\b", text)


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_metric_that_is_better_when_higher_is_worded_by_its_own_direction(mirrored: bool) -> None:
    result = pair(mirrored=mirrored, metrics=["accuracy"])
    assert "B is better than A by 0.500 [" in printed(result)
    (row,) = json.loads(render(views.tables(result), "json"))["tables"][0]["rows"]
    assert (row["verdict"], row["conclusion"]) == ("left" if mirrored else "right", "B is better")
    assert (row["left"], row["right"]) == (("B", "A") if mirrored else ("A", "B"))
    assert (row["left_value"], row["right_value"]) == ((1.0, 0.5) if mirrored else (0.5, 1.0))
    assert row["difference"] == (-0.5 if mirrored else 0.5)
    assert (row["left_rank"], row["right_rank"]) == ((1, 2) if mirrored else (2, 1))


@pytest.mark.parametrize("mirrored", [False, True])
def test_who_answers_more_is_higher_and_not_better(mirrored: bool) -> None:
    truth, item = [0, 1] * 20, list(range(40))
    options: dict[str, Any] = {"item": item, "confidence": [0.9] * 40}
    bold = Items.from_arrays(truth, truth, **options)
    shy = Items.from_arrays(truth, truth, abstained=[1, 0] * 20, **options)
    sides = {"bold": bold, "shy": shy} if mirrored else {"shy": shy, "bold": bold}
    text = printed(compare(sides, resamples=50))
    assert words_of(text, "cmax") == "no winner"
    assert "Cmax: bold is higher than shy by 0.500 [" in text
    assert "each pair is compared at the largest coverage that both reach" in " ".join(text.split())


def test_one_system() -> None:
    items = read(EXAMPLES / "run_a.json", mode="few_shot")
    text = printed(evaluate(items, resamples=100))
    assert "run_a.json (few_shot): 216 items of 27 participants (not counted: 24 failed)\n" in text
    assert (
        "Risk is the mean of loss abs_norm = abs(pred - gt) / 3 (the source declares a scale of 0 to 3).\n"
        in text
    )
    interval = r"\[0\.\d{3}, 0\.\d{3}\]"
    assert re.search(rf"^coverage +0\.694 {interval}  150 of 216 items answered, 66 abstained$", text, re.M)
    assert re.search(rf"^error rate +0\.313 {interval}  47 of 150 answers wrong$", text, re.M)
    assert re.search(rf"^accuracy +0\.477 {interval}  103 of 216 items answered correctly$", text, re.M)
    # Warnings come before the numbers that they concern, and the footnote comes last.
    parts = ["accuracy ", "Warnings", "Risk is", "AUGRC", "risk at coverage", "95% confidence intervals"]
    assert sorted(parts, key=text.index) == parts
    assert re.search(r"^llm = total_evidence +0\.085 \[0\.\d{3}, 0\.\d{3}\]  0\.031 \[", text, re.M)
    # Four operating points are within the grid; each appears once, with the largest coverage that it serves.
    assert re.findall(r"^(0\.\d\d)  ", text, re.M) == ["0.10", "0.30", "0.50", "0.60"]
    assert "not reached" not in text
    assert (
        "95% confidence intervals: jackknife over 27 participants, t distribution; areas by the convention"
        in text
    )
    assert "  ! 3 of 30 participants are not in any number: they failed or have no label\n" in text
    assert "  ! llm, total_evidence: 100% of the answered items have the same confidence as" in text
    assert "take care" not in text
    assert "figure" not in text


def test_every_table_has_the_rule_of_the_loss() -> None:
    careless, _ = careless_and_careful()
    rule = "loss zero_one = 1 if pred != gt else 0 (whole-number labels, no scale declared)"
    assert rule in printed(evaluate(careless, resamples=0))
    assert rule in printed(pair())
    for result in (evaluate(careless, resamples=0), pair()):
        for form in ("markdown", "latex", "json", "text"):
            found = render(views.tables(result), form).replace("\\_", "_").replace("  ", " ")
            assert "oss zero_one = 1 if pred != gt else 0 (whole-number labels" in found
    assert views.loss_line(None) == ""
    given = evaluate(careless, loss=[0.5] * 40, resamples=0)
    assert views.loss_line(given.loss) == "loss custom = one value per item"


def test_without_a_confidence_there_are_the_metrics_that_need_none() -> None:
    items = Items.from_arrays([0, 1] * 20, [0, 0] * 20, item=list(range(40)))
    result = evaluate(items, resamples=20)
    text = printed(result)
    assert re.search(r"^coverage +1\.000 \[1\.000, 1\.000\]  40 of 40 items answered", text, re.M)
    assert re.search(r"^accuracy +0\.500 \[0\.\d+, 0\.\d+\] +higher$", text, re.M)
    assert re.search(r"^hallucination_rate +1\.000 \[", text, re.M)
    assert "no confidence in this source; name one (--confidence, confidence=) or record one" in text
    assert "undefined" not in text
    assert not re.search(r"^(aurc|augrc|llm|constant) ", text, re.M)
    assert "aurc_optimal" not in text
    assert "<table>" in result_html(result)


def test_metrics_by_name_and_by_group() -> None:
    careless, _ = careless_and_careful()
    items = Items.from_arrays(
        careless.truth,
        careless.prediction,
        item=careless.item,
        metadata={"site": ["a"] * 20 + ["b"] * 17 + ["c"] * 3},
    )
    text = printed(evaluate(items, metrics=["accuracy", "abstention_rate"], by="site", resamples=20))
    assert "20 of 40 answers wrong" in text
    assert re.search(r"^accuracy +0\.500 \[0\.\d+, 0\.\d+\]  higher$", text, re.M)
    assert re.search(r"^abstention_rate +0\.000 \[.*\]  depends$", text, re.M)
    # The metric appears only before its first group.
    assert re.search(r"^accuracy +site=a +20 +20 ", text, re.M)
    assert re.search(r"^ +site=b +17 +17 ", text, re.M)
    assert re.search(r"site=c +3 +3 .* too small to evaluate: 3 of at least 10", " ".join(text.split()))


def test_many_systems_state_that_an_interval_holds_for_one_pair() -> None:
    careless, careful = careless_and_careful()
    three = {"A": careless, "B": careful, "C": careful}
    alone = printed(compare(three, metrics=["accuracy"], resamples=20))
    assert "3 systems, 40 items, matched by item" in alone
    assert "\n\nAccuracy: no system is shown to be better than every other one.\n" in alone
    assert "  - Accuracy: B is better than A by 0.500 [" in alone
    assert "  - Accuracy: inconclusive, C - B = 0.000 [-0.088, 0.088]\n" in alone
    assert "each holds for one pair of systems" in " ".join(alone.split())
    assert "corrected for all pairs by Holm's method" in " ".join(alone.split())
    assert re.search(r"^A +confidence +40 +40 .* 0\.500 \[.*\]  3$", alone, re.M)
    assert re.search(r"^B +confidence +40 +40 .*  1-2$", alone, re.M)
    assert re.search(r"^accuracy +A +B .*  B is better$", alone, re.M)
    together = printed(compare(three, metrics=["accuracy"], resamples=20, simultaneous=True))
    assert "they hold for all pairs of systems together" in " ".join(together.split())
    assert "one pair" not in together


def test_two_systems_do_not_mention_many_comparisons() -> None:
    text = " ".join(printed(pair()).split())
    assert "one pair" not in text
    assert "Holm" not in text
    assert "Intervals of differences: jackknife over 40 rows and unseen wrong rows, t distribution" in text


def test_a_missing_comparison_has_a_reason() -> None:
    careless, careful = careless_and_careful()
    silent = Items.from_arrays(
        careless.truth, careless.truth, abstained=[True] * 40, item=careless.item, confidence=[0.9] * 40
    )
    text = " ".join(
        printed(compare({"A": careful, "silent": silent}, metrics=["augrc"], resamples=20)).split()
    )
    assert (
        "cannot compare A and silent: silent answered no item, and a system without answers must not win"
        in text
    )
    assert "is better" not in text


@pytest.mark.parametrize("width", [80, 100, 120])
def test_summaries_keep_to_the_width(width: int) -> None:
    careless, careful = careless_and_careful()
    zero, few = (read(EXAMPLES / "run_b.json", mode=mode) for mode in ("zero_shot", "few_shot"))
    results = (
        evaluate(few, confidence="all", resamples=20),
        compare({"zero_shot": zero, "few_shot": few}, confidence="all", resamples=20),
        compare({"a long name of a system": careless, "B": careful, "C": careful}, resamples=20),
        evaluate(few, metrics=["accuracy", "aurc"], confidence="all", resamples=20),
    )
    for result in results:
        lines = printed(result, width).splitlines()
        assert max(map(display_width, lines)) <= width


def test_a_narrow_terminal_leaves_nothing_out() -> None:
    numbers = re.compile(r"-?\d\.\d{3}")
    assert sorted(numbers.findall(printed(pair(), 80))) == sorted(numbers.findall(printed(pair(), 140)))
    items = read(EXAMPLES / "run_a.json", mode="few_shot")
    result = evaluate(items, confidence="llm,token_msp,verbalized", resamples=0)
    found = [sorted(numbers.findall(printed(result, width))) for width in (80, 100, 140)]
    assert found[0] == found[1] == found[2]
    assert printed(result, 80).count("risk at coverage") == 2


def test_confidences_with_the_same_numbers_are_read_once() -> None:
    items = read(EXAMPLES / "run_a.json", mode="few_shot")
    text = printed(evaluate(items, resamples=0))
    assert re.search(r"^llm = total_evidence +0\.085 \[", text, re.M)
    assert not re.search(r"^total_evidence", text, re.M)
    assert "risk at coverage  llm = total_evidence\n" in text
    # What programs read has both.
    (table,) = views.tables(evaluate(items, resamples=0))
    names = {row["confidence"] for row in json.loads(render([table], "json"))["tables"][0]["rows"]}
    assert names == {"", "llm", "total_evidence"}


def test_a_risk_beyond_its_coverage_has_a_note() -> None:
    # Three levels: 3 items answered first, then 5, then 2; beyond 0.3 the next threshold answers 0.8.
    items = Items.from_arrays([1] * 10, [1] * 9 + [0], confidence=[3] * 3 + [2] * 5 + [1] * 2)
    text = printed(evaluate(items, coverage_grid=(0.3, 0.5, 0.8, 0.9), resamples=0))
    assert "confidence: measured at the next operating point: 0.50 at 0.80, 0.90 at 1.00.\n" in text


def test_the_answers_that_are_wrong_are_counted() -> None:
    weighed = Items.from_arrays(
        [1, 0, 1, 1], [1, 1, 1, None], confidence=[3, 2, 1, 0], weight=[1, 5, 2, 2], abstained=[0, 0, 0, 1]
    )
    result = evaluate(weighed, resamples=0)
    assert (result.population.right, result.population.wrong) == (3, 5)
    assert re.search(r"^error rate +0\.625 \[.*\]  5 of 8 answers wrong$", printed(result), re.M)
    assert re.search(r"^accuracy +0\.300 \[.*\]  3 of 10 items answered correctly$", printed(result), re.M)
    never = evaluate(Items.from_arrays([1.5, 2.5], [1.0, 2.0], confidence=[1, 2]), loss="abs", resamples=0)
    assert "error rate" not in printed(never)


def test_every_estimate_is_in_the_table_of_one_system() -> None:
    items = read(EXAMPLES / "run_a.json", mode="few_shot")
    result = evaluate(items, confidence="llm", resamples=20)
    (table,) = views.tables(result)
    rows = {
        (row["confidence"], row["metric"]): row
        for row in json.loads(render([table], "json"))["tables"][0]["rows"]
    }
    assert rows["llm", "aurc"]["value"] == result["llm"].aurc.value
    assert rows["llm", "aurc"]["value_low"] == result["llm"].aurc.low
    assert rows["", "cmax"]["items"] == 216
    assert rows["llm", "risk_at_coverage@0.9"]["value"] is None
    assert "cannot be reached" in rows["llm", "risk_at_coverage@0.9"]["remark"]


def test_hostile_names_stay_text() -> None:
    careless, careful = careless_and_careful()
    result = compare({HOSTILE: careless, "B": careful}, resamples=20)
    text = printed(result)
    assert "\x1b" not in text
    assert "[red]" in text
    for page in (result_html(result), render(views.tables(result), "html")):
        assert "<script" not in page
        assert "&lt;script&gt;" in page
    for form in FORMATS:
        assert form in ("csv", "json") or "\x1b" not in render(views.tables(result), form)


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_notebook_shows_verdicts_tables_and_warnings(mirrored: bool) -> None:
    page = result_html(pair(mirrored=mirrored))
    assert page.startswith("<div><p>2 systems, 40 items, matched by item</p><p>loss zero_one = 1 if pred")
    assert "<ul><li>AUGRC at coverage 1.00: B is better than A by 0.2" in page
    assert "<td>B is better</td>" in page
    assert "<td>A is better</td>" not in page
    few = evaluate(careless_and_careful(8)[0], resamples=20)
    page = result_html(few)
    assert '<th>confidence</th><th class="number">AURC</th>' in page
    assert f'<td class="number">{few["confidence"].augrc}</td>' in page
    assert "<p>warnings</p><ul><li>the confidence intervals are based on 8 rows" in page
    assert not re.search("script|style", page)


def test_systems_with_different_confidences_show_both_names() -> None:
    truth, item = [0, 1] * 20, list(range(40))
    signals = {"logit": [0.9] * 40, "vote": [0.8] * 40}
    sides = {name: Items.from_arrays(truth, [0] * 40, item=item, signals=signals) for name in ("A", "B")}
    each, same = (
        compare(sides, confidence={"A": one, "B": "vote"}, metrics=["augrc"], resamples=0)
        for one in ("logit", "vote")
    )
    differences, systems = json.loads(render(views.tables(each), "json"))["tables"]
    assert {row["confidence"] for row in differences["rows"] if row["metric"] == "augrc"} == {"logit / vote"}
    assert [row["confidence"] for row in systems["rows"]] == ["logit", "vote"]
    differences, _ = json.loads(render(views.tables(same), "json"))["tables"]
    assert {row["confidence"] for row in differences["rows"] if row["metric"] == "augrc"} == {"vote"}
    assert "\nvote " in printed(evaluate(sides["A"], confidence="vote", resamples=0))


def test_two_systems_without_a_confidence_are_compared_by_what_needs_none() -> None:
    truth, item = [0, 1] * 20, list(range(40))
    answers = [1, *truth[1:]]
    shy = Items.from_arrays(truth, answers, abstained=[1, 0] * 20, item=item)
    bold = Items.from_arrays(truth, answers, item=item)
    text = printed(compare({"shy": shy, "bold": bold}, resamples=20))
    assert "\n\nSimpleQA F: bold is better than shy by 0.308 [" in text
    assert "  - Accuracy: bold is better than shy by 0.475 [" in text
    assert "  - Selective accuracy at coverage 0.50: inconclusive, bold - shy = -0.025 [" in text
    assert "  - Answer rate: bold is higher than shy by 0.500 [" in text
    assert "undefined" not in text
    assert "name one (--confidence, confidence=)" in " ".join(text.split())


def test_participants_that_are_left_out_are_counted_by_system() -> None:
    zero, few = (read(EXAMPLES / "run_b.json", mode=mode) for mode in ("zero_shot", "few_shot"))
    fewer = few.take(few.cluster != few.cluster_ids[0])
    result = compare({"zero": zero, "few": fewer}, intersection_only=True, resamples=0, metrics=["accuracy"])
    line = views.basis_line(result)
    assert ", matched by participant; participants left out: " in line
    assert line.endswith(", 1 only in zero")


def test_a_table_of_two_goes_by_their_names() -> None:
    for form in ("markdown", "latex", "html", "text"):
        shown = render(views.tables(pair()), form)
        assert "A: items" in shown
        assert "B - A" in shown
        assert "right - left" not in shown


def test_a_table_of_several_systems_names_both_sides() -> None:
    careless, careful = careless_and_careful()
    (table, _) = views.tables(compare({"A": careless, "B": careful, "C": careful}, resamples=20))
    headings = [column.title for column in table.readable.columns]
    assert {"first", "second", "second - first"} <= set(headings)


def test_without_an_evaluated_item_the_summary_gives_the_reason_once() -> None:
    failed = Items.from_arrays([1, 0], [None, None], failed=[True, True], confidence=[0.5, 0.6])
    text = printed(evaluate(failed, resamples=20))
    assert text.startswith("0 items, treated as independent (not counted: 2 failed)\n")
    assert "\nWarnings\n  ! there is no item to evaluate: of 2 items, 2 failed and 0 have no label\n" in text
    assert "not reached" not in text
    assert "0 resamples" not in text
    without = printed(pair(interval="none"))
    assert "No confidence intervals were requested" in without
    assert "AUGRC at coverage 1.00: no verdict without a confidence interval, B - A = -0.248" in without
