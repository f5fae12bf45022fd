"""The policy record: risk limit, threshold, test and data, as strict JSON.

The structures below are the schema (version "1") that `abstain schema policy` publishes. Reading checks every field
before a number is used. A policy without a threshold guarantees nothing and has a reason.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct

from abstain import _files
from abstain._text import few_lines
from abstain.errors import AbstainError, ArgumentError, FormatError, ResultWarning
from abstain.thresholds._apply import Applied, apply_policy
from abstain.thresholds._check import PolicyCheck, check_policy
from abstain.thresholds._sentences import policy_lines

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from abstain._confidences import CalibrationLike
    from abstain.losses import Loss

VERSION = "1"
_LARGEST_FILE = 1 << 24
GUARANTEES = {
    "binomial": "exact",
    "pseudo-cluster": "asymptotic",
    "gaffke": "conjectured",
    "hoeffding-bentkus": "finite-sample",
    "sgr": "exact",
    "crc": "in expectation",
}
METHODS = tuple(GUARANTEES)
SEARCHES = ("fixed-sequence", "holm")

Proportion = Annotated[float, Meta(ge=0.0, le=1.0)]
Level = Annotated[float, Meta(gt=0.0, lt=1.0)]
Count = Annotated[int, Meta(ge=0)]


class Observed(Struct, frozen=True, kw_only=True):
    """Observed results on the data that the policy was chosen on; they are not the guarantee.

    Attributes:
        items: number of items.
        answered: number of items that the policy answers.
        coverage: proportion of items that the policy answers.
        wrong: number of answers with a loss above 0.
        risk: observed risk; None if no item is answered.
        p_value: p-value of the test behind the guarantee; None if there is none.
    """

    items: Count
    answered: Count
    coverage: Proportion
    wrong: Count
    risk: float | None = None
    p_value: float | None = None


class Alternative(Struct, frozen=True, kw_only=True):
    """An alternative if no threshold can be guaranteed.

    Attributes:
        risk: the smallest risk that these data could have guaranteed; None if there is none.
        clusters: approximate number of clusters like these that would be enough; None if no number would.
        available: number of clusters that there are.
        finite_sample_power: the largest probability with which a finite-sample test can give the guarantee for clusters
            like these; None without clusters.
    """

    risk: float | None = None
    clusters: Count | None = None
    available: Count | None = None
    finite_sample_power: Proportion | None = None


class GroupThreshold(Struct, frozen=True, kw_only=True):
    """One threshold, or the reason why there is none.

    Attributes:
        group: the group; empty for all items.
        threshold: items with at least this confidence are answered; None if no risk guarantee is possible.
        shown_threshold: a short number that separates the same confidences.
        reason: why there is no threshold.
        observed: observed results on the data that it was chosen on.
        alternative: an alternative if there is no threshold.
    """

    group: str = ""
    threshold: float | None = None
    shown_threshold: float | None = None
    reason: str = ""
    observed: Observed | None = None
    alternative: Alternative | None = None


class CalibrationHash(Struct, frozen=True, kw_only=True):
    """The calibration file behind a confidence."""

    method: str
    sha256: str


class PolicyConfidence(Struct, frozen=True, kw_only=True):
    """The confidence that ranks the answers, and its distribution.

    Attributes:
        name: a signal, a variant, or an expression of them.
        calibration: the calibration file that it needs.
        quantiles: evenly spaced quantiles of the answered items, ascending.
        clusters: number of clusters behind the quantiles.
        percent: True if the column was in percent and was divided by 100.
    """

    name: Annotated[str, Meta(min_length=1)]
    calibration: CalibrationHash | None = None
    quantiles: Annotated[tuple[float, ...], Meta(min_length=2)]
    clusters: Count
    percent: bool = False

    def __repr__(self) -> str:
        return f"PolicyConfidence(name={self.name!r}, clusters={self.clusters!r})"


class PolicyLoss(Struct, frozen=True, kw_only=True):
    """The loss of an answer."""

    name: str
    definition: str
    rule: str
    largest: Annotated[float, Meta(gt=0.0)] = 1.0


class PolicyData(Struct, frozen=True, kw_only=True):
    """The data that the policy was chosen on.

    Attributes:
        path: the file.
        sha256: digest of the file.
        fingerprint: digest of clusters, confidences and losses, independent of the file and the order of the rows.
        answers: the same digest without the losses, which depend on the truth and on the loss.
        items: number of items.
        answered: number of items that the model answered.
        clusters: number of clusters.
        cluster_noun: the noun for a cluster.
        largest_cluster: the largest number of items that a cluster can have.
        risk: the risk if everything is answered.
    """

    path: str | None = None
    sha256: str | None = None
    fingerprint: str
    answers: str = ""
    items: Count
    answered: Count
    clusters: Count
    cluster_noun: str = "cluster"
    largest_cluster: Annotated[float, Meta(gt=0.0)] = 1.0
    risk: float | None = None


class Policy(Struct, frozen=True, kw_only=True):
    """When a model may answer, and the risk guarantee; make one with `abstain.choose_threshold`.

    Attributes:
        risk_type: "selective" for the risk among answers, "joint" for the risk per item asked.
        risk: the largest acceptable risk.
        sure: the probability with which the guarantee holds; None for one that holds on average.
        threshold: items with at least this confidence are answered; None if no risk guarantee is possible.
        shown_threshold: a short number that separates the same confidences.
        reason: why there is no threshold.
        observed: observed results on the data that the policy was chosen on.
        alternative: an alternative if there is no threshold.
        method: the test behind the guarantee.
        search: the order in which thresholds were tested.
        guarantee: "exact", "finite-sample", "conjectured" (finite-sample without a proof or a known counterexample),
            "asymptotic" or "in expectation".
        confidence: the confidence that ranks the answers.
        loss: the loss of an answer.
        data: the data that the policy was chosen on.
        needless: the largest proportion of items that may be deferred although the answer was right; None for no limit.
        by: the column of groups; None without groups.
        worst: True if one threshold holds for every group; False if every group has its own.
        groups: the threshold of each group, or the observed results of the common threshold in it.
        must_decline: the proportion of answers that any policy would have to decline for this risk.
        assumptions: the assumptions of the guarantee, as sentences.
        warnings: warnings that apply to this policy.
    """

    schema_version: Literal["1"] = "1"
    abstain_version: str | None = None
    risk_type: Literal["selective", "joint"]
    risk: Level
    sure: Level | None
    threshold: float | None = None
    shown_threshold: float | None = None
    reason: str = ""
    observed: Observed | None = None
    alternative: Alternative | None = None
    method: Literal["binomial", "pseudo-cluster", "gaffke", "hoeffding-bentkus", "sgr", "crc"]
    search: Literal["fixed-sequence", "holm", "binary-search", "none"]
    guarantee: Literal["exact", "finite-sample", "conjectured", "asymptotic", "in expectation"]
    confidence: PolicyConfidence
    loss: PolicyLoss
    data: PolicyData
    needless: Level | None = None
    by: str | None = None
    worst: bool = False
    groups: tuple[GroupThreshold, ...] = ()
    must_decline: Proportion = 0.0
    assumptions: tuple[str, ...] = ()
    warnings: tuple[ResultWarning, ...] = ()

    @property
    def has_guarantee(self) -> bool:
        """True if there is a threshold, for all items or for some group."""
        return self.threshold is not None or (
            not self.worst and any(group.threshold is not None for group in self.groups)
        )

    @property
    def lines(self) -> list[str]:
        """The policy in sentences; the first one states the guarantee."""
        return policy_lines(self)

    def __str__(self) -> str:
        return self.lines[0]

    def __repr__(self) -> str:
        return few_lines("Policy", self.lines)

    def thresholds(self, groups: NDArray[Any] | None, length: int) -> NDArray[np.float64]:
        """Return the threshold of every row, infinite without a guarantee; pass `groups` if every group has its own."""
        if self.by is None or self.worst:
            return np.full(length, math.inf if self.threshold is None else self.threshold)
        if groups is None:
            raise ArgumentError(
                f"the policy has one threshold per {self.by}, but the column {self.by!r} is missing"
            )
        by_group = {group.group: group.threshold for group in self.groups if group.threshold is not None}
        # An unknown group has no guarantee and is deferred.
        return np.array([by_group.get(name, math.inf) for name in groups.tolist()], dtype=np.float64)

    def apply(self, source: Any, **options: Any) -> Applied:
        """Decide for every row of items, of a data frame or of a table file; see `abstain.thresholds.apply_policy`.

        >>> from abstain import Items, choose_threshold
        >>> items = Items.from_arrays([1] * 100, [1] * 100, confidence=[row / 100 for row in range(100)])
        >>> policy = choose_threshold(items, risk=0.1)
        >>> policy.apply(items).answer.sum()
        np.int64(100)
        """
        return apply_policy(self, source, **options)

    def check(
        self,
        items: Any,
        *,
        confidence: str | None = None,
        calibration: CalibrationLike = None,
        loss: Loss | None = None,
        level: float = 0.95,
        **columns: Any,
    ) -> PolicyCheck:
        """Check whether the guarantee holds on new data; see `abstain.thresholds.check_policy`."""
        return check_policy(
            self, items, confidence=confidence, calibration=calibration, loss=loss, level=level, **columns
        )

    def to_json(self) -> bytes:
        """Return the policy as indented JSON, ending in a newline."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


def is_policy_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a policy, by its keys; pipes and files above 16 MB are not read."""
    try:
        file = _files.SourceFile(path)
        if not file.path.is_file() or file.path.stat().st_size > _LARGEST_FILE:
            return False
        return _has_policy_keys(_files.parse_json(file.read(), file))
    except (AbstainError, OSError):
        return False


def _has_policy_keys(record: Any) -> bool:
    return isinstance(record, dict) and {"risk_type", "risk", "method"} <= set(record)


def read_policy(path: str | os.PathLike[str]) -> Policy:
    """Read a policy file and check every field."""
    file = _files.SourceFile(path)
    record = _files.parse_json(file.read(), file)
    if not _has_policy_keys(record):
        raise FormatError(f"{file}: not a policy; it must be an object with risk_type, risk and method")
    version = record.get("schema_version", VERSION)
    if version != VERSION:
        newer = isinstance(version, str) and version.isdigit() and int(version) > int(VERSION)
        problem = "is newer than this release of abstain; update abstain" if newer else "is unsupported"
        raise FormatError(
            f"{file}: the schema of this policy {problem} (supported schema_version: {VERSION})"
        )
    policy = _files.convert(record, Policy, f"{file}: not a policy")
    quantiles = policy.confidence.quantiles
    if any(high < low for low, high in pairwise(quantiles)):
        raise FormatError(f"{file}: not a policy: confidence.quantiles must be in ascending order")
    if policy.has_guarantee and policy.method != "crc" and policy.sure is None:
        raise FormatError(f"{file}: not a policy: {policy.method} needs a value for sure")
    return policy


def policy_schema() -> dict[str, Any]:
    """Return the JSON Schema of policies.

    >>> policy_schema()["title"]
    'abstain policy'
    """
    (form,), definitions = msgspec.json.schema_components((Policy,), ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "abstain policy",
        "description": "The policy that `abstain threshold` writes: a threshold with its risk guarantee, or the reason "
        "why there is none.",
        **form,
        "$defs": dict(definitions),
    }
