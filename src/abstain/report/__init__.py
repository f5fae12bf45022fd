"""Report: what people and pipelines see. It reads results and computes no statistics.

`artifact` builds the JSON document and publishes its schema; `console` prints the terminal summary; `tables`
are for papers and programs; `charts` are Vega-Lite specifications; `html` writes the one page with all of it;
`notebook` shows results where they are computed.
"""
