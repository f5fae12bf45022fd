"""Output for people and programs. It reads results and computes no statistics.

`tables` is the model of a table with a renderer per format. `views` turns a `Result` into tables and sentences, and
`console` prints them in the terminal. `results_json` and `results_json_conformal` define the results JSON and its
schema. `charts` are Vega-Lite specifications. `html` writes the report and the representation in notebooks. `gate`,
`check`, `calibration`, `coverage` and `listings` are views of the results of other commands.
"""

# They are not in `charts`, so that the command line can check an option without importing the chart library.
CHART_FORMATS = (".png", ".svg", ".html", ".pdf", ".json")
