"""A case: files, and the commands that are run on them; and what came of a command. Both travel between processes."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["OUTPUT_OPTIONS", "Case", "Outcome"]

Command = tuple[str, ...]

# The options whose value is a place that is written to.
OUTPUT_OPTIONS = ("-o", "--output", "--junit", "--markdown", "--charts", "--directory")


@dataclass(frozen=True, slots=True)
class Case:
    """Files and commands, with what must hold of them beyond the oracles that hold always.

    Attributes:
        commands: what is run, each in a fresh folder with the files; a command that begins with ``frame:pandas``,
            ``frame:polars`` or ``frame:arrow`` is the same question asked in Python.
        files: the content of each file by its name, folders included.
        links: symbolic links by their names.
        secrets: texts of records, which no message may show.
        sound: True where nothing is wrong with the input.
        alike: True where all commands ask one question and must give one answer.
        why: what went wrong when the case was found, for whoever reads the corpus.
    """

    commands: tuple[Command, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    sound: bool = False
    alike: bool = False
    why: str = ""

    @property
    def size(self) -> int:
        """How many bytes a person has to read to understand the case."""
        named = sum(len(name) + len(content) for name, content in self.files.items())
        return (
            named + sum(len(part) + 1 for command in self.commands for part in command) + 20 * len(self.links)
        )

    @property
    def key(self) -> str:
        """A short name that depends on the content alone."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:8]

    def outputs(self, command: Command) -> list[str]:
        """The places that a command writes to, as given."""
        return [value for option, value in itertools.pairwise(command) if option in OUTPUT_OPTIONS]

    def old_outputs(self, command: Command) -> set[str]:
        """The files that a command may replace: those that it names as an output and nowhere else."""
        places = self.outputs(command)
        return {name for name in self.files if places.count(name) == command.count(name) > 0}

    def to_json(self) -> str:
        """The case as a file of the corpus."""
        record = {
            "why": self.why,
            "commands": [list(command) for command in self.commands],
            "files": {name: _readable(content) for name, content in self.files.items()},
            "links": dict(self.links),
            "secrets": list(self.secrets),
            "sound": self.sound,
            "alike": self.alike,
        }
        lines = [f" {json.dumps(key)}: {_laid_out(value)}" for key, value in record.items() if value]
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def read(cls, path: Path) -> Case:
        """Read a file of the corpus."""
        record = json.loads(path.read_text())
        return cls(
            commands=tuple(tuple(command) for command in record["commands"]),
            files={name: _content(stored) for name, stored in record.get("files", {}).items()},
            links=record.get("links", {}),
            secrets=tuple(record.get("secrets", ())),
            sound=record.get("sound", False),
            alike=record.get("alike", False),
            why=record.get("why", ""),
        )


def _laid_out(value: Any) -> str:
    """JSON with one command or file per line."""
    if isinstance(value, dict):
        return "{\n" + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items()) + "\n }"
    if isinstance(value, list) and isinstance(value[0], list):
        return "[\n" + ",\n".join(f"  {json.dumps(part)}" for part in value) + "\n ]"
    return json.dumps(value)


def _readable(content: bytes) -> str | dict[str, str]:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def _content(stored: Any) -> bytes:
    return stored.encode() if isinstance(stored, str) else base64.b64decode(stored["base64"])


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command did.

    Attributes:
        code: the exit code; None where there is none, because it crashed, hung or died.
        crash: how it ended without an exit code: the exception and the function that raised it, or "hangs", or "dies".
        stdout: what it printed.
        stderr: what it said.
        written: the files that are new or differ, with their content.
        gone: the files that are no longer there, or no longer the kind of file that they were.
        warned: the warnings of Python that were shown.
        seconds: the processor time that it took.
        memory: by how many bytes its memory grew at most.
    """

    code: int | None = None
    crash: str = ""
    stdout: str = ""
    stderr: str = ""
    written: Mapping[str, bytes] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
    seconds: float = 0.0
    memory: int = 0
