"""Benchmarks: speed as ratios against peers, side by side in one run."""
