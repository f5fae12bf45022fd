"""Integrations: abstain's metrics inside other people's frameworks. Each module needs its framework installed.

`abstain.integrations.inspect` has metrics for Inspect AI scorers; `abstain.integrations.sklearn` scorers and
a display for scikit-learn. They translate and delegate to `abstain.metrics`; no number is computed here.
"""
