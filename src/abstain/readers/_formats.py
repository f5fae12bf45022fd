"""The formats that `abstain.read` recognises, one entry each.

To add a format, write a module with ``read_items(file, arguments) -> Items`` (`SourceFile` and `ReadArguments` in)
and add its entry to `FORMATS`. A file has the first format whose magic bytes or keys it has; the module is imported
only when a file of that format is read. The entries of tables have no module: `_file_tables` opens them.
"""

from __future__ import annotations

from dataclasses import dataclass

ZIP, OLE, PARQUET, GZIP = b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"PAR1", b"\x1f\x8b"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
LM_EVAL_KEYS = frozenset({"doc_id", "doc", "filtered_resps"})


@dataclass(frozen=True, slots=True)
class Format:
    """A file format.

    Attributes:
        name: the value of the argument `format`.
        title: the words for such a file in messages.
        module: the module that reads it; None for a table.
        arguments: the arguments of `abstain.read` that only some formats take, and this one does.
        magic: the first bytes of a binary file.
        keys: alternatives; a JSON object that has all keys of one of them has this format.
        only_keys: a JSON object with exactly these keys has this format, too.
        first_keys: as `keys`, for a line that is longer than the part of the file that was looked at.
    """

    name: str
    title: str
    module: str | None = None
    arguments: tuple[str, ...] = ()
    magic: bytes | None = None
    keys: tuple[frozenset[str], ...] = ()
    only_keys: frozenset[str] = frozenset()
    first_keys: frozenset[str] = frozenset()

    @property
    def is_table(self) -> bool:
        """True for a table, whose columns the user can name."""
        return self.module is None

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
            module="abstain.readers._run_file",
            arguments=("mode", "cluster"),
            keys=(frozenset({"experiments"}),),
        ),
        Format(
            "evaluation",
            "evaluation file",
            module="abstain.readers._evaluation_file",
            arguments=("cluster", "item"),
            keys=(frozenset({"evaluation_results"}), frozenset({"backend_name", "suite"})),
            only_keys=frozenset({"metrics", "execution"}),
        ),
        Format(
            "inspect",
            "Inspect log",
            module="abstain.readers._inspect",
            arguments=("scorer", "cluster"),
            magic=ZIP,
            keys=tuple(frozenset({"eval", other}) for other in ("version", "status", "samples", "plan")),
        ),
        Format(
            "lm-eval",
            "lm-eval samples",
            module="abstain.readers._lm_eval",
            arguments=("scorer", "filter", "cluster"),
            keys=(LM_EVAL_KEYS,),
            first_keys=frozenset({"doc_id", "doc"}),
        ),
        Format("csv", "CSV table"),
        Format("parquet", "Parquet table", magic=PARQUET),
        Format("jsonl", "JSONL table"),
    )
}
