"""`read`: the one door for whatever an evaluator has.

 It recognises a file by what it holds (its ending only helps to word an error), takes data
frames as they are, and says in the items' provenance what it found and what it guessed. `open_table` gives the
columns of a table as they are, to whoever knows what they mean. A source knows its format and `Items`, and nothing
of what is computed from them.
"""

from __future__ import annotations

import glob
import gzip
import inspect
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abstain import _files, _validate
from abstain._places import rows_named_by
from abstain.errors import ArgumentError, FormatError, at
from abstain.items import Items
from abstain.readers._members import LM_EVAL_KEYS, outer_keys
from abstain.readers._rules import AbstentionRule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from abstain.readers._tables import SourceTable
    from abstain.readers._values import Problems

MEMBER_LIMIT = 1 << 27
FORMATS = {
    "run": "run file",
    "evaluation": "evaluation file",
    "inspect": "Inspect log",
    "lm-eval": "lm-eval samples",
    "csv": "CSV table",
    "parquet": "Parquet table",
    "jsonl": "JSONL table",
}
TABLES = ("csv", "parquet", "jsonl")
# What there is to choose within a file that is no table.
_CHOICES = {"run": ("mode",), "evaluation": (), "inspect": ("scorer",), "lm-eval": ("scorer", "filter")}
# The arguments of `read` that name a column.
_COLUMN_NAMES = (
    *("truth", "prediction", "confidence", "abstained", "failed", "correct", "weight", "low", "high", "set"),
    *("cluster", "cluster_by", "item", "system"),
)
_KEPT = ("signals", "metadata", "null_prediction")
_BEGINNING = 1 << 20
_PATTERN = "*?["
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
# What is looked for in a folder. Other JSON files lie beside logs and samples.
_IN_FOLDERS = (".eval", ".jsonl", ".parquet", ".csv", ".csv.gz", ".tsv")
_LINES = (".jsonl", ".ndjson")


def read(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Any,
    *,
    format: str | None = None,  # noqa: A002
    mode: str | None = None,
    scale: Sequence[float] | None = None,
    truth: str | None = None,
    prediction: str | None = None,
    confidence: str | None = None,
    abstained: str | None = None,
    failed: str | None = None,
    correct: str | None = None,
    weight: str | None = None,
    low: str | None = None,
    high: str | None = None,
    set: str | None = None,  # noqa: A002
    cluster: str | None = None,
    cluster_by: str | None = None,
    item: str | None = None,
    signals: Sequence[str] | None = None,
    metadata: Sequence[str] | None = None,
    null_prediction: str | None = None,
    abstain_rule: AbstentionRule | str | None = None,
    failed_rule: AbstentionRule | str | None = None,
    join: tuple[str, Any] | None = None,
    system: str | None = None,
    percent: Sequence[str] | None = None,
    crossed: str | None = None,
    positive: str | None = None,
    scorer: str | None = None,
    filter: str | None = None,  # noqa: A002
    member_limit: int = MEMBER_LIMIT,
    total_limit: int | None = None,
    problems: Problems | None = None,
) -> Items:
    """Read items from a file, several files or a data frame.

    Run files, evaluation results, Inspect logs (``.eval``, ``.json``), lm-eval samples, CSV, Parquet and
    JSONL are told apart by what they hold. A table's columns are named, or guessed from their usual names;
    ``provenance["columns"]`` says which was taken for what.

    Args:
        source: a path, a pattern such as ``logs/*.eval``, several of those (read as one), or a pandas,
            polars, PyArrow or DuckDB table.
        format: what the file is, where its content does not tell: "run", "evaluation", "inspect", "lm-eval",
            "csv", "parquet" or "jsonl".
        mode: which experiment of a run file, such as "few_shot"; needed when the file holds several.
        scale: lowest and highest score there can be; else what the file declares.
        truth: the column of what is right.
        prediction: the column of what the model said.
        confidence: the column of its confidence; also the signal "confidence" from then on.
        abstained: the boolean column of abstentions.
        failed: the boolean column of items for which the run produced nothing.
        correct: a column that already says right or wrong (true and false, 1 and 0, or C and I), in place of
            truth and prediction.
        weight: the column that says how many rows each row stands for; never guessed.
        low: the column of the lower bound of a predicted interval; never guessed.
        high: the column of its upper bound; never guessed.
        set: the column of predicted sets: lists, JSON arrays, or labels divided by ``|``; never guessed.
        cluster: the column of cluster ids; in a log the key of a sample's metadata or of its document.
        cluster_by: another word for `cluster`.
        item: the column of item names.
        signals: numeric columns to keep for confidences; every other one when left out.
        metadata: columns to keep as they are; every other plain one when left out.
        null_prediction: what a missing prediction means, "abstained" or "failed"; an error when left out.
        abstain_rule: who declined where the source does not say: "choice:E", "regex:(?i)not sure",
            "phrases:I don't know|cannot say", or an `AbstentionRule`.
        failed_rule: which answers of a table are none, because the run produced nothing: how they begin, such as
            "ERR:", or a rule in the forms of `abstain_rule`.
        join: a key and a second table, where truth and predictions stand apart: every row gets the columns of the row
            with the same key there.
        system: the column that says whose row it is, ``system`` or ``model`` when left out; see `read_systems`.
        percent: the signals that are per cent, and are divided by 100; when left out, a confidence is taken for per
            cent if its values tell: none between 0 and 1, and the largest from above 10 up to 100.
        crossed: what a lower bound above the upper one means: "sort" to exchange them, "empty" for an interval that
            holds nothing; an error when left out.
        positive: the label that counts as 1 for binary metrics such as F1 and AUROC; all others count as 0. Default: 1.
        scorer: which judge of a log: a scorer of Inspect ("name", or "name.key" where it gives several
            values), or a metric of lm-eval.
        filter: which filter of lm-eval samples; all when left out.
        member_limit: most bytes of one sample of an Inspect log, decompressed.
        total_limit: most bytes of all its samples together; 4 MiB and 200 times its own size when left out.
        problems: where to collect what is wrong with the rows of a table, instead of raising the first.

    >>> read("tests/data/examples/run_a.json", mode="few_shot")
    Items(240 items in 30 participants: 150 answered, 66 abstained, 24 failed, 0 unscored)
    """
    systems = read_systems(source, **{name: value for name, value in locals().items() if name != "source"})
    if len(systems) > 1:
        items = next(iter(systems.values()))
        raise ArgumentError(
            f"{items.provenance.get('path', 'the frame')}: holds {len(systems)} systems, told apart by the column "
            f"{items.provenance['system_column']!r}; abstain.compare takes the table as it is, "
            "abstain.readers.read_systems gives each of them, and "
            "metadata=[...] with its name makes it a column like any other"
        )
    return next(iter(systems.values()))


def read_systems(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002
    mode: str | None = None,
    scale: Sequence[float] | None = None,
    abstain_rule: AbstentionRule | str | None = None,
    scorer: str | None = None,
    filter: str | None = None,  # noqa: A002
    cluster: str | None = None,
    cluster_by: str | None = None,
    member_limit: int = MEMBER_LIMIT,
    total_limit: int | None = None,
    positive: str | None = None,
    problems: Problems | None = None,
    **of_tables: Any,
) -> dict[str, Items]:
    """Read the items of every system that a source holds, by name; a single one is called "".

    A long table holds several: one per value of its column ``system`` or ``model``, or of the column that `system`
    names. The arguments are those of `read`.

    >>> import polars
    >>> table = polars.DataFrame({"model": ["a", "b"], "item": [1, 1], "truth": [0, 0], "prediction": [0, 1]})
    >>> sorted(read_systems(table))
    ['a', 'b']
    """
    named = named_roles(cluster=cluster, cluster_by=cluster_by, **of_tables)
    said: dict[str, Any] = {"rule": parsed_rule(abstain_rule), "scale": scale}
    choices = {"mode": mode, "scorer": scorer, "filter": filter}
    files, kind = recognised(source, format)
    if kind in ("frame", *TABLES):
        return _read_table(source, files, kind, {**named, **said, "positive": positive}, choices, problems)
    # What is kept of a table is no matter for logs, which keep everything.
    named = {role: value for role, value in named.items() if role not in _KEPT}
    limits = {"member_limit": member_limit, "total_limit": total_limit}
    parts = [_read_log(file, kind, named, choices, limits, **said) for file in files]
    from abstain.readers._log_items import concatenate  # noqa: PLC0415

    items = parts[0] if len(parts) == 1 else concatenate(parts)
    with at(files[0]):
        return {"": items.with_positive(positive)}


def name_systems(sources: Mapping[str, Mapping[str, Items]]) -> dict[str, Items]:
    """Return all systems of several sources by name.

    A source of one system gives it the name of the source. A table of several systems gives them their own names; if
    there are other sources, the name of the source goes before.

    Args:
        sources: by the name of each source, its systems as `read_systems` returns them.

    >>> items = read("tests/data/examples/run_a.json", mode="few_shot")
    >>> list(name_systems({"table": {"a": items, "b": items}}))
    ['a', 'b']
    >>> list(name_systems({"table": {"a": items, "b": items}, "run": {"": items}}))
    ['table a', 'table b', 'run']
    """
    return {
        (f"{name} {own}" if len(sources) > 1 else own) if own else name: items
        for name, systems in sources.items()
        for own, items in systems.items()
    }


def items_of_argument(source: Any, reading: Mapping[str, Any], function: Callable[..., Any]) -> Items:
    """Return the items that were passed to a function: Items as they are; a data frame or a file is read.

    Args:
        source: Items, a data frame or a path.
        reading: how a data frame or a file is read: arguments of `read`.
        function: the function, for messages.
    """
    check_arguments(reading, function)
    if source is None or isinstance(source, (bool, int, float, list, tuple, Mapping)):
        raise ArgumentError(
            f"{function.__name__} takes Items, a data frame or a path, got {_validate.kind(source)}"
        )
    if isinstance(source, Items):
        check_not_read(reading, "the source")
        return source
    return read(source, **reading)


def check_not_read(reading: Mapping[str, Any], name: str) -> None:
    """Raise if an argument describes how to read a source that is Items already."""
    for argument, value in reading.items():
        if value is not None:
            raise ArgumentError(
                f"{argument} says how a data frame or a file is read, and {name} is Items already"
            )


def named_roles(
    *, cluster: str | None = None, cluster_by: str | None = None, **of_tables: Any
) -> dict[str, Any]:
    """Return what was said of the columns of a table, in the words of `Roles`."""
    if cluster is not None and cluster_by is not None:
        raise ArgumentError("cluster and cluster_by are two words for one thing; give one of them")
    given = {"cluster": cluster if cluster is not None else cluster_by, **of_tables}
    check_arguments(given, read)
    if isinstance(given.get("failed_rule"), str):
        with at("failed_rule"):
            given["failed_rule"] = AbstentionRule.parse_failed(given["failed_rule"])
    return {role: value for role, value in given.items() if value is not None}


def check_arguments(given: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Raise unless all arguments are those of `read`, and those that name a column are names.

    Args:
        given: the arguments.
        function: the function that they were passed to, whose own arguments are suggested too.
    """
    known = [
        name
        for each in dict.fromkeys((read, function))
        for name, parameter in inspect.signature(each).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    for name, value in given.items():
        if name not in known:
            raise _validate.unknown_argument(function.__name__, name, known)
        if name in _COLUMN_NAMES and value is not None and not isinstance(value, str):
            column = getattr(value, "name", None)
            example = column if isinstance(column, str) else "label"
            raise ArgumentError(
                f"{name} must be the name of a column, got {_validate.kind(value)}; pass the name, such as "
                f"{name}={example!r}"
            )


def parsed_rule(rule: AbstentionRule | str | None) -> AbstentionRule | None:
    """Return a rule for abstentions from its text."""
    with at("abstain_rule"):
        return AbstentionRule.parse(rule) if isinstance(rule, str) else rule


def open_table(source: Any, *, format: str | None = None) -> SourceTable:  # noqa: A002
    """Open a table, to read its columns one by one as numbers, flags, labels or lists.

    Args:
        source: a path, a pattern, several of those (read as one), or a data frame, as for `read`: CSV with any
            usual delimiter, compressed or not, Parquet and JSONL.
        format: "csv", "parquet" or "jsonl", where the content does not tell.

    >>> import polars
    >>> table = open_table(polars.DataFrame({"y": [1.5, 2], "site": ["a", "b"], "set": [["x"], ["x", "y"]]}))
    >>> table.numbers("y"), table.labels("site").tolist(), table.lists("set")
    (array([1.5, 2. ]), ['a', 'b'], [['x'], ['x', 'y']])
    """
    files, kind = recognised(source, format)
    if kind not in ("frame", *TABLES):
        raise ArgumentError(f"{files[0]}: {described(kind)}, and this takes a table: CSV, Parquet or JSONL")
    return _opened(source, files, kind)


def usual_column(table: SourceTable, role: str, *, taken: Iterable[str] = ()) -> str | None:
    """Return the column that has a usual name of a role ("truth", "cluster", "item") and is not `taken`, or None.

    >>> import polars
    >>> usual_column(open_table(polars.DataFrame({"patient_id": [1], "text": ["a"]})), "cluster")
    'patient_id'
    """
    from abstain.readers._roles import guesses  # noqa: PLC0415

    found = guesses(table, role, {}, {name: name for name in taken})
    return found[0] if found else None


def items_of_samples(samples: Iterable[bytes], *, cluster: str | None = None, what: str = "the log") -> Items:
    """Return the items of samples in the form of an Inspect log, each a JSON text, by the rules of `read`.

    Args:
        samples: the samples, before or without their being written to a log.
        cluster: the key of a sample's metadata that says what belongs together.
        what: what the samples are called in messages.

    >>> items_of_samples([b'{"id": 1, "target": "a", "scores": {"s": {"value": "N"}}}'])
    Items(1 item in 1 sample: 0 answered, 1 abstained, 0 failed, 0 unscored)
    """
    from abstain.readers._inspect import items_of_samples as read_samples  # noqa: PLC0415

    return read_samples(samples, cluster=cluster, what=what)


def expand(source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Return the files that a path, a pattern or several of either name; a name that exists is no pattern."""
    parts = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    paths: list[Path] = []
    for part in parts:
        path = Path("/dev/stdin" if str(part) == "-" else part)
        if any(letter in str(part) for letter in _PATTERN) and not _files.SourceFile(path).exists():
            found = sorted(glob.glob(str(part), recursive=True))  # noqa: PTH207  (patterns may be absolute)
            if not found:
                raise ArgumentError(f"{part}: no file fits this pattern")
            paths += [Path(name) for name in found if Path(name).is_file()]
        else:
            paths += _files_in(path) if os.path.isdir(path) else [path]  # noqa: PTH112  (no name is too long for it)
    if not paths:
        raise ArgumentError("no file was named; pass a path, a pattern or several paths")
    for path in paths:
        file = _files.SourceFile(path)
        if not file.exists():
            if _ADDRESS.match(str(path)):
                raise ArgumentError(
                    f"{file}: an address; download it first, for example with curl, and name the file"
                )
            raise ArgumentError(f"{file}: no such file{_validate.suggestion(path.name, _neighbours(path))}")
    return paths


def _files_in(folder: Path) -> list[Path]:
    """Return the logs or tables of a folder, which are of one kind."""
    names = [name for name in sorted(_neighbours(folder / "any")) if not name.startswith(".")]
    kinds = {kind: [name for name in names if name.endswith(kind)] for kind in _IN_FOLDERS}
    found = {kind: inside for kind, inside in kinds.items() if inside}
    if len(found) != 1:
        held = ", ".join(f"{len(inside):,} {kind}" for kind, inside in found.items()) or "no log and no table"
        raise ArgumentError(
            f"{folder}: a folder with {held}; name files, or a pattern such as '{folder}/*.eval'"
        )
    return [folder / name for name in next(iter(found.values()))]


def _neighbours(path: Path) -> list[str]:
    """Return what else is in the folder of a file that is not there, as far as one may look."""
    try:
        return os.listdir(path.parent)  # noqa: PTH208  (names are wanted, not paths)
    except (OSError, ValueError):
        return []


def recognise(path: Path) -> str:
    """Return the format of a file, one of `FORMATS`."""
    return _format_of(_files.SourceFile(path))


def _format_of(file: _files.SourceFile) -> str:
    beginning, whole = _beginning(file)
    if _translated(file, beginning):
        beginning, whole = _beginning(file)
    if beginning.startswith(b"PK\x03\x04"):
        return "inspect"
    if beginning.startswith(b"PAR1"):
        return "parquet"
    if beginning.startswith((b"ARROW1", b"FEA1")):
        raise FormatError(f"{file}: an Arrow file; open it with pyarrow and pass the table")
    text = beginning.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text:
        raise FormatError(f"{file}: the file is empty")
    if file.path.suffix == ".json" and text[:1] not in (b"{", b"["):
        raise _unknown_json(text, file, whole=whole)
    if file.path.suffix in _LINES and text[:1] not in (b"{", b"["):
        raise FormatError(f"{file}: not JSON with one object per line at line 1")
    if b"\x00" in beginning[:4096]:
        raise FormatError(f"{file}: neither text nor any format known here ({', '.join(FORMATS.values())})")
    return _json_kind(text, file, whole=whole) if text[:1] in (b"{", b"[") else "csv"


def _translated(file: _files.SourceFile, beginning: bytes) -> bool:
    """Have a file read in translation where it needs one; no text in UTF-8 begins so."""
    if not beginning.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"\xff\xfe", b"\xfe\xff")):
        return False
    from abstain.readers._translations import translate  # noqa: PLC0415

    return translate(file, beginning)


def is_table(path: Path) -> bool:
    """True where a path or a pattern names tables, which may hold several systems."""
    first = expand(path)[0]
    # What is in a pipe is read once, by whoever reads the items.
    return first.is_file() and recognise(first) in TABLES


def recognised(source: Any, kind: str | None) -> tuple[list[_files.SourceFile], str]:
    """Return the files that a source names, and the one format that they have; none and "frame" for a data frame."""
    parts = list(source) if isinstance(source, (list, tuple, Iterator)) else [source]
    if not all(isinstance(part, (str, os.PathLike)) for part in parts):
        if kind is not None:
            raise ArgumentError("format is for files; a data frame is what it is")
        return [], "frame"
    if kind is not None:
        _validate.choice(kind, "format", FORMATS)
    files = [_files.SourceFile(path) for path in expand(parts)]
    for file in files if kind in TABLES else ():
        _translated(file, _beginning(file)[0])
    kinds = [kind or _format_of(file) for file in files]
    if len({*kinds}) > 1:
        listed = ", ".join(f"{file} ({FORMATS[found]})" for file, found in zip(files, kinds, strict=True))
        raise FormatError(f"the files are of different formats and cannot be read as one: {listed}")
    return files, kinds[0]


def described(kind: str) -> str:
    """Return what a file of a format is called, with its article."""
    if kind == "lm-eval":
        return f"a file of {FORMATS[kind]}"
    return f"{'an' if kind in ('evaluation', 'inspect') else 'a'} {FORMATS[kind]}"


def _refuse(choices: Mapping[str, str | None], what: str, but: tuple[str, ...] = ()) -> None:
    for name, value in choices.items():
        if value is not None and name not in but:
            raise ArgumentError(f"{what} has no {name} to choose; leave {name} out")


def _opened(source: Any, files: Sequence[_files.SourceFile], kind: str) -> SourceTable:
    from abstain.readers._file_tables import open_files  # noqa: PLC0415
    from abstain.readers._frame_tables import open_frame  # noqa: PLC0415

    return open_frame(source) if kind == "frame" else open_files(files, kind)


def _read_table(
    source: Any,
    files: Sequence[_files.SourceFile],
    kind: str,
    roles: Mapping[str, Any],
    choices: Mapping[str, str | None],
    problems: Problems | None,
) -> dict[str, Items]:
    from abstain.readers._columns import items_from_table  # noqa: PLC0415
    from abstain.readers._roles import Roles  # noqa: PLC0415

    _refuse(choices, "a data frame" if kind == "frame" else f"{files[0]}: {described(kind)}")
    table = _opened(source, files, kind)
    said = dict(roles)
    joined = said.pop("join", None)
    origin = origin_of(table, kind)
    if joined is not None:
        from abstain.readers._joining import JoinedTable  # noqa: PLC0415

        table = JoinedTable(table, open_table(joined[1]), joined[0])
        origin["join"] = table.origin
    with rows_named_by(table.paths):
        systems = items_from_table(table, Roles(**said), problems)
    return {name: items.with_provenance(**origin) for name, items in systems.items()}


def origin_of(table: SourceTable, kind: str) -> dict[str, Any]:
    """Return where the items of a table come from."""
    if kind == "frame":
        return {"format": kind}
    return {"path": table.label, "format": kind, "sha256": table.sha256()}


def _read_log(
    file: _files.SourceFile,
    kind: str,
    named: Mapping[str, str],
    choices: Mapping[str, str | None],
    limits: Mapping[str, Any],
    *,
    rule: AbstentionRule | None,
    scale: Sequence[float] | None,
) -> Items:
    """Read a file that knows itself what its parts are."""
    served = ("cluster", "item") if kind == "evaluation" else ("cluster",)
    for role in named:
        if role not in served:
            raise ArgumentError(f"{file}: {role} names a column of a table, and this is {described(kind)}")
    _refuse(choices, f"{file}: {described(kind)}", but=_CHOICES[kind])
    cluster, scorer = named.get("cluster"), choices["scorer"]
    if kind == "run":
        from abstain.readers._run_file import read_run_file  # noqa: PLC0415

        if cluster is not None or rule is not None:
            raise ArgumentError(
                f"{file}: a run file knows its clusters and abstentions; leave cluster and rule out"
            )
        return read_run_file(file, mode=choices["mode"], scale=scale).with_provenance(format=kind)
    if kind == "evaluation":
        from abstain.readers._evaluation_file import read_items  # noqa: PLC0415

        if rule is not None:
            raise ArgumentError(f"{file}: an evaluation file says who abstained; leave the rule out")
        items = read_items(file, cluster=cluster, item=named.get("item"), scale=scale)
        return items.with_provenance(format=kind)
    if kind == "inspect":
        from abstain.readers._inspect import read_inspect  # noqa: PLC0415

        items = read_inspect(file, scorer=scorer, cluster=cluster, rule=rule, scale=scale, **limits)
    else:
        from abstain.readers._lm_eval import read_lm_eval  # noqa: PLC0415

        items = read_lm_eval(
            file, scorer=scorer, filter_name=choices["filter"], cluster=cluster, rule=rule, scale=scale
        )
    return items.with_provenance(format=kind)


def _json_kind(text: bytes, file: _files.SourceFile, *, whole: bool) -> str:
    line, _, rest = text.partition(b"\n")
    first = _keys(line)
    keys = first if first is not None else set(outer_keys(text))
    if keys >= LM_EVAL_KEYS or (first is None and not whole and keys >= {"doc_id", "doc"}):
        return "lm-eval"
    if "experiments" in keys:
        return "run"
    if "evaluation_results" in keys or {"backend_name", "suite"} <= keys or keys == {"metrics", "execution"}:
        return "evaluation"
    if "eval" in keys and keys & {"version", "status", "samples", "plan"}:
        return "inspect"
    named_lines = file.path.suffix in _LINES
    lines = first is not None and (rest.lstrip()[:1] == b"{" or named_lines)
    # A list of objects is a table too; so, by its ending alone, is a line longer than what was looked at.
    if lines or (text[1:].lstrip()[:1] == b"{" and text[:1] == b"[") or (not whole and named_lines):
        return "jsonl"
    raise _unknown_json(text, file, whole=whole)


def _unknown_json(text: bytes, file: _files.SourceFile, *, whole: bool) -> FormatError:
    if whole:
        _files.parse_json(text, file)  # says where it is no JSON at all
    return FormatError(
        f"{file}: not a run file (an object with a list of experiments), nor any other form of JSON known here "
        "(evaluation results, an Inspect log, one object per line); say which it is (format, --input-format)"
    )


def _keys(line: bytes) -> set[str] | None:
    """Return the keys of a line that is one whole object, else None."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return set(record) if isinstance(record, dict) else None


def _beginning(file: _files.SourceFile) -> tuple[bytes, bool]:
    try:
        with file.open() as opened:
            beginning = opened.read(_BEGINNING)
            if beginning.startswith(b"\x1f\x8b"):
                opened.seek(0)
                beginning = gzip.GzipFile(fileobj=opened).read(_BEGINNING)
    except (OSError, EOFError, zlib.error):
        raise FormatError(f"{file}: cannot be read; the file may be damaged or cut off") from None
    return beginning, len(beginning) < _BEGINNING
