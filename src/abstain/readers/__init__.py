"""Readers: from files, logs and data frames to items.

`read` recognises a file by its content, accepts data frames, and records in the provenance of the items which columns
it used and which of them it guessed. `open_table` returns the columns of a table without interpreting them.
`FORMATS` lists the file formats; `_formats` describes how to add one.
"""

from abstain.readers._evaluation_file import EvaluationFile, load_evaluation_file, write_evaluation_file
from abstain.readers._fields import usual_column
from abstain.readers._formats import FORMATS
from abstain.readers._inspect import items_of_samples
from abstain.readers._log_items import stack
from abstain.readers._read import (
    check_arguments,
    check_not_read,
    expand,
    is_table,
    items_of_argument,
    name_systems,
    open_table,
    read,
    read_systems,
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
    "read_systems",
    "stack",
    "usual_column",
    "write_evaluation_file",
]
