"""Report: what people and pipelines see. It reads results and computes no statistics.

`tables` is the one model of a table and its forms; `views` turns a Result into tables and sentences, and is the one
place that words results; `console` is the terminal; `artifact` builds the JSON document and publishes its schema;
`charts` are Vega-Lite specifications; `html` writes the one page with all of it, and what a notebook shows.
`gate`, `check`, `calibration`, `coverage` and `listings` are for what the other verbs find.
"""
