"""The wording of instruments: the question of each item, and the meaning of the numbers on its scale.

`abstain.metrics.instruments` has the items, the scale and the tiers. A JSON file that declares an instrument may also
contain ``questions`` (item: words) and ``scale_words`` (number: words).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from abstain import _files
from abstain.errors import DataError, at
from abstain.metrics.instruments import INSTRUMENTS, Instrument, find_instrument

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class WordedInstrument:
    """An instrument, the question of each item (default: its name), and the meaning of the numbers on its scale."""

    instrument: Instrument
    questions: Mapping[str, str] = field(default_factory=dict)
    scale_words: Mapping[str, str] = field(default_factory=dict)

    @property
    def meaning(self) -> str:
        """The meaning of the scale, for a prompt."""
        words = ", ".join(f"{number} = {text}" for number, text in self.scale_words.items())
        return f" ({words})" if words else ""


# The items of the PHQ-8, without the ninth of the PHQ-9 (Kroenke et al., 2009, doi:10.1016/j.jad.2008.06.026).
_WORDS = {
    "PHQ-8": WordedInstrument(
        INSTRUMENTS["PHQ-8"],
        {
            "NoInterest": "little interest or pleasure in doing things",
            "Depressed": "feeling down, depressed or hopeless",
            "Sleep": "trouble falling or staying asleep, or sleeping too much",
            "Tired": "feeling tired or having little energy",
            "Appetite": "poor appetite or overeating",
            "Failure": "feeling bad about oneself, or of being a failure",
            "Concentrating": "trouble concentrating on things, such as reading or watching television",
            "Moving": "moving or speaking noticeably slowly, or being unusually restless",
        },
        {
            "0": "not at all",
            "1": "several days of the last two weeks",
            "2": "more than half of the days",
            "3": "nearly every day",
        },
    )
}


def find_worded(name: str) -> WordedInstrument:
    """Return an instrument with its wording, by name or from a JSON file.

    >>> find_worded("PHQ-8").questions["Tired"]
    'feeling tired or having little energy'
    """
    if name in _WORDS or not name.endswith(".json"):
        form = find_instrument(name)
        return _WORDS.get(form.name, WordedInstrument(form))
    declared = _files.parse_json(_files.read_bytes(name), name)
    with at(name):
        form = Instrument.from_mapping(declared)
        return WordedInstrument(form, _words(declared, "questions"), _words(declared, "scale_words"))


def _words(declared: Mapping[str, Any], key: str) -> dict[str, str]:
    words = declared.get(key, {})
    if not isinstance(words, dict) or not all(isinstance(text, str) for text in words.values()):
        raise DataError(f"{key} must be an object of texts")
    return words
