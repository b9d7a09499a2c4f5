"""Draw the packages and their imports as docs/architecture.svg.

python docs/architecture.py [--check]

An arrow leads from a package to one that it imports, unless it imports that through another package of the drawing.
With --check nothing is written; the exit code is 1 if the committed drawing is out of date.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
DRAWING = ROOT / "docs" / "architecture.svg"
DARK = (
    '<style>@media (prefers-color-scheme: dark) { text { fill: #e6e8ea } [fill="#fff"] { fill: #1d2024 } '
    '[fill="#fff3e0"] { fill: #5c4a1f } [fill="#eceff1"] { fill: #3a4047 } text[fill="#455a64"] { fill: #a0a8b1 } '
    "}</style>"
)
"""Colors on a dark page."""
PLUMBING = ("classes", "errors", "image_ids", "tables", "vocabulary")
"""Modules that share the box of the package `plumbing`."""
SUBJECTS = {
    "cli": "the commands", "loading": "cleanset.load, cleanset.table", "status": "an edition and its pins",
    "documentation": "its pages in the terminal",
    "planning": "the work before the start",
    "stages": "one module for each DVC stage",
    "api": "the functions of Python",
    "evaluation": "any model on any set", "report": "the static report", "sets": "finished sets, releases, fetch",
    "review": "verdicts, queue, audit, page", "scoring": "models, weights, scores", "edition": "params, paths, doctor",
    "dataset": "ILSVRC2012, your own images", "selection": "the rules of selection", "web": "the local server",
    "images": "boxes, codecs, preprocessing",
    "tutorial": "its notebook and photographs", "statistics": "intervals, tests, seeds",
    "plumbing": "files, tables, YAML, messages", "robustness": "corrupted and changed images",
    "attacks": "adversarial examples", "contest": "abstaining defences", "training": "robust training",
    "plans": "the plan of any folder", "plan_commands": "the plan of a command",
    "realness": "how real images look", "reproduce": "printed numbers of papers",
}  # fmt: skip
"""A few words for each box. A package without an entry is an error."""
BOX = (186, 46)
GAP = 22
ROW = 92


def box_of(module: str) -> str | None:
    """The box of a module: its package, within studies/ the study; None for the package itself, and for `python -m`."""
    parts = module.split(".")[1:]
    if parts in ([], ["studies"], ["__main__"]):
        return None
    name = parts[1] if parts[0] == "studies" else parts[0]
    return "plumbing" if name in PLUMBING else name


def imported(path: Path) -> Iterator[str]:
    """The modules of cleanset that a file imports anywhere, within functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def package_imports(source: Path) -> dict[str, set[str]]:
    """The boxes that each box imports."""
    found: dict[str, set[str]] = {}
    for path in sorted(source.rglob("*.py")):
        box = box_of(".".join(path.relative_to(source.parent).with_suffix("").parts).removesuffix(".__init__"))
        if box is None:
            continue
        others = {box_of(name) for name in imported(path) if name.startswith("cleanset.")}
        found.setdefault(box, set()).update(other for other in others if other and other != box)
    return {box: {other for other in others if other in found} for box, others in found.items()}


def reachable(box: str, arrows: Mapping[str, set[str]]) -> set[str]:
    """All boxes below a box."""
    return arrows[box].union(*(reachable(other, arrows) for other in arrows[box]))


def direct(arrows: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The arrows without those that a longer way implies."""
    return {
        box: {each for each in others if not any(each in reachable(other, arrows) for other in others)}
        for box, others in arrows.items()
    }


def rows_of(arrows: Mapping[str, set[str]]) -> dict[str, int]:
    """The row of each box, counted from the bottom: one above the highest box that it imports."""
    rows: dict[str, int] = {}
    while len(rows) < len(arrows):
        found = {box for box, others in arrows.items() if box not in rows and others <= rows.keys()}
        if not found:
            sys.exit(f"packages import each other: {', '.join(sorted(arrows.keys() - rows.keys()))}")
        rows |= {box: 1 + max((rows[other] for other in arrows[box]), default=-1) for box in found}
    return rows


def routes(arrows: Mapping[str, set[str]], rows: Mapping[str, int]) -> list[list[str]]:
    """Each arrow as the places that it passes: a box, a free place in each row between, and a box."""
    return [
        [box, *(f"{box}>{other}@{row}" for row in range(rows[box] - 1, rows[other], -1)), other]
        for box in sorted(arrows)
        for other in sorted(arrows[box])
    ]


def positions(ways: Sequence[Sequence[str]], rows: Mapping[str, int]) -> dict[str, tuple[float, int]]:
    """The centre of each place in x, and its row; places are ordered so that arrows cross seldom."""
    row_of = dict(rows) | {place: rows[way[0]] - step for way in ways for step, place in enumerate(way)}
    neighbors = defaultdict[str, list[str]](list)
    for way in ways:
        for upper, lower in pairwise(way):
            neighbors[upper].append(lower)
            neighbors[lower].append(upper)
    levels = [sorted(place for place in row_of if row_of[place] == row) for row in range(max(row_of.values()) + 1)]
    for sweep in range(24):
        order = range(1, len(levels)) if sweep % 2 == 0 else range(len(levels) - 2, -1, -1)
        for row in order:
            beside = levels[row - 1 if sweep % 2 == 0 else row + 1]
            rank = {place: (index + 0.5) / len(beside) for index, place in enumerate(beside)}

            def mean(place: str, rank: Mapping[str, float] = rank) -> float:
                known = [rank[each] for each in neighbors[place] if each in rank]
                return sum(known) / len(known) if known else 0.5

            levels[row].sort(key=lambda place: (mean(place), place))
    widths = {place: BOX[0] if place in rows else 8 for place in row_of}
    total = max(sum(widths[place] + GAP for place in level) for level in levels)
    found = {}
    for row, level in enumerate(levels):
        space = (total - sum(widths[place] for place in level)) / len(level)
        x = space / 2
        for place in level:
            found[place] = (x + widths[place] / 2, row)
            x += widths[place] + space
    return found


def svg(arrows: Mapping[str, set[str]]) -> str:
    """The drawing."""
    rows = rows_of(arrows)
    ways = routes(direct(arrows), rows)
    places = positions(ways, rows)
    height = (max(rows.values()) + 1) * ROW + 20
    width = max(x for x, _ in places.values()) + BOX[0] / 2 + GAP

    def y(row: int) -> float:
        return height - 20 - row * ROW - BOX[1] / 2

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" font-family="sans-serif">',
        "<title>The packages of cleanset and their imports</title>",
        DARK,
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#607d8b"/></marker></defs>',
        f'<rect width="{width:.0f}" height="{height}" fill="#fff"/>',
    ]
    for way in ways:
        points = []
        for step, place in enumerate(way):
            x, row = places[place]
            if step:
                points.append(f"{x:.0f} {y(row) - BOX[1] / 2 - 2:.0f}")
            if step < len(way) - 1:
                points.append(f"{x:.0f} {y(row) + BOX[1] / 2:.0f}")
        path = "M" + " L".join(points)
        lines.append(f'<path d="{path}" fill="none" stroke="#607d8b" marker-end="url(#end)"/>')
    for box in sorted(arrows):
        x, row = places[box]
        name = {"cli": "cli.py", "loading": "loading.py"}.get(box, box)
        fill = "#fff3e0" if (ROOT / "src/cleanset/studies" / box).is_dir() else "#eceff1"
        lines += [
            f'<rect x="{x - BOX[0] / 2:.0f}" y="{y(row) - BOX[1] / 2:.0f}" width="{BOX[0]}" height="{BOX[1]}" rx="5" '
            f'fill="{fill}" stroke="#90a4ae"/>',
            f'<text x="{x:.0f}" y="{y(row) - 3:.0f}" text-anchor="middle" font-size="15" font-weight="bold">'
            f"{escape(name)}</text>",
            f'<text x="{x:.0f}" y="{y(row) + 15:.0f}" text-anchor="middle" font-size="11" fill="#455a64">'
            f"{escape(SUBJECTS[box])}</text>",
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write the drawing, or compare it with the code."""
    drawing = svg(package_imports(ROOT / "src" / "cleanset"))
    if "--check" not in arguments:
        DRAWING.write_text(drawing, encoding="utf-8")
    elif not DRAWING.is_file() or DRAWING.read_text(encoding="utf-8") != drawing:
        print(f"{DRAWING.relative_to(ROOT)}: out of date; run python docs/architecture.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
