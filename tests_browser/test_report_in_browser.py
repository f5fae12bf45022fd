"""The report in a real browser: self-contained, usable by mouse and by keyboard, and safe against hostile text.

The browser is Debian's chromium, driven by playwright. Every request and every console message is recorded.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from abstain import Items, compare, evaluate, evaluate_intervals
from abstain.metrics.calibration import reliability_curve
from abstain.report.charts import reliability_diagram, save_chart
from abstain.report.html import write_report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import BrowserContext, Page

    Visit = Callable[..., "Watched"]


@dataclass
class Watched:
    """A page, its console messages and its requests."""

    page: Page
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def visit(browser: BrowserContext) -> Iterator[Callable[..., Watched]]:
    """Open a file. Afterwards, the console must be empty and the file must be the only request."""
    opened: list[Watched] = []

    def open_page(path: Path, *, fragment: str = "", width: int = 1200, **media: str) -> Watched:
        page = browser.new_page()
        watched = Watched(page)
        opened.append(watched)
        page.on("console", lambda message: watched.console.append(message.text))
        page.on("pageerror", lambda problem: watched.console.append(str(problem)))
        page.on("dialog", lambda dialog: watched.console.append(dialog.message))
        page.on("request", lambda request: watched.requests.append(request.url))
        page.set_viewport_size({"width": width, "height": 900})
        if media:
            emulate: Any = page.emulate_media
            emulate(**media)
        page.goto(f"{path.as_uri()}{fragment}")
        return watched

    yield open_page
    for watched in opened:
        assert watched.console == []
        assert [url for url in watched.requests if not url.startswith(("file:", "data:"))] == []
        assert len({url for url in watched.requests if url.startswith("file:")}) == 1
        watched.page.close()


# Ten items: by confidence 9, 8, ... 1 with losses 0 0 1 0 0 1 1 0 and two declined.
LOSSES = [0, 0, 1, 0, 0, 1, 1, 0]
EVIL = (
    '</script><script>window.hacked=1</script><img src=x onerror="window.hacked=1">"\'>'
    "<svg onload=window.hacked=1>{{7*7}}"
)


def ten_items(name: str = "sure") -> Items:
    truth = [0] * 10
    prediction = [*LOSSES, None, None]
    return Items.from_arrays(
        truth,
        prediction,
        abstained=[False] * 8 + [True] * 2,
        signals={name: [9, 8, 7, 6, 5, 4, 3, 2, 0, 0]},
    )


@pytest.fixture
def report(tmp_path: Path) -> Path:
    result = evaluate(ten_items(), confidence="sure", loss="zero_one", resamples=200)
    return write_report(tmp_path / "report.html", result)


def text(watched: Watched, selector: str) -> str:
    return watched.page.inner_text(selector)


def test_the_page_opens_with_an_operating_point_and_no_request(visit: Visit, report: Path) -> None:
    watched = visit(report)
    assert text(watched, "#sentence") == (
        "At a confidence of at least 5, of 10 items: 5 answered, 1 wrong, 5 deferred."
    )
    assert watched.page.is_hidden("#curves .static")
    assert watched.page.locator("#plot-selective svg .curve").count() == 1


def test_the_slider_moves_by_keys(visit: Visit, report: Path) -> None:
    watched = visit(report)
    watched.page.focus("#pick-point")
    watched.page.keyboard.press("End")
    assert "8 answered, 3 wrong, 2 deferred" in text(watched, "#sentence")
    watched.page.keyboard.press("ArrowLeft")
    assert "7 answered, 3 wrong, 3 deferred" in text(watched, "#sentence")
    watched.page.keyboard.press("Home")
    assert "1 answered, 0 wrong, 9 deferred" in text(watched, "#sentence")
    assert watched.page.get_attribute("#pick-point", "aria-valuetext") == "coverage 10.0%, risk 0.0%"


def test_every_control_is_reached_by_tab_and_has_a_name(visit: Visit, report: Path) -> None:
    watched = visit(report)
    watched.page.focus("#pick-confidence")
    reached = []
    for _ in range(8):
        reached.append(watched.page.evaluate("document.activeElement.id"))
        watched.page.keyboard.press("Tab")
    assert reached == [
        "pick-confidence",
        "pick-point",
        "pick-coverage",
        "pick-risk",
        "pick-guarantee",
        "pick-threshold",
        "cost-wrong",
        "cost-deferral",
    ]
    controls = "[...document.querySelectorAll('input, select, button')]"
    assert watched.page.evaluate(f"{controls}.every(one => one.labels.length || one.textContent)")


def test_the_pointer_picks_the_nearest_point(visit: Visit, report: Path) -> None:
    watched = visit(report)
    watched.page.locator("#plot-generalized").scroll_into_view_if_needed()
    box = watched.page.locator("#plot-generalized").bounding_box()
    assert box is not None
    left, inner = box["x"] + 46, box["width"] - 56
    watched.page.mouse.click(left + 0.71 * inner, box["y"] + 100)
    assert "7 answered" in text(watched, "#sentence")
    watched.page.mouse.move(left + 0.7 * inner, box["y"] + 100)
    watched.page.mouse.down()
    watched.page.mouse.move(left + 0.2 * inner, box["y"] + 120)
    watched.page.mouse.up()
    assert "2 answered, 0 wrong, 8 deferred" in text(watched, "#sentence")


@pytest.mark.parametrize(
    ("control", "value", "answered", "remark"),
    [
        ("#pick-coverage", "31", "4 answered", ""),
        ("#pick-coverage", "95", "8 answered", "No threshold reaches 95.0%"),
        ("#pick-risk", "20", "5 answered", ""),
        ("#pick-risk", "500", "5 answered", "500% is not between 0% and 100%; nothing was changed"),
        ("#pick-guarantee", "1", "5 answered", "No threshold has a guaranteed risk of 1% or less"),
        ("#pick-risk", "0", "2 answered", ""),
        ("#pick-threshold", "3.5", "6 answered", ""),
        ("#pick-threshold", "99", "1 answered", "No answer has a confidence of 99 or more"),
        ("#pick-threshold", "", "5 answered", "This is not a number"),
    ],
)
def test_numbers_select_an_operating_point(
    visit: Visit, report: Path, control: str, value: str, answered: str, remark: str
) -> None:
    watched = visit(report)
    watched.page.fill(control, value)
    watched.page.keyboard.press("Enter")
    watched.page.keyboard.press("Tab")
    assert answered in text(watched, "#sentence")
    assert text(watched, "#remark").startswith(remark)
    assert bool(text(watched, "#remark")) == bool(remark)


def test_an_edited_field_keeps_its_value(visit: Visit, report: Path) -> None:
    watched = visit(report)
    watched.page.fill("#pick-risk", "22")
    watched.page.keyboard.press("Tab")
    assert watched.page.input_value("#pick-risk") == "22"
    assert "Risk of the answers 20.0%" in text(watched, "#risks")
    assert watched.page.input_value("#pick-coverage") == "50"
    watched.page.focus("#pick-point")
    watched.page.keyboard.press("Home")
    assert watched.page.input_value("#pick-risk") == "0"


def test_a_guaranteed_risk_can_be_requested(visit: Visit, tmp_path: Path) -> None:
    right = [0] * 200 + [1] * 40
    items = Items.from_arrays([0] * 240, right, confidence=[(240 - row) / 240 for row in range(240)])
    result = evaluate(items, resamples=0)
    watched = visit(write_report(tmp_path / "guaranteed.html", result, risk="5%"))
    policy = result.only.policy(0.05)
    assert text(watched, "#conclusion .headline") == str(policy)
    watched.page.fill("#pick-guarantee", "5")
    watched.page.keyboard.press("Tab")
    assert policy.observed is not None
    assert f"{policy.observed.answered} answered" in text(watched, "#sentence")
    assert text(watched, "#remark") == "95% sure, the risk at this point is at most 5%."
    assert text(watched, "#guarantee") == "Guaranteed, 95% sure: the risk at this point is at most 5%."
    assert watched.page.input_value("#pick-guarantee") == "5"
    assert watched.page.locator("#plot-selective .guaranteed").count() > 1
    watched.page.fill("#pick-guarantee", "5.4")
    watched.page.keyboard.press("Tab")
    assert "the largest tested risk up to 5.4%" in text(watched, "#remark")


def test_losses_between_0_and_1_come_with_the_proportion_of_wrong_answers(
    visit: Visit, tmp_path: Path
) -> None:
    items = Items.from_arrays([0, 1, 2, 3], [0, 1, 3, 0], confidence=[0.9, 0.8, 0.7, 0.6], scale=(0, 3))
    watched = visit(write_report(tmp_path / "scale.html", evaluate(items, resamples=0)))
    watched.page.focus("#pick-point")
    watched.page.keyboard.press("End")
    # Losses 0, 0, 1/3 and 1: a mean of a third, and half of the answers are wrong.
    assert "Risk of the answers 33.3%" in text(watched, "#risks")
    assert "Wrong: 50.0% of the answers." in text(watched, "#risks")
    raw = visit(write_report(tmp_path / "raw.html", evaluate(items, loss="abs", resamples=0)))
    assert raw.page.locator("#pick-guarantee").count() == 0
    assert "Observed mean loss of at most" in text(raw, "#explorer")
    raw.page.focus("#pick-point")
    raw.page.keyboard.press("End")
    assert "Risk of the answers 1.000" in text(raw, "#risks")


def test_costs_show_the_cheapest_point(visit: Visit, report: Path) -> None:
    # Wrong 5, deferral 1: 5 answered cost 5 + 5, 8 answered 15 + 2, 2 answered 8: the cheapest.
    watched = visit(report)
    assert "2 answered, 0 wrong, 8 deferred, for 8 in total" in text(watched, "#cheapest")
    watched.page.click("#go-cheapest")
    assert "2 answered" in text(watched, "#sentence")
    watched.page.fill("#cost-wrong", "1")
    assert "8 answered, 3 wrong, 2 deferred, for 5 in total" in text(watched, "#cheapest")
    watched.page.fill("#cost-wrong", "1000")
    watched.page.fill("#cost-deferral", "0")
    assert "for 0 in total" in text(watched, "#cheapest")
    watched.page.fill("#cost-deferral", "-1")
    assert "Enter two costs" in text(watched, "#cheapest")
    assert watched.page.is_disabled("#go-cheapest")


def test_the_state_is_in_the_address(visit: Visit, report: Path) -> None:
    watched = visit(report)
    watched.page.fill("#pick-threshold", "7")
    watched.page.keyboard.press("Tab")
    watched.page.fill("#cost-wrong", "3")
    fragment = watched.page.evaluate("location.hash")
    assert fragment == "#confidence=sure&threshold=7&wrong=3&deferral=1"
    again = visit(report, fragment=fragment)
    assert text(again, "#sentence") == text(watched, "#sentence")
    assert again.page.input_value("#cost-wrong") == "3"
    assert "3 answered" in text(visit(report, fragment="#coverage=0.3"), "#sentence")
    assert "5 answered" in text(visit(report, fragment="#confidence=nobody&threshold=what"), "#sentence")


def test_it_warns_of_a_threshold_chosen_on_the_same_data(visit: Visit, report: Path) -> None:
    assert "The risk at a threshold chosen on these data is too optimistic" in text(
        visit(report), "#explorer"
    )


def test_two_sides_are_explored_apart(visit: Visit, tmp_path: Path) -> None:
    left, right = ten_items(), ten_items()
    result = compare(left, right, confidence="sure", loss="zero_one", match="rows", resamples=100)
    watched = visit(write_report(tmp_path / "two.html", result))
    options = watched.page.locator("#pick-confidence option").all_inner_texts()
    assert options == ["left: sure", "right: sure"]
    watched.page.select_option("#pick-confidence", "right: sure")
    assert "confidence=right" in watched.page.evaluate("location.hash")


def test_three_systems_are_ranked(visit: Visit, tmp_path: Path) -> None:
    """The page has one chart of all curves and fits a phone, and a hostile name stays text."""
    systems = {"a": ten_items(), "b": ten_items(), EVIL: ten_items()}
    result = compare(systems, confidence="sure", loss="zero_one", match="rows", resamples=50)
    place = write_report(tmp_path / "three.html", result)
    watched = visit(place)
    assert watched.page.evaluate("window.hacked") is None
    options = watched.page.locator("#pick-confidence option").all_inner_texts()
    assert options == ["a: sure", "b: sure", f"{EVIL}: sure"]
    assert "Inconclusive: no system is shown to be better than every other one" in text(
        watched, "#conclusion"
    )
    assert EVIL in text(watched, "#systems")
    assert watched.page.locator("#systems > figure.chart").count() == 1
    assert watched.page.is_hidden("#systems details table >> nth=0")
    watched.page.click("#systems summary >> nth=0")
    assert "b - a: AUGRC" in text(watched, "#systems details[open]")
    narrow = visit(place, width=360)
    assert narrow.page.evaluate("document.documentElement.scrollWidth") <= 360


def test_light_dark_narrow_and_print(visit: Visit, report: Path) -> None:
    def ground(watched: Watched) -> Any:
        return watched.page.evaluate("getComputedStyle(document.body).backgroundColor")

    light, dark = visit(report, color_scheme="light"), visit(report, color_scheme="dark")
    assert ground(light) != ground(dark)
    paper = visit(report, color_scheme="dark", media="print")
    assert ground(paper) == "rgb(255, 255, 255)"
    assert paper.page.is_hidden("#go-cheapest")
    narrow = visit(report, width=360)
    assert narrow.page.evaluate("document.documentElement.scrollWidth") <= 360
    tops = [narrow.page.locator(f"#plot-{name}").bounding_box() for name in ("selective", "generalized")]
    assert tops[0] is not None
    assert tops[1] is not None
    assert tops[0]["y"] < tops[1]["y"]


def wordy_report(place: Path) -> Path:
    """Write a report of three systems with long names, and with long prompts and responses of their mistakes."""
    rows = 60
    items = {
        f"a system with a long name, number {number}": Items.from_arrays(
            [0] * rows,
            [int(row % (number + 2) == 0) for row in range(rows)],
            confidence=[row / rows for row in range(rows)],
            item=list(range(rows)),
            metadata={
                "prompt": ["Is there any evidence of it in what the patient said? " * 6] * rows,
                "raw_response": ["There is hardly any evidence in the interview. " * 6] * rows,
            },
        )
        for number in range(3)
    }
    result = compare(items, confidence="confidence", loss="zero_one")
    return write_report(place, result, mistakes=3, responses=True)


def test_a_narrow_screen_has_no_rows_that_fill_it(visit: Visit, tmp_path: Path) -> None:
    """Columns of text keep a minimum width, and their table scrolls."""
    watched = visit(wordy_report(tmp_path / "wordy.html"), width=390)
    heights = watched.page.evaluate(
        "[...document.querySelectorAll('tr')].map((row) => row.getBoundingClientRect().height)"
    )
    assert len(heights) > 20
    assert max(heights) < 320
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= 390
    captions = watched.page.evaluate(
        "[...document.querySelectorAll('caption')].map((one) => one.getBoundingClientRect().right)"
    )
    assert captions
    assert max(captions) <= 390


def test_the_source_is_readable_on_a_narrow_screen(visit: Visit, tmp_path: Path) -> None:
    items = ten_items().with_provenance(path="/data/run.csv", sha256="0123456789abcdef" * 4)
    both = {"a rather long name of a system": items, "another long name of a system": items}
    result = compare(both, confidence="sure", loss="zero_one", match="rows", resamples=0)
    watched = visit(write_report(tmp_path / "two.html", result), width=390)
    heights = watched.page.evaluate(
        "[...document.querySelectorAll('.facts tr')].map((row) => row.getBoundingClientRect().height)"
    )
    assert max(heights) < 160


def interval_report(place: Path) -> Path:
    """Write a report of intervals whose widths and nominal coverages need many digits."""
    draws = np.random.default_rng(0)
    truth = draws.normal(0.0, 0.003, 400)
    size = 0.003 * (1.0 + draws.random(400))
    bounds = np.stack([np.column_stack([-width * size, width * size]) for width in (2.2, 2.6)], axis=2)
    site = [f"a rather long name of a hospital {row % 3}" for row in range(400)]
    return write_report(place, evaluate_intervals(truth, bounds, nominal=[0.97, 0.99], groups={"site": site}))


@pytest.mark.parametrize("width", [390, 820, 1200])
def test_labels_of_axes_do_not_overlap(visit: Visit, tmp_path: Path, width: int) -> None:
    """In the fonts of this browser, which are wider than those that the charts were measured with."""
    for place in (
        interval_report(tmp_path / "intervals.html"),
        wordy_report(tmp_path / "wordy.html"),
        write_report(tmp_path / "small.html", compare({"old": rare(1), "new": rare(2)}, loss="zero_one")),
    ):
        watched = visit(place, width=width)
        watched.page.evaluate(
            "document.querySelectorAll('.static').forEach((one) => { one.hidden = false; })"
        )
        met = watched.page.evaluate(
            """[...document.querySelectorAll('.role-axis-label')].flatMap((axis) => {
                const labels = [...axis.querySelectorAll('text')].filter((text) => text.textContent &&
                    getComputedStyle(text).opacity !== '0' && text.getAttribute('opacity') !== '0');
                const boxes = labels.map((text) => text.getBoundingClientRect());
                return boxes.slice(1).map((box, i) => [labels[i].textContent, labels[i + 1].textContent,
                    box.left < boxes[i].right && boxes[i].left < box.right
                    && box.top < boxes[i].bottom - 1 && boxes[i].top < box.bottom - 1]);
            })"""
        )
        assert len(met) > 5
        assert [pair[:2] for pair in met if pair[2]] == []


def rare(seed: int) -> Items:
    """Answers of which hardly any is wrong, so that every risk is a small number."""
    wrong = np.random.default_rng(seed).random(3000) < 0.001
    return Items.from_arrays([0] * 3000, wrong.astype(int), confidence=np.arange(3000), item=np.arange(3000))


def two_systems_report(place: Path) -> Path:
    """Write a report of two systems with long names and different coverages."""
    result = compare(
        {"a rather careful system": ten_items(), "an overconfident system": ten_items()},
        confidence="sure",
        loss="zero_one",
        match="rows",
        resamples=0,
    )
    return write_report(place, result)


@pytest.mark.parametrize("make", [two_systems_report, wordy_report, interval_report])
def test_the_verdict_is_inside_a_narrow_screen(visit: Visit, tmp_path: Path, make: Any) -> None:
    """The column after the name of a row is the verdict, and a sign shows that more columns follow."""
    watched = visit(make(tmp_path / "report.html"), width=390)
    watched.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    verdicts = watched.page.evaluate(
        """[...document.querySelectorAll('.scroll table')].flatMap((table) => {
            const names = [...table.querySelectorAll('thead th')].map((head) => head.textContent.trim());
            const place = names.findIndex((name) => ['verdict', 'conclusion'].includes(name));
            if (place < 0) return [];
            return [...table.querySelectorAll('tbody tr')].map((row) => {
                const box = row.children[place].getBoundingClientRect();
                return [place, box.left, box.right - parseFloat(getComputedStyle(row.children[place]).paddingRight)];
            });
        })"""
    )
    assert len(verdicts) > 1
    for place, left, right in verdicts:
        assert place == 1
        assert left >= 0
        assert right <= 390
    signs = watched.page.evaluate(
        """[...document.querySelectorAll('.scroll, figure.wide')].filter((box) => box.offsetParent !== null).map(
            (box) => [box.scrollWidth > box.clientWidth + 1, !box.previousElementSibling.hidden]
        )"""
    )
    assert any(wider for wider, _ in signs)
    for wider, signed in signs:
        assert wider == signed


def test_the_name_of_a_row_stays_while_its_table_scrolls(visit: Visit, tmp_path: Path) -> None:
    watched = visit(two_systems_report(tmp_path / "report.html"), width=390)
    left = watched.page.evaluate(
        """(() => {
            const box = document.querySelector('#comparison .scroll');
            box.scrollLeft = 200;
            return box.querySelector('tbody th').getBoundingClientRect().left - box.getBoundingClientRect().left;
        })()"""
    )
    assert left == pytest.approx(0, abs=1)


@pytest.mark.parametrize(("make", "most"), [("one", 4), ("two", 4)])
def test_paper_takes_at_most_four_pages(
    visit: Visit, tmp_path: Path, report: Path, make: str, most: int
) -> None:
    place = report if make == "one" else two_systems_report(tmp_path / "two.html")
    paper = visit(place).page.pdf(format="A4")
    pages = len(re.findall(rb"/Type\s*/Page\b", paper))
    assert 1 <= pages <= most


def test_print_shows_every_chart(visit: Visit, tmp_path: Path) -> None:
    both = {"old": ten_items(), "new": ten_items()}
    result = compare(both, confidence="sure", loss="zero_one", match="rows", resamples=0)
    paper = visit(write_report(tmp_path / "two.html", result), media="print")
    charts = paper.page.locator("figure.chart:not(.static figure)")
    assert charts.count() == 2
    for number in range(charts.count()):
        box = charts.nth(number).bounding_box()
        assert box is not None, charts.nth(number).get_attribute("aria-label")
        assert box["height"] > 40


def hostile_report(place: Path) -> Path:
    items = ten_items(EVIL)
    items = Items.from_arrays(
        [f"{EVIL}-truth"] * 10,
        [f"{EVIL}-{'truth' if not loss else 'else'}" for loss in LOSSES] + [None, None],
        abstained=[False] * 8 + [True] * 2,
        cluster=[f"{EVIL}{row}" for row in range(10)],
        item=[f"{EVIL}{row}" for row in range(10)],
        signals={EVIL: items.signals[EVIL].values / 10},
        metadata={"raw_response": [f"{EVIL}-response"] * 10, "prompt": [f"{EVIL}-prompt"] * 10},
    ).with_provenance(path=f"/tmp/{EVIL}", mode=EVIL, run_id=EVIL, git_commit=EVIL, sha256=EVIL)
    result = evaluate(items, confidence=EVIL, loss="zero_one", resamples=50)
    return write_report(place, result, title=EVIL, command=EVIL, mistakes=5, responses=True)


def test_hostile_text_runs_nothing(visit: Visit, tmp_path: Path) -> None:
    place = hostile_report(tmp_path / "hostile.html")
    watched = visit(place)
    assert watched.page.evaluate("window.hacked") is None
    assert watched.page.locator("img").count() == 0
    assert watched.page.locator("[onerror], [onload]").count() == 0
    assert watched.page.locator("script").count() == 2
    assert text(watched, "h1") == EVIL
    assert EVIL in text(watched, "#plot-selective") or EVIL in (
        watched.page.get_attribute("#plot-selective svg", "aria-label") or ""
    )
    watched.page.focus("#pick-point")
    watched.page.keyboard.press("End")
    again = visit(place, fragment=watched.page.evaluate("location.hash"))
    assert again.page.evaluate("window.hacked") is None
    assert "8 answered" in text(again, "#sentence")


def test_texts_and_ids_are_not_in_the_page_by_default(visit: Visit, tmp_path: Path) -> None:
    items = Items.from_arrays(
        [0, 0],
        [0, 1],
        confidence=[0.9, 0.8],
        cluster=["patient-17", "patient-18"],
        metadata={"raw_response": ["secret-a", "secret-b"], "prompt": ["asked-a", "asked-b"]},
    )
    result = evaluate(items, loss="zero_one", resamples=10)
    plain = write_report(tmp_path / "plain.html", result)
    for word in ("patient-1", "secret", "asked-"):
        assert word not in plain.read_text()
    listed = write_report(tmp_path / "listed.html", result, mistakes=3)
    assert "patient-18" in text(visit(listed), "#mistakes")
    assert "secret" not in listed.read_text()
    full = write_report(tmp_path / "full.html", result, mistakes=3, responses=True)
    assert "secret-b" in text(visit(full), "#mistakes")


def test_ten_thousand_items_stay_small(visit: Visit, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    wrong = rng.random(10_000) < 0.3
    signals = {f"signal_{number}": rng.random(10_000) - 0.3 * wrong for number in range(13)}
    items = Items.from_arrays(
        np.zeros(10_000), wrong.astype(float), signals=signals, cluster=np.arange(10_000) // 10
    )
    result = evaluate(items, confidence=list(signals), loss="zero_one", resamples=100)
    place = write_report(tmp_path / "large.html", result)
    assert place.stat().st_size < 1_500_000
    assert "of 10,000 items" in text(visit(place), "#sentence")


def test_a_thinned_curve_looks_the_same(visit: Visit, tmp_path: Path) -> None:
    """The pixels of the curve through all points of 100,000 items, and of the thinned one."""
    rng = np.random.default_rng(1)
    wrong = rng.random(100_000) < 0.3
    sure = rng.random(100_000) - 0.3 * wrong
    items = Items.from_arrays(
        np.zeros(100_000), wrong.astype(float), signals={"sure": sure}, cluster=np.arange(100_000) // 1000
    )
    result = evaluate(items, confidence="sure", loss="zero_one", resamples=20)
    thin = write_report(tmp_path / "thin.html", result)
    page = thin.read_text()
    found = re.search(r'id="explorer-data">(.*?)</script>', page, flags=re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    curve = result["sure"].curve
    assert len(data["curves"][0]["line"]["c"]) < 3_000
    data["curves"][0]["line"] = {
        "c": curve.coverage.tolist(),
        "r": curve.selective_risk.tolist(),
        "g": curve.generalized_risk.tolist(),
    }
    whole = tmp_path / "whole.html"
    whole.write_text(page[: found.start(1)] + json.dumps(data) + page[found.end(1) :])
    shots = [visit(place).page.locator("#plot-selective svg").screenshot() for place in (thin, whole)]
    differing = visit(thin).page.evaluate(
        """async (shots) => {
            const pixels = await Promise.all(shots.map(async (shot) => {
              const bytes = Uint8Array.from(atob(shot), (letter) => letter.charCodeAt(0));
              const image = await createImageBitmap(new Blob([bytes]));
              const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext("2d");
              context.drawImage(image, 0, 0);
              return context.getImageData(0, 0, image.width, image.height).data;
            }));
            let far = 0;
            for (let i = 0; i < pixels[0].length; i += 4) if (Math.abs(pixels[0][i] - pixels[1][i]) > 64) far += 1;
            return far / (pixels[0].length / 4);
        }""",
        [base64.b64encode(shot).decode() for shot in shots],
    )
    assert differing < 0.001


def test_a_chart_page_draws_without_requests(visit: Visit, tmp_path: Path) -> None:
    curve = reliability_curve([1, 0, 1, 1], [0.1, 0.4, 0.6, 0.9], bins=4)
    watched = visit(
        save_chart(reliability_diagram(curve, title="<img src=x onerror=alert(1)>"), tmp_path / "c.html")
    )
    watched.page.wait_for_selector("#chart svg")
    assert watched.page.locator("#chart svg path").count() > 4
    menu = watched.page.locator(".vega-actions a").all_text_contents()
    assert menu == ["Save as SVG", "Save as PNG"]
    assert watched.console == []
    assert all(request.startswith(("file:", "data:")) for request in watched.requests)
    refused = "fetch('https://example.org/').then(() => 'sent', () => 'refused')"
    assert watched.page.evaluate(refused) == "refused"
    watched.console.clear()  # the browser reports the refused request
