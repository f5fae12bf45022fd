"""Create the screenshots and charts of the README and the documentation: `make screenshots` (needs chromium).

The report is that of the demo. It is generated again, so that every screenshot shows the current code.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parent / "images"
# The tables of the tutorial, with the same columns.
TABLE = Path(__file__).parent / "data" / "with-examples.csv"
OTHER = Path(__file__).parent / "data" / "plain.csv"
COLUMNS = [
    *("--truth", "truth", "--prediction", "answer", "--abstained", "declined", "--cluster", "patient"),
    *("--item", "question", "--scale", "0,3", "--confidence", "sure"),
]
EXAMPLE = Path(__file__).parent.parent / "tests" / "data" / "examples" / "run_b.json"
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
]
WIDTH = 1120


def main() -> None:
    """Make a report of the example run, and photograph its parts."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.html"
        shutil.copy(EXAMPLE, Path(scratch) / "run.json")
        options = ["--confidence", "token_msp,verbalized,llm", "--loss", "abs"]
        command = [sys.executable, "-m", "abstain", "report", "run.json", "--mode", "few_shot", *options]
        subprocess.run([*command, "-o", report.name, "-q"], check=True, cwd=scratch)
        chart = [sys.executable, "-m", "abstain", "plot", str(TABLE), *COLUMNS, "--loss", "abs"]
        subprocess.run([*chart, "-o", str(IMAGES / "curve.svg"), "-q"], check=True, cwd=scratch)
        both = [sys.executable, "-m", "abstain", "plot", str(OTHER), str(TABLE), *COLUMNS, "--loss", "abs"]
        both += ["--name", "plain", "--name", "with examples", "--intersection-only", "--chart", "curve"]
        subprocess.run([*both, "-o", str(IMAGES / "both.svg"), "-q"], check=True, cwd=scratch)
        _photograph(report, Path(scratch) / "profile")


def _photograph(report: Path, profile: Path) -> None:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch_persistent_context(
            profile, executable_path=program, args=ARGUMENTS, headless=True
        )
        page = browser.new_page()
        page.set_viewport_size({"width": WIDTH, "height": 860})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.goto(f"{report.as_uri()}#confidence=token_msp&coverage=0.5&wrong=5&deferral=1")
            page.reload()
            page.locator("#curves").screenshot(path=IMAGES / f"explorer-{scheme}.png")
            page.evaluate("window.scrollTo(0, 0)")
            page.screenshot(path=IMAGES / f"report-{scheme}.png")
        browser.close()


if __name__ == "__main__":
    main()
