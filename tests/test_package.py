"""The package: cost of imports, public names, and the demo."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import abstain
from examples import EXAMPLES

HEAVY = ("pandas", "sklearn", "scipy", "altair", "duckdb", "numpy", "rich", "typer", "msgspec")


def loaded_after(code: str) -> set[str]:
    program = f"import sys; {code}; print(' '.join(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_loads_nothing_heavy() -> None:
    assert loaded_after("import abstain").isdisjoint(HEAVY)


def test_an_evaluation_loads_neither_frames_nor_scipy() -> None:
    code = "import abstain; abstain.evaluate(abstain.Items.from_arrays([1],[1],confidence=[1]), resamples=5)"
    assert loaded_after(code).isdisjoint({"pandas", "sklearn", "scipy", "altair", "duckdb", "rich", "typer"})


def test_help_needs_no_numpy() -> None:
    code = "import runpy; sys.argv = ['abstain', '--help']\ntry: runpy.run_module('abstain', run_name='__main__')\n"
    code += "except SystemExit: pass\nprint()"
    program = "import sys\n" + code.replace("import runpy; ", "import runpy\n")
    program += "\nprint(' '.join(sorted({name.split('.')[0] for name in sys.modules})))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "evaluate" in done.stdout
    assert set(done.stdout.splitlines()[-1].split()).isdisjoint(
        {"numpy", "rich", "msgspec", "sklearn", "scipy"}
    )


def test_the_list_of_public_names() -> None:
    assert abstain.__all__ == [
        "AbstainError",
        "AbstentionRule",
        "ArgumentError",
        "CoverageResult",
        "DataError",
        "Difference",
        "Estimate",
        "FormatError",
        "Items",
        "Outcome",
        "OutcomeCounts",
        "Policy",
        "PolicyCheck",
        "Result",
        "ResultWarning",
        "Signal",
        "SignalError",
        "SystemResult",
        "__version__",
        "bootstrap",
        "calibrators",
        "check",
        "choose_threshold",
        "compare",
        "evaluate",
        "evaluate_intervals",
        "evaluate_quantiles",
        "evaluate_sets",
        "gate",
        "jackknife",
        "metrics",
        "paired_delta",
        "power",
        "read",
        "read_policy",
        "register_confidence",
    ]


def test_every_public_name_can_be_imported() -> None:
    for name in abstain.__all__:
        assert getattr(abstain, name) is not None
    assert dir(abstain) == abstain.__all__
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        getattr(abstain, "nothing")  # noqa: B009


@pytest.mark.slow
def test_demo_evaluates_two_models_and_suggests_commands(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "abstain", "demo", "--bootstrap-resamples", "500"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stderr == ""
    for words in (
        "images answered",
        "AUGRC",
        "careful: ",
        "overconfident: ",
        "abstain-demo-report.html",
        "Try next:",
    ):
        assert words in done.stdout
    run = tmp_path / "abstain-demo-run.json"
    careful, bold = (abstain.read(run, mode=mode) for mode in ("careful", "overconfident"))
    assert careful.counts.coverage < bold.counts.coverage
    lines = done.stdout[done.stdout.index("Try next:") :].replace("\\\n", " ").splitlines()
    commands = [line.strip() for line in lines if line.strip().startswith("abstain ")]
    assert len(commands) == 3
    for line in commands:
        parts = line.split()[1:]
        again = subprocess.run(
            [sys.executable, "-m", "abstain", *parts],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )
        assert again.returncode == 0, again.stderr
    assert Path(run).exists()


@pytest.mark.slow
def test_demo_creates_its_directory(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "abstain", "demo", "--directory"]
    done = subprocess.run([*command, "new/demo"], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    written = sorted(path.name for path in (tmp_path / "new" / "demo").iterdir())
    assert written == ["abstain-demo-report.html", "abstain-demo-run.json"]
    (tmp_path / "file").touch()
    done = subprocess.run([*command, "file"], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "abstain: file: is a file; pass the path of a directory\n"


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_format_formats_and_still_reports_unfixable_problems(tmp_path: Path) -> None:
    (tmp_path / "ready").touch()
    ruff = tmp_path / "ruff"
    ruff.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/calls\ntest "$1" != check\n')
    ruff.chmod(0o755)
    command = ["make", f"BIN={tmp_path}", f"READY={tmp_path}/ready", "format"]
    done = subprocess.run(command, capture_output=True, cwd=Path(__file__).parent.parent, check=False)
    assert (tmp_path / "calls").read_text() == "check\nformat\n"
    assert done.returncode != 0


@pytest.mark.parametrize("package", ["abstain", "abstain.metrics"])
def test_a_package_loads_its_names_when_they_are_first_used(package: str) -> None:
    code = f"import {package}; before = {{name for name in sys.modules if name.startswith('{package}.')}}; "
    code += f"[getattr({package}, name) for name in {package}.__all__]; print(' '.join(sorted(before)))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
    module = import_module(package)
    assert dir(module) == sorted(module.__all__)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        getattr(module, "nothing")  # noqa: B009


def test_a_package_has_its_public_modules_as_attributes() -> None:
    assert abstain.thresholds is import_module("abstain.thresholds")
    assert abstain.metrics.selective is import_module("abstain.metrics.selective")
    with pytest.raises(AttributeError, match="_nothing"):
        getattr(abstain.metrics, "_nothing")  # noqa: B009


def test_a_small_evaluation_loads_only_the_modules_it_needs(tmp_path: Path) -> None:
    run = EXAMPLES / "run_a.json"
    code = f"import abstain; abstain.evaluate(abstain.read(r'{run}', mode='few_shot'), resamples=5); "
    code += "print(' '.join(name for name in sys.modules if name.startswith('abstain.')))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}"], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    for module in ("calibrators._training", "metrics.sets", "compat", "report"):
        assert f"abstain.{module}" not in loaded


def test_a_call_loads_only_its_command(tmp_path: Path) -> None:
    code = "import runpy; sys.argv = ['abstain', 'schema', 'metrics']\n"
    program = (
        f"import sys\n{code}try: runpy.run_module('abstain', run_name='__main__')\nexcept SystemExit: pass\n"
    )
    program += "print('\\n', *(name for name in sys.modules if name.startswith('abstain.cli.')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    commands = {name for name in done.stdout.splitlines()[-1].split() if "._" not in name}
    assert commands == {"abstain.cli.schema"}
