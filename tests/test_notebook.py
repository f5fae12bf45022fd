"""A real notebook, run without a network: every output brings its picture, and asks nobody for anything."""

from __future__ import annotations

import base64
import doctest
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from nbclient import NotebookClient

if TYPE_CHECKING:
    from collections.abc import Sequence

TUTORIAL = Path(__file__).parents[1] / "docs" / "tutorials" / "classifier-in-a-notebook.md"
# The kernel talks through sockets of its own, which Python's are not; the proxies stop what is no Python.
NO_NETWORK = """
import socket
def refused(*arguments, **options):
    raise OSError("there is no network here")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refused
"""
DATA = """
import abstain
import numpy as np
draws = np.random.default_rng(0)
truth, sure = np.arange(200) % 2, draws.random(200)
def model(seed):
    wrong = np.random.default_rng(seed).random(200) > 0.5 + sure / 2
    return abstain.Items.from_arrays(
        truth, truth ^ wrong, abstained=sure < 0.1, confidence=sure, signals={"other": draws.random(200)},
        metadata={"site": ["a", "b"] * 100}, cluster=np.arange(200) // 4, item=np.arange(200))
items = model(1)
one = abstain.evaluate(items, confidence="confidence")
several = abstain.evaluate(items, confidence=["confidence", "other"], metrics="accuracy", by="site")
two = abstain.compare({"old": model(1), "new": model(2)}, confidence="confidence")
bounds = np.column_stack([sure - 0.1, sure + 0.1])
covered = abstain.evaluate_intervals(sure + draws.normal(0, 0.1, 200), bounds, nominal=0.9)
sets = abstain.evaluate_sets(truth, np.column_stack([sure < 0.8, sure > 0.2]), nominal=0.8)
"""
SHOWN = [
    *("one", "several", "two", "covered", "sets"),
    *("one.plot()", "one.plot('curve', risk='generalized')", "one.plot('reliability')"),
    *("several.plot('curves')", "several.plot('areas')", "several.plot('curves').properties(width=300)"),
    *("two.plot()", "two.plot('curve')", "two.plot('curve', system='new')"),
    *("covered.plot()", "covered.plot('width')", "sets.plot('coverage-by-size')"),
]


def run(sources: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    """What each cell shows, by media type; empty where it shows nothing."""
    cells = [nbformat.v4.new_code_cell(source) for source in (NO_NETWORK, *sources)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            patch.setenv(name, "http://127.0.0.1:9")
        patch.setenv("JUPYTER_PLATFORM_DIRS", "1")
        patch.setenv("IPYTHONDIR", str(folder))
        client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}})
        client.execute()
    nbformat.validate(notebook)
    return [
        next((each.data for each in cell.outputs if each.output_type == "execute_result"), {})
        for cell in notebook.cells[1:]
    ]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each expression of `SHOWN` shows, by media type."""
    shown = run([DATA, *SHOWN], tmp_path_factory.mktemp("notebook"))
    return dict(zip(SHOWN, shown[1:], strict=True))


def pictures(output: dict[str, Any]) -> list[str]:
    """Every SVG of an output, whichever way it is carried."""
    carried = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', output.get("text/html", ""))
    return [
        *([output["image/svg+xml"]] if "image/svg+xml" in output else []),
        *(base64.b64decode(each).decode() for each in carried),
    ]


@pytest.mark.parametrize("source", SHOWN)
def test_every_output_brings_its_picture(outputs: dict[str, dict[str, Any]], source: str) -> None:
    output = outputs[source]
    (picture,) = pictures(output)
    assert picture.startswith("<svg")
    assert "<path" in picture
    for form, text in output.items():
        # A specification names its schema, which nobody fetches.
        if not form.endswith("json"):
            assert "<script" not in text, form
            assert not re.search(r'(?:src|href)="(?:https?:)?//', text), form


def test_a_chart_comes_as_a_specification_too_for_notebooks_that_can_draw_it(
    outputs: dict[str, dict[str, Any]],
) -> None:
    output = outputs["one.plot()"]
    (form,) = [each for each in output if each.startswith("application/vnd.vegalite.v")]
    assert output[form]["$schema"].endswith(".json")
    assert "text/html" not in output, "it would be shown in place of the picture"
    assert output["text/plain"] == "Chart('Selective risk, confidence')"


def test_a_result_shows_its_tables_and_says_what_its_picture_is(outputs: dict[str, dict[str, Any]]) -> None:
    page = outputs["two"]["text/html"]
    assert '<img alt="Differences in AUGRC" ' in page
    assert "<table" in page
    assert outputs["two"]["text/plain"].startswith("Result of 2 systems over ")


@pytest.mark.slow
def test_the_tutorial_is_a_notebook_that_runs(tmp_path: Path) -> None:
    """Its examples as cells: what they show is what the page says, and the result brings its picture."""
    examples = doctest.DocTestParser().get_examples(TUTORIAL.read_text())
    cells = [example.source for example in examples]
    shown = run([*cells, "result.plot('reliability')", "both.plot('curve')"], tmp_path)
    for example, output in zip(examples, shown, strict=False):
        if output:
            assert output["text/plain"] == example.want.rstrip()
    told = dict(zip(cells, shown, strict=False))
    assert len(pictures(told["result\n"])) == len(pictures(shown[-1])) == len(pictures(shown[-2])) == 1
