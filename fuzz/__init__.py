"""The fuzz harness: hostile and sound input for every reader and every verb, judged by oracles.

A *case* is some files and the commands that are run on them (`_case`). A *child* runs many cases, each with its
output captured and its memory and time measured (`_child`, `_workers`). *Oracles* say what is wrong with what came
out (`_oracles`). *Rounds* make cases (`_rounds`, from `_values`, `_tables`, `_documents` and `_commands`); a *hunt*
runs a round, and keeps the smallest case of each failure in the corpus (`_hunt`).
"""
