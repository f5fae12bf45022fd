from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abstain import FormatError
from abstain.sources._members import outer_keys, outer_members

if TYPE_CHECKING:
    from pathlib import Path

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(
    before=st.dictionaries(st.text().filter(lambda key: key not in {"samples", "z"}), values, max_size=3),
    samples=st.lists(values, max_size=4),
    indent=st.sampled_from([None, 2]),
)
def test_every_part_is_found(
    tmp_path_factory: pytest.TempPathFactory,
    before: dict[str, object],
    samples: list[object],
    indent: int | None,
) -> None:
    document = {**before, "samples": samples, "z": {"samples": [1]}}
    path = tmp_path_factory.mktemp("stream") / "x.json"
    path.write_text(json.dumps(document, indent=indent), encoding="utf-8")
    found = list(outer_members(path, limit=1 << 20, arrays=("samples",)))
    assert [json.loads(text) for key, text in found if key == "samples"] == samples
    others = [json.loads(text) for key, text in found if key != "samples"]
    assert others == [*before.values(), {"samples": [1]}]


def test_limits_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"samples": ["' + "x" * 100 + '"]}')
    with pytest.raises(FormatError, match="holds more than 50 bytes"):
        list(outer_members(path, limit=50, arrays=("samples",)))
    path.write_text('{"samples": [1, 2')
    with pytest.raises(FormatError, match="ends too early"):
        list(outer_members(path, limit=50, arrays=("samples",)))


def test_keys_of_a_beginning() -> None:
    assert outer_keys(b'{"a": {"b": 1}, "c": "d: {", "e": [') == ["a", "c", "e"]
