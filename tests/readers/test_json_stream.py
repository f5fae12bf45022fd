from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abstain import FormatError
from abstain.readers._json_parts import outer_keys, outer_members

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
def test_every_member_of_an_object_is_found(
    tmp_path_factory: pytest.TempPathFactory,
    before: dict[str, object],
    samples: list[object],
    indent: int | None,
) -> None:
    document = {**before, "samples": samples, "z": {"samples": [1]}}
    path = tmp_path_factory.mktemp("stream") / "x.json"
    path.write_text(json.dumps(document, indent=indent), encoding="utf-8")
    with path.open("rb") as file:
        members_found = list(outer_members(file, path, limit=1 << 20, arrays=("samples",)))
    # A pipe is read into memory, with the same result.
    assert members_found == list(
        outer_members(io.BytesIO(path.read_bytes()), path, limit=1 << 20, arrays=("samples",))
    )
    assert [json.loads(text) for key, text in members_found if key == "samples"] == samples
    others = [json.loads(text) for key, text in members_found if key != "samples"]
    assert others == [*before.values(), {"samples": [1]}]


def members(text: str) -> list[tuple[str, bytes]]:
    return list(outer_members(io.BytesIO(text.encode()), "x.json", limit=50, arrays=("samples",)))


def test_members_beyond_the_limit_and_incomplete_objects_are_errors() -> None:
    with pytest.raises(FormatError, match="has more than 50 bytes"):
        members('{"samples": ["' + "x" * 100 + '"]}')
    with pytest.raises(FormatError, match="ends too early"):
        members('{"samples": [1, 2')
    for text in ('{"samples": [1]} and more', '{"samples": [1]}{"samples": [2]}', "nothing", "}{"):
        with pytest.raises(FormatError, match="there is other text before or after its one object"):
            members(text)


@pytest.mark.parametrize("text", ['{"samples": ["', '{"', '{"samples": [1, "'])
def test_a_string_that_is_cut_off_is_scanned_only_once(text: str) -> None:
    # Without a possessive pattern, each of these quotes would be tried as the beginning of a string, for hours.
    cut = text + '\\"' * 500_000
    with pytest.raises(FormatError, match="ends too early"):
        members(cut)
    assert len(outer_keys(cut.encode())) < 2


def test_keys_are_found_in_the_beginning_of_a_file() -> None:
    assert outer_keys(b'{"a": {"b": 1}, "c": "d: {", "e": [') == ["a", "c", "e"]
