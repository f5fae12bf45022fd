"""Interfaces of other systems, served by the metrics of this one.

- `abstain.compat.rows`: `ItemPrediction` and ``compute_*``, selective metrics of a list of objects;
- `abstain.compat.objects`: metric objects that are called with a list of evaluation results;
- `abstain.compat.mapie`: the metrics of MAPIE, by its names and arguments.

Nothing is computed here: every value comes from `abstain.metrics`, which serves the names of the first two as well. So
each needs the other, and this import lets either be asked for first.
"""

import abstain.metrics  # noqa: F401
