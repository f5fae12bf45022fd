"""The policy: what is promised, for whom, by which test, and from which data, as strict JSON.

The structures below are the schema (version "1") that `abstain schema policy` publishes; reading checks every field
before a number is used. A policy without a threshold promises nothing, and says why. What it says in words stands in
`_words`; how it is chosen, checked and applied, in the modules of these names.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from abstain import _files
from abstain._text import few_lines
from abstain.errors import AbstainError, FormatError, ResultWarning

if TYPE_CHECKING:
    import os

    import numpy as np
    from numpy.typing import NDArray

    from abstain._confidences import CalibrationLike
    from abstain.losses import Loss
    from abstain.thresholds._apply import Applied
    from abstain.thresholds._check import PolicyCheck

VERSION = "1"
_LARGEST_FILE = 1 << 24
METHODS = ("binomial", "cluster-t", "betting", "hoeffding-bentkus", "sgr", "crc")
SEARCHES = ("fixed-sequence", "holm")
GUARANTEES = {
    "binomial": "exact",
    "cluster-t": "asymptotic",
    "betting": "finite-sample",
    "hoeffding-bentkus": "finite-sample",
    "sgr": "exact",
    "crc": "in expectation",
}

Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Level = Annotated[float, Meta(gt=0.0, lt=1.0)]
Count = Annotated[int, Meta(ge=0)]


class Seen(Struct, frozen=True, kw_only=True):
    """What the policy does on the data that it was chosen on; the promise does not come from these numbers alone.

    Attributes:
        items: how many items were asked.
        answered: how many of them it answers.
        coverage: their share.
        wrong: how many of its answers have a loss above 0.
        risk: the risk that was seen; None where nothing is answered.
        p_value: of the test that promises it; None where there is none.
    """

    items: Count
    answered: Count
    coverage: Share
    wrong: Count
    risk: float | None = None
    p_value: float | None = None


class Instead(Struct, frozen=True, kw_only=True):
    """What could be promised where nothing can, and what it would take.

    Attributes:
        risk: the smallest risk that these data could have promised; None where none.
        clusters: about how many clusters like these would do; None where no number would.
    """

    risk: float | None = None
    clusters: Count | None = None


class Chosen(Struct, frozen=True, kw_only=True):
    """One threshold, or the reason why there is none.

    Attributes:
        group: the group that it is for; empty where it is for all.
        threshold: answered is what is at least this confident; None where nothing can be promised.
        shown: a short number that parts the same confidences.
        reason: why there is none.
        seen: what it does on the data that it was chosen on.
        instead: what could be promised instead.
    """

    group: str = ""
    threshold: float | None = None
    shown: float | None = None
    reason: str = ""
    seen: Seen | None = None
    instead: Instead | None = None


class CalibrationHash(Struct, frozen=True, kw_only=True):
    """The calibration artifact that a confidence is made with."""

    method: str
    sha256: str


class PolicyConfidence(Struct, frozen=True, kw_only=True):
    """What ranks the answers, how it is made, and how it was distributed.

    Attributes:
        name: a signal, a variant, or an expression of them.
        calibration: the artifact that it needs.
        quantiles: those of the answered items, from the lowest to the highest, evenly spaced.
        clusters: how many clusters they came from.
        percent: True where the column is per cent, and was divided by 100.
    """

    name: Annotated[str, Meta(min_length=1)]
    calibration: CalibrationHash | None = None
    quantiles: Annotated[tuple[float, ...], Meta(min_length=2)]
    clusters: Count
    percent: bool = False

    def __repr__(self) -> str:
        return f"PolicyConfidence(name={self.name!r}, clusters={self.clusters!r})"


class PolicyLoss(Struct, frozen=True, kw_only=True):
    """What a wrong answer costs."""

    name: str
    definition: str
    rule: str
    largest: Annotated[float, Meta(gt=0.0)] = 1.0


class PolicyData(Struct, frozen=True, kw_only=True):
    """The data that the policy was chosen on.

    Attributes:
        path: the file.
        sha256: the digest of the file.
        fingerprint: the digest of clusters, confidences and losses, whatever the file and the order of the rows.
        answers: the same digest without the losses, which depend on the truth and on the loss.
        items: how many items there are.
        answered: how many of them the model answered.
        clusters: how many clusters there are.
        cluster_noun: what a cluster is called.
        largest_cluster: the most items that a cluster is taken to have.
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
    """When a model may answer, and what is promised of it; make one with `abstain.choose_threshold`.

    Attributes:
        promise: "selective" for the risk among answers, "joint" for the risk per item asked.
        risk: the largest risk that is acceptable.
        sure: how sure the promise is; None for one that holds on average.
        threshold: answered is what is at least this confident; None where nothing can be promised.
        shown: a short number that parts the same confidences.
        reason: why there is no threshold.
        seen: what the policy does on the data that it was chosen on.
        instead: what could be promised instead.
        method: the test behind it.
        search: how its thresholds were gone through.
        guarantee: "exact", "finite-sample", "asymptotic" or "in expectation".
        confidence: what ranks the answers.
        loss: what a wrong answer costs.
        data: what it was chosen on.
        needless: the largest share of items that may be deferred although the answer was right; None where nobody
            asked.
        by: the column whose groups have a threshold each, or share one that holds for the worst; None where nobody
            asked.
        worst: True where one threshold holds for every group.
        groups: what was chosen for each group, or seen in it.
        must_decline: the share of answers that any policy would have to decline for this risk.
        assumptions: what the promise rests on, as sentences.
        warnings: what the reader must know.
    """

    schema_version: Literal["1"] = "1"
    abstain_version: str | None = None
    promise: Literal["selective", "joint"]
    risk: Level
    sure: Level | None
    threshold: float | None = None
    shown: float | None = None
    reason: str = ""
    seen: Seen | None = None
    instead: Instead | None = None
    method: Literal["binomial", "cluster-t", "betting", "hoeffding-bentkus", "sgr", "crc"]
    search: Literal["fixed-sequence", "holm", "binary-search", "none"]
    guarantee: Literal["exact", "finite-sample", "asymptotic", "in expectation"]
    confidence: PolicyConfidence
    loss: PolicyLoss
    data: PolicyData
    needless: Level | None = None
    by: str | None = None
    worst: bool = False
    groups: tuple[Chosen, ...] = ()
    must_decline: Share = 0.0
    assumptions: tuple[str, ...] = ()
    warnings: tuple[ResultWarning, ...] = ()

    @property
    def promises(self) -> bool:
        """True where there is a threshold to answer by, for all or for some group."""
        return self.threshold is not None or (
            not self.worst and any(each.threshold is not None for each in self.groups)
        )

    @property
    def lines(self) -> list[str]:
        """The policy in sentences; the first is what it promises."""
        from abstain.thresholds._words import policy_lines  # noqa: PLC0415

        return policy_lines(self)

    def __str__(self) -> str:
        return self.lines[0]

    def __repr__(self) -> str:
        return few_lines("Policy", self.lines)

    def thresholds(self, groups: NDArray[Any] | None, length: int) -> NDArray[np.float64]:
        """Return the threshold of every row, infinite where nothing is promised; `groups` where there is one each."""
        from abstain.thresholds._apply import row_thresholds  # noqa: PLC0415

        return row_thresholds(self, groups, length)

    def apply(self, source: Any, **options: Any) -> Applied:
        """Decide for every row of items, of a data frame or of a table file; see `abstain.thresholds.apply_policy`.

        >>> from abstain import Items, choose_threshold
        >>> items = Items.from_arrays([1] * 100, [1] * 100, confidence=[row / 100 for row in range(100)])
        >>> policy = choose_threshold(items, risk=0.1)
        >>> policy.apply(items).answer.sum()
        np.int64(100)
        """
        from abstain.thresholds._apply import apply_policy  # noqa: PLC0415

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
        """Check whether the promise is kept on new data; see `abstain.thresholds.check_policy`."""
        from abstain.thresholds._check import check_policy  # noqa: PLC0415

        return check_policy(
            self, items, confidence=confidence, calibration=calibration, loss=loss, level=level, **columns
        )

    def to_json(self) -> bytes:
        """Return the policy as JSON that people can read, ending in a newline."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


def is_policy_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a policy, by its keys; a pipe is not read, and a large file is not a policy."""
    try:
        file = _files.SourceFile(path)
        if not file.path.is_file() or file.path.stat().st_size > _LARGEST_FILE:
            return False
        return _has_policy_keys(_files.parse_json(file.read(), file))
    except (AbstainError, OSError):
        return False


def _has_policy_keys(record: Any) -> bool:
    return isinstance(record, dict) and {"promise", "risk", "method"} <= set(record)


def read_policy(path: str | os.PathLike[str]) -> Policy:
    """Read a policy file, and check all of it."""
    file = _files.SourceFile(path)
    record = _files.parse_json(file.read(), file)
    if not _has_policy_keys(record):
        raise FormatError(f"{file}: not a policy; it must be an object with promise, risk and method")
    version = record.get("schema_version", VERSION)
    if version != VERSION:
        newer = isinstance(version, str) and version.isdigit() and int(version) > int(VERSION)
        told = (
            "newer schema than this release of abstain reads; update abstain"
            if newer
            else "schema that is not known"
        )
        raise FormatError(f"{file}: a policy of a {told} (schema_version {VERSION} is read here)")
    policy = _files.convert(record, Policy, f"{file}: not a policy")
    quantiles = policy.confidence.quantiles
    if any(high < low for low, high in pairwise(quantiles)):
        raise FormatError(f"{file}: not a policy: confidence.quantiles must not fall")
    if policy.promises and policy.method != "crc" and policy.sure is None:
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
        "description": "What `abstain threshold` writes: a threshold with its promise, or the reason for having none.",
        **form,
        "$defs": dict(definitions),
    }


def known(value: float) -> float | None:
    """Return a number for JSON: None where it is undefined or infinite."""
    return float(value) if math.isfinite(value) else None
