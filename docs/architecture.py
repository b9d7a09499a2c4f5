"""Draw the packages and their imports as docs/architecture.svg.

python docs/architecture.py [--check]

An arrow leads from a package to one that it imports, unless it imports that through another package of the drawing.
With --check nothing is written; the exit code is 1 if the committed drawing is out of date.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import grimp
import networkx
from grandalf.graphs import Edge, Vertex, graph_core
from grandalf.layouts import SugiyamaLayout, VertexViewer

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
SPACE = (22, 46)
"""Pixels between boxes beside each other and below each other."""


def box_of(module: str) -> str | None:
    """The box of a module: its package, within studies/ the study; None for the package itself, and for `python -m`."""
    parts = module.split(".")[1:]
    if parts in ([], ["studies"], ["__main__"]):
        return None
    name = parts[1] if parts[0] == "studies" else parts[0]
    return "plumbing" if name in PLUMBING else name


def package_imports(source: Path) -> networkx.DiGraph:
    """The boxes and the arrows between them, without those that a longer way implies."""
    sys.path.insert(0, str(source.parent))
    modules = grimp.build_graph(source.name, cache_dir=None)
    boxes = {module: box_of(module) or "" for module in sorted(modules.modules)}
    found = networkx.DiGraph()
    found.add_nodes_from(sorted({*boxes.values()} - {""}))
    for module, box in boxes.items():
        others = {boxes[each] for each in modules.find_modules_directly_imported_by(module)}
        found.add_edges_from((box, other) for other in sorted(others - {"", box}) if box)
    for circle in networkx.strongly_connected_components(found):
        if len(circle) > 1:
            sys.exit(f"packages import each other: {', '.join(sorted(circle))}")
    return networkx.transitive_reduction(found)


class Way:
    """The points that an arrow passes, from the middle of a box to that of another."""

    def setpath(self, points: Sequence[tuple[float, float]]) -> None:
        """Keep the points; the layout calls this."""
        self.points = points


def placed(arrows: networkx.DiGraph) -> tuple[list[Vertex], list[Edge]]:
    """The boxes and the arrows with their places: an arrow leads down, and passes every row between its boxes."""
    vertices = {box: Vertex(box) for box in sorted(arrows)}
    for vertex in vertices.values():
        vertex.view = VertexViewer(*BOX)
    edges = [Edge(vertices[box], vertices[other]) for box, other in sorted(arrows.edges)]
    for edge in edges:
        edge.view = Way()
    # not by grandalf's Graph, which orders the arrows by their addresses in memory
    layout = SugiyamaLayout(graph_core(list(vertices.values()), edges))
    layout.xspace = SPACE[0]
    layout.yspace = SPACE[1]
    layout.init_all()
    layout.draw(24)
    return list(vertices.values()), edges


def svg(arrows: networkx.DiGraph) -> str:
    """The drawing."""
    boxes, edges = placed(arrows)
    left = min(box.view.xy[0] for box in boxes) - BOX[0] / 2 - SPACE[0]
    right = max(box.view.xy[0] for box in boxes) + BOX[0] / 2 + SPACE[0]
    height = max(box.view.xy[1] for box in boxes) + BOX[1] / 2 + SPACE[0]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:.0f} -{SPACE[0]} {right - left:.0f} '
        f'{height + SPACE[0]:.0f}" font-family="sans-serif">',
        "<title>The packages of cleanset and their imports</title>",
        DARK,
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#607d8b"/></marker></defs>',
        f'<rect x="{left:.0f}" y="-{SPACE[0]}" width="100%" height="100%" fill="#fff"/>',
    ]
    for edge in edges:
        # from the lower side of a box, straight through the rows between, to the upper side of the other
        ends = [f"{x:.0f} {y + side:.0f}" for x, y in edge.view.points for side in (-BOX[1] / 2 - 2, BOX[1] / 2)]
        lines.append(f'<path d="M{" L".join(ends[1:-1])}" fill="none" stroke="#607d8b" marker-end="url(#end)"/>')
    for box in boxes:
        x, y = box.view.xy
        name = {"cli": "cli.py", "loading": "loading.py"}.get(box.data, box.data)
        fill = "#fff3e0" if (ROOT / "src/cleanset/studies" / box.data).is_dir() else "#eceff1"
        lines += [
            f'<rect x="{x - BOX[0] / 2:.0f}" y="{y - BOX[1] / 2:.0f}" width="{BOX[0]}" height="{BOX[1]}" rx="5" '
            f'fill="{fill}" stroke="#90a4ae"/>',
            f'<text x="{x:.0f}" y="{y - 3:.0f}" text-anchor="middle" font-size="15" font-weight="bold">'
            f"{escape(name)}</text>",
            f'<text x="{x:.0f}" y="{y + 15:.0f}" text-anchor="middle" font-size="11" fill="#455a64">'
            f"{escape(SUBJECTS[box.data])}</text>",
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
