"""`abstain sets`: from a table of truths and prediction sets to a verdict."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from abstain.cli import _conformal
from abstain.cli._tables import SummaryFormat, summary_format
from abstain.errors import ArgumentError, DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from abstain.sources import SourceTable

EXAMPLES = """\b
Examples:
  abstain sets preds.jsonl --truth label --set labels --claim 0.9
  abstain sets preds.csv --truth label --members cat,dog,bird --claim 0.9 --cluster patient --by site
"""
_SET = "Lists of labels (a list, a JSON array, or text divided by |); once per claim."
_MEMBERS = "Columns of 0 and 1, one per class, separated by commas; a truth is the column's name or number."


def sets_command(
    table: _conformal.Source,
    truth: _conformal.Truth,
    claims: _conformal.Claims,
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="COLUMN", help=_SET, show_default=False)
    ] = None,
    members: Annotated[
        str | None, typer.Option("--members", metavar="COLUMNS", help=_MEMBERS, show_default=False)
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="LABELS", help="All labels there are; else those that occur.", show_default=False
        ),
    ] = None,
    cluster: _conformal.Cluster = None,
    by: _conformal.By = None,
    features: _conformal.Features = None,
    weight: _conformal.Weight = None,
    bins: Annotated[
        int | None,
        typer.Option(metavar="N", help="Groups of set sizes; else one per size.", show_default=False),
    ] = None,
    margin: _conformal.Margin = 0.0,
    resamples: _conformal.Resamples = 2_000,
    seed: _conformal.Seed = 42,
    level: _conformal.Level = 0.95,
    output: _conformal.Output = None,
    charts: _conformal.Charts = None,
    chart_format: _conformal.ChartFormat = "svg",
    as_json: _conformal.AsJson = False,
    quiet: _conformal.Quiet = False,
    table_format: SummaryFormat = None,
) -> None:
    """Judge prediction sets: does coverage hold, where does it fail, how certain is that?"""
    if bool(sets) == bool(members):
        raise ArgumentError("say where the sets are: either --set COLUMN or --members COLUMN,COLUMN,...")
    if members and classes:
        raise ArgumentError("--classes goes with --set; with --members the columns are the classes")
    if len(sets or [members]) != len(claims):
        raise ArgumentError(f"give one --claim per set, got {len(claims)} for {len(sets or [members])}")
    _conformal.check_outputs(output, charts, chart_format, as_json=as_json, quiet=quiet)
    form = summary_format(table_format, as_json=as_json, quiet=quiet)
    from abstain.evaluation.conformal import evaluate_sets  # noqa: PLC0415
    from abstain.sources import open_table  # noqa: PLC0415

    source = open_table(table)
    if members:
        names = [name.strip() for name in members.split(",") if name.strip()]
        labels, table_of_sets = _from_members(source, truth, names)
    else:
        names, labels, table_of_sets = _from_lists(source, truth, sets or [], classes)
    judge = partial(
        evaluate_sets,
        labels,
        table_of_sets,
        claim=claims,
        labels=names,
        bins=bins,
        margin=margin,
        resamples=resamples,
        seed=seed,
        level=level,
        **_conformal.options_of(source, cluster, by or [], features or [], weight),
    )
    columns = {
        "truth": truth,
        "set": sets,
        "members": names if members else None,
        "cluster": cluster,
        "by": by,
    }
    columns |= {"weight": weight, "feature": features}
    result = _conformal.judged(source, columns, judge, resamples, show_progress=not (quiet or as_json))
    _conformal.publish(result, output, charts, chart_format, form, as_json=as_json, quiet=quiet)


def _from_members(
    source: SourceTable, truth: str, names: list[str]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    import numpy as np  # noqa: PLC0415

    member = np.column_stack([source.flags(name) for name in names])[:, :, None]
    given = source.labels(truth)
    by_number = given.dtype.kind == "i" and not {str(label) for label in given} <= set(names)
    return given if by_number else _indices(source, truth, given, names), member


def _from_lists(
    source: SourceTable, truth: str, sets: list[str], classes: str | None
) -> tuple[list[str], NDArray[np.intp], NDArray[np.bool_]]:
    import numpy as np  # noqa: PLC0415

    from abstain.labels import class_names, members  # noqa: PLC0415

    given = source.labels(truth)
    lists = {name: source.lists(name) for name in sets}
    occurring = [*given.tolist(), *(label for rows in lists.values() for row in rows for label in row)]
    names = list(class_names(occurring) if classes is None else class_names(classes.split(",")))
    member = [
        members(rows, names, name=f"{source.label}: the column {name!r}") for name, rows in lists.items()
    ]
    return names, _indices(source, truth, given, names), np.stack(member, axis=2)


def _indices(source: SourceTable, truth: str, given: NDArray[Any], names: list[str]) -> NDArray[np.intp]:
    import numpy as np  # noqa: PLC0415

    from abstain.labels import class_index, column  # noqa: PLC0415

    found = class_index(column(given, truth), names)
    if (found < 0).any():
        row = int(np.argmax(found < 0))
        raise DataError(f"{source.label}: the column {truth!r} has a label that is no class at row {row}")
    return found
