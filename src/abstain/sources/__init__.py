"""Sources: from whatever an evaluator has to items.

`read` is the one door. It recognises a file by what it holds, takes data frames as they are, and says in the
items' provenance what it found and what it guessed. `open_table` gives the columns of a table as they are, to
whoever knows what they mean. A source knows its format and `Items`, and nothing of
what is computed from them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from abstain import _validate
from abstain.errors import ArgumentError, FormatError
from abstain.sources._evaluation_file import (
    EvaluationFile,
    load_evaluation_file,
    read_evaluation_file,
    write_evaluation_file,
)
from abstain.sources._problems import Problems
from abstain.sources._recognise import FORMATS, digest, expand, recognise
from abstain.sources._rules import AbstentionRule, Determination, rule_from

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from abstain.items import Items
    from abstain.sources._roles import Roles
    from abstain.sources._scan import ScannedTable
    from abstain.sources._tables import SourceTable as SourceTable  # the callers of open_table name its type

__all__ = [
    "FORMATS",
    "AbstentionRule",
    "Determination",
    "EvaluationFile",
    "Problems",
    "expand",
    "load_evaluation_file",
    "open_table",
    "read",
    "read_evaluation_file",
    "recognise",
    "scan_table",
    "write_evaluation_file",
]

MEMBER_LIMIT = 1 << 27
TOTAL_LIMIT = 1 << 36


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
    scorer: str | None = None,
    filter: str | None = None,  # noqa: A002
    member_limit: int = MEMBER_LIMIT,
    total_limit: int = TOTAL_LIMIT,
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
        scorer: which judge of a log: a scorer of Inspect ("name", or "name.key" where it gives several
            values), or a metric of lm-eval.
        filter: which filter of lm-eval samples; all when left out.
        member_limit: most bytes of one sample of an Inspect log, decompressed.
        total_limit: most bytes of all its samples together.
        problems: where to collect what is wrong with the rows of a table, instead of raising the first.

    >>> read("tests/data/examples/run_a.json", mode="few_shot")
    Items(240 items in 30 participants: 150 answered, 66 abstained, 24 failed, 0 unscored)
    """
    from abstain.sources._roles import Roles  # noqa: PLC0415

    if cluster is not None and cluster_by is not None:
        raise ArgumentError("cluster and cluster_by are two words for one thing; give one of them")
    roles = Roles(
        truth=truth,
        prediction=prediction,
        confidence=confidence,
        abstained=abstained,
        failed=failed,
        correct=correct,
        weight=weight,
        low=low,
        high=high,
        set=set,
        cluster=cluster if cluster is not None else cluster_by,
        item=item,
        signals=signals,
        metadata=metadata,
        null_prediction=null_prediction,
        rule=None if abstain_rule is None else rule_from(abstain_rule),
        scale=scale,
    )
    limits = {"member_limit": member_limit, "total_limit": total_limit}
    choices = {"mode": mode, "scorer": scorer, "filter": filter}
    return _read(source, format, roles, choices, limits, problems)


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
    if not _names_files(source):
        from abstain.sources._frames import open_frame  # noqa: PLC0415

        if format is not None:
            raise ArgumentError("format is for files; a data frame is what it is")
        return open_frame(source)
    from abstain.sources._tables import TABLE_FORMATS, open_files  # noqa: PLC0415

    paths, found = _recognised(source, format)
    if found not in TABLE_FORMATS:
        raise ArgumentError(f"{paths[0]}: a {FORMATS[found]}, and this takes a table: CSV, Parquet or JSONL")
    return open_files(paths, found)


def _recognised(source: Any, kind: str | None) -> tuple[list[Path], str]:
    """Return the files that a source names, and the one format that they have."""
    if kind is not None:
        _validate.choice(kind, "format", FORMATS)
    paths = expand(source)
    kinds = {path: kind or recognise(path) for path in paths}
    if len({*kinds.values()}) > 1:
        listed = ", ".join(f"{path} ({FORMATS[found]})" for path, found in kinds.items())
        raise FormatError(f"the files are of different formats and cannot be read as one: {listed}")
    return paths, kinds[paths[0]]


def scan_table(source: Any, *, format: str | None = None, **roles: Any) -> ScannedTable:  # noqa: A002
    """Count the rows of a table that are alike, without loading it; `roles` are those of `read`."""
    from abstain.sources import _scan  # noqa: PLC0415
    from abstain.sources._roles import Roles  # noqa: PLC0415

    return _scan.scan_table(source, Roles(**roles), format)


def _read(
    source: Any,
    kind: str | None,
    roles: Roles,
    choices: dict[str, str | None],
    limits: dict[str, int],
    problems: Problems | None,
) -> Items:
    from abstain.sources._columns import items_from_table  # noqa: PLC0415
    from abstain.sources._tables import TABLE_FORMATS, open_files  # noqa: PLC0415

    if not _names_files(source):
        table = open_table(source, format=kind)
        _refuse(choices, "a data frame")
        return items_from_table(table, roles, problems).with_provenance(format="frame")
    paths, found = _recognised(source, kind)
    if found in TABLE_FORMATS:
        _refuse(choices, f"{paths[0]}: a {FORMATS[found]}")
        table = open_files(paths, found)
        items = items_from_table(table, roles, problems)
        return items.with_provenance(path=table.label, format=found, sha256=table.sha256())
    parts = [_read_log(path, found, roles, choices, limits) for path in paths]
    if len(parts) == 1:
        return parts[0]
    from abstain.sources._several import concatenate  # noqa: PLC0415

    return concatenate(parts)


def _read_log(
    path: Path, kind: str, roles: Roles, choices: dict[str, str | None], limits: dict[str, int]
) -> Items:
    """Read a file that knows itself what its parts are."""
    served = ("cluster", "item") if kind == "evaluation" else ("cluster",)
    for role in roles.named():
        if role not in served:
            raise ArgumentError(f"{path}: {role} names a column of a table, and this is a {FORMATS[kind]}")
    if kind == "inspect":
        from abstain.sources._inspect import read_inspect  # noqa: PLC0415

        _refuse(choices, f"{path}: an {FORMATS[kind]}", but=("scorer",))
        items = read_inspect(
            path,
            scorer=choices["scorer"],
            cluster=roles.cluster,
            rule=roles.rule,
            scale=roles.scale,
            **limits,
        )
    elif kind == "lm-eval":
        from abstain.sources._lm_eval import read_lm_eval  # noqa: PLC0415

        _refuse(choices, f"{path}: a file of {FORMATS[kind]}", but=("scorer", "filter"))
        items = read_lm_eval(
            path,
            scorer=choices["scorer"],
            filter_name=choices["filter"],
            cluster=roles.cluster,
            rule=roles.rule,
            scale=roles.scale,
        )
    elif kind == "evaluation":
        _refuse(choices, f"{path}: an {FORMATS[kind]}")
        if roles.rule is not None:
            raise ArgumentError(f"{path}: an evaluation file says who abstained; leave the rule out")
        items = read_evaluation_file(path, cluster=roles.cluster, item=roles.item, scale=roles.scale)
        return items.with_provenance(format=kind)
    else:
        from abstain.sources._run_file import read_run_file  # noqa: PLC0415

        _refuse(choices, f"{path}: a {FORMATS[kind]}", but=("mode",))
        if roles.cluster is not None or roles.rule is not None:
            raise ArgumentError(
                f"{path}: a run file knows its clusters and abstentions; leave cluster and rule out"
            )
        return read_run_file(path, mode=choices["mode"], scale=roles.scale).with_provenance(format=kind)
    return items.with_provenance(format=kind, sha256=digest([path]))


def _refuse(choices: dict[str, str | None], what: str, but: tuple[str, ...] = ()) -> None:
    for name, value in choices.items():
        if value is not None and name not in but:
            raise ArgumentError(f"{what} has no {name} to choose; leave {name} out")


def _names_files(source: object) -> bool:
    if isinstance(source, str) or hasattr(source, "__fspath__"):
        return True
    return isinstance(source, (list, tuple)) and all(isinstance(part, (str, Path)) for part in source)
