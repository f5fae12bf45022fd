"""Sessions that abstain starts for files, in separate processes, because a process has only one Spark context."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ROWS = "truth,prediction,confidence\n" + "yes,yes,0.9\nyes,no,0.4\nno,no,0.7\n" * 4


def abstain(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Evaluate a table in Spark with the command line."""
    (folder / "t.csv").write_text(ROWS)
    return run(folder, "-m", "abstain", "evaluate", "t.csv", "--engine", "spark", *arguments)


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        timeout=600,
        env={**os.environ, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", **variables},
    )


def test_a_master_that_does_not_run_is_one_clear_error(tmp_path: Path) -> None:
    done = abstain(tmp_path, "--master", "spark://127.0.0.1:1")
    assert done.returncode == 2, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("abstain: Spark cannot start a session with the master spark://127.0.0.1:1 (")
    assert "Traceback" not in done.stderr
    assert "\tat org.apache" not in done.stderr


def test_an_unknown_form_of_master_is_refused(tmp_path: Path) -> None:
    done = abstain(tmp_path, "--master", "nonsense")
    assert done.returncode == 2
    assert "master must be an address such as local[4], spark://HOST:7077, yarn or k8s://HOST" in done.stderr


def test_the_address_of_a_connect_server_is_refused(tmp_path: Path) -> None:
    done = abstain(tmp_path, "--master", "sc://127.0.0.1:1")
    assert done.returncode == 2
    assert "master cannot be the address of a Spark Connect server; open its session in Python" in done.stderr


PROGRAM = """
import sys
import abstain
from pyspark.sql import SparkSession

abstain.evaluate("t.csv", engine="spark", master="local[2]", confidence="confidence")
session = SparkSession.getActiveSession()
print(session.conf.get("spark.sql.shuffle.partitions"), session.conf.get("spark.ui.showConsoleProgress"))
"""


def test_a_local_session_has_few_partitions_and_no_progress_bar(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    done = run(tmp_path, "-c", PROGRAM)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["4", "false"]
    assert "Stage" not in done.stderr


def test_a_configured_number_of_partitions_is_kept(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    (tmp_path / "spark-defaults.conf").write_text("spark.sql.shuffle.partitions 3\n")
    done = run(tmp_path, "-c", PROGRAM, SPARK_CONF_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["3", "false"]
