"""The documentation, opened from disk: search and formulas work, and nothing is loaded from a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import BrowserContext, Page

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def page(browser: BrowserContext) -> Iterator[Page]:
    """A page. After the test, the console must be empty, and only files may have been loaded."""
    page = browser.new_page()
    messages: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda problem: messages.append(str(problem)))
    page.on("request", lambda request: requests.append(request.url))
    page.set_viewport_size({"width": 1300, "height": 900})
    yield page
    assert messages == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    page.close()


def test_search_finds_a_metric(site: Path, page: Page) -> None:
    page.goto((site / "index.html").as_uri())
    page.locator("label.md-search__icon").first.wait_for(state="attached")
    page.locator(".md-search__input").focus()
    page.keyboard.type("winkler")
    found = page.locator(".md-search-result__link")
    found.first.wait_for()
    assert any("intervals" in (link.get_attribute("href") or "") for link in found.all())


def test_formulas_are_drawn(site: Path, page: Page) -> None:
    page.goto((site / "definitions.html").as_uri())
    formulas = page.locator("article math")
    assert formulas.count() > 40
    heights = formulas.evaluate_all("all => all.map(one => one.getBoundingClientRect().height)")
    assert min(heights) > 5
    # A fraction takes two lines, and no LaTeX remains.
    assert max(heights) > 30
    assert "\\frac" not in page.inner_text("article")


def test_the_reference_has_the_integrations(site: Path) -> None:
    page = (site / "reference" / "python" / "integrations.html").read_text(encoding="utf-8")
    assert 'id="abstain.integrations.sklearn.ThresholdedClassifier"' in page
    assert 'id="abstain.integrations.inspect.token_confidence"' in page


def test_the_site_has_an_inventory_and_a_list_of_pages(site: Path) -> None:
    assert (site / "objects.inv").read_bytes().startswith(b"# Sphinx inventory")
    pages = (site / "llms.txt").read_text(encoding="utf-8")
    assert pages.startswith("# abstain\n")
    links = re.findall(r"\]\(([^)]+)\)", pages)
    assert len(links) > 50
    assert all((site / link).exists() for link in links)
