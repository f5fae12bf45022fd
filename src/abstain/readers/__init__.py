"""Sources: from whatever an evaluator has to items.

`read` is the one door. It recognises a file by what it holds (its ending only helps to word an error), takes data
frames as they are, and says in the items' provenance what it found and what it guessed. `open_table` gives the
columns of a table as they are, to whoever knows what they mean. A source knows its format and `Items`, and nothing
of what is computed from them.
"""

from abstain.readers._evaluation_file import (
    EvaluationFile,
    load_evaluation_file,
    read_evaluation_file,
    write_evaluation_file,
)
from abstain.readers._log_items import stack
from abstain.readers._read import (
    FORMATS,
    check_arguments,
    check_not_read,
    expand,
    is_table,
    items_of_argument,
    items_of_samples,
    name_systems,
    open_table,
    read,
    read_systems,
    recognise,
    usual_column,
)
from abstain.readers._rules import AbstentionRule, Determination
from abstain.readers._tables import SourceTable
from abstain.readers._values import Problems

__all__ = [
    "FORMATS",
    "AbstentionRule",
    "Determination",
    "EvaluationFile",
    "Problems",
    "SourceTable",
    "check_arguments",
    "check_not_read",
    "expand",
    "is_table",
    "items_of_argument",
    "items_of_samples",
    "load_evaluation_file",
    "name_systems",
    "open_table",
    "read",
    "read_evaluation_file",
    "read_systems",
    "recognise",
    "stack",
    "usual_column",
    "write_evaluation_file",
]
