"""Integrations: abstain inside other frameworks. Each module needs its framework installed.

`abstain.integrations.inspect` has metrics for Inspect AI scorers; `abstain.integrations.sklearn` has a classifier that
may decline, scorers and a display for scikit-learn. They translate and delegate to other packages of abstain.
"""
