"""The fuzz harness: hostile and valid input for every reader and every command, checked by oracles.

A *case* consists of files and of commands that run on them (`_case`). A *child* process runs many cases, captures their
output and measures memory and time (`_child`, `_workers`). *Oracles* report violations (`_oracles`). *Rounds* generate
cases (`_rounds`, from `_values`, `_tables`, `_documents`, `_commands` and `_requests`). A *hunt* runs a round and saves
the smallest case of each defect in the corpus (`_hunt`, `_smaller`).
"""
