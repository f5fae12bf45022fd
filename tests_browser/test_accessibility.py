"""Accessibility of the pages: axe-core finds no violations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

from abstain import Items, compare, evaluate, evaluate_intervals
from abstain.report.html import write_report

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import BrowserContext


def items(seed: int) -> Items:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 200)
    prediction = np.where(rng.random(200) < 0.8, truth, 1 - truth)
    names = [f"item {number}" for number in range(200)]
    return Items.from_arrays(
        truth,
        prediction,
        item=names,
        abstained=rng.random(200) < 0.1,
        confidence=rng.random(200),
        metadata={"site": rng.choice(["north", "south"], 200)},
    )


def one_system(path: Path) -> None:
    result = evaluate(items(0), metrics=["accuracy", "expected_calibration_error"], by="site", selective=True)
    write_report(path, result, mistakes=3)


def two_systems(path: Path) -> None:
    write_report(path, compare({"old model": items(0), "new model": items(1)}, truth_may_differ=True))


def three_systems(path: Path) -> None:
    systems = {f"model {number}": items(number) for number in range(3)}
    write_report(path, compare(systems, truth_may_differ=True))


def intervals(path: Path) -> None:
    truth = np.arange(100.0)
    write_report(path, evaluate_intervals(truth, np.column_stack([truth - 1, truth + 2]), nominal=0.9))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("make", [one_system, two_systems, three_systems, intervals])
def test_a_report_has_no_barrier(
    browser: BrowserContext, tmp_path: Path, make: Any, width: int, scheme: Any
) -> None:
    make(tmp_path / "report.html")
    page = browser.new_page()
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.goto((tmp_path / "report.html").as_uri())
    found = Axe().run(page)
    page.close()
    assert found.violations_count == 0, found.generate_report()
