"""The report as text: what it says, what it must not say, and that it is one page which fetches nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from abstain import Items, compare, compare_systems, evaluate, read
from abstain.errors import ArgumentError
from abstain.evaluation.conformal import evaluate_intervals
from abstain.inference import Estimate
from abstain.report.html import report_html
from abstain.report.html._explorer import embedded_json
from abstain.report.html._words import difference_words, evaluation_verdict, listed
from examples import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from abstain import Evaluation

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


def run(confidence: str | Sequence[str] = ("llm", "token_msp"), resamples: int = 100) -> Evaluation:
    items = read(EXAMPLES / "run_a.json", mode="few_shot")
    return evaluate(items, confidence=confidence, loss="abs", resamples=resamples)


def words(page: str) -> str:
    return re.sub(r"\s+", " ", " ".join(Outline(page).text))


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
        "3 of 30 participants are left out of every number",
        "flatters itself",
        "Reliability",
        "95% percentile intervals over 100 resamples of 27 participants",
        "abs = abs(pred - gt)",
        "seed 42",
        "abstain report run_a.json",
        "2026-01-03T00:00:00+00:00",
    ):
        assert expected in told, expected
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
    assert "<img" not in result._repr_html_()


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


def test_a_comparison_says_who_is_better() -> None:
    left, right = (read(EXAMPLES / "run_a.json", mode=mode) for mode in ("zero_shot", "few_shot"))
    result = compare(left, right, confidence=["llm", "token_msp"], loss="abs", resamples=200)
    page = report_html(result)
    told = words(page)
    assert "run_a.json (zero_shot) against run_a.json (few_shot)" in told
    assert "cannot tell the sides apart" in told
    assert [one["key"] for one in explorer(page)["curves"]] == [
        "left: llm",
        "left: token_msp",
        "right: llm",
        "right: token_msp",
    ]


def test_intervals_have_a_report_and_a_panel() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=200)
    bounds = np.column_stack([np.full(200, -1.0), np.full(200, 1.0)])
    conformal = evaluate_intervals(truth, bounds, level=0.9, resamples=50, groups={"site": ["a", "b"] * 100})
    alone = words(report_html(conformal))
    assert "At level 0.9 the intervals are under-covered" in alone
    beside = words(report_html(run(), conformal=conformal))
    assert "Coverage by site at level 0.9" in beside
    assert "Verdict" in beside


@pytest.mark.parametrize("resamples", [0, 20])
def test_edges(resamples: int) -> None:
    one = Items.from_arrays([1], [1], confidence=[0.5])
    declined = Items.from_arrays([1, 2], [None, None], abstained=[True, True], confidence=[0.5, 0.5])
    assert "The model answers 1 of 1 items" in words(report_html(evaluate(one, resamples=resamples)))
    page = report_html(evaluate(declined, resamples=resamples))
    assert "Nothing was answered: all 2 items were declined" in words(page)
    assert explorer(page)["curves"] == []


def test_a_result_writes_its_report(tmp_path: Path) -> None:
    place = run(resamples=10).report(tmp_path / "report.html", title="Mine")
    assert "Mine · abstain report" in place.read_text()
    with pytest.raises(ArgumentError, match="does not exist; create it first"):
        run(resamples=0).report(tmp_path / "nowhere" / "report.html")


def test_words() -> None:
    assert listed(["a"]) == "a"
    assert listed(list("abcdefg")) == "a, b, c, d and 3 others"
    assert difference_words(Estimate(0.1, 0.05, 0.2), "AUGRC") == (
        "the left side is better, AUGRC differs by 0.100 [0.050, 0.200]"
    )
    assert difference_words(Estimate(0.1), "AUGRC") == "AUGRC differs by 0.100, without an interval"
    assert difference_words(Estimate(float("nan")), "AUGRC") == "the difference in AUGRC is undefined"
    result = run(confidence="all", resamples=100)
    told = evaluation_verdict(result, result.profile())
    assert any("cannot be told apart from it" in line or "worse by more than chance" in line for line in told)


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


def test_several_systems_have_a_report() -> None:
    truth = [0, 1] * 20
    systems = {
        "a": Items.from_arrays(truth, truth, confidence=np.linspace(0, 1, 40), item=np.arange(40)),
        EVIL: Items.from_arrays(truth, [0] * 40, confidence=np.linspace(0, 1, 40), item=np.arange(40)),
    }
    result = compare_systems(
        systems, metrics="augrc", confidence="confidence", loss="zero_one", resamples=200
    )
    page = report_html(result)
    told = words(page)
    assert "a is better than" in told
    assert EVIL in told
    assert "img" not in {tag for tag, _ in Outline(page).elements}
    assert "better than" in result._repr_html_()
    assert "Differences in augrc" in result.plot().to_json()
