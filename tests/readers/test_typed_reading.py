"""Text that DuckDB reads as numbers, booleans or names means what `_values` says that it means."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from abstain import _validate
from abstain.readers import _values, open_table
from abstain.readers._values import Problems

if TYPE_CHECKING:
    from pathlib import Path

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
# So many values are checked by a pattern, and not one by one.
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
def test_few_values(tmp_path: Path, kind: str, form: str) -> None:
    texts = COLUMNS[kind]
    check(texts, written(texts, tmp_path, form))


@pytest.mark.parametrize("many", MANY)
@pytest.mark.parametrize("kind", [kind for kind in COLUMNS if kind != "nothing"])
def test_many_values(tmp_path: Path, kind: str, many: str) -> None:
    """The odd values come last, after those that were looked at first."""
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
def test_any_values(tmp_path: Path, texts: list[str | None]) -> None:
    check(texts, written(texts, tmp_path, "jsonl"))
