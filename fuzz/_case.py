"""Cases (files and the commands that run on them) and the outcomes of commands. Both are sent between processes."""

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

# The options whose value is an output path.
OUTPUT_OPTIONS = ("-o", "--output", "--junit", "--markdown", "--charts", "--directory")


@dataclass(frozen=True, slots=True)
class Case:
    """Files and commands, with properties that some oracles check.

    Attributes:
        commands: each runs in a new folder with the files. A command that begins with ``frame:pandas``,
            ``frame:polars`` or ``frame:arrow`` is the same request in Python.
        files: the content of each file by its path in the folder.
        links: symbolic links by name.
        secrets: texts of records, which must not appear in messages.
        sound: True if the input is valid.
        alike: True if all commands make the same request and must give the same result.
        why: the violation that was found, for readers of the corpus.
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
        """The number of bytes that one has to read to understand the case."""
        files = sum(len(name) + len(content) for name, content in self.files.items())
        commands = sum(len(part) + 1 for command in self.commands for part in command)
        return files + commands + 20 * len(self.links)

    @property
    def key(self) -> str:
        """A short hash of the content."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:8]

    def outputs(self, command: Command) -> list[str]:
        """Return the output paths of a command."""
        return [value for option, value in itertools.pairwise(command) if option in OUTPUT_OPTIONS]

    def old_outputs(self, command: Command) -> set[str]:
        """Return the files that a command may replace, because it names them only as an output."""
        outputs = self.outputs(command)
        return {name for name in self.files if outputs.count(name) == command.count(name) > 0}

    def to_json(self) -> str:
        """Return the case as the content of a corpus file."""
        record = {
            "why": self.why,
            "commands": [list(command) for command in self.commands],
            "files": {name: _readable(content) for name, content in self.files.items()},
            "links": dict(self.links),
            "secrets": list(self.secrets),
            "sound": self.sound,
            "alike": self.alike,
        }
        lines = [f" {json.dumps(key)}: {_format(value)}" for key, value in record.items() if value]
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def read(cls, path: Path) -> Case:
        """Read a corpus file."""
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


def _format(value: Any) -> str:
    """Return JSON with one command or file per line."""
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
    """The result of running a command.

    Attributes:
        code: the exit code; None if the command crashed, hung or died.
        crash: how it ended without an exit code: the exception and the function that raised it, "hangs" or "dies".
        stdout: the standard output.
        stderr: the standard error.
        written: new or changed files with their content.
        gone: files that were deleted or are no longer regular files, and links that are no longer links.
        warned: Python warnings that were shown.
        seconds: CPU time.
        memory: the increase of memory at its peak, in bytes.
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
