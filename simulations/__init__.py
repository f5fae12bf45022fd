"""Simulations: do intervals cover as they say, and how often is a difference seen that is not there?

Every statistical claim of the documentation comes from here. `python -m simulations` (or ``make simulate``) draws data
sets from populations whose metrics are known, asks `abstain` for its intervals and for thresholds with a promise,
through the same functions that users call, and counts. It goes on where it stopped, and writes the tables that the
documentation shows.
"""
