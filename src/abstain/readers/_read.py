"""`read` and the functions next to it: from a file, several files or a data frame to items.

The format of a file is recognised by its content (`recognise_files`). `_formats` lists the formats and describes how to
add one. Every reader takes `ReadArguments`: the arguments of `read` after they are checked. Readers do not depend on
metrics.
"""

from __future__ import annotations

import codecs
import glob
import gzip
import inspect
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abstain import _files, _validate
from abstain._row_names import rows_named_by
from abstain.errors import ArgumentError, FormatError, at, list_names
from abstain.items import Items
from abstain.readers._columns import items_from_table
from abstain.readers._file_tables import open_files
from abstain.readers._formats import FORMATS, GZIP, MAYBE_TRANSLATED, Format
from abstain.readers._frame_tables import open_frame
from abstain.readers._joining import JoinedTable
from abstain.readers._json_parts import outer_keys
from abstain.readers._log_items import concatenate
from abstain.readers._rules import AbstentionRule
from abstain.readers._translations import translate
from abstain.readers._values import CROSSED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from abstain.readers._tables import SourceTable
    from abstain.readers._values import Problems

MEMBER_LIMIT = 1 << 27
_COLUMN_ARGUMENTS = (
    *("truth", "prediction", "confidence", "abstained", "failed", "correct", "weight", "low", "high", "set"),
    *("cluster", "item", "system"),
)
# The arguments that only tables take, and those that choose a part of a log.
_TABLE_ARGUMENTS = (*_COLUMN_ARGUMENTS, "percent", "crossed", "failed_rule", "join")
_PART_ARGUMENTS = ("mode", "scorer", "filter")
_HEAD_SIZE = 1 << 20
_PATTERN = "*?["
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
# The endings of files that are read from a folder. Not .json, because other JSON files are next to logs and samples.
_IN_FOLDERS = (".eval", ".jsonl", ".parquet", ".csv", ".csv.gz", ".tsv")
_JSON_LINES = (".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadArguments:
    """The arguments of `abstain.read`, which documents them; `parse` checks them.

    `cluster` also has the value of `cluster_by`, and rules are parsed.
    """

    format: str | None = None
    mode: str | None = None
    scale: Sequence[float] | None = None
    truth: str | None = None
    prediction: str | None = None
    confidence: str | None = None
    abstained: str | None = None
    failed: str | None = None
    correct: str | None = None
    weight: str | None = None
    low: str | None = None
    high: str | None = None
    set: str | None = None
    cluster: str | None = None
    item: str | None = None
    signals: Sequence[str] | None = None
    metadata: Sequence[str] | None = None
    null_prediction: str | None = None
    abstain_rule: AbstentionRule | None = None
    failed_rule: AbstentionRule | None = None
    join: tuple[str, Any] | None = None
    system: str | None = None
    percent: Sequence[str] | None = None
    crossed: str | None = None
    positive: str | None = None
    scorer: str | None = None
    filter: str | None = None
    member_limit: int = MEMBER_LIMIT
    total_limit: int | None = None
    problems: Problems | None = None

    @classmethod
    def parse(
        cls, *, cluster: str | None = None, cluster_by: str | None = None, **arguments: Any
    ) -> ReadArguments:
        """Return arguments as the caller of `read` passes them, checked."""
        if cluster is not None and cluster_by is not None:
            raise ArgumentError("cluster and cluster_by mean the same; pass only one of them")
        parsed = {"cluster": cluster if cluster is not None else cluster_by, **arguments}
        check_arguments(parsed, read)
        rules = {"abstain_rule": AbstentionRule.parse, "failed_rule": AbstentionRule.parse_failed}
        for name, parse_rule in rules.items():
            if isinstance(parsed.get(name), str):
                with at(name):
                    parsed[name] = parse_rule(parsed[name])
        for name, options in (("null_prediction", ("abstained", "failed")), ("crossed", CROSSED)):
            if parsed.get(name) is not None:
                _validate.choice(parsed[name], name, options)
        return cls(**parsed)


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

    Run files, evaluation results, Inspect logs (``.eval``, ``.json``), lm-eval samples, CSV, Parquet and JSONL are
    recognised by their content. The columns of a table are named, or guessed by their usual names;
    ``provenance["columns"]`` shows the column of each field.

    Args:
        source: a path, a pattern such as ``logs/*.eval``, several of those (read as one), or a pandas, polars, PyArrow
            or DuckDB table.
        format: "run", "evaluation", "inspect", "lm-eval", "csv", "parquet" or "jsonl". Default: recognised.
        mode: the experiment of a run file, such as "few_shot"; required if the file has several.
        scale: the lowest and the highest possible score. Default: the scale that the file declares.
        truth: the column of labels.
        prediction: the column of the model's answers.
        confidence: the column of its confidence, which also becomes the signal "confidence".
        abstained: the boolean column of abstentions.
        failed: the boolean column of items for which the run produced nothing.
        correct: a column of verdicts (true and false, 1 and 0, or C and I), instead of truth and prediction.
        weight: the column with the number of rows that each row represents; never guessed.
        low: the column of the lower bound of a predicted interval; never guessed.
        high: the column of its upper bound; never guessed.
        set: the column of predicted sets: lists, JSON arrays, or labels divided by ``|``; never guessed.
        cluster: the column of cluster ids; in a log, a key of the metadata of a sample or of its document.
        cluster_by: a synonym of `cluster`.
        item: the column of item names.
        signals: numeric columns to keep for confidences. Default: all others.
        metadata: columns to keep unchanged. Default: all other plain columns.
        null_prediction: the meaning of a missing prediction, "abstained" or "failed". Default: an error.
        abstain_rule: finds abstentions that the source does not mark: "choice:E", "regex:(?i)not sure",
            "phrases:I don't know|not sure", or an `AbstentionRule`.
        failed_rule: finds answers of a table for which the run produced nothing: their beginning, such as "ERR:", or a
            rule in the forms of `abstain_rule`.
        join: a key and a second table, if truth and predictions are in different tables. Every row gets the columns of
            the row with the same key in the second table.
        system: the column of system names. Default: ``system`` or ``model``; see `read_systems`.
        percent: the signals in percent, which are divided by 100. Default: a confidence without values between 0 and 1
            whose largest value is above 10 and at most 100.
        crossed: the meaning of a lower bound above the upper one: "sort" exchanges them, "empty" is an interval that
            contains nothing. Default: an error.
        positive: the label that counts as 1 for binary metrics such as F1 and AUROC; all others count as 0. Default: 1.
        scorer: the scorer of an Inspect log ("name", or "name.key" if it returns several values), or the metric of
            lm-eval samples.
        filter: the filter of lm-eval samples. Default: all.
        member_limit: the most bytes of one sample of an Inspect log, decompressed.
        total_limit: the most bytes of all its samples together. Default: 4 MiB plus 200 times the size of the log.
        problems: collects the problems with the rows of a table, instead of raising the first.

    >>> read("tests/data/examples/run_a.json", mode="few_shot")
    Items(240 items in 30 participants: 150 answered, 66 abstained, 24 failed, 0 unscored)
    """
    systems = read_systems(source, **{name: value for name, value in locals().items() if name != "source"})
    if len(systems) > 1:
        items = next(iter(systems.values()))
        raise ArgumentError(
            f"{items.provenance.get('path', 'the frame')}: contains {len(systems)} systems, named in the column "
            f"{items.provenance['system_column']!r}; pass the table to abstain.compare, read each system with "
            "abstain.readers.read_systems, or name the column in metadata=[...] if it does not name systems"
        )
    return next(iter(systems.values()))


def read_systems(source: Any, **arguments: Any) -> dict[str, Items]:
    """Read the items of every system in a source, by name; a single one is called "".

    A long table has several: one for each value of its column ``system`` or ``model``, or of the column that `system`
    names. The arguments are those of `read`.

    >>> import polars
    >>> table = polars.DataFrame({"model": ["a", "b"], "item": [1, 1], "truth": [0, 0], "prediction": [0, 1]})
    >>> sorted(read_systems(table))
    ['a', 'b']
    """
    parsed = ReadArguments.parse(**arguments)
    files, form = recognise_files(source, parsed.format)
    _check_supported(parsed, files, form)
    if form is None or form.read_items is None:
        return _read_table(_open_table(source, files, form), form, parsed)
    parts = [form.read_items(file, parsed).with_provenance(format=form.name) for file in files]
    items = parts[0] if len(parts) == 1 else concatenate(parts)
    with at(files[0]):
        return {"": items.with_positive(parsed.positive)}


def _check_supported(
    arguments: ReadArguments, files: Sequence[_files.SourceFile], form: Format | None
) -> None:
    """Raise if an argument is set that this format does not support; None is the format of a data frame."""
    supported = () if form is None else form.arguments
    if form is not None and form.read_items is not None:
        for name in _TABLE_ARGUMENTS:
            if name not in supported and getattr(arguments, name) is not None:
                raise ArgumentError(
                    f"{files[0]}: {name} names a column of a table, but this is {form.described}"
                )
    for name in _PART_ARGUMENTS:
        if name not in supported and getattr(arguments, name) is not None:
            source = "a data frame" if form is None else f"{files[0]}: {form.described}"
            raise ArgumentError(f"{source} has no {name} to choose; omit {name}")


def _read_table(table: SourceTable, form: Format | None, arguments: ReadArguments) -> dict[str, Items]:
    origin = table_origin(table, form)
    if arguments.join is not None:
        key, other = arguments.join
        table = JoinedTable(table, open_table(other), key)
        origin["join"] = table.origin
    with rows_named_by(table.paths):
        systems = items_from_table(table, arguments)
    return {name: items.with_provenance(**origin) for name, items in systems.items()}


def table_origin(table: SourceTable, form: Format | None) -> dict[str, Any]:
    """Return the provenance of the items of a table; None is the format of a data frame."""
    if form is None:
        return {"format": "frame"}
    return {"path": table.label, "format": form.name, "sha256": table.sha256()}


def name_systems(sources: Mapping[str, Mapping[str, Items]]) -> dict[str, Items]:
    """Return all systems of several sources by name.

    The only system of a source gets the name of the source. The systems of a table keep their names, after the name of
    the table if there are other sources. Each source is passed as `read_systems` returns it.

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
    """Return the items that were passed to `function`: Items unchanged; a data frame or a file is read."""
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
    """Raise if an argument describes how to read a source that is already Items."""
    for argument, value in reading.items():
        if value is not None:
            raise ArgumentError(
                f"{argument} applies only to a data frame or a file, but {name} is already Items; omit it"
            )


def check_arguments(arguments: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Raise unless all arguments are those of `read` or of `function`, and those that name a column are text."""
    names = [
        name
        for each in dict.fromkeys((read, function))
        for name, parameter in inspect.signature(each).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    for name, value in arguments.items():
        if name not in names:
            raise _validate.unknown_argument(function.__name__, name, names)
        if name in (*_COLUMN_ARGUMENTS, "cluster_by") and value is not None and not isinstance(value, str):
            column = getattr(value, "name", None)
            example = column if isinstance(column, str) else "label"
            raise ArgumentError(
                f"{name} must be the name of a column, got {_validate.kind(value)}; pass the name, such as "
                f"{name}={example!r}"
            )


def open_table(source: Any, *, format: str | None = None) -> SourceTable:  # noqa: A002
    """Open a table whose columns are read one by one, as numbers, flags, labels or lists.

    Args:
        source: a path, a pattern, several of those (read as one), or a data frame, as for `read`: CSV with any
            usual delimiter, compressed or not, Parquet and JSONL.
        format: "csv", "parquet" or "jsonl". Default: recognised.

    >>> import polars
    >>> table = open_table(polars.DataFrame({"y": [1.5, 2], "site": ["a", "b"], "set": [["x"], ["x", "y"]]}))
    >>> table.numbers("y"), table.labels("site").tolist(), table.lists("set")
    (array([1.5, 2. ]), ['a', 'b'], [['x'], ['x', 'y']])
    """
    files, form = recognise_files(source, format)
    if form is not None and not form.is_table:
        raise ArgumentError(
            f"{files[0]}: is {form.described}, but a table is required: CSV, Parquet or JSONL"
        )
    return _open_table(source, files, form)


def _open_table(source: Any, files: Sequence[_files.SourceFile], form: Format | None) -> SourceTable:
    return open_frame(source) if form is None else open_files(files, form.name)


def expand(source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Return the files that a path, a pattern or several of them name; the path of a file is not a pattern."""
    parts = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    paths: list[Path] = []
    for part in parts:
        path = Path("/dev/stdin" if str(part) == "-" else part)
        if any(letter in str(part) for letter in _PATTERN) and not _files.SourceFile(path).exists():
            matches = sorted(glob.glob(str(part), recursive=True))  # noqa: PTH207  (patterns may be absolute)
            if not matches:
                raise ArgumentError(f"{part}: no file matches this pattern")
            paths += [Path(name) for name in matches if Path(name).is_file()]
        else:
            paths += _files_in(path) if os.path.isdir(path) else [path]  # noqa: PTH112  (no name is too long for it)
    if not paths:
        raise ArgumentError("no file was named; pass a path, a pattern or several paths")
    for path in paths:
        file = _files.SourceFile(path)
        if not file.exists():
            if _ADDRESS.match(str(path)):
                raise ArgumentError(
                    f"{file}: is a URL; download it first, for example with curl, and pass the path of the file"
                )
            raise ArgumentError(
                f"{file}: no such file{_validate.suggestion(path.name, _names_in(path.parent))}"
            )
    return paths


def _files_in(folder: Path) -> list[Path]:
    """Return the logs or tables in a folder, which must be of one kind."""
    names = [name for name in sorted(_names_in(folder)) if not name.startswith(".")]
    by_ending = {ending: [name for name in names if name.endswith(ending)] for ending in _IN_FOLDERS}
    present = {ending: files for ending, files in by_ending.items() if files}
    if len(present) != 1:
        counts = list_names(f"{len(files):,} {ending}" for ending, files in present.items())
        content = counts or "no log and no table"
        raise ArgumentError(
            f"{folder}: is a folder with {content}; pass files, or a pattern such as '{folder}/*.eval'"
        )
    return [folder / name for name in next(iter(present.values()))]


def _names_in(folder: Path) -> list[str]:
    """Return the names of all files in a folder; nothing if it cannot be read."""
    try:
        return os.listdir(folder)  # noqa: PTH208  (names are wanted, not paths)
    except (OSError, ValueError):
        return []


def is_table(path: Path) -> bool:
    """Return whether a path or a pattern names tables, which may have several systems."""
    first = expand(path)[0]
    # A pipe can be read only once, to get its items.
    return first.is_file() and _recognise(_files.SourceFile(first)).is_table


def recognise_files(source: Any, name: str | None) -> tuple[list[_files.SourceFile], Format | None]:
    """Return the files of a source and their format (`name`, or recognised); no files and None for a frame."""
    parts = list(source) if isinstance(source, (list, tuple, Iterator)) else [source]
    if not all(isinstance(part, (str, os.PathLike)) for part in parts):
        if name is not None:
            raise ArgumentError("format applies only to files; omit it for a data frame")
        return [], None
    if name is not None:
        _validate.choice(name, "format", FORMATS)
    files = [_files.SourceFile(path) for path in expand(parts)]
    if name is not None:
        for file in files if FORMATS[name].is_table else ():
            _read_head(file)  # translates it
        return files, FORMATS[name]
    forms = [_recognise(file) for file in files]
    if len({form.name for form in forms}) > 1:
        listed = list_names(f"{file} ({form.title})" for file, form in zip(files, forms, strict=True))
        raise FormatError(f"the files are of different formats and cannot be read as one: {listed}")
    return files, forms[0]


def _recognise(file: _files.SourceFile) -> Format:
    """Return the format of a file by its first megabyte."""
    head, complete = _read_head(file)
    for form in FORMATS.values():
        if form.magic is not None and head.startswith(form.magic):
            return form
    if head.startswith((b"ARROW1", b"FEA1")):
        raise FormatError(f"{file}: an Arrow file; open it with pyarrow and pass the table")
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if not text:
        raise FormatError(f"{file}: the file is empty")
    is_json = text[:1] in (b"{", b"[")
    if file.path.suffix == ".json" and not is_json:
        raise _unknown_json(text, file, complete=complete)
    if file.path.suffix in _JSON_LINES and not is_json:
        raise FormatError(f"{file}: not JSON with one object per line at line 1")
    if b"\x00" in head[:4096]:
        titles = ", ".join(form.title for form in FORMATS.values())
        raise FormatError(f"{file}: not text, and not one of the supported formats ({titles})")
    return _recognise_json(text, file, complete=complete) if is_json else FORMATS["csv"]


def _recognise_json(text: bytes, file: _files.SourceFile, *, complete: bool) -> Format:
    line, _, rest = text.partition(b"\n")
    line_keys = _object_keys(line)
    keys = set(outer_keys(text)) if line_keys is None else line_keys
    cut_off = line_keys is None and not complete
    for form in FORMATS.values():
        if any(keys >= alternative for alternative in form.keys) or (
            form.only_keys and keys == form.only_keys
        ):
            return form
        if cut_off and form.first_keys and keys >= form.first_keys:
            return form
    named_lines = file.path.suffix in _JSON_LINES
    is_lines = line_keys is not None and (rest.lstrip()[:1] == b"{" or named_lines)
    is_list = text[:1] == b"[" and text[1:].lstrip()[:1] == b"{"
    if is_lines or is_list or (named_lines and not complete):
        return FORMATS["jsonl"]
    raise _unknown_json(text, file, complete=complete)


def _unknown_json(text: bytes, file: _files.SourceFile, *, complete: bool) -> FormatError:
    if complete:
        _files.parse_json(text, file)  # raises with the line, if it is not JSON at all
    return FormatError(
        f"{file}: not a run file (an object with a list of experiments), nor any other supported form of JSON "
        "(evaluation results, an Inspect log, one object per line); name its format (format, --input-format)"
    )


def _object_keys(line: bytes) -> set[str] | None:
    """Return the keys of a line that is one complete object, otherwise None."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return set(record) if isinstance(record, dict) else None


def _read_head(file: _files.SourceFile) -> tuple[bytes, bool]:
    """Return the first bytes of a file, decompressed, and whether that is all of it; translate the file if needed."""
    try:
        with file.open() as opened:
            head = opened.read(_HEAD_SIZE)
            if head.startswith(GZIP):
                opened.seek(0)
                head = gzip.GzipFile(fileobj=opened).read(_HEAD_SIZE)
    except (OSError, EOFError, zlib.error):
        raise FormatError(f"{file}: cannot be read; the file may be damaged or cut off") from None
    if head.startswith(MAYBE_TRANSLATED) and translate(file, head):
        return _read_head(file)
    return head, len(head) < _HEAD_SIZE
