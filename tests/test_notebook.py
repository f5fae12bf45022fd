"""A real notebook without network access: every output contains its picture and loads nothing."""

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
# The kernel communicates through ZeroMQ, which does not use Python's sockets. Proxies block requests of other programs.
NO_NETWORK = """
import socket
def refuse(*arguments, **options):
    raise OSError("there is no network here")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
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
EXPRESSIONS = [
    *("one", "several", "two", "covered", "sets"),
    *("one.plot()", "one.plot('curve', risk='generalized')", "one.plot('reliability')"),
    *("several.plot('curves')", "several.plot('areas')", "several.plot('curves').properties(width=300)"),
    *("two.plot()", "two.plot('curve')", "two.plot('curve', system='new')"),
    *("covered.plot()", "covered.plot('width')", "sets.plot('coverage-by-size')"),
]


def run(sources: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    """Run cells and return the output of each by media type; empty for a cell without output."""
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
        next((output.data for output in cell.outputs if output.output_type == "execute_result"), {})
        for cell in notebook.cells[1:]
    ]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return the output of each expression in `EXPRESSIONS`, by media type."""
    cell_outputs = run([DATA, *EXPRESSIONS], tmp_path_factory.mktemp("notebook"))
    return dict(zip(EXPRESSIONS, cell_outputs[1:], strict=True))


def pictures(output: dict[str, Any]) -> list[str]:
    """Return all SVG pictures of an output, including those embedded in HTML."""
    embedded = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', output.get("text/html", ""))
    return [
        *([output["image/svg+xml"]] if "image/svg+xml" in output else []),
        *(base64.b64decode(picture).decode() for picture in embedded),
    ]


@pytest.mark.parametrize("source", EXPRESSIONS)
def test_every_output_contains_its_picture(outputs: dict[str, dict[str, Any]], source: str) -> None:
    output = outputs[source]
    (picture,) = pictures(output)
    assert picture.startswith("<svg")
    assert "<path" in picture
    for media_type, text in output.items():
        # A specification contains the address of its schema, which is not fetched.
        if not media_type.endswith("json"):
            assert "<script" not in text, media_type
            assert not re.search(r'(?:src|href)="(?:https?:)?//', text), media_type


def test_a_chart_also_has_a_vega_lite_specification(
    outputs: dict[str, dict[str, Any]],
) -> None:
    output = outputs["one.plot()"]
    (media_type,) = [name for name in output if name.startswith("application/vnd.vegalite.v")]
    assert output[media_type]["$schema"].endswith(".json")
    assert "text/html" not in output, "HTML would be shown instead of the picture"
    assert output["text/plain"] == "Chart('Selective risk, confidence')"


def test_a_result_shows_its_tables_and_a_picture_with_alternative_text(
    outputs: dict[str, dict[str, Any]],
) -> None:
    page = outputs["two"]["text/html"]
    assert '<img alt="Differences in AUGRC" ' in page
    assert "<table" in page
    assert outputs["two"]["text/plain"].startswith("Result of 2 systems over ")


@pytest.mark.slow
def test_the_tutorial_is_a_notebook_that_runs(tmp_path: Path) -> None:
    """The examples run as cells. Their output is that on the page, and the result contains its picture."""
    examples = doctest.DocTestParser().get_examples(TUTORIAL.read_text())
    cells = [example.source for example in examples]
    cell_outputs = run([*cells, "result.plot('reliability')", "both.plot('curve')"], tmp_path)
    for example, output in zip(examples, cell_outputs, strict=False):
        if output:
            assert output["text/plain"] == example.want.rstrip()
    result_output = dict(zip(cells, cell_outputs, strict=False))["result\n"]
    assert [len(pictures(output)) for output in (result_output, *cell_outputs[-2:])] == [1, 1, 1]
