"""Check the mechanical rules of plain language in documentation, docstrings, comments, messages and names of tests.

    python tools/check_prose.py                 # every file of the project; exit code 1 if a rule is broken
    python tools/check_prose.py README.md docs  # some files and folders
    python tools/check_prose.py --count         # how often each rule is broken, by kind of text

Quotations and names that may keep a word are listed in ALLOWED. Code is not checked: in Markdown, neither code blocks
nor `inline code`.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parent.parent


class Rule(NamedTuple):
    """A habit to avoid: its name, a pattern of it, and a suggestion."""

    name: str
    pattern: re.Pattern[str]
    suggestion: str


def _rule(name: str, pattern: str, suggestion: str) -> Rule:
    return Rule(name, re.compile(pattern, re.IGNORECASE), suggestion)


_PARTICIPLES = (
    "asked|given|said|told|known|left|wanted|needed|meant|read|written|printed|computed|found|counted|compared|"
    "drawn|named|judged|measured|missing|wrong|made|kept|taken|requested|shown|reported|stored|stated|promised"
)
_PLACES = (
    "place",
    "places",
    "point",
    "points",
    "know",
    "knows",
    "show",
    "shows",
    "see",
    "find",
    "finds",
    "from",
    "and",
    "or",
)
_NOT_AFTER_PLACES = "".join(rf"(?<!\b{word} )" for word in _PLACES)
RULES = (
    # "where" may introduce a symbol (where `n` is ...), or follow a word about a place.
    _rule(
        "where",
        rf"{_NOT_AFTER_PLACES}\bwhere\b(?! (?:\$|`|[A-Za-z]\b|[A-Za-z]_))",
        "if, when; keep 'where' for places and symbols",
    ),
    _rule(
        "headless what",
        rf"\bwhat (?:(?:is|are|was|were|has been|had been) (?:not )?(?:{_PARTICIPLES})\b(?!\?)"
        r"|(?:comes?|came|goes|went) (?:back|in|out|before|after)\b)",
        "name the noun: the requested metrics, the returned rows",
    ),
    _rule(
        "say or tell", r"\b(?:says?|said|tells?|told|telling)\b", "report, print, show, state, detect, infer"
    ),
    _rule(
        "ask",
        r"\bask(?:s|ed|ing)? (?:for|of)\b|\b(?:is|are|was|were|been|be) asked\b|\b(?:as|if|when|unless) asked\b",
        "requested, pass, set",
    ),
    _rule("else, left out", r"; else\b|\b(?:when|if|where) left out\b|\bleft out,", "Default: ..."),
    _rule("stand", r"\b(?:stands?|stood|standing)\b(?! for\b)(?!-)", "is, appears, is stored, duplicate"),
    _rule(
        "is no X",
        r"(?<!\bthere )\b(?:is|are|was|were) (?:no(?! longer| more| less| fewer| larger| smaller| better| worse| later"
        r"| earlier| greater| higher| lower)|(?-i:none))\b(?! of\b)",
        "is not an X, there is no X",
    ),
    _rule("alone", r"\balone\b", "only"),
    _rule(
        "whoever, nobody",
        r"\b(?:whoever|nobody|somebody|anybody|everybody|no one)\b",
        "name the actor, or use the passive",
    ),
    _rule(
        "of its own",
        r"\bof (?:its|their|your|our|his|one's) own\b|\bof yours\b",
        "custom, separate, your own X",
    ),
    _rule(
        "room, door",
        r"\b(?:rooms?|doors?|houses?|walks?|walked|walking)\b|\b(?:at|of) the borders?\b",
        "module, entry point, architecture, input validation, call path",
    ),
    _rule(
        "mend, anew, beside",
        r"\b(?:mend(?:s|ed|ing)?|anew|beside)\b",
        "fix, again, next to or in addition to",
    ),
    _rule(
        "X of Inspect",
        r"\b(?:logs?|samples?|data ?frames?|tables?|runs?|files?|functions?|scorers?) of "
        r"(?:Inspect|lm-eval|Spark|pandas|polars|DuckDB|MAPIE|scikit-learn)\b",
        "an Inspect log, a Spark DataFrame",
    ),
    _rule("two semicolons", r";[^.;!?]*;", "one idea per sentence"),
    _rule("judge", r"\bjudg(?:e|es|ed|ing|ement)s?\b", "evaluate"),
    _rule("promise", r"\bpromis(?:e|es|ed|ing)\b", "risk guarantee, guaranteed"),
    _rule("cannot tell", r"\bcannot tell\b|\bundecided\b", "inconclusive"),
    _rule("working point", r"\bworking points?\b", "operating point"),
    _rule("plateau", r"\bplateaus?\b", "tied block"),
    _rule(
        "share",
        r"\b(?:a|an|the|its|this|that|which|what|same|each|largest|smallest|every|such) shares?\b"
        r"|\bshares? (?:of|that)\b",
        "proportion",
    ),
    _rule("per cent", r"\bper cent\b", "percent"),
    _rule("artifact", r"\bartifacts?\b", "results JSON, calibration file"),
    _rule("verb", r"\bverbs?\b", "command"),
    _rule("figure", r"\bfigures? (?:of|that|is|are|was|were|comes?)\b", "number, metric"),
)

# Texts that keep a word: quotations, and words that mean something else.
ALLOWED = (
    "Just Ask for Calibration",
    "semantic_entropy[:judge=MODEL]",
    "the answer is no number of the scale",  # sent to models, so that recorded runs would change
)

# Prompts are sent to models, so that recorded runs would change. The patterns of the oracles are not prose.
_SKIPPED = re.compile(r"^tests/data/|^fuzz/corpus/|^fuzz/_oracles\.py$|^src/abstain/runs/_prompts\.py$")


_FOLDERS = (
    "benchmarks",
    "docs",
    "fuzz",
    "offline",
    "simulations",
    "src",
    "tests",
    "tests_browser",
    "tests_spark",
)


class Text(NamedTuple):
    """A piece of prose."""

    path: Path
    line: int
    kind: str
    text: str


class Finding(NamedTuple):
    """A broken rule."""

    text: Text
    rule: Rule
    match: str


def read_texts(path: Path, content: str) -> Iterator[Text]:
    """Return the prose of a file with some content."""
    if path.suffix == ".md":
        kind = (
            "decisions"
            if "decisions" in path.parts
            else "changelog"
            if path.name == "CHANGELOG.md"
            else "docs"
        )
        yield from _markdown_texts(path, content, kind)
    elif path.suffix == ".py":
        yield from _python_texts(path, content)
    elif path.suffix == ".html":
        for number, line in enumerate(content.splitlines(), 1):
            yield Text(path, number, "template", re.sub(r"<[^>]*>|\{[{%].*?[}%]\}", " ", line))


def _markdown_texts(path: Path, content: str, kind: str) -> Iterator[Text]:
    in_code, start = False, 0
    paragraph: list[str] = []
    for number, line in enumerate([*content.splitlines(), ""], 1):
        if line.lstrip().startswith(("```", "~~~")):
            in_code = not in_code
            continue
        if in_code:
            continue
        plain = _without_code(re.sub(r"\]\([^)]*\)", "]", line))
        ends = not plain.strip() or plain.lstrip().startswith(("|", "-", "*", "#", ">", "1."))
        if ends and paragraph:
            yield Text(path, start, kind, " ".join(paragraph))
            paragraph = []
        if plain.strip():
            start = start if paragraph else number
            paragraph.append(plain.strip())


def _python_texts(path: Path, content: str) -> Iterator[Text]:
    nodes = list(ast.walk(ast.parse(content)))
    docstrings = {id(node): node for node in filter(None, map(_docstring, nodes))}
    for docstring in docstrings.values():
        yield from _docstring_texts(path, docstring.lineno, str(docstring.value))
    if path.relative_to(ROOT).parts[0].startswith("tests"):
        for node in nodes:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield Text(path, node.lineno, "test name", node.name.replace("_", " "))
    else:
        parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        yield from _message_texts(path, [node for node in nodes if id(node) not in docstrings.keys() | parts])
    yield from _comment_texts(path, content)


def _docstring(node: ast.AST) -> ast.Constant | None:
    """Return the docstring of a module, class or function."""
    if (
        not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        or not node.body
    ):
        return None
    first = node.body[0]
    if (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    ):
        return first.value
    return None


def _message_texts(path: Path, nodes: Sequence[ast.AST]) -> Iterator[Text]:
    for node in nodes:
        text = ""
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        if _is_prose(text):
            yield Text(path, getattr(node, "lineno", 0), "message", _without_code(text))


def _comment_texts(path: Path, content: str) -> Iterator[Text]:
    """Return comments; those on consecutive lines are one text."""
    comment: list[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type != tokenize.COMMENT or re.match(r"#\s*(noqa|type:|fmt:|pragma|!)", token.string):
            continue
        line = token.start[0]
        if comment and line != last + 1:
            yield Text(path, start, "comment", " ".join(comment))
            comment = []
        start, last = start if comment else line, line
        comment.append(_without_code(token.string.lstrip("# ")))
    if comment:
        yield Text(path, start, "comment", " ".join(comment))


def _docstring_texts(path: Path, line: int, docstring: str) -> Iterator[Text]:
    """Return the paragraphs of a docstring without its examples."""
    for paragraph in re.split(r"\n\s*\n", docstring):
        prose = paragraph.partition(">>>")[0]
        if prose.strip():
            yield Text(path, line, "docstring", _without_code(" ".join(prose.split())))


def _without_code(text: str) -> str:
    return re.sub(r"`+[^`]*`+", "`x`", text)


def _is_prose(text: str) -> bool:
    """Return whether a string is a sentence and not SQL, a pattern or a key."""
    return text.count(" ") >= 2 and not re.search(
        r"\b(?:SELECT|FROM|WHERE|CASE|JOIN|CAST)\b|[\\^]\w|</", text
    )


def find_habits(texts: Iterator[Text]) -> Iterator[Finding]:
    """Return the broken rules of some texts."""
    for text in texts:
        words = text.text
        for phrase in ALLOWED:
            words = re.sub(re.escape(phrase), "", words, flags=re.IGNORECASE)
        for rule in RULES:
            for match in rule.pattern.finditer(words):
                start, end = max(match.start() - 30, 0), match.end() + 30
                yield Finding(text, rule, words[start:end].replace("\n", " ").strip())


def project_files(chosen: Sequence[str]) -> list[Path]:
    """Return the files with prose in the chosen files and folders. Default: the whole project."""
    places = [ROOT / name for name in chosen] or [*ROOT.glob("*.md"), *(ROOT / name for name in _FOLDERS)]
    files = [file for place in places for file in (sorted(place.rglob("*")) if place.is_dir() else [place])]
    return [
        file
        for file in files
        if file.suffix in (".md", ".py", ".html") and not _SKIPPED.search(file.relative_to(ROOT).as_posix())
    ]


def main() -> int:
    """Print the broken rules, or how many there are."""
    parser = argparse.ArgumentParser(description="Check the mechanical rules of plain language.")
    parser.add_argument("paths", nargs="*", help="Files and folders. Default: the whole project.")
    parser.add_argument("--count", action="store_true", help="Print how often each rule is broken.")
    arguments = parser.parse_args()
    findings = [
        finding
        for path in project_files(arguments.paths)
        for finding in find_habits(read_texts(path, path.read_text(encoding="utf-8")))
    ]
    if arguments.count:
        kinds = sorted({finding.text.kind for finding in findings})
        counts = Counter((finding.rule.name, finding.text.kind) for finding in findings)
        print("| habit | " + " | ".join(kinds) + " | all |")
        print("|---" * (len(kinds) + 2) + "|")
        for name in [rule.name for rule in RULES]:
            row = [counts[name, kind] for kind in kinds]
            print(f"| {name} | " + " | ".join(map(str, row)) + f" | {sum(row)} |")
        total = [sum(counts[rule.name, kind] for rule in RULES) for kind in kinds]
        print("| all | " + " | ".join(map(str, total)) + f" | {sum(total)} |")
        return 0
    for finding in findings:
        place = f"{finding.text.path.relative_to(ROOT)}:{finding.text.line}"
        print(f"{place}: {finding.rule.name}: ... {finding.match} ... (write: {finding.rule.suggestion})")
    print(f"{len(findings)} broken rules" if findings else "The prose follows the rules.", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
