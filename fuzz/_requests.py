"""Random requests: a table with unusual columns and a command with random options.

Either two engines get the same request about the same file, or a table of text is written in several formats and read
from each of them. In both cases the results, or the error messages, must be the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from fuzz._case import Case
from fuzz._tables import WRITERS, Columns, Table
from fuzz._values import SECRET

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["engine_requests", "format_requests"]

# The columns that options name. Other columns are detected by their usual names: truth, prediction, confidence, ...
_WEIGHT, _CLUSTER, _ITEM = "w", "patient", "question"
# With so many clusters, the jackknife leaves out groups of clusters.
_MANY_CLUSTERS = 401

# ---------------------------------------------------------------------------------------------------------------- cells

# The data frames in which a table is read, in addition to the formats of files.
_FRAMES = ("polars", "arrow", "relation", "typed", "objects", "categories")
_ODD_TEXT = (
    *(
        "",
        " ",
        "\t ",
        "a",
        "A",
        " a",
        "ä",
        "Ä",
        "a\u0308",
        "ß",
        "SS",
        'a"b',
        "a'b",
        "a,b",
        "a;b",
        "a\nb",
        "a|b",
    ),
    *(
        "</script>",
        "<b>",
        "=1+1",
        "\\",
        "%s",
        "null",
        "None",
        "NA",
        "n/a",
        "-",
        "true",
        "True",
        "FALSE",
        "yes",
    ),
    *(
        "1",
        "1.0",
        "1.",
        "01",
        "+1",
        "-1",
        " 1",
        "1 ",
        "1e0",
        "1e3",
        "1000",
        "1_000",
        "1,5",
        "0x10",
        "-0",
        "0",
    ),
    *("nan", "NaN", "inf", "-inf", "Infinity", "12%", "50 %", "2026-01-02", "02.01.2026", "12:30", "٣"),
    *("9007199254740993", "99999999999999999999", "1" * 40, "1" * 400, "1e400", "100000000000000000", "1e17"),
)
_WHOLE = (0, 1, 2, 3, -1)
_LARGE = (2**53, 2**53 + 1, 2**63 - 1, 10**17, 10**19 + 1, 10**39 + 7)
_REAL = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, -0.0, 1e17, 0.1 + 0.2)

_LABELS: Mapping[str, Sequence[Any]] = {
    "whole": (0, 1, 2),
    "binary": (0, 1),
    "words": ("benign", "malign", "unclear"),
    "flags": (True, False),
    "codes": ("01", "02", "10"),
    "large": _LARGE,
    "reals": _REAL,
    "mixed case": ("yes", "Yes", "no", "NO"),
    "text": _ODD_TEXT,
    "numbers as text": ("1", "1.0", "2", "1e0", "01"),
    "whole as text": ("0", "1", "2"),
    "dates": ("2026-01-02", "2026-01-03"),
}
_CONFIDENCES: Mapping[str, Sequence[Any]] = {
    "probabilities": (0.1, 0.25, 0.5, 0.75, 0.9, 1.0),
    "constant": (0.5,),
    "percent": (1, 20, 50, 90, 100),
    "scores": (-3.5, 0.0, 2.0, 40.0, 1e17),
    "as text": ("0.1", "0.5", ".5", "5e-1", " 0.9", "1"),
    "odd text": ("0.1", "0.5", "nan", "inf", "12%", "0,5", "", "high", "1_0"),
    "odd": (0.1, 0.5, float("nan"), float("inf"), float("-inf")),
}
_FLAGS: Mapping[str, Sequence[Any]] = {
    "never": (False,),
    "always": (True,),
    "flags": (False, True),
    "whole": (0, 1),
    "words": ("yes", "no", "Y", "n"),
    "as text": ("true", "False", "0", "1", "1.0"),
    "odd text": ("true", "false", "", "maybe", "nan", "2"),
}
_WEIGHTS: Mapping[str, Sequence[Any]] = {
    "whole": (0, 1, 2, 5),
    "halves": (0.0, 0.5, 1.0, 2.5),
    "odd zero": (0,),
    "ones": (1,),
    "as text": ("0", "1", "2.0", " 3"),
    "odd large": (0, 1, 10**9, 2**53 + 1),
    "odd": (0, 1, -1, float("nan"), float("inf"), 10**400, 1e-320),
    "odd text": ("0", "1", "", "two", "-1", "nan", "1,5", "1_0"),
}
_NAMES: Mapping[str, Sequence[Any]] = {
    "words": ("a", "b", "c", "d"),
    "whole": _WHOLE,
    "one": ("only",),
    "mixed case": ("a", "A", "b", "B"),
    "codes": ("01", "1", "001", "1.0"),
    "large": _LARGE,
    "reals": _REAL,
    "flags": (True, False),
    "text": tuple(text for text in _ODD_TEXT if text.strip()),
    "odd text": _ODD_TEXT,
    "numbers as text": ("1", "2", "3", "10"),
    "dates": ("2026-01-02", "2026-01-03"),
}


class _Drawer:
    """Draws the columns of one table, which is valid, or has missing and odd values in any column."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self.rows = draw(st.one_of(st.integers(1, 3), st.integers(2, 12)))
        self._sound = draw(st.integers(0, 3)) > 0

    def one_in(self, count: int) -> bool:
        return self._draw(st.integers(1, count)) == count

    def column(self, kinds: Mapping[str, Sequence[Any]], *, gaps: bool = False) -> list[Any]:
        """Draw values of one kind, most often the first kind; `gaps` allows missing values in a valid table."""
        names = [name for name in kinds if not (self._sound and name.startswith("odd"))]
        kind = self._draw(st.sampled_from(names)) if self.one_in(2) else names[0]
        values = self._draw(st.lists(st.sampled_from(kinds[kind]), min_size=self.rows, max_size=self.rows))
        if (gaps or not self._sound) and self.one_in(4):
            values = [None if self.one_in(3) else value for value in values]
        if not self._sound and self.one_in(12):
            values[self._draw(st.integers(0, self.rows - 1))] = self._draw(
                st.sampled_from((*_ODD_TEXT, *_LARGE))
            )
        return values

    def labels(self) -> Columns:
        """Draw the columns truth and prediction, or the column correct."""
        if self.one_in(4):
            return {"correct": self.column(_FLAGS)}
        kind = self._draw(st.sampled_from(tuple(_LABELS)))
        kinds = _LABELS if self.one_in(10) else {kind: _LABELS[kind]}
        return {"truth": self.column(kinds, gaps=self.one_in(3)), "prediction": self.column(kinds, gaps=True)}

    def item_names(self) -> list[Any]:
        return self.column(_NAMES) if self.one_in(4) else [f"q{row}" for row in range(self.rows)]


# --------------------------------------------------------------------------------------------------------------- tables


@st.composite
def _columns(draw: st.DrawFn) -> Columns:
    """Draw the columns of a table: the labels, and any others."""
    table = _Drawer(draw)
    columns = table.labels()
    # The larger the number, the less often a table has the column.
    others: dict[str, tuple[int, Callable[[], list[Any]]]] = {
        "confidence": (1, lambda: table.column(_CONFIDENCES)),
        "sure": (4, lambda: table.column(_CONFIDENCES)),
        "abstained": (4, lambda: table.column(_FLAGS)),
        "failed": (6, lambda: table.column(_FLAGS)),
        "should_abstain": (4, lambda: table.column(_FLAGS, gaps=True)),
        _WEIGHT: (2, lambda: table.column(_WEIGHTS)),
        _CLUSTER: (2, lambda: table.column(_NAMES)),
        _ITEM: (2, table.item_names),
        "site": (1, lambda: table.column(_NAMES, gaps=True)),
        "Site": (4, lambda: table.column(_NAMES, gaps=True)),
        "week": (3, lambda: table.column(_NAMES, gaps=True)),
    }
    return columns | {name: make() for name, (rarity, make) in others.items() if table.one_in(rarity)}


@st.composite
def _request_tables(draw: st.DrawFn) -> Columns:
    """Draw the columns of a table; sometimes its rows are repeated with many clusters."""
    columns = draw(_columns())
    if _CLUSTER not in columns or draw(st.integers(0, 9)) < 9:
        return columns
    count = draw(st.sampled_from((_MANY_CLUSTERS - 1, _MANY_CLUSTERS, 2 * _MANY_CLUSTERS)))
    first, prefix = draw(st.sampled_from(((0, ""), (1, "p"), (10**39, ""), (-200, ""))))
    rows = len(columns[_CLUSTER])
    many = {name: [values[row % rows] for row in range(count)] for name, values in columns.items()}
    names = [f"{prefix}{first + row}" if prefix else first + row for row in range(count)]
    return {**many, _CLUSTER: names, **({_ITEM: names} if _ITEM in columns else {})}


def _as_text(columns: Columns) -> Columns:
    """Return the same columns as text."""
    return {
        name: [None if value is None else str(value) for value in values] for name, values in columns.items()
    }


# -------------------------------------------------------------------------------------------------------------- options

_OUTCOME_METRICS = (
    *("accuracy", "selective_accuracy", "answer_rate", "abstention_rate", "simpleqa_f", "wrong_rate"),
    *("hallucination_rate", "effective_reliability", "confidence_target_score"),
)
_LABEL_METRICS = (
    *("balanced_accuracy", "macro_f1", "f1", "precision", "recall"),
    *("mean_absolute_error", "root_mean_squared_error", "pearson_r"),
)
_CONFIDENCE_METRICS = (
    *("aurc", "augrc", "cmax", "correctness_auroc", "risk_at_coverage@0.8"),
    *("coverage_at_accuracy@0.9", "coverage_at_risk@0.1", "ece", "smooth_calibration_error"),
    *("brier_score", "negative_log_likelihood", "top_label_calibration_error", "auroc"),
)
_GUIDED_METRICS = (
    *(
        "deferral_alignment",
        "abstention_f1",
        "abstention_auroc",
        "over_conservativeness",
        "reliable_accuracy",
    ),
)
_BUNDLES = ("default_benchmark", "safety", "answers")


@st.composite
def _reading(draw: st.DrawFn, columns: Columns) -> list[str]:
    """Draw options for reading the table."""
    flags = []
    for option, name in (("--weight", _WEIGHT), ("--cluster", _CLUSTER), ("--item", _ITEM)):
        if name in columns and draw(st.integers(0, 3)):
            flags += [option, name]
    further = (
        *(("--null-prediction", "abstained"), ("--null-prediction", "failed")),
        *(("--abstain-rule", "phrases:unclear|a"), ("--abstain-rule", "regex:(?i)^a"), ("--scale", "0,3")),
        *(("--failed-rule", "mal"), ("--percent", "confidence"), ("--percent", "none"), ("--positive", "1")),
    )
    if None in columns.get("prediction", ()) and draw(st.integers(0, 5)):
        flags += draw(st.sampled_from(further[:2]))
    for option, value in further:
        if option not in flags and draw(st.integers(0, 14)) == 14:
            flags += [option, value]
    return flags


@st.composite
def _metrics(draw: st.DrawFn, columns: Columns) -> str:
    """Draw some metrics, mostly those whose columns the table has."""
    if draw(st.integers(0, 5)) == 5:
        return draw(st.sampled_from(_BUNDLES))
    possible = list(_OUTCOME_METRICS)
    if "truth" in columns:
        possible += _LABEL_METRICS
    if "confidence" in columns:
        possible += _CONFIDENCE_METRICS
    if "should_abstain" in columns or draw(st.integers(0, 9)) == 9:
        possible += _GUIDED_METRICS
    return ",".join(draw(st.lists(st.sampled_from(possible), min_size=1, max_size=4, unique=True)))


@st.composite
def _intervals(draw: st.DrawFn) -> list[str]:
    method = draw(st.sampled_from(("jackknife", "jackknife", "none", "percentile", "bca")))
    resamples = []
    if method in ("percentile", "bca"):
        resamples = ["--bootstrap-resamples", draw(st.sampled_from(("5", "20")))]
    level = ["--level", "0.8"] if draw(st.integers(0, 7)) == 7 else []
    return ["--interval", method, *resamples, *level]


@st.composite
def _evaluate(draw: st.DrawFn, columns: Columns) -> list[str]:
    flags = []
    signals = [name for name in ("confidence", "sure") if name in columns]
    if draw(st.booleans()) and signals:
        flags += ["--confidence", draw(st.sampled_from((*signals, ",".join(signals), "all")))]
    if draw(st.booleans()):
        flags += ["--metric", draw(_metrics(columns))]
    groups = [name for name in ("site", "Site", "week") if name in columns]
    if draw(st.booleans()) and groups:
        flags += [
            "--by",
            ",".join(draw(st.lists(st.sampled_from(groups), min_size=1, max_size=2, unique=True))),
        ]
    if draw(st.integers(0, 7)) == 7:
        flags += ["--loss", draw(st.sampled_from(("abs", "zero_one", "abs_norm")))]
    return [*flags, *draw(_intervals())]


@st.composite
def _compare(draw: st.DrawFn, columns: Columns) -> list[str]:
    flags = ["--metric", draw(_metrics(columns))] if draw(st.booleans()) else []
    for option in (["--match", "rows"], ["--intersection-only"], ["--truth-may-differ"], ["--margin", "0.1"]):
        if draw(st.booleans()):
            flags += option
    return [*flags, *draw(_intervals())]


@st.composite
def _gate(draw: st.DrawFn, columns: Columns) -> list[str]:
    metric = draw(st.sampled_from(("accuracy", "augrc", "ece", "selective_accuracy")))
    condition = draw(st.sampled_from(("above 0.2", "below 0.5")))
    return ["--fail-if", f"{metric} {condition}"]


@st.composite
def _second_table(draw: st.DrawFn, columns: Columns) -> Columns:
    """Draw the table of another system: other predictions and confidences, sometimes with other rows or order."""
    rows = len(next(iter(columns.values())))
    changed = [name for name in ("prediction", "correct", "confidence", "abstained") if name in columns]
    other = {
        name: draw(st.permutations(values)) if name in changed and rows < 20 else values
        for name, values in columns.items()
    }
    order = list(range(rows))
    if draw(st.booleans()) and rows < 20:
        order = draw(st.permutations(order))
    if draw(st.integers(0, 3)) == 3:
        order = order[1:] or order
    return {name: [values[row] for row in order] for name, values in other.items()}


# ------------------------------------------------------------------------------------------------------------- requests

_COMMANDS = (*("evaluate",) * 6, *("compare",) * 3, *("check",) * 3, "gate")


@st.composite
def _requests(draw: st.DrawFn, columns: Columns, name: str) -> list[str]:
    """Draw the options of a command."""
    reading = draw(_reading(columns))
    if name == "check":
        return [*reading, "--json"]
    options = {"evaluate": _evaluate, "compare": _compare, "gate": _gate}[name]
    return [*reading, *draw(options(columns)), *(["--json"] if name != "gate" else [])]


@st.composite
def engine_requests(draw: st.DrawFn) -> Case:
    """Draw one request for both engines: numpy loads the rows, and DuckDB aggregates them."""
    columns = draw(_request_tables())
    if draw(st.integers(0, 3)) == 3:
        columns = _as_text(columns)
    name = draw(st.sampled_from(_COMMANDS))
    ending = draw(st.sampled_from(("csv", "jsonl", "parquet")))
    files = {f"t.{ending}": WRITERS[ending](Table(columns, {}))}
    if name == "compare":
        other = draw(st.sampled_from((ending, "csv", "jsonl", "parquet")))
        files[f"u.{other}"] = WRITERS[other](Table(draw(_second_table(columns)), {}))
    options = draw(_requests(columns, name))
    commands = tuple((name, *files, *options, "--engine", engine) for engine in ("numpy", "duckdb"))
    return Case(commands, files, alike=True)


@st.composite
def format_requests(draw: st.DrawFn) -> Case:
    """Draw one table of text in several formats, which must give the same items and the same numbers."""
    columns = _as_text(draw(_columns()))
    # A CSV file does not distinguish an empty text from a missing value.
    columns = {name: [value or None for value in values] for name, values in columns.items()}
    table = Table({**columns, "note": [SECRET] * len(next(iter(columns.values())))}, {})
    files = {f"t.{ending}": WRITERS[ending](table) for ending in ("csv", "jsonl", "parquet")}
    if draw(st.booleans()):
        reading = draw(_reading(columns))
        commands = [("items:file", name, *reading) for name in files]
        # A DuckDB relation renames columns that differ only in case.
        distinct = len({column.casefold() for column in columns}) == len(columns)
        commands += [
            (f"items:{kind}", "t.parquet", *reading) for kind in _FRAMES if distinct or kind != "relation"
        ]
    else:
        options = draw(_requests(columns, "evaluate"))
        engine = draw(st.sampled_from(("numpy", "duckdb")))
        commands = [("evaluate", name, *options, "--engine", engine) for name in files]
    return Case(tuple(commands), files, alike=True)
