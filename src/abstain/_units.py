"""Units of the jackknife and of weights.

The units of the jackknife are single clusters, or groups of clusters if there are very many. A cluster's group depends
only on its name, so it is the same on every machine. An engine that aggregates a table computes the same groups by the
same arithmetic.

The weight that counts as one row of an interval, and that which counts as one item of a metric, depend only on the
weights, so that nothing depends on the unit in which they are written.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abstain._types import Floats, Indices

# Up to MOST_SINGLE clusters are left out one by one; more are divided into GROUPS groups.
MOST_SINGLE = 1000
GROUPS = 200
PRIME, FACTOR = 2_147_483_647, 62_089_911
WHOLE_NAME = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
# Longer runs of digits are treated as text, because converting them to a number is slow.
LONGEST_WHOLE = 4000

# Multiples of a weight may have this relative rounding error.
ROUNDING = 1e-9
# A common divisor of the weights is searched among at most so many weights, and is at least this part of the largest.
MOST_WEIGHTS = 1000
_SMALLEST_DIVISOR, _REMAINDER = 1e-6, 1e-12


def unit_of(cluster_ids: NDArray[Any]) -> NDArray[np.intp]:
    """Return the unit of each cluster, numbered from 0 without gaps: the cluster itself, or its group.

    >>> unit_of(np.array(["ann", "bob"])), len(set(unit_of(np.arange(10_000)).tolist()))
    (array([0, 1]), 200)
    """
    if len(cluster_ids) <= MOST_SINGLE:
        return np.arange(len(cluster_ids))
    return np.unique(group_of(cluster_ids), return_inverse=True)[1].astype(np.intp)


def group_of(cluster_ids: NDArray[Any], groups: int = GROUPS) -> NDArray[np.intp]:
    """Return the group of each cluster, computed from its name.

    For a whole number, or text that is one in its usual form: ``((id mod p) * 62089911) mod p mod groups`` with
    ``p = 2147483647``. For any other name: the first eight hexadecimal digits of the MD5 of its UTF-8 text, mod groups.

    >>> group_of(np.array([1, 2, 3])).tolist(), group_of(np.array(["1", "2", "ann"])).tolist()
    ([111, 22, 133], [111, 22, 34])
    """
    if cluster_ids.dtype.kind in "iu":
        wide = cluster_ids if cluster_ids.dtype.itemsize == 8 else cluster_ids.astype(np.int64)
        folded = np.mod(wide, PRIME).astype(np.int64)
        return (folded * FACTOR % PRIME % groups).astype(np.intp)
    return np.array([_group_of_name(str(name), groups) for name in cluster_ids.tolist()], dtype=np.intp)


def _group_of_name(name: str, groups: int) -> int:
    if len(name) < LONGEST_WHOLE and WHOLE_NAME.fullmatch(name):
        return int(name) % PRIME * FACTOR % PRIME % groups
    digest = hashlib.md5(name.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
    return int(digest[:8], 16) % groups


def weight_of_one_row(weight: Floats) -> float:
    """Return the weight that counts as one row in an interval, for positive weights.

    It is the smallest weight if all are multiples of it. Otherwise it makes the number of rows Kish's effective number.

    >>> weight_of_one_row(np.array([0.5, 1.5])), weight_of_one_row(np.array([2.0, 3.0]))
    (0.5, 2.6)
    """
    multiples = weight / weight.min()
    if (np.abs(multiples - multiples.round()) <= ROUNDING * multiples).all():
        return float(weight.min())
    return float(weight @ multiples / multiples.sum())


def weight_of_one_item(weight: Floats) -> float:
    """Return the weight that counts as one item: the greatest common divisor of all weights, or the smallest weight.

    So whole weights without a common divisor are numbers of repetitions, and the unit of the weights does not matter.
    Weights of more than 1,000 different values, or with a divisor that is much smaller than the largest weight, are
    divided by the smallest weight.

    >>> weight_of_one_item(np.array([4.0, 6.0, 0.0])), weight_of_one_item(np.array([0.5, 0.75]))
    (2.0, 0.25)
    >>> weight_of_one_item(np.array([1.0, np.sqrt(2.0)]))
    1.0
    """
    if weight.strides == (0,):
        return 1.0
    distinct = np.unique(weight[weight > 0.0])
    if not len(distinct):
        return 1.0
    smallest, largest = float(distinct[0]), float(distinct[-1])
    if len(distinct) > MOST_WEIGHTS:
        return smallest
    # Euclid's algorithm for all weights at the same time.
    rest, divisor = distinct, smallest
    while divisor >= _SMALLEST_DIVISOR * largest:
        remainder = np.fmod(rest, divisor)
        remainder = np.minimum(
            remainder, np.where(divisor - remainder < _REMAINDER * largest, 0.0, remainder)
        )
        rest = remainder[remainder > _REMAINDER * largest]
        if not len(rest):
            multiples = (distinct / divisor).round()
            return float(distinct.sum() / multiples.sum())
        rest, divisor = np.append(rest, divisor), float(rest.min())
    return smallest


def counted_clusters(cluster: Indices, weight: Floats) -> tuple[Indices, Indices]:
    """Return the clusters with a row whose weight is not 0, and the index of each row's cluster among them.

    Rows of weight 0 are assigned to the first cluster, in which they count nothing.

    >>> [part.tolist() for part in counted_clusters(np.array([0, 1, 2]), np.array([1.0, 0.0, 2.0]))]
    [[0, 2], [0, 0, 1]]
    """
    counted = weight > 0.0
    if counted.all():
        return np.unique(cluster), cluster
    clusters, index = np.unique(cluster[counted], return_inverse=True)
    of_rows = np.zeros(len(cluster), np.intp)
    of_rows[counted] = index
    return clusters, of_rows
