"""Interfaces of other systems; every value is computed by `abstain.metrics`.

- `abstain.compat.rows`: `ItemPrediction` and ``compute_*``, selective metrics of a list of objects.
- `abstain.compat.objects`: metric objects that are called with a list of evaluation results.
- `abstain.compat.mapie`: MAPIE's metrics with its names and arguments.
"""
