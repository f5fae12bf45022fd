from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from abstain import AbstentionRule, ArgumentError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("rule", "answer", "expected"),
    [
        ("choice:E", "E", "abstained"),
        ("choice:E", " e ", "abstained"),
        ("choice:E", "Eve", "answered"),
        ("choice:not sure", "Not  sure", "abstained"),
        ("regex:(?i)not enough (evidence|data)", "There is NOT enough data.", "abstained"),
        ("regex:^no$", "nothing", "answered"),
        ("phrases:I don't know|cannot say", "Well, I don\u2019t\nknow.", "abstained"),
        ("phrases:I don't know|cannot say", "I know", "answered"),
        ("phrases:a.b", "axb", "answered"),
        ("choice:E", "", "undetermined"),
        ("regex:x", "  ", "undetermined"),
        ("regex:x", None, "undetermined"),
    ],
)
def test_a_rule_classifies_an_answer(rule: str, answer: str | None, expected: str) -> None:
    assert AbstentionRule.parse(rule).determine(answer).value == expected


def test_a_refusal_that_was_graded_as_right_is_undetermined() -> None:
    rule = AbstentionRule.parse("regex:sorry")
    assert rule.determine("sorry, it is Paris", right=True).value == "undetermined"
    assert rule.determine("sorry, it is Paris", right=False).value == "abstained"
    assert rule.determine("Paris", right=True).value == "answered"


def test_phrases_are_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "phrases.txt").write_text("I don't know\n\ncannot say\n")
    rule = AbstentionRule.parse(f"phrases:@{tmp_path / 'phrases.txt'}")
    assert rule.determine("That I cannot say").value == "abstained"
    (tmp_path / "phrases.txt").write_bytes(b"\xff")
    with pytest.raises(ArgumentError, match="must be UTF-8 text"):
        AbstentionRule.parse(f"phrases:@{tmp_path / 'phrases.txt'}")
    with pytest.raises(ArgumentError, match="no such file"):
        AbstentionRule.parse(f"phrases:@{tmp_path / 'none.txt'}")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("E", "must be choice:<choice>, regex:<pattern> or phrases:"),
        ("choice: ", "needs a choice"),
        ("regex:", "needs a pattern"),
        ("regex:(", "is not a regular expression"),
        ("phrases: | ", "needs phrases"),
    ],
)
def test_invalid_rules_are_errors(rule: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        AbstentionRule.parse(rule)
