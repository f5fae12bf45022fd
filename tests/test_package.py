"""What importing costs, what is public, and that the demo runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import abstain

HEAVY = ("pandas", "sklearn", "scipy", "altair", "duckdb", "numpy", "rich", "typer", "msgspec")


def loaded_after(code: str) -> set[str]:
    program = f"import sys; {code}; print(' '.join(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_loads_nothing_heavy() -> None:
    assert loaded_after("import abstain").isdisjoint(HEAVY)


def test_judging_loads_neither_frames_nor_scipy() -> None:
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


def test_the_public_names() -> None:
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
        "scan",
    ]


def test_every_public_name_is_there() -> None:
    for name in abstain.__all__:
        assert getattr(abstain, name) is not None
    assert dir(abstain) == abstain.__all__
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        abstain.nothing  # noqa: B018


def test_demo_shows_two_models_judged_and_what_to_try_next(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "abstain", "demo", "--bootstrap-resamples", "500"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stderr == ""
    for words in ("population:", "AURC", "careful", "overconfident", "what the numbers mean", "Try next:"):
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
