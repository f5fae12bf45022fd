"""Simulations of confidence intervals, comparisons of systems and risk guarantees.

Every statistical statement of the documentation comes from here. `python -m simulations` (or ``make simulate``) draws
data sets from populations whose metrics are known, and evaluates them with the functions that users call. It counts how
often confidence intervals contain the true value, how often a difference is reported between equal systems, and how
often a risk guarantee holds. A run that was stopped continues with the next data set. `docs/generate.py` writes the
pages of the documentation from the counts.
"""
