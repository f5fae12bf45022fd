"""The oracles: what must hold of every command, whatever comes in.

An oracle looks at what a command was given and at what it did, and says what is wrong in a `Violation`. Each names what
is wrong in the same words for the same defect, so that a defect that was found a hundred times is reported once.
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fuzz._case import Case, Command, Outcome

__all__ = ["ORACLES", "Violation", "judge"]

# What else than success a verb may say with its exit code.
VERDICT_CODES = {"gate": (1, 4), "threshold": (1, 4)}
# What a command may cost: a constant, and a small multiple of the bytes that it was given.
SECONDS, SECONDS_PER_MEGABYTE = 8.0, 20.0
MEMORY, MEMORY_PER_BYTE = 350 << 20, 100
# What a terminal would act upon: C0 but for tab and line feed, DEL, C1, and what turns the direction of writing.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Our own messages, those of the parser of arguments, and what neither may look like.
_MESSAGE = re.compile(r"^(?:abstain: |Error: )", re.MULTILINE)
# What says which part of a call is meant, whatever it is called.
_PLACES = (
    "argument",
    "input",
    "inputs",
    "condition",
    "column",
    "metric",
    "option",
    "command",
    "schema",
    "format",
)
# What differs between two files that hold the same rows.
_INCIDENTAL = ("created_at", "path", "sha256", "source", "format")
# The end of every message about a request that an engine cannot aggregate.
_NOT_AGGREGATED = "--engine: numpy"
# Where sound data cannot be judged as asked, and a rule says so. Each is a definition, not a mishap.
REFUSALS = (
    r"there is no (?:signal|confidence|item to judge)",
    r"nothing was answered|no item was answered|answered none",
    r"needs? .*(?:confidence|signal|cluster|scale|loss|abstained|two|baseline|bins?|rows?|samples?)",
    r"correctness is [01] for all",
    r"has no standard error to go by",
    r"cannot be divided into two parts",
    r"stands? twice|have the same name",
    r"the ending (?:means|decides|\.)",
    r"alone says nothing about others|no item is answered",
    r"is known not to be a probability",
    r"rows are not matched by their places",
    r"is not compared at matched coverage",
    r"real numbers",
    r"aggregates tables in files",
    r"at least",
    r"too few",
    r"only one|single|both right and wrong|all (?:right|wrong)|same class",
)
# What one verb may say besides: a table of answers is no table of questions, a log is no table, a policy may be for
# another confidence, and not every number is a risk.
REFUSALS_OF = {
    "run": (
        r"has no column|this takes a table|which column is the cluster",
        r"an instrument (?:has its own|is asked)|no number of the scale|is one of the questions|none of its",
        r"the template (?:has|names)|unknown signal|the signal \w+ needs",
    ),
    "calibrate": (r"has no column|which column is",),
    "apply": (r"this takes a table|the policy|unknown confidence|has no column",),
    "threshold": (
        r"risk must (?:be|lie)|the policy|unknown confidence|has no column|goes with|no upper end",
    ),
}


@dataclass(frozen=True, slots=True)
class Violation:
    """What is wrong: the oracle, and what it saw, in words that are the same for the same defect."""

    oracle: str
    what: str

    def __str__(self) -> str:
        return f"{self.oracle}: {self.what}"


def judge(case: Case, outcomes: Sequence[Outcome]) -> list[Violation]:
    """Return everything that is wrong with what came of a case, worst first."""
    found = [
        Violation(name, f"{command[0]}: {what}" if name in _BY_VERB else what)
        for command, outcome in zip(case.commands, outcomes, strict=True)
        for name, oracle in ORACLES.items()
        for what in oracle(case, command, outcome)
    ]
    if case.alike and not found:
        found += [Violation("disagrees", what) for what in _disagreements(case, outcomes)]
    return found


def _ends_well(case: Case, command: Command, outcome: Outcome) -> Iterator[str]:
    if outcome.crash in ("hangs", "dies"):
        yield f"{command[0]} {outcome.crash} on {_kind(command)}"
    elif outcome.code is None:
        yield outcome.crash
    elif outcome.code not in (0, 2, 3, *VERDICT_CODES.get(command[0], ())):
        yield f"exit code {outcome.code} {_without_particulars(_message(outcome))}"


def _keeps_inputs(case: Case, command: Command, outcome: Outcome) -> Iterator[str]:
    replaceable = case.old_outputs(command)
    if any(name in case.files and name not in replaceable for name in outcome.written):
        yield "an input was changed"
    if outcome.gone:
        yield "a file or link is gone"


def _leaves_nothing_behind(case: Case, command: Command, outcome: Outcome) -> Iterator[str]:
    if any(map(_is_temporary, outcome.written)):
        yield "a temporary file was left"
    elif outcome.code in (2, 3) and outcome.written:
        yield "an output was left by a command that failed"


def _is_temporary(name: str) -> bool:
    return name.endswith(".part") or name.startswith("spill/")


def _writes_whole_files(case: Case, command: Command, outcome: Outcome) -> Iterator[str]:
    if outcome.code in (2, 3, None):
        return
    for name, content in outcome.written.items():
        check = _WHOLE.get(PurePath(name).suffix.lower())
        if not content and not _is_temporary(name):
            yield f"an empty output ({PurePath(name).suffix})"
        elif check is not None:
            try:
                whole = check(content)
            except (ValueError, ET.ParseError):
                whole = False
            if not whole:
                yield f"an output that is not whole ({PurePath(name).suffix})"


def _no_constants(name: str) -> None:
    raise ValueError(name)


def _is_json(content: bytes) -> bool:
    json.loads(content, parse_constant=_no_constants)
    return True


def _is_xml(content: bytes) -> bool:
    return ET.fromstring(content) is not None


_WHOLE: dict[str, Callable[[bytes], bool]] = {
    ".json": _is_json,
    ".xml": _is_xml,
    ".svg": _is_xml,
    ".html": lambda content: content.rstrip().endswith(b"</html>"),
    ".png": lambda content: content.startswith(b"\x89PNG") and b"IEND" in content[-16:],
    ".pdf": lambda content: content.startswith(b"%PDF") and b"%%EOF" in content[-32:],
}


def _prints_whole_json(case: Case, command: Command, outcome: Outcome) -> Iterator[str]:
    if outcome.code == 0 and "--json" in command:
        try:
            _is_json(outcome.stdout.encode("utf-8", "surrogateescape"))
        except ValueError:
            yield "what --json printed is not JSON"


def _says_one_thing(case: Case, command: Command, outcome: Outcome) -> Iterator[str]:
    """Exactly one message for a failure, in one line, and the last thing that is said; none for a success."""
    messages = _MESSAGE.findall(outcome.stderr)
    if outcome.code not in (2, 3):
        if messages and outcome.code in (0, *VERDICT_CODES.get(command[0], ())):
            yield "an error message, and yet no failure"
        return
    if command[0] == "check" and outcome.code == 3 and not messages:
        return  # what check found stands in what it printed
    if len(messages) != 1:
        yield f"{len(messages)} messages"
    elif "\n" in _message(outcome):
        yield f"a message of several lines: {_without_particulars(_message(outcome))}"


def _names_the_place(case: Case, command: Command, outcome: Outcome) -> Iterator[str]:
    message = _message(outcome)
    if outcome.code not in (2, 3) or not message:
        return
    options = [part.lstrip("-") for part in command if part.startswith("-")]
    files = [part for name in case.files for part in (name, PurePath(name).stem)]
    values = [part for part in command[1:] if not re.fullmatch(r"-?[\d.]*", part)]
    named = any(_stands_in(place, message) for place in (*files, *values, *options, *_PLACES))
    # A number is a place where the message begins with it, as with the name of a file that is not there.
    named |= any(
        message.startswith(f"{part or '.'}: ") for part in command[1:]
    )  # no name is the folder itself
    if not named and not re.search(r"--[a-z]", message):
        yield f"no place in: {_without_particulars(message)}"


def _stands_in(place: str, message: str) -> bool:
    """True where a message has the word, however its parts are joined; what cannot be printed may be spelled out."""
    if not (place.isascii() and place.isprintable()):
        return max(re.split(r"[^ -~]+", place), key=len) in message
    said, word = message.replace("_", "-"), re.escape(place.replace("_", "-"))
    return bool(place) and re.search(rf"(?<!\w){word}(?!\w)", said) is not None


def _keeps_secrets(case: Case, command: Command, outcome: Outcome) -> Iterator[str]:
    if any(secret in outcome.stderr for secret in case.secrets):
        line = next(line for line in outcome.stderr.splitlines() if any(s in line for s in case.secrets))
        for secret in case.secrets:
            line = line.replace(secret, "SECRET")
        yield f"text of a record in: {_without_particulars(line)[:50]}"


def _sends_no_controls(case: Case, command: Command, outcome: Outcome) -> Iterator[str]:
    for stream, text in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
        found = _CONTROL.search(text.replace("\r\n", "\n"))
        if found:
            kind = "json" if "--json" in command else "text"
            yield f"control character on {stream} ({kind}{_words_before(text, found.start())})"


def _words_before(text: str, place: int) -> str:
    line = text[:place].rsplit("\n", 1)[-1]
    words = re.findall(r"[a-z]{4,}", _CONTROL.sub("", line))
    return f", after '{words[0]}'" if words else ""


def _gives_no_warning(case: Case, command: Command, outcome: Outcome) -> Iterator[str]:
    for warning in outcome.warned:
        yield _without_particulars(warning)
    if not outcome.warned and re.search(r"^\S+:\d+: \w*Warning: ", outcome.stderr, re.MULTILINE):
        yield "a warning of Python on stderr"


def _costs_little(case: Case, command: Command, outcome: Outcome) -> Iterator[str]:
    size = sum(map(len, case.files.values())) + sum(map(len, command))
    if outcome.seconds > SECONDS + SECONDS_PER_MEGABYTE * size / 1e6:
        yield "takes long"
    if outcome.memory > MEMORY + MEMORY_PER_BYTE * size:
        yield "takes much memory"


def _serves_what_is_sound(case: Case, command: Command, outcome: Outcome) -> Iterator[str]:
    if case.sound and outcome.code in (2, 3):
        message = _message(outcome)
        rules = (*REFUSALS, *REFUSALS_OF.get(command[0], ()))
        if not any(re.search(rule, message) for rule in rules):
            yield f"sound input refused: {_without_particulars(message)}"


# Worst first: what a case violates first is what it is reported for.
ORACLES: dict[str, Callable[[Case, Command, Outcome], Iterator[str]]] = {
    "destroys": _keeps_inputs,
    "crashes": _ends_well,
    "tells secrets": _keeps_secrets,
    "controls the terminal": _sends_no_controls,
    "leaves files": _leaves_nothing_behind,
    "writes half": _writes_whole_files,
    "prints half": _prints_whole_json,
    "costs": _costs_little,
    "warns": _gives_no_warning,
    "says": _says_one_thing,
    "names no place": _names_the_place,
    "refuses": _serves_what_is_sound,
}
_BY_VERB = ("destroys", "controls the terminal", "leaves files", "writes half", "costs")


def _message(outcome: Outcome) -> str:
    """What stands in the message of a failure, from its beginning to the end of what was said."""
    found = _MESSAGE.search(outcome.stderr)
    return outcome.stderr[found.end() :].strip("\n") if found else ""


def _without_particulars(message: str) -> str:
    """A message without names, numbers and places: what two cases of one defect share."""
    plain = _CONTROL.sub("", message).partition("; ")[0]
    plain = re.sub(r"'[^']*'|\"[^\"]*\"", "'…'", plain)
    plain = re.sub(r"\S*\.(?:csv|tsv|jsonl?|parquet|eval|html|xml|gz|svg)\b:?", "FILE", plain)
    plain = re.sub(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?", "N", plain)
    return plain[:110]


def _disagreements(case: Case, outcomes: Sequence[Outcome]) -> Iterator[str]:
    first, *others = zip(case.commands, outcomes, strict=True)
    for command, outcome in others:
        if _without_engine(command) == _without_engine(first[0]):
            difference = _difference_of_engines(first[1], outcome)
            if difference:
                yield f"{' and '.join(map(_engine, (first[0], command)))}: {command[0]}: {difference}"
            continue
        pair = f"{_kind(first[0])} and {_kind(command)}"
        if outcome.code != first[1].code:
            # One of them was served and the other refused, or both were refused for different reasons.
            failing = first[1] if first[1].code else outcome
            yield f"{pair}: exit codes differ: {_without_particulars(_message(failing))}"
        elif outcome.code == 0:
            where = _first_difference(json.loads(first[1].stdout), json.loads(outcome.stdout))
            if where:
                yield f"{pair}: {where}"


def _engine(command: Command) -> str:
    """The engine that a command names."""
    return next((value for option, value in itertools.pairwise(command) if option == "--engine"), "")


def _without_engine(command: Command) -> Command:
    """The request itself, or the whole command if it names no engine."""
    return tuple(part for part in command if part != _engine(command)) if _engine(command) else (*command, "")


def _difference_of_engines(left: Outcome, right: Outcome) -> str:
    """Where two engines differ about one request; nowhere if one of them cannot serve it and says so."""
    messages = [_message(outcome) for outcome in (left, right)]
    if any(_NOT_AGGREGATED in message for message in messages):
        return ""
    plain = [
        _without_particulars(message) or f"exit code {outcome.code}"
        for message, outcome in zip(messages, (left, right), strict=True)
    ]
    if left.code != right.code:
        return f"exit codes differ: {plain[0]} | {plain[1]}"
    if messages[0] != messages[1]:
        return (
            f"places differ: {plain[0]}"
            if plain[0] == plain[1]
            else f"messages differ: {plain[0]} | {plain[1]}"
        )
    if left.stdout.startswith("{"):
        where = _first_difference(json.loads(left.stdout), json.loads(right.stdout), precision=1e-12)
    else:
        where = "" if left.stdout == right.stdout else "what is printed"
    if where or left.code in (2, 3):  # remarks before an error depend on when it is found
        return where
    remarks = set(_remarks(left)) ^ set(_remarks(right))
    return f"remarks differ: {_without_particulars(min(remarks))}" if remarks else ""


def _remarks(outcome: Outcome) -> list[str]:
    """The lines on stderr, except the one that names the engine."""
    return [line for line in outcome.stderr.splitlines() if ": aggregated by " not in line]


def _kind(command: Command) -> str:
    if command[0].startswith(("frame:", "items:")) and command[0] != "items:file":
        return command[0]
    return next((part.partition(".")[2] + _folder(part) for part in command[1:] if "." in part), command[0])


def _folder(path: str) -> str:
    folder = str(PurePath(path).parent)
    return "" if folder == "." else f" in {folder}"


def _first_difference(left: Any, right: Any, place: str = "", precision: float = 1e-9) -> str:
    """Where two documents differ first, but for what is incidental; numbers may differ in the last places."""
    if isinstance(left, dict) and isinstance(right, dict):
        keys = [key for key in {**left, **right} if key not in _INCIDENTAL]
        parts = ((left.get(key), right.get(key), f"{place}.{key}") for key in keys)
        return next(filter(None, (_first_difference(*part, precision) for part in parts)), "")
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        parts = ((a, b, f"{place}[]") for a, b in zip(left, right, strict=True))
        return next(filter(None, (_first_difference(*part, precision) for part in parts)), "")
    if _is_number(left) and _is_number(right):
        return "" if left == right or abs(left - right) <= precision * max(1.0, abs(left)) else place
    return "" if left == right else place


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
