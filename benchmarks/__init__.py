"""Benchmarks: the speed of abstain relative to other packages, measured in the same run."""
