"""Build steps of the site that MkDocs does not have: the contributing page, MathML, search from disk and llms.txt.

Formulas are written in LaTeX and converted to MathML, which browsers render without a script or a font. The site can be
opened and searched from disk.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import TYPE_CHECKING

from latex2mathml.converter import convert
from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.nav import Navigation
    from mkdocs.structure.pages import Page

CONTRIBUTING = Path(__file__).parent.parent / "CONTRIBUTING.md"
# A page that is opened from disk cannot start a worker, but the theme searches in a worker.
WORKER = Path(__file__).parent / "worker_from_disk.js"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the contributing page, which is CONTRIBUTING.md of the repository."""
    files.append(File.generated(config, "contributing.md", content=contributing_page()))
    return files


def contributing_page() -> str:
    """Return CONTRIBUTING.md with links that work in docs/; links to files outside of docs/ become text."""
    text = CONTRIBUTING.read_text(encoding="utf-8").replace("](docs/", "](")
    return re.sub(r"\[([^\]]+)\]\((?:[A-Z_]+\.md|\.[^)]*|(?:src|tests|tools|fuzz)/[^)]*)\)", r"\1", text)


def on_page_content(output: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Convert LaTeX to MathML."""
    del page, config, files
    return with_formulas(output)


def with_formulas(text: str) -> str:
    """Return HTML in which every formula that arithmatex marked is MathML."""
    return re.sub(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', _formula, text, flags=re.DOTALL)


def _formula(match: re.Match[str]) -> str:
    display = "block" if match[1] == "div" else "inline"
    return convert(html.unescape(match[2]).strip(), display=display)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Make the search work from disk, without the script that the theme would download."""
    del page, config
    return with_own_worker(output)


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """Do the same for pages that are made from a template, such as 404.html."""
    del template_name, config
    return with_own_worker(output_content)


def with_own_worker(output: str) -> str:
    """Return a page that downloads nothing: it contains a replacement of the theme's worker."""
    return re.sub(r'<script src="https://[^"]*"></script>', f"<script>{WORKER.read_text()}</script>", output)


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Write the list of pages for language models to llms.txt."""
    files.append(File.generated(config, "llms.txt", content=llms_text(nav, config)))
    return nav


def llms_text(nav: Navigation, config: MkDocsConfig) -> str:
    """Return title, summary, and a link to every page by section, in the format of llmstxt.org."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    section = ""
    for page in nav.pages:
        titles = [str(ancestor.title) for ancestor in page.ancestors]
        outermost = titles[-1] if titles else "Start"
        if outermost != section:
            section = outermost
            lines += [*([""] if lines[-1] else []), f"## {section}", ""]
        lines.append(f"- [{_title(page)}]({page.url})")
    return "\n".join([*lines, ""])


def _title(page: Page) -> str:
    if page.title:
        return str(page.title)
    heading = re.search(r"^# (.+)$", page.file.content_string, flags=re.MULTILINE)
    return heading[1] if heading else page.file.name
