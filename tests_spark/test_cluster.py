"""A standalone Spark cluster with separate processes gives the same numbers as the table in memory."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import ProxyHandler, build_opener

import polars as pl
import pytest

import abstain

sys.path[:0] = [str(Path(__file__).parent.parent / "tests" / part) for part in ("readers", "")]

from test_engines import ROLES, assert_same, frame  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from abstain.evaluation import Result

    Processes = list[subprocess.Popen[bytes]]

ROWS = 300_000
PARTITIONS = 12
HOST = "127.0.0.1"
# Most statements run only once, so optimizing them takes longer than running them.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def wait_for(condition: Callable[[], Any], what: str, seconds: float = 120) -> Any:
    """Return the first true value of a condition; fail if it does not become true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.02)
    pytest.fail(f"no {what} within {seconds:g} seconds")


def start_daemon(processes: Processes, log: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a master or a worker in a new process group, which will also contain the executors that it starts."""
    import pyspark  # noqa: PLC0415

    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS,
    }
    options = ("--host", HOST, "--port", "0", "--webui-port", "0")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", *options, *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    processes.append(process)
    return process


def kill_groups(processes: Processes) -> None:
    """Kill daemons and their executors without a chance to clean up."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Cluster:
    """A master, its workers and a session."""

    def __init__(self, processes: Processes, folder: Path) -> None:
        self.processes = processes
        self.folder = folder
        log = folder / "master.log"
        start_daemon(processes, log, "master.Master")
        address = rf"spark://{re.escape(HOST)}:\d+"
        self.url = wait_for(lambda: re.search(address, log.read_text()), "address of the master").group()
        for _ in range(2):
            self.start_worker()
        self.session = self._create_session()

    def start_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker; the master then starts one executor of the session on it."""
        name = f"worker-{len(self.processes)}"
        resources = ("--cores", "1", "--memory", "512m", "--work-dir", str(self.folder / name))
        log = self.folder / f"{name}.log"
        return start_daemon(self.processes, log, "worker.Worker", self.url, *resources)

    def _create_session(self) -> Any:
        from pyspark.sql import SparkSession  # noqa: PLC0415

        settings = {
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.driver.extraJavaOptions": JAVA_OPTIONS,
            "spark.executor.extraJavaOptions": JAVA_OPTIONS,
            "spark.executor.memory": "512m",
            "spark.locality.wait": "0s",
            "spark.log.level": "OFF",  # the loss of an executor is expected
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.files.minPartitionNum": str(PARTITIONS),
            "spark.sql.shuffle.partitions": "6",
            "spark.ui.enabled": "true",  # settings of an earlier session in this process are inherited
            "spark.ui.liveUpdate.period": "0",
            "spark.ui.port": "0",
            "spark.ui.showConsoleProgress": "false",
        }
        builder = SparkSession.builder.master(self.url).appName("abstain")
        for name, value in settings.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()

    def status(self, path: str) -> Any:
        """Return a resource of Spark's status API."""
        context = self.session.sparkContext
        url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/{path}"
        with build_opener(ProxyHandler({})).open(url, timeout=10) as response:
            return json.load(response)

    def executors(self, resource: str = "executors") -> dict[str, Any]:
        """Return the status of every executor by its id; "allexecutors" includes those that were lost."""
        return {executor["id"]: executor for executor in self.status(resource) if executor["id"] != "driver"}

    def count_failed_tasks(self) -> int:
        return sum(stage["numFailedTasks"] for stage in self.status("stages"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    processes: Processes = []
    with contextlib.ExitStack() as stack:
        stack.callback(kill_groups, processes)
        started = Cluster(processes, tmp_path_factory.mktemp("cluster"))
        stack.callback(started.session.stop)
        assert started.session.sparkContext.master == started.url
        wait_for(lambda: len(started.executors()) == 2, "executor on each of the two workers")
        yield started


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    """Return rows with weights, missing values, and clusters that are named by numbers and by text."""
    rows = frame(ROWS, clusters=ROWS // 10)
    return rows.with_columns(
        pl.when("a").then(None).otherwise("p").alias("p"),
        pl.format("Patient {}", "patient_id").alias("patient_name"),
    )


@pytest.fixture(scope="module")
def rows(cluster: Cluster, table: pl.DataFrame) -> Any:
    """Return the same rows as a Spark DataFrame, with one file per partition."""
    folder = cluster.folder / "table"
    folder.mkdir()
    for number, part in enumerate(table.iter_slices(-(-len(table) // PARTITIONS))):
        part.write_parquet(folder / f"{number}.parquet")
    spark_frame = cluster.session.read.parquet(str(folder))
    assert spark_frame.rdd.getNumPartitions() == PARTITIONS
    return spark_frame


def evaluate(source: Any, cluster_column: str) -> Result:
    return abstain.evaluate(source, weight="times", **{**ROLES, "cluster": cluster_column})


def test_a_cluster_gives_the_same_numbers_as_rows_in_memory(
    cluster: Cluster, table: pl.DataFrame, rows: Any
) -> None:
    before = cluster.executors()
    aggregated = evaluate(rows, "patient_id")
    after = cluster.executors()
    assert_same(aggregated, evaluate(table, "patient_id"))
    assert len(before) == 2
    for name in before:
        assert after[name]["completedTasks"] > before[name]["completedTasks"]


def test_the_numbers_survive_the_loss_of_a_worker(cluster: Cluster, table: pl.DataFrame, rows: Any) -> None:
    others = cluster.executors()
    failed_before = cluster.count_failed_tasks()
    worker = cluster.start_worker()
    (lost,) = wait_for(lambda: cluster.executors().keys() - others.keys(), "executor of the new worker")
    with ThreadPoolExecutor(1) as pool:
        evaluation = pool.submit(evaluate, rows, "patient_name")
        # The executor's cached rows and shuffle results will be lost and have to be computed again.
        wait_for(lambda: cluster.executors()[lost]["rddBlocks"], "rows kept by the executor")
        # A stopped executor cannot finish its task, so the kill interrupts a task.
        os.killpg(worker.pid, signal.SIGSTOP)
        time.sleep(0.5)
        wait_for(lambda: cluster.executors()[lost]["activeTasks"], "task of the stopped executor")
        assert cluster.session.sparkContext.statusTracker().getActiveStageIds()
        assert not evaluation.done()
        kill_groups([worker])
        aggregated = evaluation.result(timeout=300)
    assert_same(aggregated, evaluate(table, "patient_name"))
    executors = cluster.executors("allexecutors")
    assert not executors[lost]["isActive"]
    assert all(executors[name]["isActive"] for name in others)
    assert cluster.count_failed_tasks() > failed_before
