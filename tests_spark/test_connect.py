"""A Spark Connect session, whose client only sends statements, in a separate process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent.parent / "tests"

PROGRAM = """
import gc
import sys
import time
from pathlib import Path

sys.path[:0] = sys.argv[2:]
from pyspark.sql import SparkSession

import abstain
import test_engine_comparisons as comparisons
import test_engines as engines

session = SparkSession.builder.remote("local[2]").getOrCreate()
for name, value in {"shuffle.partitions": "2", "codegen.wholeStage": "false", "adaptive.enabled": "false"}.items():
    session.conf.set(f"spark.sql.{name}", value)
folder = Path(sys.argv[1])
path = engines.written(engines.frame(1000, clusters=600), folder / "t.parquet")
rows = session.read.parquet(str(path))
assert "connect" in type(rows).__module__
engines.assert_same(
    abstain.evaluate(rows, **engines.ROLES), abstain.evaluate(path, engine="numpy", **engines.ROLES)
)
systems = comparisons.files(comparisons.pair(600, clusters=500), folder)
remote_systems = {name: session.read.parquet(str(path)) for name, path in systems.items()}
comparisons.assert_same_comparison(
    abstain.compare(remote_systems, metrics="augrc", **comparisons.ROLES),
    abstain.compare(systems, engine="numpy", metrics="augrc", **comparisons.ROLES),
)
gc.collect()
end = time.monotonic() + 60
# Listing tables through the catalog fails if one is dropped meanwhile.
while session.sql("SHOW VIEWS LIKE 'abstain_*'").collect():
    assert time.monotonic() < end, "a view remains"
    time.sleep(0.05)
session.stop()
print("the same")
"""


def test_a_session_of_spark_connect_gives_the_same_numbers(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, tmp_path, TESTS / "readers", TESTS],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        # Most statements run only once, so optimizing them takes longer than running them.
        env={**os.environ, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split("\n")[-2].endswith("the same")
