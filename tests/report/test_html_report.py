"""The text of the HTML report, the texts that it must not contain, and its isolation from the network."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from datetime import UTC, datetime
from html import unescape
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from abstain import Items, compare, evaluate, read
from abstain.errors import ArgumentError
from abstain.evaluation.conformal import evaluate_intervals
from abstain.report.charts import draw
from abstain.report.html import embedded_json, report_html, write_report
from abstain.report.html._sentences import join_names, system_verdict
from examples import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from abstain.evaluation import Result

NOW = datetime(2026, 1, 3, tzinfo=UTC)
EVIL = "</script><img src=x onerror=alert(1)><svg onload=alert(1)>\"'{{7*7}}"
VOID = {"meta", "link", "input", "br", "img", "hr"}


class Outline(HTMLParser):
    """Elements, attributes and text of a page; tags that do not match are an error."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in {"script", "style"}:
            self.text.append(data)


def run(confidence: str | Sequence[str] = ("llm", "token_msp"), resamples: int = 100) -> Result:
    items = read(EXAMPLES / "run_a.json", mode="few_shot")
    return evaluate(items, confidence=confidence, loss="abs", resamples=resamples)


def words(page: str) -> str:
    return re.sub(r"\s+", " ", " ".join(Outline(page).text))


def tables(page: str) -> dict[str, list[list[str]]]:
    """Return the rows of every table of a page, heading first, by the label for screen readers."""
    found = {}
    for label, body in re.findall(r'role="region" aria-label="(.*?)">(.*?)</table>', page, flags=re.DOTALL):
        rows = re.findall(r"<tr.*?>(.*?)</tr>", body, flags=re.DOTALL)
        cells = [re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row, flags=re.DOTALL) for row in rows]
        found[label] = [[unescape(re.sub(r"<.*?>|\s+", " ", cell)).strip() for cell in row] for row in cells]
    return found


def conclusions(page: str, label: str = "Differences") -> dict[str, str]:
    """Return the conclusions of a comparison by metric."""
    heading, *rows = tables(page)[label]
    # A narrow screen shows the conclusion, because it is next to the name of the row.
    assert heading[:2] == ["metric", "conclusion"]
    return {row[0]: row[1] for row in rows}


def explorer(page: str) -> Any:
    found = re.search(r'id="explorer-data">(.*?)</script>', page, flags=re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_panels_of_an_evaluation() -> None:
    result = run()
    assert result.only.loss is not None
    page = report_html(result, command="abstain report run_a.json", created_at=NOW)
    told = words(page)
    for expected in (
        "run_a.json (few_shot)",
        "The model answers 150 of 216 items (69.4%) and declines 66",
        "3 of 30 participants are not in any number",
        "The loss of an answer is its distance from the label (loss abs).",
        f"{result.only.loss.rule}. abs = abs(pred - gt)",
        "Warnings",
        "The risk at a threshold chosen on these data is too optimistic",
        "Reliability",
        "95% confidence intervals: jackknife over 27 participants, t distribution",
        "The band shows the 95% confidence interval of the risk at each threshold by itself (jackknife over",
        "abs = abs(pred - gt)",
        "seed 42",
        "abstain report run_a.json",
        "2026-01-03T00:00:00+00:00",
    ):
        assert expected in told, expected
    assert not re.search(r"\bfigure\b|take care|caution|significant", told, flags=re.IGNORECASE)
    digest = hashlib.sha256((EXAMPLES / "run_a.json").read_bytes()).hexdigest()
    assert digest in told


def test_the_table_has_exact_numbers() -> None:
    result = run()
    elements = Outline(report_html(result)).elements
    exact = {float(attributes["value"] or "nan") for tag, attributes in elements if tag == "data"}
    for name in result:
        assert result[name].augrc.value in exact
        assert result[name].risk_at_coverage[0.5].value in exact


def test_the_explorer_has_exact_counts() -> None:
    result = run()
    curve = next(one for one in explorer(report_html(result))["curves"] if one["key"] == "llm")
    points = result.profile().points["llm"]
    assert curve["n"] == 216
    assert curve["k"] == points.answered.tolist()
    assert curve["w"] == points.wrong.tolist()
    assert curve["t"] == points.threshold.tolist()
    assert curve["rl"] == pytest.approx(points.selective_low, rel=1e-5)


def test_nothing_is_fetched_and_only_our_own_script_may_run() -> None:
    page = report_html(run())
    elements = Outline(page).elements
    policy = next(a["content"] for tag, a in elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    for tag, attributes in elements:
        assert "style" not in attributes, tag
        assert "src" not in attributes, tag
        assert not any(name.startswith("on") for name in attributes), tag
        link = attributes.get("href") or ""
        assert not link or link.startswith(("#", "data:")), link


@pytest.mark.parametrize("asked", [{}, {"mistakes": 5, "responses": True}])
def test_hostile_text_stays_text(asked: dict[str, Any]) -> None:
    items = Items.from_arrays(
        [EVIL] * 3,
        [EVIL, f"{EVIL}!", None],
        abstained=[False, False, True],
        cluster=[f"{EVIL}{row}" for row in range(3)],
        item=[EVIL] * 3,
        signals={EVIL: [0.9, 0.4, 0.1]},
        metadata={"raw_response": [EVIL] * 3},
    ).with_provenance(path=EVIL, mode=EVIL, run_id=EVIL, git_commit=EVIL, sha256=EVIL)
    result = evaluate(items, confidence=EVIL, loss="zero_one", resamples=20)
    page = report_html(result, title=EVIL, command=EVIL, **asked)
    elements = Outline(page).elements
    assert [tag for tag, _ in elements].count("script") == 2
    assert "img" not in {tag for tag, _ in elements}
    assert not any(name.startswith("on") for _, attributes in elements for name in attributes)
    assert EVIL in words(page)
    assert explorer(page)["curves"][0]["key"] == EVIL


def test_ids_and_responses_are_omitted_by_default() -> None:
    items = Items.from_arrays(
        [0, 0, 0],
        [0, 1, 2],
        confidence=[0.9, 0.8, 0.7],
        cluster=["patient-1", "patient-2", "patient-3"],
        metadata={"raw_response": ["wrote-1", "wrote-2", "wrote-3"], "prompt": ["asked", "asked", "asked"]},
    )
    result = evaluate(items, loss="abs", resamples=10)
    assert "patient" not in report_html(result)
    assert "wrote" not in report_html(result, mistakes=1)
    listed_page = words(report_html(result, mistakes=1, responses=True))
    assert "patient-2" in listed_page
    assert "wrote-2" in listed_page
    assert "patient-3" not in listed_page
    with pytest.raises(ArgumentError, match="mistakes must be at least 0, got -1"):
        report_html(result, mistakes=-1)


def clear_cut() -> tuple[Items, Items]:
    """Forty questions of twenty clusters: one system right in all of them, one wrong in every other."""
    truth, item = [0, 1] * 20, np.arange(40)
    given: dict[str, Any] = {"item": item, "cluster": item // 2, "confidence": np.linspace(0.1, 0.9, 40)}
    good = Items.from_arrays(truth, truth, **given)
    return good, Items.from_arrays(truth, [0] * 40, **given)


@pytest.mark.parametrize(("order", "side"), [(("good", "bad"), "left"), (("bad", "good"), "right")])
def test_the_better_side_is_named_whatever_its_position(order: tuple[str, str], side: str) -> None:
    systems = dict(zip(("good", "bad"), clear_cut(), strict=True))
    result = compare({name: systems[name] for name in order}, resamples=0)
    page = report_html(result)
    shown = conclusions(page)
    assert shown["AUGRC"] == "good is better"
    assert shown["AURC"] == "good is better"
    # Both answer everything, so that neither answers more.
    assert shown["Cmax"] == "no winner"
    # Twenty of forty answers are wrong: the curve of the bad system is above 0, that of the good one is 0.
    assert "At the same coverage of 100%, good makes fewer errors than bad: AUGRC 0.000 against 0." in words(
        page
    )
    assert "good answers 100% of the items; 0% of its answers are wrong [0%, " in words(page)
    assert "bad answers 100% of the items; 50% of its answers are wrong" in words(page)
    assert "bad is better" not in words(page)
    assert "bad makes fewer" not in words(page)
    first, second = order
    assert tables(page)["Differences"][0][2:5] == [first, second, f"{second} - {first}"]
    assert f"Comparison: {second} - {first}" in words(page)
    assert f"Selective risk, {first} and {second}" in page
    # The page repeats the verdict of the result.
    assert result.difference("good", "bad", "augrc").verdict == side


@pytest.mark.slow
def test_who_answers_more_is_higher_not_better() -> None:
    good, _ = clear_cut()
    shy = Items.from_arrays(
        good.truth,
        [None, 1] * 20,
        abstained=[True, False] * 20,
        item=good.item,
        cluster=good.cluster,
        confidence=good.signals["confidence"].values,
    )
    for systems, side in (([good, shy], "left"), ([shy, good], "right")):
        page = report_html(compare(*systems, resamples=0))
        assert conclusions(page)["Cmax"] == "no winner"
        other = "right" if side == "left" else "left"
        assert f"{side} answers 100% of the items" in words(page)
        assert f"{other} answers 50% of the items" in words(page)
        (row,) = [row for row in tables(page)["Differences"] if row[0] == "Cmax"]
        assert row[-2].startswith("-0.500" if side == "left" else "0.500")
        assert conclusions(page)["AUGRC"] == "not comparable"


def test_an_inconclusive_comparison_is_called_inconclusive() -> None:
    left, right = (read(EXAMPLES / "run_a.json", mode=mode) for mode in ("zero_shot", "few_shot"))
    result = compare(left, right, confidence=["llm", "token_msp"], loss="abs", resamples=200)
    page = report_html(result)
    told = words(page)
    assert "run_a.json (zero_shot) against run_a.json (few_shot)" in told
    assert (
        "At the same coverage of 56%, the comparison of left and right is inconclusive: AUGRC by llm 0."
        in told
    )
    assert conclusions(page)["AUGRC by llm"] == "not comparable"
    assert conclusions(page)["AUGRC at 0.56 by llm"] == "inconclusive"
    assert [one["key"] for one in explorer(page)["curves"]] == [
        "left: llm",
        "left: token_msp",
        "right: llm",
        "right: token_msp",
    ]
    # Single numbers and differences have different intervals, and the caption describes both.
    intervals = "95% confidence intervals: jackknife over 25 participants, t distribution"
    assert f"left and right: {intervals}, Wilson's score" in told
    assert f"right - left: {intervals}" in told
    exact = {float(a["value"] or "nan") for tag, a in Outline(page).elements if tag == "data"}
    assert result.deltas["llm"].augrc.value in exact


def test_intervals_have_a_report_and_a_panel() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=200)
    bounds = np.column_stack([np.full(200, -1.0), np.full(200, 1.0)])
    coverage = evaluate_intervals(truth, bounds, nominal=0.9, resamples=50, groups={"site": ["a", "b"] * 100})
    only_intervals = words(report_html(coverage))
    assert "At a nominal coverage of 0.9 the intervals are under-covered" in only_intervals
    both = words(report_html(run(), coverage=coverage))
    assert "Coverage by site at a nominal coverage of 0.9" in both
    assert "Conclusion" in both


@pytest.mark.parametrize("resamples", [0, 20])
def test_edges(resamples: int) -> None:
    one = Items.from_arrays([1], [1], confidence=[0.5])
    declined = Items.from_arrays([1, 2], [None, None], abstained=[True, True], confidence=[0.5, 0.5])
    assert "The model answers 1 of 1 items" in words(report_html(evaluate(one, resamples=resamples)))
    page = report_html(evaluate(declined, resamples=resamples))
    assert "Nothing was answered: all 2 items were declined" in words(page)
    assert explorer(page)["curves"] == []


def test_a_report_is_written(tmp_path: Path) -> None:
    place = write_report(tmp_path / "report.html", run(resamples=10), title="Mine")
    assert "Mine · abstain report" in place.read_text()
    with pytest.raises(ArgumentError, match="does not exist; create it first"):
        write_report(tmp_path / "nowhere" / "report.html", run(resamples=0))


def test_words() -> None:
    assert join_names(["a"]) == "a"
    assert join_names(list("abcdefg")) == "a, b, c, d and 3 others"


def test_the_other_confidences_are_described_by_their_verdicts() -> None:
    """Two hundred answers, a quarter wrong: one confidence knows which, its copy nearly, one has it upside down."""
    rng = np.random.default_rng(0)
    wrong = np.arange(200) % 4 == 0
    knows = np.where(wrong, 0.2, 0.8) + 0.1 * rng.random(200)
    signals = {"knows": knows, "nearly": knows + 1e-3 * rng.normal(size=200), "upside": 1 - knows}
    items = Items.from_arrays(
        np.zeros(200), wrong.astype(float), signals=signals, cluster=np.arange(200) // 2
    )
    result = evaluate(items, confidence=list(signals), resamples=20).only
    profile = result.profile()
    line = system_verdict(result, profile)[-1]
    close = next(iter({"knows", "nearly"} - {profile.leader}))
    assert line.startswith(f"The comparison with {close} is inconclusive. 1 other is worse.")
    pair = evaluate(items, confidence=["knows", "upside"], resamples=20).only
    line = system_verdict(pair, pair.profile())[-1]
    assert line.startswith("All others are worse. (Paired differences in AUGRC at a level of 0.95. ")


def test_json_in_a_page_cannot_end_its_element() -> None:
    text = embedded_json({"a": "</script><!--&"})
    assert "<" not in text
    assert json.loads(text) == {"a": "</script><!--&"}


def test_safety_and_groups_have_panels() -> None:
    guidance = [False, False, True, True] * 6
    items = Items.from_arrays(
        [1] * 24,
        [1, 0, 1, None] * 6,
        abstained=[False, False, False, True] * 6,
        confidence=np.linspace(0.1, 0.9, 24),
        cluster=np.arange(24),
        metadata={"should_abstain": guidance, "site": [EVIL] * 12 + ["b"] * 12},
    )
    metrics = ["selective_accuracy", "abstention_recall", "abstention_precision"]
    result = evaluate(
        items, confidence="confidence", metrics=metrics, by="site", loss="zero_one", resamples=50
    )
    page = report_html(result)
    told = words(page)
    # Of 24 items, 6 are right and called for, 6 wrong, 6 answered against guidance, 6 declined as they should be.
    assert "12 were answered rightly, 6 were answered wrongly, 6 were declined, and 0 failed" in told
    assert "abstention_recall 0.333" in told
    assert f"site={EVIL}" in told
    assert "Worst group against all others" in told
    assert "img" not in {tag for tag, _ in Outline(page).elements}


def test_a_report_can_have_only_named_metrics() -> None:
    items = Items.from_arrays([1, 0, 1], [1, 1, None], abstained=[False, False, True])
    page = report_html(evaluate(items, metrics="accuracy", resamples=20))
    assert "The model answers 2 of 3 items (66.7%) and declines 1; 50% of its answers are wrong" in words(
        page
    )
    assert explorer(page)["curves"] == []


@pytest.mark.parametrize("systems", [1, 2])
def test_without_a_confidence_the_page_has_no_curve_and_a_remedy(systems: int) -> None:
    items = Items.from_arrays([1, 0] * 20, [1, 1] * 20, item=np.arange(40))
    result = evaluate(*[items] * systems, resamples=20)
    page = report_html(result, mistakes=2)
    told = words(page)
    assert "no confidence in this source" in told
    assert "name one (--confidence, confidence=)" in told
    assert 'id="curves"' not in page
    assert 'id="reliability"' not in page
    assert explorer(page)["curves"] == []
    assert 'class="undefined"' not in page


def test_metrics_of_two_are_compared_by_group() -> None:
    good, bad = clear_cut()
    sites = ["a", "b"] * 20
    both = {
        name: Items.from_arrays(
            one.truth, one.prediction, item=one.item, cluster=one.item, metadata={"site": sites}
        )
        for name, one in {"careless": bad, "careful": good}.items()
    }
    page = report_html(compare(both, metrics="accuracy", by="site", resamples=0))
    heading, *rows = tables(page)["Differences"]
    shown = {row[heading.index("group")]: row[heading.index("conclusion")] for row in rows}
    # The careless one answers 0 to everything: right at site a, wrong at site b.
    assert shown == {"all": "careful is better", "site=a": "inconclusive", "site=b": "careful is better"}
    assert {"careless", "careful", "careful - careless"} <= set(heading)
    assert not re.search(r"\b(?:left|right)\b", re.sub(r"was right|be right|left out", "", words(page)))


def three() -> dict[str, Items]:
    good, bad = clear_cut()
    return {"a": good, EVIL: bad, "c": good}


@pytest.mark.parametrize("simultaneous", [False, True])
def test_several_systems_have_a_report(simultaneous: bool) -> None:
    result = compare(
        three(),
        metrics="augrc",
        confidence="confidence",
        loss="zero_one",
        resamples=200,
        simultaneous=simultaneous,
    )
    page = report_html(result)
    told = words(page)
    assert "Inconclusive: no system is shown to be better than every other one by AUGRC." in told
    assert f"Rank 1\N{EN DASH}2: a and c; rank 3: {EVIL}." in told
    pairs = {row[0]: row[1] for row in tables(page)["Differences between systems"]}
    assert pairs[f"{EVIL} - a: AUGRC"] == "a is better"
    assert pairs[f"c - {EVIL}: AUGRC"] == "c is better"
    assert pairs["c - a: AUGRC"] == "inconclusive"
    assert "img" not in {tag for tag, _ in Outline(page).elements}
    assert ("Each confidence interval is for one comparison by itself" in told) != simultaneous
    assert ("hold for all pairs of systems together" in told) == simultaneous
    heading, *rows = tables(page)["Systems by rank"]
    assert heading == ["system", "verdict", "rank", "coverage", "wrong answers", "AUGRC"]
    assert [row[:3] for row in rows] == [
        ["a", "inconclusive", "1\N{EN DASH}2"],
        ["c", "inconclusive", "1\N{EN DASH}2"],
        [EVIL, "outperformed", "3"],
    ]
    assert "Differences in AUGRC" in draw(result).to_json()


def test_a_result_shows_itself(tmp_path: Path) -> None:
    result = compare(three(), metrics="augrc", confidence="confidence", resamples=20)
    assert "better than" in result._repr_html_()
    pictures = [one for tag, one in Outline(result._repr_html_()).elements if tag == "img"]
    assert [picture["alt"] for picture in pictures] == ["Differences in AUGRC"]
    items = Items.from_arrays([0, 1], [0, 0], signals={EVIL: [0.9, 0.1]})
    shown = Outline(evaluate(items, confidence=EVIL, resamples=0)._repr_html_()).elements
    assert [one["alt"] for tag, one in shown if tag == "img"] == [f"Selective risk, {EVIL}"]
    assert {name for _, one in shown for name in one}.isdisjoint({"onerror", "onload"})
    nothing = Items.from_arrays([0, 1], [None, None], abstained=[True, True], confidence=[0.1, 0.2])
    assert "<img" not in evaluate(nothing, interval="none")._repr_html_()
    assert "<img" not in evaluate(Items.from_arrays([0, 1], [0, 0]), metrics="accuracy")._repr_html_()
    assert "Differences in AUGRC" in result.plot().to_json()
    assert result.report(tmp_path / "report.html").stat().st_size > 1000


def result_with_guarantee() -> Any:
    right = [0] * 200 + [1] * 40
    items = Items.from_arrays([0] * 240, right, confidence=[(240 - row) / 240 for row in range(240)])
    return evaluate(items, resamples=0)


def test_the_page_begins_with_the_threshold_for_the_requested_risk() -> None:
    result = result_with_guarantee()
    page = report_html(result, risk="5%")
    policy = result.only.policy(0.05)
    assert f'<p class="headline">{policy}</p>' in page
    assert str(policy).startswith("To be 95% sure that at most 5% of answers are wrong, answer those with")
    assert "no cluster was named" in page
    assert "Assumptions:" in page
    without = report_html(result)
    assert "To be 95% sure" not in without
    nothing = report_html(result, risk=0.001)
    assert "No threshold has this guarantee: 95% sure that at most 0.1% of answers are wrong" in nothing
    assert "The smallest risk that these data could have guaranteed is" in nothing


def test_two_systems_have_a_sentence_each() -> None:
    items = result_with_guarantee().only.basis.evaluated
    result = compare({"a": items, "b": items}, match="rows", resamples=0)
    page = report_html(result, risk=0.05)
    assert "a: to be 95% sure that at most 5% of answers are wrong" in page
    assert "b: to be 95% sure that at most 5% of answers are wrong" in page


def test_the_explorer_has_the_guaranteed_point_of_each_risk() -> None:
    result = result_with_guarantee()
    curve = explorer(report_html(result))["curves"][0]
    guaranteed = {risk: (curve["k"][place], curve["w"][place]) for risk, place in curve["p"]}
    for risk in (0.02, 0.05, 0.1):
        policy = result.only.policy(risk)
        assert policy.observed is not None
        assert guaranteed[risk] == (policy.observed.answered, policy.observed.wrong)
    assert 0.01 not in guaranteed
    page = report_html(result)
    assert "Guaranteed risk of at most, in %" in page
    assert "Observed risk of at most, in %" in page


def test_a_loss_beyond_one_is_not_printed_in_percent() -> None:
    items = Items.from_arrays([0, 1, 2, 3], [0, 1, 3, 0], confidence=[0.9, 0.8, 0.7, 0.6], scale=(0, 3))
    page = report_html(evaluate(items, loss="abs", resamples=0))
    assert "Observed mean loss of at most" in page
    assert "Guaranteed risk of at most" not in page
    assert explorer(page)["curves"][0]["p"] == []


def test_the_description_of_intervals_comes_from_one_that_varies() -> None:
    """Cmax of a source that cannot abstain does not vary, unlike the other intervals."""
    items = Items.from_arrays([1] * 40, [1, 0] * 20, confidence=list(range(40)))
    page = unescape(report_html(evaluate(items)))
    assert "Of single numbers, 95% confidence intervals: jackknife over 40 rows, t distribution" in page
    assert "intervals: it cannot vary" not in page


def five_systems(resamples: int = 0) -> Result:
    """Five systems over sixty items; each makes more mistakes than the one before, and the first declines ten."""
    rows = np.arange(60)
    systems = {}
    for number in range(5):
        wrong = (rows * 7 + number) % 60 < 6 * number
        systems[f"system {number}"] = Items.from_arrays(
            np.zeros(60),
            wrong.astype(float),
            abstained=(rows < 10) & (number == 0),
            item=rows,
            cluster=rows // 2,
            confidence=np.where(wrong, 0.3, 0.7) + rows / 400,
        )
    return compare(systems, confidence="confidence", loss="zero_one", resamples=resamples)


def test_the_conclusion_comes_before_the_warnings_and_these_before_the_tables() -> None:
    for result in (
        run(),
        compare(dict(zip(("good", "bad"), clear_cut(), strict=True)), resamples=0),
        five_systems(),
    ):
        page = report_html(result)
        body = page[page.index("<main>") :]
        headline, table = body.index('class="headline"'), body.index("<table")
        assert headline < table
        if result.warnings:
            assert headline < body.index('class="warnings"') < table


def test_five_systems_have_one_ranking_and_one_chart_of_all_curves() -> None:
    result = five_systems()
    page = report_html(result)
    heading, *rows = tables(page)["Systems by rank"]
    assert heading[:3] == ["system", "verdict", "rank"]
    assert sorted(row[0] for row in rows) == list(result.systems)
    first = [rank.best for rank in (result.ranks[row[0], "confidence", "augrc"] for row in rows) if rank]
    assert first == sorted(first)
    assert page.count("Title text 'Selective risk, 5 systems'") == 1
    # At most one sentence per finding: the differences of pairs are folded.
    conclusion = page[page.index('id="conclusion"') : page.index('id="systems"')]
    assert conclusion.count("<p") <= 5
    folded = page[page.index("<summary>Differences between all pairs of systems") :]
    assert 'aria-label="Differences between systems"' in folded
    assert len(explorer(page)["curves"]) == 5


def test_a_winner_of_several_is_named_with_its_smallest_lead() -> None:
    good, bad = clear_cut()
    result = compare({"bad": bad, "good": good, "poor": bad}, resamples=0)
    assert result.headline is not None
    assert result.headline.winner == "good"
    page = report_html(result)
    assert (
        "good is better than every other system by AUGRC. Its smallest lead: at the same coverage of 100%, "
        in (words(page))
    )
    verdicts = {row[0]: row[1:3] for row in tables(page)["Systems by rank"][1:]}
    assert verdicts == {
        "good": ["best", "1"],
        "bad": ["outperformed", "2\N{EN DASH}3"],
        "poor": ["outperformed", "2\N{EN DASH}3"],
    }


def test_paper_has_small_charts_in_pairs_and_no_folded_parts() -> None:
    style = re.search(r"<style>(.*?)</style>", report_html(run()), flags=re.DOTALL)
    assert style is not None
    paper = style[1][style[1].index("@media print") :]
    for rule in (
        "details:not([open]) { display: none; }",
        "grid-template-columns: 1fr 1fr",
        "max-height: 66mm",
        "break-inside: avoid",
        "@page",
    ):
        assert rule in paper, rule


def test_rows_without_a_cluster_are_called_rows() -> None:
    items = Items.from_arrays(
        [1, 0] * 20, [1, 1] * 20, confidence=np.linspace(0.1, 0.9, 40), item=np.arange(40)
    )
    for result in (evaluate(items, resamples=0), compare({"a": items, "b": items}, resamples=0)):
        shown = words(report_html(result))
        assert "40 rows, treated as independent" in shown
        assert "jackknife over 40 rows" in shown
        assert not re.search(r"\b(?:clusters|participants)\b", shown), shown
    named = Items.from_arrays(
        [1, 0] * 20, [1, 1] * 20, confidence=np.linspace(0.1, 0.9, 40), cluster=np.arange(40)
    )
    assert "40 items of 40 clusters" in words(report_html(evaluate(named, resamples=0)))


def test_optional_metrics_without_their_data_are_omitted() -> None:
    items = Items.from_arrays(
        [1, 0] * 20, [1, 1] * 20, confidence=np.linspace(0.1, 0.9, 40), item=np.arange(40)
    )
    metrics = ["accuracy", "reliable_accuracy", "abstention_recall"]
    options: dict[str, Any] = {
        "metrics": metrics,
        "confidence": "confidence",
        "selective": True,
        "resamples": 0,
    }
    for result in (evaluate(items, **options), evaluate({"a": items, "b": items}, **options)):
        requested = words(report_html(result))
        assert "abstention_recall" in requested or "abstention recall" in requested
        omitted = words(report_html(result, optional_metrics=metrics))
        assert "accuracy" in omitted
        assert "should_abstain" not in omitted
        assert not re.search(r"abstention.recall|reliable.accuracy|N1", omitted)


def test_formulas_with_outcome_counts_explain_them() -> None:
    items = Items.from_arrays(
        [1] * 4, [1, 0, 1, 1], metadata={"should_abstain": [False, False, True, False]}, item=range(4)
    )
    page = report_html(
        evaluate(items, metrics="over_conservativeness", resamples=0),
        optional_metrics=["over_conservativeness"],
    )
    safety = page[page.index('id="safety"') : page.index('id="definitions"')]
    assert "N3 / (N1 + N2 + N3)" in safety
    assert "N1: right answers to items that should be answered. N2: wrong answers to these items." in safety


def test_a_comparison_without_a_directed_metric_has_no_verdict() -> None:
    good, bad = clear_cut()
    result = compare({"good": good, "bad": bad}, metrics="answer_rate", resamples=0)
    assert result.headline is None
    page = report_html(result)
    assert (
        '<p class="headline">No requested metric has a better direction, so that there is no verdict.</p>'
        in page
    )
    assert "good answers 100% of the items" in words(page)
