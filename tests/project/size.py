"""The size of the code by package, printed by `make lint` as information: no number here is a limit.

Lines are those of code, without blanks, comments and docstrings. Nodes are those of the syntax tree in thousands, which
denser formatting does not reduce. Imports are a share of the lines, comments a number in 100 lines.
"""

import ast
import io
import tokenize
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NO_CODE = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.COMMENT}


@dataclass(frozen=True, slots=True)
class Size:
    """The size of some modules."""

    modules: int = 0
    lines: int = 0
    nodes: int = 0
    imports: int = 0
    comments: int = 0

    def __add__(self, other: "Size") -> "Size":
        return Size(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    def row(self, name: str) -> str:
        """A row of the table."""
        lines = max(self.lines, 1)
        shares = f"{100 * self.imports / lines:>8.1f} %{100 * self.comments / lines:>10.1f}"
        return f"{name:24}{self.modules:>8}{self.lines:>8}{self.nodes / 1000:>8.1f}{shares}"


def size_of(text: str) -> Size:
    """The size of a module; one without code is none."""
    nodes = list(ast.walk(ast.parse(text)))
    # strings that stand for themselves: docstrings, and those below constants
    strings = [
        node
        for node in nodes
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    code = {line for each in tokens if each.type not in NO_CODE for line in range(each.start[0], each.end[0] + 1)}
    code -= lines_of(strings)
    comments = {each.start[0] for each in tokens if each.type == tokenize.COMMENT} - code
    return Size(int(bool(code)), len(code), len(nodes), len(lines_of(imports) & code), len(comments))


def lines_of(nodes: Iterable[ast.stmt]) -> set[int]:
    """The numbers of the lines on which statements stand."""
    return {line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def table(root: Path) -> list[str]:
    """The lines of the table: the packages of src/cleanset by size, their sum, and the folders beside src."""
    source = root / "src" / "cleanset"
    packages: dict[str, Size] = defaultdict(Size)
    for path in sorted(source.rglob("*.py")):
        folders = path.relative_to(source).parts[:-1]
        name = "/".join(folders[: 2 if folders[:1] == ("studies",) else 1]) or "(root)"
        packages[name] += size_of(path.read_text("utf-8"))
    rows = sorted(packages.items(), key=lambda item: -item[1].lines)
    rows += [("src", sum(packages.values(), Size()))]
    for name in ("tests", "bench", "sample"):
        texts = (path.read_text("utf-8") for path in (root / name).rglob("*.py"))
        rows += [(name, sum(map(size_of, texts), Size()))]
    head = f"{'':24}{'modules':>8}{'lines':>8}{'nodes':>8}{'imports':>10}{'comments':>10}"
    return [head, *(size.row(name) for name, size in rows)]


if __name__ == "__main__":
    print(*table(ROOT), sep="\n")
