"""Phrases that no engineer would say, in docstrings, messages, pages and documentation; part of `make lint`.

`python tests/project/words.py [FILE …]` prints a line for each, `path:line: phrase: what to write`, and ends with exit
code 1 if there is one. Without arguments it reads the repository's texts. A phrase that has to stay gets a line in
EXCEPTIONS with the reason; an exception that no longer applies is reported too.

Some words are idiomatic now and then, and stiff if they come often, because they stand in place of a term. Those of
COUNTED may come MAX_COUNTED times in all public texts; `words.py --counted [FILE …]` lists them.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXTS = (
    "*.md", "data/README.md", "docs/**/*.md", "docs/*.py", "src/**/*.py", "src/**/*.html", "sample/*.py", "bench/*",
    "studies/*/README.md", "studies/*/*/README.md", "imagenet/reviews/README.md", "imagenet/studies/*/*/README.md",
)  # fmt: skip
"""Patterns of the files that are read. Tests are not among them: they quote messages."""
FORMS = {
    r"(?<!there )\b(?:is|are|was|were) no (?!longer\b|more\b|fewer\b|less\b|better\b|different\b|such\b)\w+":
        "unknown …, invalid …, is not a …",
    r"\b(?:that|which) (?:is|are) none\b": "an invalid …, an unknown …",
    r"\b(?:none|nothing) where there (?:is|are) (?:none|nothing)\b": "empty without …",
    r"\bthat there is not\b": "unknown …, missing …",
    r"\bso many\b": "name the number: the first N …",
    r"\beach two\b": "every two …, every pair of …",
    r"\bas a rule\b": "(default), usually",
    r"\bof which (?:a|an|each)\b": "begin with the noun: the … of each …",
    r"\b(?:is|are) told\b": "is reported, is printed",
    r"\bas (?:it was|they were)(?=[.,;:)]|$)": "unchanged, the same as before",
    r"\bheld against\b|\bhold(?:s|ing)? (?:\w+ ){1,2}against\b": "compare … with, check … against",
    r"\b(?:is|are) had (?:at|by|from)\b": "available from, download … from",
    r"\beach who\b": "everyone who, every visitor",
}  # fmt: skip
"""Regular expressions, matched without regard to case across line breaks, and what to write instead."""
COUNTED = {
    "those of": r"\b(?:those|that) of\b",
    "what": r"\bwhat\b(?![^.;:]*\?)",
    "there is": r"\bthere (?:is|are|was|were)\b",
    "none": r"\b(?-i:none)\b",
    "of which": r"\b(?:of|in|by) which\b",
}
"""Words that avoid naming a thing, as in "the error of the first minus that of the second"."""
MAX_COUNTED = 137
"""Number of COUNTED words in the public texts. Lower it when fewer are left."""
FIRST_WORDS = r"(?:What|How|Of|The same of)\b"
"""First words that make a docstring a fragment: it cannot be read without the name above it."""
EXCEPTIONS: Mapping[tuple[str, str], str] = {
    ("sample/contest_controls.py", "a background alone is no object"):
        "written into sample/contest/judges/examples.yaml, which judges have seen",
}  # fmt: skip
"""By path and a piece of the text that holds the phrase: the reason why it stays."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that is read as one: a paragraph, a docstring, a message; each line with its number in the file."""

    lines: Sequence[tuple[int, str]]
    is_docstring: bool = False
    is_public: bool = True

    @property
    def text(self) -> str:
        return " ".join(line for _, line in self.lines)

    def line_number(self, position: int) -> int:
        """The number of the line that holds this position of the text."""
        end = -1
        for number, line in self.lines:
            end += len(line) + 1
            if position <= end:
                return number
        return self.lines[-1][0]


@dataclass(frozen=True, slots=True)
class Finding:
    """A phrase, and the exceptions that allow it."""

    line: int
    phrase: str
    advice: str
    allowed_by: frozenset[tuple[str, str]]


def findings(path: str, content: str, exceptions: Mapping[tuple[str, str], str]) -> list[Finding]:
    """All phrases in a file's content, those that an exception allows included."""
    passages = python_passages(content) if path.endswith(".py") else page_passages(content)
    found = [
        Finding(passage.line_number(start), phrase, advice, allowed_by(path, passage.text, start, phrase, exceptions))
        for passage in passages
        for start, phrase, advice in phrases(passage)
    ]
    return sorted(found, key=lambda each: each.line)


def phrases(passage: Passage) -> Iterator[tuple[int, str, str]]:
    """Position, phrase and advice for each phrase of a passage."""
    for form, advice in FORMS.items():
        for found in re.finditer(form, passage.text, re.IGNORECASE):
            yield found.start(), found[0], advice
    first = re.match(FIRST_WORDS, passage.text)
    if passage.is_docstring and first:
        yield 0, first[0], "begin with a noun or an imperative"


def allowed_by(
    path: str, text: str, start: int, phrase: str, exceptions: Mapping[tuple[str, str], str]
) -> frozenset[tuple[str, str]]:
    """The exceptions of the path whose piece of text holds the phrase at this position."""
    return frozenset(
        (name, piece)
        for name, piece in exceptions
        if name == path
        for found in re.finditer(re.escape(piece), text)
        if found.start() <= start and start + len(phrase) <= found.end()
    )


def python_passages(content: str) -> Iterator[Passage]:
    """Docstrings, the strings below constants among them, and all other strings of a module.

    Docstrings of private functions and classes, and within functions, are not public; all other strings are.
    """
    nodes: list[tuple[ast.AST, bool]] = [(ast.parse(content), True)]
    while nodes:
        node, is_public = nodes.pop()
        if isinstance(node, ast.Constant | ast.JoinedStr):
            yield Passage(numbered(string_text(node), node.lineno))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield Passage(numbered(string_text(node.value), node.lineno), is_docstring=True, is_public=is_public)
        elif isinstance(node, ast.JoinedStr):  # the strings inside its braces; its own parts have been read as one
            nodes += [(part, is_public) for part in node.values if isinstance(part, ast.FormattedValue)]
        else:
            is_public &= not str(getattr(node, "name", "")).startswith("_")
            nodes += [(each, is_public) for each in ast.iter_child_nodes(node)]


def counted(path: str, content: str) -> list[tuple[int, str]]:
    """Line and words of each of COUNTED in the public texts of a file; code, styles and attributes of a page aside."""
    if path.endswith(".html"):
        content = re.sub(
            r"(?s)<style.*?</style>|<[^>]*>|\{[%#{].*?[%#}]\}|\{[^{}]*\}",
            lambda code: "\n" * code[0].count("\n"),
            content,
        )
    found = []
    for passage in python_passages(content) if path.endswith(".py") else page_passages(content):
        text = re.sub("`[^`]+`", lambda code: "…" * len(code[0]), passage.text)
        if passage.is_public and " " in text:
            for form in COUNTED.values():
                found += [(passage.line_number(m.start()), m[0]) for m in re.finditer(form, text, re.IGNORECASE)]
    return sorted(found)


def string_text(node: ast.Constant | ast.JoinedStr) -> str:
    """The text of a string, of an f-string with {} in place of what is put in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return node.value if isinstance(node.value, str) else ""


def page_passages(content: str) -> Iterator[Passage]:
    """The paragraphs of a page, without code blocks; inline code counts as one word."""
    text = re.sub(r"(?ms)^```.*?^```$", lambda block: "\n" * block[0].count("\n"), content)
    text = re.sub(r"`[^`\n]+`", "`…`", text)
    paragraph: list[tuple[int, str]] = []
    for number, line in [*numbered(text, 1), (0, "")]:
        if line:
            paragraph.append((number, line))
        elif paragraph:
            yield Passage(paragraph)
            paragraph = []


def numbered(text: str, first: int) -> list[tuple[int, str]]:
    """The lines of a text without the space around them, each with its number."""
    return [(number, line.strip()) for number, line in enumerate(text.split("\n"), first)]


def texts(root: Path) -> list[str]:
    """The files to read, relative to the repository."""
    found = {path.relative_to(root) for pattern in TEXTS for path in root.glob(pattern)}
    return sorted(path.as_posix() for path in found if path.suffix in {".py", ".md", ".html"})


def public_texts(root: Path) -> list[str]:
    """The files whose words are counted: the package and the documentation, without benchmarks and scripts."""
    return [
        path
        for path in texts(root)
        if path == "docs/hooks.py" or not (path.startswith(("bench/", "sample/", "docs/")) and path.endswith(".py"))
        if path != "bench/RESULTS.md"
    ]


def all_counted(root: Path, paths: Sequence[str]) -> list[tuple[str, int, str]]:
    """Path, line and words of each of COUNTED in these files."""
    return [(path, *each) for path in paths for each in counted(path, (root / path).read_text(encoding="utf-8"))]


def check(root: Path, paths: Sequence[str], exceptions: Mapping[tuple[str, str], str]) -> list[str]:
    """A line for each phrase that no exception allows, and for each exception of these files that allows nothing."""
    lines = []
    used: set[tuple[str, str]] = set()
    for path in paths:
        for found in findings(path, (root / path).read_text(encoding="utf-8"), exceptions):
            used |= found.allowed_by
            if not found.allowed_by:
                lines.append(f"{path}:{found.line}: {found.phrase}: write {found.advice}")
    unused = [key for key in exceptions if key[0] in paths and key not in used]
    return lines + [f"{path}: no phrase in {piece!r}: remove the exception" for path, piece in unused]


def main(arguments: Sequence[str]) -> int:
    """Check the files that are named, or all, and print the findings."""
    if "--counted" in arguments:
        named = [Path(name).resolve().relative_to(ROOT).as_posix() for name in arguments if name != "--counted"]
        for path, line, words in all_counted(ROOT, named or public_texts(ROOT)):
            print(f"{path}:{line}: {words}")
        return 0
    paths = [Path(name).resolve().relative_to(ROOT).as_posix() for name in arguments] or texts(ROOT)
    lines = check(ROOT, paths, EXCEPTIONS)
    # a file that was renamed takes its exceptions with it
    lines += [f"{path}: no such file: remove its exceptions" for path, _ in EXCEPTIONS if not (ROOT / path).is_file()]
    number = 0 if arguments else len(all_counted(ROOT, public_texts(ROOT)))
    if number > MAX_COUNTED:
        lines.append(
            f"{number} of the words in COUNTED; expected at most {MAX_COUNTED}: see words.py --counted, name the thing"
        )
    print(*lines, sep="\n", end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
