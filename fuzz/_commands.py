"""Cases for every command, with sources to read and outputs to write."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from fuzz._case import Case
from fuzz._values import SECRET, arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "Source",
    "commands_without_source",
    "coverage_commands",
    "item_commands",
    "with_output",
    "with_wrong_option",
]

FEW = ("--bootstrap-resamples", "5")
_FORMS = st.sampled_from(
    (
        (),
        ("--json",),
        ("--format", "csv"),
        ("--format", "json"),
        ("--format", "markdown"),
        ("--format", "latex"),
        ("-q",),
    )
)
_SELDOM = st.sampled_from((False, False, False, True))
_TABLES = st.sampled_from(((), ("--format", "csv"), ("--format", "text"), ("--format", "markdown"), ("-q",)))
_METRICS = st.sampled_from(
    ("aurc", "augrc", "accuracy", "ece", "cmax", "risk_at_coverage@0.8", "selective_accuracy")
)
_BUNDLES = st.sampled_from(
    ("default_benchmark", "safety", "accuracy,ece,brier_score", "macro_f1", "reliable_accuracy")
)
_CONDITIONS = (
    "{} above 0.2",
    "{} below 0.5",
    "{} worse by 0.01",
    "{} higher by 0",
    "{} at matched coverage worse by 0",
)


@dataclass(frozen=True, slots=True)
class Source:
    """A file that can be evaluated.

    Attributes:
        name: the path of the file.
        content: its bytes.
        flags: the options that reading it requires.
        further: other files of the case by path.
        signals: the names of its signals.
        groups: the columns that can be passed to ``--by``.
    """

    name: str
    content: bytes
    flags: tuple[str, ...] = ()
    further: Mapping[str, bytes] = field(default_factory=dict)
    signals: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def case(self, *command: str) -> Case:
        """Return the case of one command on this source."""
        return Case(commands=(command,), files={self.name: self.content, **self.further}, secrets=(SECRET,))


def item_commands(source: Source, other: Source | None = None) -> st.SearchStrategy[Case]:
    """Draw a command that evaluates items, on one source, or on two if the command takes two."""
    return st.sampled_from(_COMMAND_NAMES).flatmap(lambda name: _COMMANDS[name](source, other or source))


# Tables that an engine can aggregate without loading them.
_AGGREGATED = (".csv", ".parquet", ".jsonl")


@st.composite
def _evaluate(draw: st.DrawFn, source: Source, other: Source) -> Case:
    command = ["evaluate", source.name, *source.flags, *FEW]
    if draw(_SELDOM):
        command += ["--metric", draw(st.one_of(_METRICS, _BUNDLES))]
        if draw(st.booleans()) and source.groups:
            command += ["--by", draw(st.sampled_from(source.groups))]
    if draw(st.booleans()) and source.signals:
        command += ["--confidence", draw(st.sampled_from((*source.signals, "all", "default")))]
    if source.name.endswith(_AGGREGATED) and draw(_SELDOM):
        command += ["--engine", "duckdb"]
    return source.case(*command, *draw(_FORMS))


@st.composite
def _check(draw: st.DrawFn, source: Source, other: Source) -> Case:
    flags = [part for part in source.flags if part not in ("--loss", "abs")]
    return source.case(
        "check", source.name, *flags, *draw(st.sampled_from(((), ("--json",), ("--format", "csv"))))
    )


def _pair(source: Source, other: Source) -> tuple[Source, str]:
    """Return the first source with the second as a further file, and the name of the second."""
    name = f"other-{other.name.replace('/', '-')}"
    return replace(source, further={**source.further, name: other.content}), name


@st.composite
def _compare(draw: st.DrawFn, source: Source, other: Source) -> Case:
    both, second = _pair(source, other)
    flags = [*source.flags, "--metric", draw(_METRICS), *draw(_TABLES)]
    flags += draw(st.sampled_from(([], ["--match", "rows"], ["--truth-may-differ"], ["--intersection-only"])))
    if all(name.endswith(_AGGREGATED) for name in (source.name, other.name)) and draw(_SELDOM):
        flags += ["--engine", "duckdb"]
    return both.case("compare", source.name, second, *flags, *FEW)


@st.composite
def _gate(draw: st.DrawFn, source: Source, other: Source) -> Case:
    both, second = _pair(source, other)
    condition = draw(st.sampled_from(_CONDITIONS))
    # cmax has no direction, so a condition cannot call it worse.
    metrics = _METRICS.filter(lambda name: name != "cmax") if "worse" in condition else _METRICS
    condition = condition.format(draw(metrics))
    command = ["gate", source.name, *source.flags, "--fail-if", condition, *draw(_TABLES), *FEW]
    if "by" in condition or draw(st.booleans()):
        command += ["--baseline", second, *draw(st.sampled_from(((), ("--match", "rows"))))]
    if all(name.endswith(_AGGREGATED) for name in (source.name, other.name)) and draw(_SELDOM):
        command += ["--engine", "duckdb"]
    if draw(st.booleans()):
        command += ["--junit", "gate.xml", "--markdown", "gate.md"]
    return both.case(*command)


@st.composite
def _power(draw: st.DrawFn, source: Source, other: Source) -> Case:
    both, second = _pair(source, other)
    pilot = [source.name, *draw(st.sampled_from(([], [second, "--match", "rows"])))]
    size = draw(st.sampled_from(("0.02", "0.3", "1e-300")))
    return both.case("power", *pilot, *source.flags, "--metric", draw(_METRICS), "--difference", size)


# A policy with a fixed threshold, so that `apply` works for every table.
_POLICY = {
    "schema_version": "1",
    "risk_type": "selective",
    "risk": 0.1,
    "sure": 0.95,
    "threshold": 0.5,
    "shown": 0.5,
    "seen": {"items": 10, "answered": 5, "coverage": 0.5, "wrong": 0, "risk": 0.0, "p_value": 0.01},
    "method": "pseudo-cluster",
    "search": "fixed-sequence",
    "guarantee": "asymptotic",
    "confidence": {"name": "confidence", "quantiles": [0.0, 0.5, 1.0], "clusters": 10},
    "loss": {"name": "zero_one", "definition": "1 if pred != gt else 0", "rule": "loss zero_one: requested"},
    "data": {"fingerprint": "", "items": 10, "answered": 10, "clusters": 10},
}


@st.composite
def _threshold(draw: st.DrawFn, source: Source, other: Source) -> Case:
    risk = draw(st.sampled_from(("5%", "0.2", "50%", "99%", "5", "nan")))
    more = draw(
        st.sampled_from(
            (
                (),
                ("--json",),
                ("--finite-sample",),
                ("--split",),
                ("--risk-type", "joint"),
                ("--needless", "20%"),
            )
        )
    )
    command = ["threshold", source.name, *source.flags, "--risk", risk, *more]
    if draw(st.booleans()) and source.groups:
        command += ["--by", draw(st.sampled_from(source.groups)), *draw(st.sampled_from(((), ("--worst",))))]
    return source.case(*command)


@st.composite
def _apply(draw: st.DrawFn, source: Source, other: Source) -> Case:
    name = draw(st.sampled_from((*source.signals, "confidence")))
    record = {**_POLICY, "confidence": {"name": name, "quantiles": [0.0, 0.5, 1.0], "clusters": 10}}
    with_policy = replace(source, further={**source.further, "policy.json": json.dumps(record).encode()})
    if draw(st.booleans()):
        return with_policy.case("threshold", "policy.json", "--check", source.name, *source.flags)
    return with_policy.case("apply", "policy.json", source.name)


@st.composite
def _report(draw: st.DrawFn, source: Source, other: Source) -> Case:
    more = draw(
        st.sampled_from(((), ("--mistakes", "2"), ("--mistakes", "2", "--responses"), ("--title", "<b>")))
    )
    return source.case("report", source.name, *source.flags, *FEW, *more, "-q")


@st.composite
def _plot(draw: st.DrawFn, source: Source, other: Source) -> Case:
    chart = draw(
        st.sampled_from(((), ("--chart", "curves"), ("--chart", "areas"), ("--chart", "reliability")))
    )
    ending = draw(st.sampled_from(("json", "json", "json", "svg", "png", "pdf")))
    return source.case("plot", source.name, *source.flags, *FEW, *chart, "-o", f"figure.{ending}")


@st.composite
def _calibrate(draw: st.DrawFn, source: Source, other: Source) -> Case:
    flags = [part for part in source.flags if part in ("--mode", "few_shot")]
    ends = ["-o", "calibration.json", *draw(st.sampled_from(((), ("--json",), ("-q",))))]
    if draw(st.booleans()):
        return source.case("calibrate", "verbalized", source.name, *flags, "--folds", "2", *ends)
    method = draw(
        st.sampled_from(
            ("temperature", "logistic", "platt", "linear", "isotonic", "beta", "histogram_binning")
        )
    )
    features = draw(st.sampled_from((*source.signals, "token_msp")))
    trained = ("--method", method, "--features", features, "--folds", "2")
    return source.case("calibrate", "train", source.name, *flags, *trained, *ends)


@st.composite
def _run(draw: st.DrawFn, source: Source, other: Source) -> Case:
    """Draw a dry run, which checks its input and calls no model."""
    columns = ("truth", "label", "id", "cluster", "no such column")
    question = draw(
        st.sampled_from(
            (
                *(("--question", name) for name in columns),
                *(("--template", f"{{{name}}} ?") for name in columns),
                ("--template", "{x!r} {"),
                ("--instrument", "PHQ-8"),
            )
        )
    )
    further = draw(
        st.sampled_from(
            (
                *((), ("--scale", "0,3"), ("--choices", "a|b"), ("--choices", "label"), ("--truth", "label")),
                *(("--limit", "2"), ("--mode", "few_shot", "--examples", other.name), ("--text", "label")),
            )
        )
    )
    signals = draw(st.sampled_from(("", "verbalized,tokens", "evidence", "consistency:3", "x")))
    options = ("--model", "mockllm/model", "--signals", signals, "--dry-run", *question, *further)
    return source.case("run", source.name, *options)


_COMMANDS: Mapping[str, Callable[[Source, Source], st.SearchStrategy[Case]]] = {
    "evaluate": _evaluate,
    "check": _check,
    "compare": _compare,
    "gate": _gate,
    "power": _power,
    "threshold": _threshold,
    "apply": _apply,
    "calibrate": _calibrate,
    "plot": _plot,
    "report": _report,
    "run": _run,
}
# Slow commands are drawn less often.
_COMMAND_NAMES = (
    *("evaluate",) * 8,
    *("check",) * 4,
    *("compare",) * 3,
    *("gate",) * 3,
    *("power",) * 2,
    *("threshold",) * 3,
    *("apply",) * 2,
    *("calibrate",) * 2,
    *("run",) * 2,
    "plot",
    "report",
)


@st.composite
def coverage_commands(draw: st.DrawFn, source: Source, name: str) -> Case:
    """Draw `intervals` or `sets` on a table with the columns y, low, high, set, weight, patient, site and x."""
    predictions = ("--low", "low", "--high", "high") if name == "intervals" else ("--set", "set")
    command = [
        name,
        source.name,
        "--truth",
        "y",
        *predictions,
        "--nominal",
        draw(st.sampled_from(("0.9", "0.5"))),
        *FEW,
    ]
    for option, column in (
        ("--weight", "weight"),
        ("--cluster", "patient"),
        ("--by", "site"),
        ("--feature", "x"),
    ):
        if draw(st.booleans()):
            command += [option, column]
    return source.case(
        *command, *draw(st.sampled_from((("--json",), ("--json",), ("--format", "csv"), (), ("-q",))))
    )


@st.composite
def commands_without_source(draw: st.DrawFn) -> Case:
    """Draw `demo`, `metrics` or `schema`, which read no file, a command without its input, or an unknown command."""
    words = st.one_of(_METRICS, _BUNDLES, arguments())
    command_names = (
        "evaluate",
        "compare",
        "gate",
        "report",
        "threshold",
        "apply",
        "check",
        "plot",
        "intervals",
        "sets",
        "calibrate",
        "demo",
        "no-such-command",
    )
    command = draw(
        st.one_of(
            st.just(("demo", *FEW)),
            st.lists(words, max_size=2).map(lambda drawn: ("metrics", *drawn)),
            st.sampled_from(("metrics", "calibration", "conformal", "policy", "", "x")).map(
                lambda kind: ("schema", kind)
            ),
            st.tuples(st.sampled_from(command_names), arguments()).map(
                lambda pair: (*pair, "--bootstrap-resamples", "nan")
            ),
        )
    )
    return Case(commands=(command,), secrets=(SECRET,))


# ------------------------------------------------------------------------------------------- changes to a command

_OPTIONS = (
    *("--scale", "--truth", "--prediction", "--correct", "--abstained", "--failed", "--low"),
    *("--high", "--set", "--weight"),
    *("--item", "--cluster", "--null-prediction", "--abstain-rule", "--scorer", "--filter"),
    *("--input-format", "--mode"),
    *("--loss", "--confidence", "--metric", "--by", "--coverage-grid", "--area-coverage"),
    *("--convention", "--level", "--seed"),
    *("--calibration", "--instrument", "--match", "--reference", "--margin", "--fail-if"),
    *("--baseline", "--title", "--nominal"),
    *("--bins", "--eta", "--classes", "--members", "--method", "--features", "--target", "--folds"),
    *("--chart", "--format"),
    *(
        "--risk",
        "--sure",
        "--risk-type",
        "--search",
        "--start",
        "--grid",
        "--needless",
        "--check",
        "--policy",
    ),
)
_FITTING = st.sampled_from(
    (
        "truth",
        "prediction",
        "confidence",
        "abstained",
        "patient_id",
        "note",
        "run",
        "csv",
        "jsonl",
        "inspect",
        "lm-eval",
        "all",
    )
)


@st.composite
def with_wrong_option(draw: st.DrawFn, case: Case) -> Case:
    """Add an option to a case, whose value may be invalid."""
    added = (draw(st.sampled_from(_OPTIONS)), draw(st.one_of(_FITTING, arguments())))
    return replace(case, commands=tuple((*command, *added) for command in case.commands))


@st.composite
def with_output(draw: st.DrawFn, case: Case, *, sound: bool = True) -> Case:
    """Add an output to a case: a new file, an existing file, or, if not `sound`, a path that must not be written."""
    (command,) = case.commands
    without_output = ("check", "metrics", "schema", "demo", "power")
    if command[0] in without_output or {"-o", "--json", "-q", "--check"} & set(command):
        return case
    ending = {"report": "html", "compare": "csv", "gate": "txt"}.get(command[0], "json")
    if command[0] == "apply":  # the output has the format of the input
        ending = command[2].rpartition(".")[2]
    output = draw(
        st.sampled_from(
            ("new", "old") if sound else ("new", "old", "input", "link", "nowhere", "folder", "odd")
        )
    )
    name, files, links = f"output.{ending}", dict(case.files), dict(case.links)
    source = next(iter(files), "")
    if output == "old":
        files[name] = b"the old content"
    elif output == "input" and source:
        name = source
    elif output == "link" and source:
        links[name] = source
    elif output == "nowhere":
        name = f"nowhere/{name}"
    elif output == "folder":
        files["folder/file"], name = b"", "folder"
    elif output == "odd":
        name = draw(st.sampled_from(("x" * 300, "a\x1b[31mb.json", "\udcff.json", "-", "é.json", " ")))
    return replace(case, commands=((*command, "-o", name),), files=files, links=links)
