"""Tests of runs. This is a package so that its modules can be imported as ``runs.mocked`` and ``runs.serving``."""
