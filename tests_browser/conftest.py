"""A real browser: Debian's chromium, driven by playwright, with every request and every console message noted."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import BrowserContext, Page

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass
class Watched:
    """A page, and what it said and asked for."""

    page: Page
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program, "install chromium first: apt-get install chromium"
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"), executable_path=program, args=ARGUMENTS, headless=True
        )
        yield context
        context.close()


@pytest.fixture
def visit(browser: BrowserContext) -> Iterator[Callable[..., Watched]]:
    """Open a file; afterwards, nothing may have been said on the console and nothing asked for but the file."""
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
            page.emulate_media(**media)  # type: ignore[arg-type]
        page.goto(f"{path.as_uri()}{fragment}")
        return watched

    yield open_page
    for watched in opened:
        assert watched.console == []
        assert [url for url in watched.requests if not url.startswith(("file:", "data:"))] == []
        assert len({url for url in watched.requests if url.startswith("file:")}) == 1
        watched.page.close()
