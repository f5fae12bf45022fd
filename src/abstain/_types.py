"""Types that many modules annotate with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
# Called with the number of resamples done since the last call.
Progress = Callable[[int], None]
