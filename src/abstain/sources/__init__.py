"""Sources: from files to items.

`read` is the one door. A source knows its format and `Items`, and nothing of what is computed from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abstain import _files
from abstain.errors import ArgumentError
from abstain.sources._evaluation_file import (
    EvaluationFile,
    load_evaluation_file,
    looks_like_evaluation_file,
    read_evaluation_file,
    write_evaluation_file,
)
from abstain.sources._run_file import read_run_file

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from abstain.items import Items

__all__ = [
    "EvaluationFile",
    "load_evaluation_file",
    "read",
    "read_evaluation_file",
    "write_evaluation_file",
]


def read(
    source: str | os.PathLike[str], *, mode: str | None = None, scale: Sequence[float] | None = None
) -> Items:
    """Read the items of a run file or of an evaluation file.

    Args:
        source: path of the file.
        mode: which experiment, such as "few_shot"; needed when the file holds several.
        scale: lowest and highest score there can be; else what the file declares, else 0 to 3.

    >>> read("tests/data/examples/run_a.json", mode="few_shot")
    Items(240 items in 30 participants: 155 answered, 77 abstained, 8 failed, 0 unscored)
    """
    if looks_like_evaluation_file(_files.parse_json(_files.read_bytes(source), source)):
        if mode is not None:
            raise ArgumentError(f"{source}: an evaluation file has no modes; leave mode out")
        return read_evaluation_file(source, scale=scale)
    return read_run_file(source, mode=mode, scale=scale)
