"""Report: what people and pipelines see. It reads results and computes no statistics.

`artifact` builds the JSON document and publishes its schema; `console` prints the terminal summary.
"""
