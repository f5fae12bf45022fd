"""The oracles: requirements that every command must meet with any input.

An oracle checks the outcome of a command and reports a `Violation` if it is wrong. Its description is the same for the
same defect, so that a defect that was found a hundred times is reported once.
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

__all__ = ["ORACLES", "Violation", "find_violations"]

# Further exit codes of commands that return a verdict.
VERDICT_CODES = {"gate": (1, 4), "threshold": (1, 4)}
# Limits of time and memory: a constant, plus a small multiple of the size of the input.
SECONDS, SECONDS_PER_MEGABYTE = 16.0, 20.0
MEMORY, MEMORY_PER_BYTE = 350 << 20, 100
# Characters that control a terminal: C0 except tab and line feed, DEL, C1, and marks of the writing direction.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# The beginning of error messages: those of abstain, and those of the argument parser.
_MESSAGE = re.compile(r"^(?:abstain: |Error: )", re.MULTILINE)
# Words that locate an error in a call.
_LOCATION_WORDS = (
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
    "frame",
)
# Keys whose values differ between two files with the same rows.
_INCIDENTAL = ("created_at", "path", "sha256", "source", "format")
# The end of every message about a request that an engine cannot aggregate.
_NOT_AGGREGATED = "--engine: numpy"
# Messages with which a command may refuse valid data. Each follows from a definition.
REFUSALS = (
    r"there is no (?:signal|confidence|item to evaluate)",
    r"nothing was answered|no item was answered|answered none",
    r"needs? .*(?:confidence|signal|cluster|scale|loss|abstained|two|baseline|bins?|rows?|samples?)",
    r"correctness is [01] for all",
    r"has no standard error",
    r"cannot be divided into two parts",
    r"appears? twice|duplicate|have the same name",
    r"the ending (?:means|decides|\.)|the output has the format of the table",
    r"there is only one|no item is answered",
    r"is known not to be a probability",
    r"rows are not matched by their order",
    r"is not compared at matched coverage",
    r"real numbers",
    r"aggregates tables in files",
    r"at least",
    r"too few",
    r"only one|single|both right and wrong|all (?:right|wrong)|same class",
)
# Further messages of single commands: a table of answers is not a table of questions, a log is not a table, a policy
# may require another confidence, and not every number is a risk.
REFUSALS_OF = {
    "run": (
        r"has no column|a table is required|which column is the (?:cluster|text)",
        r"an instrument has its own|is one of the questions",
        r"the template (?:has|names)|unknown signal|the signal \w+ needs",
        r"an instrument supports|not a number on the scale|not one of its|duplicate item",
    ),
    "calibrate": (r"has no column|which column is",),
    "apply": (r"a table is required|the policy|unknown confidence|has no column",),
    "power": (r"a pilot of one system does not show",),
    "threshold": (
        r"risk must (?:be|lie)|the policy|unknown confidence|has no column|combined with|largest value",
    ),
}


@dataclass(frozen=True, slots=True)
class Violation:
    """A violated oracle, and a description that is the same for the same defect."""

    oracle: str
    what: str

    def __str__(self) -> str:
        return f"{self.oracle}: {self.what}"


def find_violations(case: Case, outcomes: Sequence[Outcome]) -> list[Violation]:
    """Return the violations of a case, the worst first."""
    violations = [
        Violation(name, f"{command[0]}: {what}" if name in _BY_COMMAND else what)
        for command, outcome in zip(case.commands, outcomes, strict=True)
        for name, oracle in ORACLES.items()
        for what in oracle(case, command, outcome)
    ]
    if case.alike and not violations:
        violations += [Violation("disagrees", what) for what in _disagreements(case, outcomes)]
    return violations


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
        check = _COMPLETE.get(PurePath(name).suffix.lower())
        if not content and not _is_temporary(name):
            yield f"an empty output ({PurePath(name).suffix})"
        elif check is not None:
            try:
                complete = check(content)
            except (ValueError, ET.ParseError):
                complete = False
            if not complete:
                yield f"an incomplete output ({PurePath(name).suffix})"


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _is_json(content: bytes) -> bool:
    json.loads(content, parse_constant=_refuse_constant)
    return True


def _is_xml(content: bytes) -> bool:
    return ET.fromstring(content) is not None


_COMPLETE: dict[str, Callable[[bytes], bool]] = {
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
            yield "the output of --json is not JSON"


def _prints_one_message(case: Case, command: Command, outcome: Outcome) -> Iterator[str]:
    """Check that a failure prints exactly one message, in one line and at the end, and that a success prints none."""
    messages = _MESSAGE.findall(outcome.stderr)
    if outcome.code not in (2, 3):
        if messages and outcome.code in (0, *VERDICT_CODES.get(command[0], ())):
            yield "an error message without a failure"
        return
    if command[0] == "check" and outcome.code == 3 and not messages:
        return  # check prints its findings on stdout
    if len(messages) != 1:
        yield f"{len(messages)} messages"
    elif "\n" in _message(outcome):
        yield f"a message with several lines: {_without_particulars(_message(outcome))}"


def _names_the_location(case: Case, command: Command, outcome: Outcome) -> Iterator[str]:
    message = _message(outcome)
    if outcome.code not in (2, 3) or not message:
        return
    options = [part.lstrip("-") for part in command if part.startswith("-")]
    files = [part for name in case.files for part in (name, PurePath(name).stem)]
    values = [part for part in command[1:] if not re.fullmatch(r"-?[\d.]*", part)]
    located = any(_contains_word(message, word) for word in (*files, *values, *options, *_LOCATION_WORDS))
    # A message may begin with any argument, for example the name of a missing file. An empty name is the folder itself.
    located |= any(message.startswith(f"{part or '.'}: ") for part in command[1:])
    if not located and not re.search(r"--[a-z]", message):
        yield f"no place in: {_without_particulars(message)}"


def _contains_word(message: str, word: str) -> bool:
    """Return whether a message contains a word, with hyphens or underscores; its other characters may be escaped."""
    if not (word.isascii() and word.isprintable()):
        return max(re.split(r"[^ -~]+", word), key=len) in message
    text, pattern = message.replace("_", "-"), re.escape(word.replace("_", "-"))
    return bool(word) and re.search(rf"(?<!\w){pattern}(?!\w)", text) is not None


def _keeps_secrets(case: Case, command: Command, outcome: Outcome) -> Iterator[str]:
    if any(secret in outcome.stderr for secret in case.secrets):
        line = next(line for line in outcome.stderr.splitlines() if any(s in line for s in case.secrets))
        for secret in case.secrets:
            line = line.replace(secret, "SECRET")
        yield f"text of a record in: {_without_particulars(line)[:50]}"


def _sends_no_controls(case: Case, command: Command, outcome: Outcome) -> Iterator[str]:
    for stream, text in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
        match = _CONTROL.search(text.replace("\r\n", "\n"))
        if match:
            kind = "json" if "--json" in command else "text"
            yield f"control character on {stream} ({kind}{_words_before(text, match.start())})"


def _words_before(text: str, position: int) -> str:
    line = text[:position].rsplit("\n", 1)[-1]
    words = re.findall(r"[a-z]{4,}", _CONTROL.sub("", line))
    return f", after '{words[0]}'" if words else ""


def _shows_no_warning(case: Case, command: Command, outcome: Outcome) -> Iterator[str]:
    for warning in outcome.warned:
        yield _without_particulars(warning)
    if not outcome.warned and re.search(r"^\S+:\d+: \w*Warning: ", outcome.stderr, re.MULTILINE):
        yield "a Python warning on stderr"


def _limits_cost(case: Case, command: Command, outcome: Outcome) -> Iterator[str]:
    size = sum(map(len, case.files.values())) + sum(map(len, command))
    if outcome.seconds > SECONDS + SECONDS_PER_MEGABYTE * size / 1e6:
        yield "takes long"
    if outcome.memory > MEMORY + MEMORY_PER_BYTE * size:
        yield "takes much memory"


def _accepts_valid_input(case: Case, command: Command, outcome: Outcome) -> Iterator[str]:
    if case.sound and outcome.code in (2, 3):
        message = _message(outcome)
        rules = (*REFUSALS, *REFUSALS_OF.get(command[0], ()))
        if not any(re.search(rule, message) for rule in rules):
            yield f"sound input refused: {_without_particulars(message)}"


# The worst first: a case is reported for the first violation.
ORACLES: dict[str, Callable[[Case, Command, Outcome], Iterator[str]]] = {
    "destroys": _keeps_inputs,
    "crashes": _ends_well,
    "tells secrets": _keeps_secrets,
    "controls the terminal": _sends_no_controls,
    "leaves files": _leaves_nothing_behind,
    "writes half": _writes_whole_files,
    "prints half": _prints_whole_json,
    "costs": _limits_cost,
    "warns": _shows_no_warning,
    "says": _prints_one_message,
    "names no place": _names_the_location,
    "refuses": _accepts_valid_input,
}
_BY_COMMAND = ("destroys", "controls the terminal", "leaves files", "writes half", "costs")


def _message(outcome: Outcome) -> str:
    """Return the error message without its prefix, to the end of stderr."""
    match = _MESSAGE.search(outcome.stderr)
    return outcome.stderr[match.end() :].strip("\n") if match else ""


def _without_particulars(message: str) -> str:
    """Return a message without names, numbers and locations, so that it is the same for the same defect."""
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
            # One succeeded and the other failed, or they failed with different exit codes.
            failing = first[1] if first[1].code else outcome
            yield f"{pair}: exit codes differ: {_without_particulars(_message(failing))}"
        elif outcome.code == 0:
            key = _first_difference(json.loads(first[1].stdout), json.loads(outcome.stdout))
            if key:
                yield f"{pair}: {key}"


def _engine(command: Command) -> str:
    """Return the engine that a command names; empty if there is none."""
    return next((value for option, value in itertools.pairwise(command) if option == "--engine"), "")


def _without_engine(command: Command) -> Command:
    """Return a command without its engine; a command without an engine gets a mark, so that it equals no other."""
    return tuple(part for part in command if part != _engine(command)) if _engine(command) else (*command, "")


def _difference_of_engines(left: Outcome, right: Outcome) -> str:
    """Describe how the results of two engines differ; empty if one of them reports that it cannot aggregate."""
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
            f"locations differ: {plain[0]}"
            if plain[0] == plain[1]
            else f"messages differ: {plain[0]} | {plain[1]}"
        )
    if left.stdout.startswith("{"):
        key = _first_difference(json.loads(left.stdout), json.loads(right.stdout), precision=1e-12)
    else:
        key = "" if left.stdout == right.stdout else "the printed text"
    if key or left.code in (2, 3):  # the remarks before an error depend on the engine
        return key
    remarks = set(_remarks(left)) ^ set(_remarks(right))
    return f"remarks differ: {_without_particulars(min(remarks))}" if remarks else ""


def _remarks(outcome: Outcome) -> list[str]:
    """Return the lines on stderr, except the one that names the engine."""
    return [line for line in outcome.stderr.splitlines() if ": aggregated by " not in line]


def _kind(command: Command) -> str:
    if command[0].startswith(("frame:", "items:")) and command[0] != "items:file":
        return command[0]
    return next((part.partition(".")[2] + _folder(part) for part in command[1:] if "." in part), command[0])


def _folder(path: str) -> str:
    folder = str(PurePath(path).parent)
    return "" if folder == "." else f" in {folder}"


def _first_difference(left: Any, right: Any, path: str = "", precision: float = 1e-9) -> str:
    """Return the path of the first difference between documents; numbers may differ by a relative `precision`."""
    if isinstance(left, dict) and isinstance(right, dict):
        keys = [key for key in {**left, **right} if key not in _INCIDENTAL]
        parts = ((left.get(key), right.get(key), f"{path}.{key}") for key in keys)
        return next(filter(None, (_first_difference(*part, precision) for part in parts)), "")
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        parts = ((a, b, f"{path}[]") for a, b in zip(left, right, strict=True))
        return next(filter(None, (_first_difference(*part, precision) for part in parts)), "")
    if _is_number(left) and _is_number(right):
        return "" if left == right or abs(left - right) <= precision * max(1.0, abs(left)) else path
    return "" if left == right else path


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
