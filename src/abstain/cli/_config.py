"""Project settings: `abstain.toml`, or the table `[tool.abstain]` of `pyproject.toml`.

    loss = "zero_one"
    level = 0.9
    gates = ["augrc worse by 5%"]

    [columns]
    truth = "label"
    cluster = "patient_id"

    [names]
    run_2026_11 = "new model"

The nearest file is used, from the working directory up to the root of the repository or to the home directory.
Outside of both, only the working directory is searched. In one folder, `abstain.toml` is preferred to
`pyproject.toml`. A setting becomes the default of the option with the same meaning in every command (click's
`default_map`), so an option on the command line always wins. The used settings are printed, and `--no-config` ignores
the file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer  # noqa: TC002  (typer resolves the annotations of callbacks)

from abstain.cli._terminal import print_text
from abstain.errors import ArgumentError, at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# The columns that a file may set; each has the name of its option.
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
# An option on the command line also replaces the settings that would contradict it.
_REPLACES = {
    "correct": ("truth", "prediction"),
    "truth": ("correct",),
    "prediction": ("correct",),
    "features": ("confidence",),
}
_FLAGS = {"fail_if": "--fail-if", "names": "--name"}
_META_KEY = "abstain.config"
# The options that the project file set in this call, as they would be typed.
_used_flags: list[str] = []


class ConfigValues(NamedTuple):
    """The settings of a file: options by the names of their parameters, and names of systems by input."""

    path: Path
    options: Mapping[str, Any]
    names: Mapping[str, str]


def is_configurable(parameters: Iterable[str]) -> bool:
    """Return whether a command has an option that a file may set."""
    return not {*COLUMNS, "loss", "level", "fail_if"}.isdisjoint(parameters)


def load_config(context: typer.Context, no_config: bool) -> bool:
    """Make the project settings the defaults of the options: the callback of the eager option --no-config."""
    _used_flags.clear()
    if no_config or context.resilient_parsing:
        return no_config
    try:
        here = Path.cwd()
    except OSError:  # the working directory no longer exists
        return no_config
    settings = _find_settings(here)
    if settings is not None:
        repeated = {option.name for option in context.command.params if getattr(option, "multiple", False)}
        context.meta[_META_KEY] = settings
        context.default_map = {
            name: [value] if name in repeated and not isinstance(value, list) else value
            for name, value in settings.options.items()
        }
    return no_config


def finish_config(context: Any) -> None:
    """Drop settings that typed options replace, name the systems, and print the used settings."""
    settings = context.meta.get(_META_KEY)
    if settings is None:
        return
    values = context.params
    origins = {name: getattr(context.get_parameter_source(name), "name", "DEFAULT") for name in values}
    typed = {name for name, origin in origins.items() if origin not in ("DEFAULT", "DEFAULT_MAP")}
    replaced = {other for name in typed for other in _REPLACES.get(name, ())}
    used = {}
    for name, value in context.default_map.items():
        if origins.get(name) == "DEFAULT_MAP":
            if name in replaced:
                values[name] = None
            else:
                used[name] = value
    if settings.names and "further_inputs" in values and "names" in values and "names" not in typed:
        names = _system_names(values, settings.names)
        if names:
            values["names"] = used["names"] = names
    _used_flags.extend(_flags(used))
    if used and not values.get("quiet"):
        path = settings.path.name if settings.path.parent == Path.cwd() else settings.path
        print_text(f"{path} sets {_list_settings(used)}; --no-config ignores it", error=True)


def spelled_settings() -> list[str]:
    """Return the options that a file set in this call, as they would be typed."""
    return list(_used_flags)


def _system_names(values: Mapping[str, Any], names: Mapping[str, str]) -> list[str]:
    """Return the names of all inputs if the file renames any of them."""
    from abstain.cli._options import one_each, system_names  # noqa: PLC0415

    paths = [str(path) for path in [*(values.get("inputs") or ()), *(values.get("further_inputs") or ())]]
    default = system_names(paths, one_each(values.get("modes") or [], len(paths), "--mode"))
    renamed = [names.get(name, name) for name in default]
    return renamed if renamed != default else []


def _flags(used: Mapping[str, Any]) -> list[str]:
    return [
        part
        for name, value in used.items()
        for each in (value if isinstance(value, list) else [value])
        for part in (_FLAGS.get(name, f"--{name}"), str(each))
    ]


def _list_settings(used: Mapping[str, Any]) -> str:
    parts = []
    for name, value in used.items():
        if name == "fail_if":
            parts.append(f"{len(value)} gate{'s' * (len(value) > 1)}")
        else:
            listed = ", ".join(map(str, value)) if isinstance(value, list) else value
            parts.append(f"{'name' if name == 'names' else name} = {listed}")
    return ", ".join(parts)


def _find_settings(here: Path) -> ConfigValues | None:
    for folder in _searched_folders(here):
        own, project = folder / "abstain.toml", folder / "pyproject.toml"
        # os.path.isfile is False for a folder that may not be searched; Path.is_file would raise.
        if os.path.isfile(own):  # noqa: PTH113
            return _parse_settings(own, _read_toml(own), "abstain.toml")
        if os.path.isfile(project):  # noqa: PTH113
            tools = _read_toml(project).get("tool")
            if isinstance(tools, dict) and "abstain" in tools:
                return _parse_settings(project, tools["abstain"], "tool.abstain")
    return None


def _searched_folders(here: Path) -> list[Path]:
    """Return the folders from here to the root of the repository or to the home directory; otherwise only here."""
    folders = [here, *here.parents]
    try:
        home = Path.home()
    except RuntimeError:  # the user has no home directory
        home = here
    for number, folder in enumerate(folders, start=1):
        if folder == home or os.path.exists(folder / ".git"):  # noqa: PTH110
            return folders[:number]
    return [here]


def _read_toml(path: Path) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415

    from abstain._files import read_bytes  # noqa: PLC0415

    try:
        return tomllib.loads(read_bytes(path).decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ArgumentError(
            f"{path}: not UTF-8 text, as TOML requires; --no-config ignores the file"
        ) from None
    except RecursionError:
        raise ArgumentError(f"{path}: nested too deeply; --no-config ignores the file") from None
    except tomllib.TOMLDecodeError as problem:
        raise ArgumentError(f"{path}: not TOML: {problem}; --no-config ignores the file") from None


def _parse_settings(path: Path, content: Any, name: str) -> ConfigValues:
    """Return the settings of a file; unknown keys and wrong types are errors."""
    from abstain import _validate  # noqa: PLC0415

    with at(path):
        table = _check_table(content, name, _SETTINGS)
        columns = _check_table(table.get("columns", {}), "columns", COLUMNS)
        names = _check_table(table.get("names", {}), "names")
        options: dict[str, Any] = {
            key: _check_text(value, f"columns.{key}") for key, value in columns.items()
        }
        if "loss" in table:
            options["loss"] = _check_text(table["loss"], "loss")
        if "level" in table:
            level = table["level"]
            if isinstance(level, bool) or not isinstance(level, (int, float)):
                raise ArgumentError(f"level must be a number, got {_describe(level)}")
            options["level"] = _validate.level(level)
        if "gates" in table:
            gates = table["gates"]
            if not isinstance(gates, list) or not gates:
                raise ArgumentError(
                    f"gates must be a list of text with at least one entry, got {_describe(gates)}"
                )
            options["fail_if"] = [_check_gate(gate, f"gates[{number}]") for number, gate in enumerate(gates)]
        return ConfigValues(
            path, options, {key: _check_text(value, f"names.{key}") for key, value in names.items()}
        )


def _check_table(value: Any, name: str, keys: tuple[str, ...] | None = None) -> dict[str, Any]:
    from abstain import _validate  # noqa: PLC0415

    if not isinstance(value, dict):
        raise ArgumentError(f"{name} must be a table, got {_describe(value)}")
    for key in value if keys is not None else ():
        _validate.choice(key, f"key of {name}", keys or ())
    return value


def _check_text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ArgumentError(f"{name} must be text, got {_describe(value)}")
    return value


def _check_gate(value: Any, name: str) -> str:
    """Return the text of a gate; one that would import code is an error, because the file may come from elsewhere."""
    gate = _check_text(value, name)
    if ":" in gate.split()[0]:
        raise ArgumentError(
            f"{name} names a metric by its import path, and a project file must not run code; pass the gate as "
            "--fail-if"
        )
    return gate


def _describe(value: Any) -> str:
    """Return the type of a TOML value in words."""
    if value in ("", []):
        return "an empty one"
    types = {
        str: "text",
        bool: "true or false",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "a table",
    }
    return types.get(type(value), "a date or a time")
