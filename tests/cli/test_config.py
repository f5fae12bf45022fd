"""Project settings: which file is used, its allowed content, its precedence, and the printed remarks."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from abstain import cli
from abstain.cli._config import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., tuple[int, str, str]]

HOW_TO = Path(__file__).parents[2] / "docs" / "guides" / "configuration.md"
ROWS = [f"{row % 2},{row * 7 % 3 % 2},{row % 10 / 10},p{row % 12}" for row in range(60)]
TABLE = "\n".join(["mark,said,prob,person", *ROWS, ""])
COLUMNS_SET = '[columns]\ntruth = "mark"\nprediction = "said"\nconfidence = "prob"\ncluster = "person"\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a table, and a folder below it."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "below").mkdir()
    (tmp_path / "t.csv").write_text(TABLE)
    (tmp_path / "below" / "t.csv").write_text(TABLE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: Path
) -> Callable[..., tuple[int, str, str]]:
    assert project.is_dir()

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["abstain", *(str(argument) for argument in arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        text = capsys.readouterr()
        assert isinstance(stop.value.code, int)
        return stop.value.code, text.out, text.err

    return call


def test_a_project_file_sets_missing_options(run: Run, project: Path) -> None:
    assert run("evaluate", "t.csv")[0] == 2  # which column is the truth?
    (project / "abstain.toml").write_text("level = 0.8\n" + COLUMNS_SET)
    code, out, err = run("evaluate", "t.csv")
    assert code == 0
    assert err == (
        "abstain.toml sets truth = mark, prediction = said, confidence = prob, cluster = person, level = 0.8; "
        "--no-config ignores it\n"
    )
    assert "60 items of 12 persons" in out
    assert "80% confidence intervals" in out
    typed = ("--truth", "mark", "--prediction", "said", "--confidence", "prob", "--cluster", "person")
    assert run("evaluate", "t.csv", *typed, "--level", 0.8, "--no-config")[1] == out


def test_a_typed_option_wins_even_if_it_has_the_default_value(run: Run, project: Path) -> None:
    (project / "abstain.toml").write_text("level = 0.8\n" + COLUMNS_SET)
    code, out, err = run("evaluate", "t.csv", "--level", 0.95, "--cluster", "prob")
    assert code == 0
    assert "95% confidence intervals" in out
    assert "60 items of 10 probs" in out
    assert "level" not in err
    assert "cluster" not in err


def test_the_option_correct_replaces_truth_and_prediction_of_the_project_file(
    run: Run, project: Path
) -> None:
    (project / "abstain.toml").write_text(COLUMNS_SET)
    code, _, err = run("evaluate", "t.csv", "--correct", "mark")
    assert code == 0
    assert "sets confidence = prob, cluster = person;" in err


def test_quiet_and_no_config(run: Run, project: Path) -> None:
    (project / "abstain.toml").write_text(COLUMNS_SET)
    assert run("evaluate", "t.csv", "-q")[::2] == (0, "")
    code, _, err = run("evaluate", "t.csv", "--no-config")
    assert (code, "abstain.toml" in err) == (2, False)


def test_a_command_uses_only_settings_that_it_has_an_option_for(run: Run, project: Path) -> None:
    (project / "abstain.toml").write_text('loss = "zero_one"\n')
    assert run("metrics", "accuracy")[2] == ""
    assert "abstain.toml" not in run("check", "t.csv")[2]  # it has no --loss


def test_the_nearest_file_is_used_up_to_the_root_of_the_repository(run: Run, project: Path) -> None:
    (project / "abstain.toml").write_text(COLUMNS_SET)
    below = project / "below"
    with pytest.MonkeyPatch.context() as there:
        there.chdir(below)
        code, _, err = run("evaluate", "t.csv")
        assert code == 0
        assert err.startswith(f"{project / 'abstain.toml'} sets truth = mark")
        # A pyproject.toml without [tool.abstain] is ignored.
        (below / "pyproject.toml").write_text('[project]\nname = "x"\n')
        assert run("evaluate", "t.csv")[2] == err
        (below / "pyproject.toml").write_text("[tool.abstain]\nlevel = 0.5\n")
        assert run("evaluate", "t.csv", "--correct", "mark")[2].startswith("pyproject.toml sets level = 0.5;")
        (below / "abstain.toml").write_text("level = 0.6\n")
        assert run("evaluate", "t.csv", "--correct", "mark")[2].startswith("abstain.toml sets level = 0.6;")
        # Files above the root of a nested repository are ignored.
        (below / "abstain.toml").unlink()
        (below / "pyproject.toml").unlink()
        (below / ".git").mkdir()
        assert run("evaluate", "t.csv")[0] == 2


def test_outside_of_home_and_repository_only_the_working_directory_is_searched(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / ".git").rmdir()
    (project / "abstain.toml").write_text(COLUMNS_SET)
    monkeypatch.chdir(project / "below")
    monkeypatch.setenv("HOME", "/nowhere")
    assert run("evaluate", "t.csv")[0] == 2
    monkeypatch.setenv("HOME", str(project))
    assert run("evaluate", "t.csv")[0] == 0


def test_gates_of_the_project_file_are_used_unless_the_call_has_one(run: Run, project: Path) -> None:
    (project / "abstain.toml").write_text('gates = ["cmax below 0.5", "aurc above 0"]\n' + COLUMNS_SET)
    code, out, err = run("gate", "t.csv")
    assert code == 1
    assert "2 gates" in err
    assert "cmax is 1.000" in out
    assert "aurc is" in out
    code, out, err = run("gate", "t.csv", "--fail-if", "cmax below 0.5")
    assert code == 0
    assert "gate" not in err
    assert "aurc is" not in out


@pytest.mark.parametrize("file", ["abstain.toml", "pyproject.toml"])
def test_a_project_file_cannot_import_code(run: Run, project: Path, file: str) -> None:
    module = f"harm_of_{file.partition('.')[0]}"
    (project / f"{module}.py").write_text(
        f"import os\nos.mkdir({str(project / 'harmed')!r})\nclass Metric: pass\n"
    )
    heading = "" if file == "abstain.toml" else "[tool.abstain]\n"
    columns = COLUMNS_SET.replace("[columns]", "[tool.abstain.columns]" if heading else "[columns]")
    (project / file).write_text(f'{heading}gates = ["{module}:Metric above 0.5"]\n{columns}')
    code, out, err = run("gate", "t.csv")
    assert (code, out) == (2, "")
    assert "gates[0] names a metric by its import path, and a project file must not run code" in err
    assert not (project / "harmed").exists()
    # On the command line, the caller decides to import it.
    code, _, err = run("gate", "t.csv", "--no-config", "--fail-if", f"{module}:Metric above 0.5")
    assert code == 2
    assert "a metric must be a BaseMetric" in err
    assert (project / "harmed").exists()


def test_the_project_file_names_systems(run: Run, project: Path) -> None:
    (project / "u.csv").write_text(TABLE)
    (project / "abstain.toml").write_text('[names]\nt = "the new one"\n' + COLUMNS_SET)
    arguments = ("compare", "t.csv", "u.csv", "--match", "rows")
    code, out, err = run(*arguments)
    assert code == 0
    assert "name = the new one, u" in err
    assert "the new one" in out
    assert "the new one" not in run(*arguments, "--name", "a", "--name", "b")[1]


def test_a_report_shows_a_command_that_includes_the_settings(run: Run, project: Path) -> None:
    (project / "abstain.toml").write_text("level = 0.8\n" + COLUMNS_SET)
    assert run("report", "t.csv", "-o", "r.html", "-q")[0] == 0
    page = (project / "r.html").read_text()
    assert "--truth mark --prediction said --confidence prob --cluster person --level 0.8" in page


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            'losses = "abs"',
            "abstain.toml: unknown key of abstain.toml 'losses' (did you mean 'loss'?); known: loss",
        ),
        ('[columns]\ntruht = "a"', "abstain.toml: unknown key of columns 'truht' (did you mean 'truth'?)"),
        ('level = "0.9"', "abstain.toml: level must be a number, got text"),
        ("level = true", "abstain.toml: level must be a number, got true or false"),
        ("level = 95", "abstain.toml: level must fulfil 0 < level < 1, got 95"),
        ("loss = 1", "abstain.toml: loss must be text, got a number"),
        ("columns = []", "abstain.toml: columns must be a table, got an empty one"),
        ('[columns]\ntruth = ["a"]', "abstain.toml: columns.truth must be text, got a list"),
        ('[columns]\ntruth = ""', "abstain.toml: columns.truth must be text, got an empty one"),
        ('gates = "x"', "abstain.toml: gates must be a list of text with at least one entry, got text"),
        ("gates = [1]", "abstain.toml: gates[0] must be text, got a number"),
        ("names.t = 2026-01-01", "abstain.toml: names.t must be text, got a date or a time"),
        ("level = ", "abstain.toml: not TOML: Invalid value (at "),
        ("a = " + "[" * 5000, "abstain.toml: nested too deeply; --no-config ignores the file"),
    ],
)
def test_a_wrong_setting_is_an_error(run: Run, project: Path, content: str, message: str) -> None:
    (project / "abstain.toml").write_text(content)
    code, out, err = run("evaluate", "t.csv")
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    # Without the file, the same call works.
    assert run("evaluate", "t.csv", "--no-config", "--correct", "mark")[0] == 0


def test_a_file_must_be_text_with_a_table(run: Run, project: Path) -> None:
    (project / "abstain.toml").write_bytes(b"\xff\xfe\x00")
    assert "abstain.toml: not UTF-8 text, as TOML requires" in run("evaluate", "t.csv")[2]
    (project / "abstain.toml").unlink()
    (project / "pyproject.toml").write_text("[tool]\nabstain = 3\n")
    assert "pyproject.toml: tool.abstain must be a table, got a number" in run("evaluate", "t.csv")[2]


def test_the_how_to_page_has_every_key_and_valid_examples(run: Run, project: Path) -> None:
    page = HOW_TO.read_text()
    for name in COLUMNS:
        assert f"`{name}`" in page
    for block in page.split("```toml\n")[1:]:
        text = block.partition("```")[0]
        name = text.removeprefix("# ").split("\n")[0]
        assert tomllib.loads(text)
        (project / name).write_text(text)
        assert "must be" not in run("evaluate", "t.csv")[2]
        assert f"{name} sets" in run("evaluate", "t.csv")[2]
        (project / name).unlink()
    assert "--no-config" in run("evaluate", "--help-all")[1]
    assert "abstain.toml" in run("--help")[1]
