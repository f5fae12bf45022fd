"""Commands: every verb, with a source that it reads and a place that it writes to."""

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
    "ask",
    "ask_about_coverage",
    "ask_without_a_source",
    "with_a_wrong_option",
    "with_output",
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
    """A file that can be judged: what it is called, what it holds, and what has to be said about it."""

    name: str
    content: bytes
    flags: tuple[str, ...] = ()
    further: Mapping[str, bytes] = field(default_factory=dict)
    signals: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def case(self, *command: str) -> Case:
        """The case of one command on this source."""
        return Case(commands=(command,), files={self.name: self.content, **self.further}, secrets=(SECRET,))


def ask(source: Source, other: Source | None = None) -> st.SearchStrategy[Case]:
    """One of the verbs that judge items, on one source, or on two where the verb takes two."""
    return st.sampled_from(_OFTEN).flatmap(lambda verb: _VERBS[verb](source, other or source))


# Tables that an engine may count in place of loading them.
_COUNTED = (".csv", ".parquet", ".jsonl")


@st.composite
def _evaluate(draw: st.DrawFn, source: Source, other: Source) -> Case:
    command = ["evaluate", source.name, *source.flags, *FEW]
    if draw(_SELDOM):
        command += ["--metric", draw(st.one_of(_METRICS, _BUNDLES))]
        if draw(st.booleans()) and source.groups:
            command += ["--by", draw(st.sampled_from(source.groups))]
    if draw(st.booleans()) and source.signals:
        command += ["--confidence", draw(st.sampled_from((*source.signals, "all", "default")))]
    if source.name.endswith(_COUNTED) and draw(_SELDOM):
        command += ["--engine", "duckdb"]
    return source.case(*command, *draw(_FORMS))


@st.composite
def _check(draw: st.DrawFn, source: Source, other: Source) -> Case:
    flags = [part for part in source.flags if part not in ("--loss", "abs")]
    return source.case(
        "check", source.name, *flags, *draw(st.sampled_from(((), ("--json",), ("--format", "csv"))))
    )


def _pair(source: Source, other: Source) -> tuple[Source, str]:
    """Two sources in one, and the name of the second."""
    name = f"other-{other.name.replace('/', '-')}"
    return replace(source, further={**source.further, name: other.content}), name


@st.composite
def _compare(draw: st.DrawFn, source: Source, other: Source) -> Case:
    both, second = _pair(source, other)
    flags = [*source.flags, "--metric", draw(_METRICS), *draw(_TABLES)]
    flags += draw(st.sampled_from(([], ["--match", "rows"], ["--truth-may-differ"], ["--intersection-only"])))
    if all(name.endswith(_COUNTED) for name in (source.name, other.name)) and draw(_SELDOM):
        flags += ["--engine", "duckdb"]
    return both.case("compare", source.name, second, *flags, *FEW)


@st.composite
def _gate(draw: st.DrawFn, source: Source, other: Source) -> Case:
    both, second = _pair(source, other)
    condition = draw(st.sampled_from(_CONDITIONS))
    # More coverage is neither better nor worse by itself.
    metrics = _METRICS.filter(lambda name: name != "cmax") if "worse" in condition else _METRICS
    condition = condition.format(draw(metrics))
    command = ["gate", source.name, *source.flags, "--fail-if", condition, *draw(_TABLES), *FEW]
    if "by" in condition or draw(st.booleans()):
        command += ["--baseline", second, *draw(st.sampled_from(((), ("--match", "rows"))))]
    if all(name.endswith(_COUNTED) for name in (source.name, other.name)) and draw(_SELDOM):
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


# A policy of which the threshold is known, so that `apply` has one for every table.
_POLICY = {
    "schema_version": "1",
    "risk_type": "selective",
    "risk": 0.1,
    "sure": 0.95,
    "threshold": 0.5,
    "shown": 0.5,
    "seen": {"items": 10, "answered": 5, "coverage": 0.5, "wrong": 0, "risk": 0.0, "p_value": 0.01},
    "method": "cluster-t",
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
    chosen = replace(source, further={**source.further, "policy.json": json.dumps(record).encode()})
    if draw(st.booleans()):
        return chosen.case("threshold", "policy.json", "--check", source.name, *source.flags)
    return chosen.case("apply", "policy.json", source.name)


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
    """Everything that a run checks before its first call; nobody is asked."""
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
    asked = ("--model", "mockllm/model", "--signals", signals, "--dry-run", *question, *further)
    return source.case("run", source.name, *asked)


_VERBS: Mapping[str, Callable[[Source, Source], st.SearchStrategy[Case]]] = {
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
# What is dear is asked less often.
_OFTEN = (
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
def ask_about_coverage(draw: st.DrawFn, source: Source, verb: str) -> Case:
    """`intervals` or `sets`, on a table with the columns y, low, high, set, weight, patient, site and x."""
    told = ("--low", "low", "--high", "high") if verb == "intervals" else ("--set", "set")
    command = [
        verb,
        source.name,
        "--truth",
        "y",
        *told,
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
def ask_without_a_source(draw: st.DrawFn) -> Case:
    """`metrics` and `schema`, which read nothing; the verbs without what they need; what is no verb."""
    words = st.one_of(_METRICS, _BUNDLES, arguments())
    verbs = (
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
        "no-verb",
    )
    command = draw(
        st.one_of(
            st.just(("demo", *FEW)),
            st.lists(words, max_size=2).map(lambda asked: ("metrics", *asked)),
            st.sampled_from(("metrics", "calibration", "conformal", "policy", "", "x")).map(
                lambda kind: ("schema", kind)
            ),
            st.tuples(st.sampled_from(verbs), arguments()).map(
                lambda pair: (*pair, "--bootstrap-resamples", "nan")
            ),
        )
    )
    return Case(commands=(command,), secrets=(SECRET,))


# ----------------------------------------------------------------------------------------------- around a command

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
def with_a_wrong_option(draw: st.DrawFn, case: Case) -> Case:
    """The case with one more option, whose value need not fit."""
    added = (draw(st.sampled_from(_OPTIONS)), draw(st.one_of(_FITTING, arguments())))
    return replace(case, commands=tuple((*command, *added) for command in case.commands))


@st.composite
def with_output(draw: st.DrawFn, case: Case, *, sound: bool = True) -> Case:
    """The case with a place for its output: a new file, an old one, or one that should be left alone."""
    (command,) = case.commands
    silent = ("check", "metrics", "schema", "demo", "power")
    if command[0] in silent or {"-o", "--json", "-q", "--check"} & set(command):
        return case
    ending = {"report": "html", "compare": "csv", "gate": "txt"}.get(command[0], "json")
    if command[0] == "apply":  # a table is written as it was read
        ending = command[2].rpartition(".")[2]
    place = draw(
        st.sampled_from(
            ("new", "old") if sound else ("new", "old", "input", "link", "nowhere", "folder", "odd")
        )
    )
    name, files, links = f"output.{ending}", dict(case.files), dict(case.links)
    source = next(iter(files), "")
    if place == "old":
        files[name] = b"the old content"
    elif place == "input" and source:
        name = source
    elif place == "link" and source:
        links[name] = source
    elif place == "nowhere":
        name = f"nowhere/{name}"
    elif place == "folder":
        files["folder/file"], name = b"", "folder"
    elif place == "odd":
        name = draw(st.sampled_from(("x" * 300, "a\x1b[31mb.json", "\udcff.json", "-", "é.json", " ")))
    return replace(case, commands=((*command, "-o", name),), files=files, links=links)
