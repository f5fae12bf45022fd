"""Tests of runs; a package, so that its fixtures have a name of their own."""
