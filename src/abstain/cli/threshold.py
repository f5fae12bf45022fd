"""`abstain threshold`: choose a threshold with a risk guarantee, or check the guarantee on new data."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from abstain.cli import _options as opt
from abstain.cli._pipeline import files_of, load_one_system, read_policy_argument
from abstain.cli._publishing import check_json_ending, check_outputs, write_files
from abstain.cli._terminal import print_json, print_sentences, print_text, print_warnings
from abstain.errors import ArgumentError, FormatError, at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from abstain.errors import ResultWarning
    from abstain.items import Items
    from abstain.thresholds import Policy, PolicyCheck

NO_GUARANTEE = 4

_SOURCE = "Calibration data: a run file, table or log. With --check: the policy file."
_RISK = "Largest acceptable risk, fixed before looking at the data."
_SURE = "Probability with which the risk guarantee holds."
_RISK_TYPE = "selective: errors per answered item; joint: errors per item."
_METHOD = "binomial, pseudo-cluster, gaffke, hoeffding-bentkus, sgr or crc. Default: chosen by the data."
_FINITE = "Use a test that does not need many clusters (gaffke)."
_SEARCH = "fixed-sequence, or holm to test all thresholds at once. Default: fixed-sequence."
_START = "Coverage at which the fixed sequence begins. Default: 0.2, or more if that is too few answers."
_GRID = "Thresholds fixed before looking at the data, separated by commas. Default: read from the data."
_LARGEST = "Largest possible number of items per cluster, for gaffke. Default: the largest observed."
_NEEDLESS = "Largest proportion of items that may be deferred although the answer is correct, such as 20%."
_BY = "Column of groups: choose one threshold per group."
_WORST = "With --by: choose one threshold that holds for every group."
_SPLIT = "Choose on one half of the clusters and check on the other half."
_CHECK = "Labelled data, not used to choose the policy, on which to check its guarantee."
_OUTPUT = "Policy file to write (JSON). Default: none; the policy is only printed."
_LOSS = "Loss of an answer: zero_one, abs_norm or abs (with a scale). Default: set by the data."

EXAMPLES = """\b
Exit codes: 0 a threshold was chosen, 4 no risk guarantee is possible.
With --check: 0 the guarantee is kept, 1 broken, 4 inconclusive.
(2 wrong usage, 3 wrong data)

\b
Examples:
  abstain threshold calibration.csv --risk 5% --sure 95% --cluster patient \\
      -o policy.json
  abstain threshold policy.json --check test.csv --cluster patient
  abstain threshold all.csv --risk 10% --cluster patient --split
  abstain threshold calibration.csv --risk 5% --cluster patient --by site
"""


@dataclass(frozen=True)
class GuaranteeOptions(opt.OptionGroup):
    """The risk guarantee: the arguments of `abstain.choose_threshold`."""

    risk: Annotated[str, typer.Option(metavar="PROPORTION", help=_RISK)] = "5%"
    sure: Annotated[str, typer.Option(metavar="PROPORTION", help=_SURE)] = "95%"
    risk_type: Annotated[str, typer.Option(metavar="NAME", help=_RISK_TYPE)] = "selective"
    finite_sample: Annotated[bool, typer.Option("--finite-sample", help=_FINITE)] = False
    needless: Annotated[str | None, opt.named("--needless", "PROPORTION", _NEEDLESS)] = None
    by: Annotated[str | None, opt.named("--by", "COLUMN", _BY)] = None
    worst: Annotated[bool, typer.Option("--worst", help=_WORST)] = False
    method: Annotated[str | None, opt.named("--method", "NAME", _METHOD)] = None
    search: Annotated[str | None, opt.named("--search", "NAME", _SEARCH)] = None
    start: Annotated[float | None, opt.named("--start", "PROPORTION", _START)] = None
    grid: Annotated[str | None, opt.named("--grid", "LIST", _GRID)] = None
    largest_cluster: Annotated[int | None, opt.named("--largest-cluster", "N", _LARGEST)] = None

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `abstain.choose_threshold`."""
        from abstain.thresholds import rate  # noqa: PLC0415

        options = super().options
        for name in ("risk", "sure", "needless"):
            if name in options:
                options[name] = rate(options[name], name)
        if self.grid is not None:
            options["grid"] = opt.numbers(self.grid, "--grid")
        return options


@opt.expand_option_groups
def threshold_command(
    *,
    source: Annotated[Path, typer.Argument(metavar="INPUT", help=_SOURCE, show_default=False)],
    guarantee: GuaranteeOptions,
    check: Annotated[Path | None, opt.named("--check", "FILE", _CHECK)] = None,
    split: Annotated[bool, typer.Option("--split", help=_SPLIT)] = False,
    output: Annotated[Path | None, opt.output_to(_OUTPUT)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the policy, or its check, as JSON.")] = False,
    confidence: opt.RankedBy = None,
    calibration: opt.Calibrations = None,
    loss: Annotated[str | None, opt.named("--loss", "NAME", _LOSS)] = None,
    level: opt.Level = 0.95,
    mode: opt.RunMode = None,
    reading: opt.ReadOptions,
) -> None:
    """Choose the threshold with the largest coverage that has a risk guarantee, or check a guarantee on new data."""
    files = [*files_of(source, check, reading), *(calibration or [])]
    check_json_ending(output, "a policy")
    check_outputs(output, inputs=files)
    load = partial(load_one_system, mode=mode, reading=reading, purpose="a policy", quiet=as_json)
    if check is not None:
        if split or output is not None:
            raise ArgumentError("--check evaluates an existing policy; omit --split and -o")
        _check(source, check, load, confidence, calibration, level, as_json=as_json)
        return
    from abstain import choose_threshold  # noqa: PLC0415
    from abstain.thresholds import is_policy_file, split_by_cluster  # noqa: PLC0415

    options = guarantee.options
    try:
        items = load(source, signals=confidence, all_columns=guarantee.by is not None)
    except FormatError:
        if not is_policy_file(source):
            raise
        raise ArgumentError(
            f"{source} is a policy, and INPUT is the calibration data; to check the policy, add --check with new data"
        ) from None
    with at(source):
        part, rest = split_by_cluster(items) if split else (items, None)
        policy = choose_threshold(part, confidence=confidence, calibration=calibration, loss=loss, **options)
        policy_check = None
        if rest is not None and policy.has_guarantee:
            policy_check = policy.check(rest, calibration=calibration, level=level)
    if as_json:
        print_json(_document(policy, policy_check))
    else:
        _print_lines(policy.lines, policy.warnings)
        if policy_check is not None:
            print_text()
            print_text(f"Check on the other {policy_check.clusters:,} {policy_check.cluster_noun}s:")
            _print_lines(policy_check.lines, policy_check.warnings)
    write_files({} if output is None else {output: policy.to_json()}, inputs=files)
    if output is not None and not as_json:
        print_text(f"policy: {output}")
    if not policy.has_guarantee:
        raise typer.Exit(NO_GUARANTEE)


def _check(
    source: Path,
    new: Path,
    load: Callable[..., Items],
    confidence: str | None,
    calibration: list[Path] | None,
    level: float,
    *,
    as_json: bool,
) -> None:
    swapped = f"abstain threshold {shlex.quote(str(new))} --check {shlex.quote(str(source))}"
    policy = read_policy_argument(source, new, swapped)
    items = load(new, signals=policy.confidence.name, all_columns=policy.by is not None)
    with at(new):
        policy_check = policy.check(items, confidence=confidence, calibration=calibration, level=level)
    if as_json:
        print_json(json.dumps(_checked(policy_check), indent=2) + "\n")
    else:
        _print_lines(policy_check.lines, policy_check.warnings)
    raise typer.Exit(policy_check.exit_code)


def _print_lines(lines: Sequence[str], warnings: Sequence[ResultWarning]) -> None:
    print_warnings(warnings)
    print_sentences(lines)


def _document(policy: Policy, policy_check: PolicyCheck | None) -> str:
    if policy_check is None:
        return policy.to_json().decode()
    return (
        json.dumps({"policy": json.loads(policy.to_json()), "check": _checked(policy_check)}, indent=2) + "\n"
    )


def _checked(policy_check: PolicyCheck) -> dict[str, Any]:
    from abstain.report.tables import finite  # noqa: PLC0415

    document = {
        name: {
            "value": finite(estimate.value),
            "low": finite(estimate.low),
            "high": finite(estimate.high),
            "level": estimate.level,
        }
        for name, estimate in (("risk", policy_check.risk), ("coverage", policy_check.coverage))
    }
    return {
        "verdict": policy_check.verdict,
        **document,
        "guaranteed": policy_check.policy.risk,
        "items": policy_check.items,
        "answered": policy_check.answered,
        "wrong": policy_check.wrong,
        "clusters": policy_check.clusters,
        "reason": policy_check.reason,
        "groups": [
            {"group": each.group, "verdict": each.verdict, "risk": finite(each.risk.value)}
            for each in policy_check.groups
        ],
        "warnings": [{"code": each.code, "message": each.message} for each in policy_check.warnings],
    }


COMMANDS: opt.Commands = {"threshold": (threshold_command, EXAMPLES)}
