"""The formats that `abstain.read` recognises, one entry each.

To add a format, write a function ``read_items(file, arguments) -> Items`` of a `SourceFile` and `ReadArguments`, and
add its entry to `FORMATS`. A file has the first format whose magic bytes or keys it has. The entries of tables have no
such function: `_file_tables` opens them.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import TYPE_CHECKING

from abstain.readers import _evaluation_file, _inspect, _lm_eval, _run_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from abstain._files import SourceFile
    from abstain.items import Items
    from abstain.readers._read import ReadArguments

ZIP, OLE, PARQUET, GZIP = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"PAR1", b"\x1f\x8b"
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# The first bytes of files that `_translations` may convert to text.
MAYBE_TRANSLATED = (ZIP, OLE, *UTF_16)


@dataclass(frozen=True, slots=True)
class Format:
    """A file format.

    Attributes:
        name: the value of the argument `format`.
        title: the name of such a file in messages.
        read_items: the function that reads it; None for a table.
        arguments: the arguments of `abstain.read` that only this and some other formats accept.
        magic: the first bytes of a binary file.
        keys: alternatives; a JSON object that has all keys of one of them has this format.
        only_keys: a JSON object with exactly these keys has this format, too.
        first_keys: as `keys`, for a line that is longer than the part of the file that is examined.
    """

    name: str
    title: str
    read_items: Callable[[SourceFile, ReadArguments], Items] | None = None
    arguments: tuple[str, ...] = ()
    magic: bytes | None = None
    keys: tuple[frozenset[str], ...] = ()
    only_keys: frozenset[str] = frozenset()
    first_keys: frozenset[str] = frozenset()

    @property
    def is_table(self) -> bool:
        """True for a table, whose columns the user can name."""
        return self.read_items is None

    @property
    def described(self) -> str:
        """The title with its article."""
        if self.name == "lm-eval":
            return f"a file of {self.title}"
        return f"{'an' if self.title[0] in 'eI' else 'a'} {self.title}"


FORMATS = {
    form.name: form
    for form in (
        Format(
            "run",
            "run file",
            read_items=_run_file.read_items,
            arguments=("mode", "cluster"),
            keys=(frozenset({"experiments"}),),
        ),
        Format(
            "evaluation",
            "evaluation file",
            read_items=_evaluation_file.read_items,
            arguments=("cluster", "item"),
            keys=(frozenset({"evaluation_results"}), frozenset({"backend_name", "suite"})),
            only_keys=frozenset({"metrics", "execution"}),
        ),
        Format(
            "inspect",
            "Inspect log",
            read_items=_inspect.read_items,
            arguments=("scorer", "cluster"),
            magic=ZIP,
            keys=tuple(frozenset({"eval", other}) for other in ("version", "status", "samples", "plan")),
        ),
        Format(
            "lm-eval",
            "lm-eval samples",
            read_items=_lm_eval.read_items,
            arguments=("scorer", "filter", "cluster"),
            keys=(_lm_eval.KEYS,),
            first_keys=frozenset({"doc_id", "doc"}),
        ),
        Format("csv", "CSV table"),
        Format("parquet", "Parquet table", magic=PARQUET),
        Format("jsonl", "JSONL table"),
    )
}
