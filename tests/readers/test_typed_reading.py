"""DuckDB reads text as the same numbers, booleans or names as `_values`, in every format."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import abstain
from abstain import _validate
from abstain.errors import DataError
from abstain.readers import _values, open_table
from abstain.readers._duckdb_tables import DuckTable
from abstain.readers._values import Problems

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from abstain.readers._tables import Form, SourceTable

COLUMNS: dict[str, list[str | None]] = {
    "whole": ["1", "25", "-3", "0"],
    "whole with gaps": ["1", None, "25"],
    "whole with blanks": ["1", "  ", "25"],
    "a sign": ["+1", "2"],
    "leading zeros": ["01", "2"],
    "18 digits": ["123456789012345678", "1"],
    "19 characters": ["-123456789012345678", "1"],
    "20 digits": ["12345678901234567890", "12345678901234567891"],
    "40 digits": ["1" * 40, "2" * 40],
    "beyond 2**53": ["9007199254740993", "9007199254740992"],
    "numbers": ["0.5", "1", "1e3", ".5", "5."],
    "large and fractional": ["9007199254740993", "0.5"],
    "whole floats": ["1.0", "2.0"],
    "written differently": ["1.50", "1.5"],
    "blanks around": [" 1", "2 "],
    "tabs around": ["\t1", "2\t"],
    "underscores": ["1_0", "2"],
    "hexadecimal": ["0x10", "2"],
    "too large": ["1e400", "2.5"],
    "too small": ["1e-400", "2.5"],
    "nan": ["nan", "0.5"],
    "infinite": ["inf", "-Infinity", "0.5"],
    "percent": ["12%", "13%"],
    "decimal comma": ["0,5", "0,6"],
    "negative zero": ["-0", "0"],
    "fullwidth digits": ["\uff11", "2"],
    "booleans": ["True", "false", "TRUE"],
    "booleans with gaps": ["true", None, "false"],
    "booleans and blanks": ["true ", "false"],
    "yes and no": ["yes", "no"],
    "booleans and numbers": ["true", "1"],
    "dates": ["2020-01-01", "2020-01-02"],
    "words": ["a", "b", "A"],
    "one word among numbers": ["1", "2", "x"],
    "nothing": [None, None],
}
# With so many values, a pattern checks them instead of one by one.
MANY = {
    "whole": [str(number) for number in range(9000)],
    "number": [f"{number}.25" for number in range(9000)],
}


def written(texts: list[str | None], folder: Path, form: str) -> SourceTable:
    path = folder / f"t.{form}"
    with path.open("w", newline="", encoding="utf-8") as file:
        if form == "csv":
            writer = csv.writer(file)
            writer.writerow(["row", "text"])
            writer.writerows(enumerate(texts))
        else:
            file.writelines(f"{json.dumps({'row': row, 'text': text})}\n" for row, text in enumerate(texts))
    return open_table(path)


def check(texts: list[str | None], table: SourceTable) -> None:
    text = _validate.objects(list(texts))
    forms: tuple[Form, ...] = ("text", "value", "name")
    loaded = {form: table.load(["text"], form)["text"] for form in forms}
    assert loaded["text"].tolist() == texts
    value, expected = _values.typed(loaded["value"]), _values.typed(text)
    assert value.dtype == expected.dtype
    np.testing.assert_array_equal(value, expected)
    numbers, wrong = _values.parse_numbers(loaded["value"])
    if value.dtype.kind in "iuf":
        np.testing.assert_array_equal(numbers, _values.parse_numbers(text)[0])
    assert wrong.any() == _values.parse_numbers(text)[1].any()
    problems = Problems()
    name, expected = (_values.as_names(column, "text", problems) for column in (loaded["name"], text))
    if not problems.found:  # no name is missing
        np.testing.assert_array_equal(name, expected)
        assert name.dtype == expected.dtype


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("kind", COLUMNS)
def test_few_values_are_read_as_in_python(tmp_path: Path, kind: str, form: str) -> None:
    texts = COLUMNS[kind]
    check(texts, written(texts, tmp_path, form))


@pytest.mark.parametrize("many", MANY)
@pytest.mark.parametrize("kind", [kind for kind in COLUMNS if kind != "nothing"])
def test_many_values_are_read_as_in_python(tmp_path: Path, kind: str, many: str) -> None:
    """The unusual values come last, after the rows that are examined first."""
    texts = [*MANY[many], *COLUMNS[kind]]
    check(texts, written(texts, tmp_path, "csv"))


TEXTS = st.lists(
    st.one_of(
        st.sampled_from([text for texts in COLUMNS.values() for text in texts]),
        st.integers().map(str),
        st.floats().map(repr),
        st.decimals(allow_nan=False, allow_infinity=False).map(str),
    ),
    min_size=1,
    max_size=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(texts=TEXTS)
def test_any_values_are_read_as_in_python(tmp_path: Path, texts: list[str | None]) -> None:
    check(texts, written(texts, tmp_path, "jsonl"))


# ------------------------------------------------------------------------------------------- columns without a field


def in_every_format(columns: dict[str, list[str | None]], folder: Path) -> list[Path | pl.DataFrame]:
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    paths = [folder / f"t.{ending}" for ending in ("csv", "jsonl", "parquet")]
    frame.write_csv(paths[0])
    frame.write_ndjson(paths[1])
    frame.write_parquet(paths[2])
    return [*paths, frame]


def with_labels(texts: list[str | None]) -> dict[str, list[str | None]]:
    return {"truth": ["1"] * len(texts), "prediction": ["0", *["1"] * (len(texts) - 1)], "text": texts}


# A CSV file cannot distinguish blank from missing values.
@pytest.mark.parametrize("kind", [kind for kind in COLUMNS if "blanks" not in kind])
def test_text_is_a_signal_or_metadata_in_every_format(tmp_path: Path, kind: str) -> None:
    sources = in_every_format(with_labels(COLUMNS[kind]), tmp_path)
    read = [abstain.read(source) for source in sources]
    expected = _values.typed(_validate.objects(list(COLUMNS[kind])))
    for items in read:
        if _values.is_numeric(expected):
            assert not items.metadata
            np.testing.assert_array_equal(items.signals["text"].values, expected)
        else:
            assert not items.signals
            assert items.metadata["text"].tolist() == expected.tolist()


def test_a_named_column_of_metadata_has_the_values_that_its_text_spells(tmp_path: Path) -> None:
    for source in in_every_format(with_labels(["10", "9.0", None]), tmp_path):
        items = abstain.read(source, metadata=["text"])
        assert not items.signals
        np.testing.assert_array_equal(items.metadata["text"], [10.0, 9.0, np.nan])


def test_a_table_that_abstain_wrote_keeps_text_as_text(tmp_path: Path) -> None:
    items = abstain.Items.from_arrays([1, 0], [1, 1], metadata={"zip": ["12345", "54321"]})
    sources = [items.to_parquet(tmp_path / "t.parquet"), items.to_frame("polars")]
    for again in map(abstain.read, sources):
        assert again.metadata["zip"].tolist() == ["12345", "54321"]
        assert not again.signals


@pytest.mark.parametrize(
    ("texts", "cluster"),
    [
        (["0.5", "0.5", "1.5"], None),
        (["true", "true", "false"], None),
        (["7", "7", "8"], "visit"),
        (["a", "a", "b"], "visit"),
    ],
)
def test_a_possible_cluster_column_is_the_same_in_every_format(
    tmp_path: Path, texts: list[str | None], cluster: str | None
) -> None:
    columns = with_labels(texts)
    columns["visit"] = columns.pop("text")
    for source in in_every_format(columns, tmp_path):
        assert abstain.read(source).provenance.get("possible_cluster") == cluster


@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
def test_nan_among_numbers_is_a_missing_verdict_in_every_format(tmp_path: Path, engine: str) -> None:
    *paths, frame = in_every_format({"correct": ["nan", "1", "0"]}, tmp_path)
    assert abstain.read(frame, null_prediction="abstained").counts.abstained == 1
    for path in paths:
        with pytest.raises(
            DataError, match=r"the prediction \(correct\) is missing at (row 1|line [12]) for an unknown"
        ):
            abstain.evaluate(path, engine=engine)


@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
def test_text_that_spells_numbers_ranks_and_groups_as_numbers_in_every_format(
    tmp_path: Path, engine: str
) -> None:
    columns: dict[str, list[str | None]] = {
        "truth": ["1", "1", "0", "1"],
        "prediction": ["1", "0", "0", "1"],
        "sure": ["0.9", "0.2", ".5", "8e-1"],
        "week": ["10", "10", "9", "9"],
    }
    for path in in_every_format(columns, tmp_path)[:3]:
        result = abstain.evaluate(path, confidence="sure", by="week", metrics="accuracy,augrc", engine=engine)
        # By hand: the one error is the least confident of four answers, so the generalized risk is 0 until coverage
        # 3/4 and rises to 1/4 from there.
        assert result["sure"].augrc.value == pytest.approx(1 / 32)
        assert result.metrics is not None
        assert [group.label for group in result.metrics.groups] == ["week=9", "week=10"]


def test_columns_of_words_are_not_loaded_as_possible_signals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    load = DuckTable.load

    def record_and_load(
        table: DuckTable, columns: Sequence[str], form: Form = "text"
    ) -> dict[str, NDArray[Any]]:
        names.extend(columns)
        return load(table, columns, form)

    monkeypatch.setattr(DuckTable, "load", record_and_load)
    rows = 3000
    columns: dict[str, list[str | None]] = {
        **with_labels([str(row) for row in range(rows)]),
        "prompt": [None, *["Which of these?"] * (rows - 1)],
        "late word": [*["7"] * (rows - 1), "seven"],
    }
    for path in in_every_format(columns, tmp_path)[:3]:
        names.clear()
        items = abstain.read(path, metadata=())
        assert "prompt" not in names
        assert list(items.signals) == ["text"]
