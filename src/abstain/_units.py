"""Units of the jackknife: single clusters, or groups of clusters if there are very many.

A cluster's group depends only on its name, so it is the same on every machine. An engine that aggregates a table
computes the same groups by the same arithmetic.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Up to MOST_SINGLE clusters are left out one by one; more are divided into GROUPS groups.
MOST_SINGLE = 1000
GROUPS = 200
PRIME, FACTOR = 2_147_483_647, 62_089_911
WHOLE_NAME = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
# Longer runs of digits are treated as text, because converting them to a number is slow.
LONGEST_WHOLE = 4000


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
