"""What a project says once for every call: `abstain.toml`, or the table `[tool.abstain]` of a `pyproject.toml`.

    loss = "zero_one"
    level = 0.9
    gates = ["augrc worse by 5%"]

    [columns]
    truth = "label"
    cluster = "patient_id"

    [names]
    run_2026_11 = "new model"

The nearest file counts, from the working directory upwards to the root of the repository or to the home directory;
outside of both, only the working directory is looked into. In one folder `abstain.toml` is taken before
`pyproject.toml`. A setting stands for the option of the same meaning in every verb that has it; an option of the call
always wins. What was set is said, and `--no-config` leaves all of it out.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from abstain.cli._terminal import say
from abstain.errors import ArgumentError, at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# The columns that a file may name, each as the option of that name.
COLUMNS = (
    "truth",
    "prediction",
    "correct",
    "confidence",
    "abstained",
    "failed",
    "low",
    "high",
    "set",
    "weight",
    "item",
    "cluster",
    "system",
)
_SETTINGS = ("loss", "level", "gates", "columns", "names")
# Options that say the same thing in two ways: who gives one of them on the command line means none of the others.
_INSTEAD = {
    "correct": ("truth", "prediction"),
    "truth": ("correct",),
    "prediction": ("correct",),
    "features": ("confidence",),
}
_FLAGS = {"fail_if": "--fail-if", "names": "--name"}
_applied: list[str] = []


class ConfigValues(NamedTuple):
    """What a file sets: the options by the names of their parameters, and what systems are called by their inputs."""

    path: Path
    options: Mapping[str, Any]
    names: Mapping[str, str]


def is_configurable(parameters: Iterable[str]) -> bool:
    """Return whether a verb has an option that a file may set."""
    return not {*COLUMNS, "loss", "level", "fail_if"}.isdisjoint(parameters)


def configure(context: Any) -> None:
    """Fill in what the call left out and a file sets, and say so."""
    _applied.clear()
    given = context.params
    if "no_config" not in given or given["no_config"]:
        return
    try:
        here = Path.cwd()
    except OSError:  # a working directory that is gone holds no file
        return
    settings = _nearest(here)
    if settings is None:
        return
    called = {name for name in given if _is_given(context, name)}
    replaced = {other for name in called for other in _INSTEAD.get(name, ())}
    several = {
        parameter.name for parameter in context.command.params if getattr(parameter, "multiple", False)
    }
    used = {
        name: [value] if name in several and not isinstance(value, list) else value
        for name, value in settings.options.items()
        if name in given and name not in called | replaced
    }
    if settings.names and "further_inputs" in given and "names" in given and "names" not in called:
        used |= _renamed(given, settings.names)
    given.update(used)
    _applied.extend(_flags(used))
    if used and not given.get("quiet"):
        path = settings.path.name if settings.path.parent == here else settings.path
        say(f"{path} sets {_in_words(used)}; --no-config leaves it out", error=True)


def spelled_settings() -> list[str]:
    """Return what a file set in this call, as the options that one would type."""
    return list(_applied)


def _is_given(context: Any, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _renamed(given: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, list[str]]:
    """The name of every input, where the file has another one for any of them."""
    from abstain.cli._options import one_each, system_names  # noqa: PLC0415

    paths = [str(path) for path in [*(given.get("inputs") or ()), *(given.get("further_inputs") or ())]]
    usual = system_names(paths, one_each(given.get("modes") or [], len(paths), "--mode"))
    called = [names.get(name, name) for name in usual]
    return {"names": called} if called != usual else {}


def _flags(used: Mapping[str, Any]) -> list[str]:
    return [
        part
        for name, value in used.items()
        for each in (value if isinstance(value, list) else [value])
        for part in (_FLAGS.get(name, f"--{name}"), str(each))
    ]


def _in_words(used: Mapping[str, Any]) -> str:
    told = []
    for name, value in used.items():
        listed = ", ".join(map(str, value)) if isinstance(value, list) else value
        gates = f"{len(value)} gate{'s' * (len(value) > 1)}" if name == "fail_if" else ""
        told.append(gates or f"{'name' if name == 'names' else name} = {listed}")
    return ", ".join(told)


def _nearest(here: Path) -> ConfigValues | None:
    for folder in _looked_into(here):
        own, project = folder / "abstain.toml", folder / "pyproject.toml"
        # A folder that may not be looked into is passed by.
        if os.path.isfile(own):  # noqa: PTH113
            return _checked(own, _read(own), "abstain.toml")
        if os.path.isfile(project):  # noqa: PTH113
            tools = _read(project).get("tool")
            if isinstance(tools, dict) and "abstain" in tools:
                return _checked(project, tools["abstain"], "tool.abstain")
    return None


def _looked_into(here: Path) -> list[Path]:
    """The folders from here to the root of the repository or to the home directory; this one alone outside of both."""
    folders = [here, *here.parents]
    try:
        home = Path.home()
    except RuntimeError:  # nobody's process
        home = here
    ends = (place for place, folder in enumerate(folders) if folder == home or _is_repository(folder))
    return folders[: next(ends, 0) + 1]


def _is_repository(folder: Path) -> bool:
    return os.path.exists(folder / ".git")  # noqa: PTH110


def _read(path: Path) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415

    from abstain import _files  # noqa: PLC0415

    try:
        return tomllib.loads(_files.read_bytes(path).decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ArgumentError(f"{path}: not UTF-8 text, which TOML is; --no-config leaves it out") from None
    except RecursionError:
        raise ArgumentError(f"{path}: nested too deeply; --no-config leaves it out") from None
    except tomllib.TOMLDecodeError as problem:
        raise ArgumentError(f"{path}: not TOML: {problem}; --no-config leaves it out") from None


def _checked(path: Path, given: Any, whole: str) -> ConfigValues:
    """Return what a file sets; whatever it should not say is refused."""
    from abstain import _validate  # noqa: PLC0415

    with at(path):
        table = _table(given, whole, _SETTINGS)
        options: dict[str, Any] = {
            name: _text(value, f"columns.{name}")
            for name, value in _table(table.get("columns", {}), "columns", COLUMNS).items()
        }
        names = _table(table.get("names", {}), "names", None)
        if "loss" in table:
            options["loss"] = _text(table["loss"], "loss")
        if "level" in table:
            options["level"] = _validate.level(_number(table["level"], "level"))
        if "gates" in table:
            options["fail_if"] = _texts(table["gates"], "gates")
        return ConfigValues(
            path, options, {name: _text(called, f"names.{name}") for name, called in names.items()}
        )


def _table(given: Any, name: str, known: tuple[str, ...] | None) -> dict[str, Any]:
    from abstain import _validate  # noqa: PLC0415

    if not isinstance(given, dict):
        raise ArgumentError(f"{name} must be a table, got {_kind(given)}")
    for key in given if known is not None else ():
        _validate.choice(key, f"key of {name}", known or ())
    return given


def _text(given: Any, name: str) -> str:
    if not isinstance(given, str) or not given.strip():
        raise ArgumentError(f"{name} must be text, got {_kind(given)}")
    return given


def _texts(given: Any, name: str) -> list[str]:
    if not isinstance(given, list) or not given:
        raise ArgumentError(f"{name} must be a list of text with at least one entry, got {_kind(given)}")
    return [_text(each, f"{name}[{place}]") for place, each in enumerate(given)]


def _number(given: Any, name: str) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise ArgumentError(f"{name} must be a number, got {_kind(given)}")
    return given


def _kind(given: Any) -> str:
    """What a value of TOML is, in words."""
    if given in ("", []):
        return "an empty one"
    kinds = {
        str: "text",
        bool: "true or false",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "a table",
    }
    return kinds.get(type(given), "a date or a time")
