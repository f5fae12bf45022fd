"""Hostile values for cells, fields, names and arguments, as people, programs and attackers write them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

__all__ = ["SECRET", "arguments", "bytes_at_random", "labels", "names", "texts", "values"]

# This word is in every generated text of a record, and in no name of a column, file, cluster or item.
SECRET = "QZXJ"

_CONTROLS = (
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\u202ekcab",
    "\u2066in\u2069",
    "a\rb",
    "bell\x07",
    "\x9b2J",
    "\x7f",
)
_TROUBLE = (
    *("", " ", "\ufeff", "\u2028", "🙂", "é", "e\u0301", "\u00a0", "a\x00b", "-", "#", "# note", "'"),
    *('"', '""', "\\", "|"),
    *("[1", "[]", '["a", "b"]', "{", "null", "None", "NaN", "nan", "inf", "-inf", "NA", "N/A"),
    *("true", "False", "yes"),
    *("Y", "0", "1", "1.0", "01", "-0", "1e3", "0x10", "1_000", "1,5", "2026-01-02", "12:30", "=1+1"),
    *("<b>x</b>", "$HOME"),
    *("%s", "{0}", "${x}", "../x", "~", "*", "a,b", "a;b", "a\tb", "a\nb", "C", "I", "N", "50%", "ERR: 500"),
)
_WHOLE = (
    0,
    1,
    2,
    3,
    -1,
    2**31,
    2**53,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    2**64,
    10**17 + 1,
    10**29 + 7,
)
_REAL = (0.0, 0.5, 1.0, -0.0, 1e-320, 1e308, 0.1 + 0.2, 99.5, 1e17)


def texts() -> st.SearchStrategy[str]:
    """Draw a text of a record, which contains the secret."""
    return st.sampled_from((*_TROUBLE, *_CONTROLS)).map(lambda text: SECRET + text)


def labels() -> st.SearchStrategy[str]:
    """Draw a short text for a cell: a word, number, date or flag, or a text that looks like one."""
    return st.sampled_from((*_TROUBLE, *_CONTROLS, "a", "b", "word", "9" * 30, "1" * 400))


def names() -> st.SearchStrategy[str]:
    """Draw a name of a column, key or group, without the secret, because a message may show a name."""
    return st.one_of(
        st.sampled_from(
            (*_TROUBLE, *_CONTROLS, "x" * 300, "truth", "Truth", "confidence", "abstained", "failed")
        ),
        st.text(min_size=1, max_size=4),
    )


def values() -> st.SearchStrategy[Any]:
    """Draw any JSON value, to replace a value of another type."""
    return st.one_of(
        st.none(),
        st.booleans(),
        st.sampled_from(_WHOLE),
        st.sampled_from((10**400, -(10**399))),
        st.sampled_from(_REAL),
        st.sampled_from((float("nan"), float("inf"))),
        texts(),
        st.sampled_from((SECRET + "\ud800", SECRET + "x" * 5000)),
        st.sampled_from(
            ([], [1], {}, {"a": 1}, [[]], [None], [{}], {"": {}}, [SECRET], {SECRET + "key": SECRET})
        ),
    )


def arguments() -> st.SearchStrategy[str]:
    """Draw an unusual value of an option."""
    return st.one_of(
        st.sampled_from(
            (
                "",
                "-1",
                "0",
                "1",
                "2",
                "0.5",
                "nan",
                "inf",
                "1e400",
                "9" * 30,
                "9" * 5000,
                "a",
                ",",
                ",,",
                "--",
            )
        ),
        st.sampled_from((*_TROUBLE, *_CONTROLS)).filter(lambda text: "\x00" not in text),
        st.sampled_from(
            (
                "regex:(",
                "regex:(a+)+$",
                "choice:",
                "phrases:",
                "phrases:@no",
                "phrases:@t.csv",
                "secondary:a+b",
            )
        ),
    )


def bytes_at_random() -> st.SearchStrategy[bytes]:
    """Draw a few bytes."""
    signatures = (
        b"\xff\xfe",
        b"\x00",
        b"\xef\xbb\xbf",
        b"\x1f\x8b",
        b"PAR1",
        b"PK\x03\x04",
        b"\xed\xa0\x80",
        b"\r",
        b'"',
        b"{",
        b"[" * 2000,
    )
    return st.one_of(st.sampled_from(signatures), st.binary(min_size=1, max_size=8))
