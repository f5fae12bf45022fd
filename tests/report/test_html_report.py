"""The report as text: what it says, what it must not say, and that it is one page which fetches nothing."""

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
    """The rows of every table of a page, heading first, by what a screen reader calls the table."""
    found = {}
    for label, body in re.findall(r'role="region" aria-label="(.*?)">(.*?)</table>', page, flags=re.DOTALL):
        rows = re.findall(r"<tr.*?>(.*?)</tr>", body, flags=re.DOTALL)
        cells = [re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row, flags=re.DOTALL) for row in rows]
        found[label] = [[re.sub(r"<.*?>|\s+", " ", cell).strip() for cell in row] for row in cells]
    return found


def conclusion(page: str, label: str = "Differences") -> dict[tuple[str, str], str]:
    """What the comparison says, by confidence and metric."""
    heading, *rows = tables(page)[label]
    assert heading[-1] == "conclusion"
    return {(row[heading.index("confidence")], row[heading.index("metric")]): row[-1] for row in rows}


def explorer(page: str) -> Any:
    found = re.search(r'id="explorer-data">(.*?)</script>', page, flags=re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_the_panels_of_an_evaluation() -> None:
    page = report_html(run(), command="abstain report run_a.json", created_at=NOW)
    told = words(page)
    for expected in (
        "run_a.json (few_shot)",
        "The model answers 150 of 216 items and declines 66",
        "3 of 30 participants are not in any number",
        "loss abs = abs(pred - gt) (requested)",
        "loss abs: requested. abs = abs(pred - gt)",
        "Warnings",
        "flatters itself",
        "Reliability",
        "95% intervals: jackknife over 27 clusters, t distribution",
        "The band holds the 95% jackknife interval of the risk at each threshold by itself",
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


def test_ids_and_responses_are_left_out_unless_asked_for() -> None:
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
def test_the_comparison_says_which_side_is_better_and_its_mirror_the_other(
    order: tuple[str, str], side: str
) -> None:
    systems = dict(zip(("good", "bad"), clear_cut(), strict=True))
    result = compare({name: systems[name] for name in order}, resamples=0)
    page = report_html(result)
    told = conclusion(page)
    assert told["confidence", "AUGRC"] == "good is better"
    assert told["confidence", "AURC"] == "good is better"
    # Both answer everything: nobody answers more.
    assert told["any", "Cmax"] == "no winner"
    assert "AUGRC at coverage 1.00: good is better than bad by" in words(page)
    assert "bad is better" not in words(page)
    first, second = order
    assert tables(page)["Differences"][0][2:5] == [first, second, f"{second} - {first}"]
    assert f"Comparison: {second} - {first}" in words(page)
    assert f"Selective risk, {first} and {second}" in page
    # The verdict is asked, not made here.
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
        assert conclusion(page)["any", "Cmax"] == "no winner"
        other = "right" if side == "left" else "left"
        assert f"Cmax: {side} is higher than {other} by 0.500" in words(page)
        assert conclusion(page)["confidence", "AUGRC"] == "not comparable"


def test_a_comparison_that_cannot_be_told_says_so() -> None:
    left, right = (read(EXAMPLES / "run_a.json", mode=mode) for mode in ("zero_shot", "few_shot"))
    result = compare(left, right, confidence=["llm", "token_msp"], loss="abs", resamples=200)
    page = report_html(result)
    told = words(page)
    assert "run_a.json (zero_shot) against run_a.json (few_shot)" in told
    assert "AUGRC by llm at coverage 0.56: inconclusive, right - left = " in told
    assert conclusion(page)["llm", "AUGRC"] == "not comparable"
    assert conclusion(page)["llm", "AUGRC at 0.56"] == "inconclusive"
    assert [one["key"] for one in explorer(page)["curves"]] == [
        "left: llm",
        "left: token_msp",
        "right: llm",
        "right: token_msp",
    ]
    # Single numbers and differences have intervals of their own kinds, and each says which.
    assert "left and right: 95% intervals: jackknife over 25 clusters, t distribution, Wilson's score" in told
    assert "right - left: 95% intervals: jackknife over 25 clusters, t distribution" in told
    exact = {float(a["value"] or "nan") for tag, a in Outline(page).elements if tag == "data"}
    assert result.deltas["llm"].augrc.value in exact


def test_intervals_have_a_report_and_a_panel() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=200)
    bounds = np.column_stack([np.full(200, -1.0), np.full(200, 1.0)])
    coverage = evaluate_intervals(truth, bounds, nominal=0.9, resamples=50, groups={"site": ["a", "b"] * 100})
    alone = words(report_html(coverage))
    assert "At a claim of 0.9 the intervals are under-covered" in alone
    beside = words(report_html(run(), coverage=coverage))
    assert "Coverage by site at a claim of 0.9" in beside
    assert "Verdict" in beside


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


def test_the_other_confidences_are_told_by_their_verdicts() -> None:
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
    told = system_verdict(result, profile)[-1]
    close = next(iter({"knows", "nearly"} - {profile.leader}))
    assert told.startswith(f"{close} cannot be told apart from it; 1 other is worse by more than chance")
    pair = evaluate(items, confidence=["knows", "upside"], resamples=20).only
    line = system_verdict(pair, pair.profile())[-1]
    assert line.startswith("All others are worse by more than chance (paired differences in AUGRC, jackknife")


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
    assert "12 were answered rightly, 6 answered wrongly, 6 declined, and 0 failed" in told
    assert "abstention_recall 0.333" in told
    assert f"site={EVIL}" in told
    assert "Worst group against all others" in told
    assert "img" not in {tag for tag, _ in Outline(page).elements}


def test_metrics_alone_have_a_report() -> None:
    items = Items.from_arrays([1, 0, 1], [1, 1, None], abstained=[False, False, True])
    page = report_html(evaluate(items, metrics="accuracy", resamples=20))
    assert "The model answers 2 of 3 items" in words(page)
    assert explorer(page)["curves"] == []


@pytest.mark.parametrize("systems", [1, 2])
def test_without_a_confidence_there_is_no_curve_and_the_page_says_how_to_name_one(systems: int) -> None:
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
    told = {row[heading.index("group")]: row[-1] for row in rows}
    # The careless one answers 0 to everything: right at site a, wrong at site b.
    assert told == {"all": "careful is better", "site=a": "inconclusive", "site=b": "careful is better"}
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
    assert "AUGRC: no system is shown to be better than every other one." in told
    assert f"AUGRC at coverage 1.00: a is better than {EVIL} by" in told
    assert f"AUGRC at coverage 1.00: c is better than {EVIL} by" in told
    assert "AUGRC at coverage 1.00: inconclusive, c - a = 0.000 [" in told
    assert "img" not in {tag for tag, _ in Outline(page).elements}
    assert ("Each interval is for one comparison by itself" in told) != simultaneous
    assert ("hold for all pairs of systems together" in told) == simultaneous
    heading, *rows = tables(page)["Systems with their ranks"]
    assert [row[heading.index("rank")] for row in rows if row[0] in ("a", "c")] == ["1-2", "1-2"]
    assert 'id="curves"' not in page
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


def promised_result() -> Any:
    right = [0] * 200 + [1] * 40
    items = Items.from_arrays([0] * 240, right, confidence=[(240 - row) / 240 for row in range(240)])
    return evaluate(items, resamples=0)


def test_the_page_begins_with_what_may_be_answered_at_the_risk_asked_for() -> None:
    result = promised_result()
    page = report_html(result, risk="5%")
    policy = result.only.policy(0.05)
    assert f'<p class="headline">{policy}</p>' in page
    assert str(policy).startswith("To be 95% sure that at most 5% of answers are wrong, answer those with")
    assert "no cluster was named" in page
    assert "It rests on this:" in page
    without = report_html(result)
    assert "To be 95% sure" not in without
    nothing = report_html(result, risk=0.001)
    assert "No threshold has this guarantee: 95% sure that at most 0.1% of answers are wrong" in nothing
    assert "The smallest risk that these data could have guaranteed is" in nothing


def test_two_systems_have_a_sentence_each() -> None:
    items = promised_result().only.basis.evaluated
    result = compare({"a": items, "b": items}, match="rows", resamples=0)
    page = report_html(result, risk=0.05)
    assert "a: to be 95% sure that at most 5% of answers are wrong" in page
    assert "b: to be 95% sure that at most 5% of answers are wrong" in page


def test_the_explorer_knows_what_is_promised_for_each_risk() -> None:
    result = promised_result()
    curve = explorer(report_html(result))["curves"][0]
    guaranteed = {risk: (curve["k"][place], curve["w"][place]) for risk, place in curve["p"]}
    for risk in (0.02, 0.05, 0.1):
        policy = result.only.policy(risk)
        assert policy.observed is not None
        assert guaranteed[risk] == (policy.observed.answered, policy.observed.wrong)
    assert 0.01 not in guaranteed
    page = report_html(result)
    assert "Largest coverage whose risk is promised to be at most, in %" in page
    assert "Risk seen of at most, in %" in page


def test_a_loss_that_is_no_share_is_not_told_in_per_cent() -> None:
    items = Items.from_arrays([0, 1, 2, 3], [0, 1, 3, 0], confidence=[0.9, 0.8, 0.7, 0.6], scale=(0, 3))
    page = report_html(evaluate(items, loss="abs", resamples=0))
    assert "Mean loss seen of at most" in page
    assert "promised to be at most" not in page
    assert explorer(page)["curves"][0]["p"] == []


def test_how_intervals_are_made_is_told_by_one_that_varies() -> None:
    """Cmax of a source that cannot abstain cannot vary; that says nothing of the other intervals."""
    items = Items.from_arrays([1] * 40, [1, 0] * 20, confidence=list(range(40)))
    page = unescape(report_html(evaluate(items)))
    assert "Of single numbers, 95% intervals: jackknife over 40 clusters, t distribution" in page
    assert "intervals: it cannot vary" not in page
