"""Draw docs/pipeline.svg: what happens in an edition, who does it, and where it is kept.

Run `python docs/pipeline.py` in the root. A line of STEPS is a row of the drawing.
"""

from html import escape
from pathlib import Path
from typing import NamedTuple

PEOPLE, MODELS, TABLES = "#fde7c2", "#cfe3fb", "#e8ecef"
WIDTH = 500
ROW = 62
BOX = 44
TOP = 64
PEOPLE_AT = 12
STEP_AT = 148
FILE_AT = 320
STEP_WIDTH = 156
INK, LINE = "#1f2933", "#7b8794"
DASHED = f'stroke="{LINE}" stroke-dasharray="4 4"'


class Step(NamedTuple):
    """A row: who does it in two lines, what, what it needs (its colour), and the files that keep it in two lines."""

    who: tuple[str, ...]
    what: tuple[str, ...]
    needs: str
    kept: tuple[str, ...]


STEPS = (
    Step(("the curator", "brings images"), ("preprocess",), TABLES, ("data/index.parquet:", "labels, SHA-256")),
    Step(("a GPU helps", "here alone"), ("score",), MODELS, ("data/scores/:", "top-5 of each model")),
    Step(("the rules", "of params.yaml"), ("intersect, select",), TABLES, ("data/candidates/", "")),
    Step(("reviewers", "look at images"), ("the review page",), PEOPLE, ("reviews/: clean, crop,", "reject, unsure")),
    Step(("the board", "decides conflicts"), ("the review page",), PEOPLE, ("reviews/board/", "")),
    Step(("the models again,", "on crops"), ("crops, score_crops",), MODELS, ("data/crop_scores/", "")),
    Step(("the rules", "fill each class"), ("review_apply",), TABLES, ("data/selection/,", "data/rejected/")),
    Step(("", ""), ("export",), TABLES, ("data/export/MODEL/:", "the finished set")),
    Step(("", ""), ("count, report",), TABLES, ("metrics/, report/", "")),
    Step(("the curator", "names a version"), ("cleanset publish",), PEOPLE, ("a release: folder", "and tar, signed")),
    Step(("everybody", ""), ("verify, load,", "evaluate, studies"), MODELS, ("results/", "")),
)
LEGEND = ((12, "people", PEOPLE), (98, "runs models", MODELS), (220, "tables and files", TABLES))
PIPELINE = (0, 8)
"""First and last row of `dvc repro`."""


def text(x: float, y: float, content: str, style: str = "") -> str:
    """A line of text."""
    return f'<text x="{x:g}" y="{y:g}" {style}>{escape(content)}</text>' if content else ""


def lines(x: float, middle: float, content: tuple[str, ...], style: str = "") -> str:
    """Lines of text around a height."""
    found = [each for each in content if each]
    start = middle + 5 - 9 * (len(found) - 1)
    return "".join(text(x, start + 18 * place, each, style) for place, each in enumerate(found))


def drawing() -> str:
    """The drawing as SVG."""
    height = TOP + ROW * len(STEPS) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" font-family="system-ui, sans-serif" font-size="14" fill="{INK}">',
        "<title>The pipeline of an edition, who does what, and where it is kept</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
    ]
    for left, name, colour in LEGEND:
        parts.append(f'<rect x="{left}" y="10" width="14" height="14" rx="3" fill="{colour}"/>')
        parts.append(text(left + 20, 22, name))
    parts.append(f'<rect x="{FILE_AT + 48}" y="10" width="14" height="14" rx="3" fill="none" {DASHED}/>')
    parts.append(text(FILE_AT + 68, 22, "dvc repro"))
    for x, name in ((PEOPLE_AT, "who"), (STEP_AT, "what"), (FILE_AT, "where it is kept")):
        parts.append(text(x, 50, name, 'font-weight="700"'))
    first, last = (TOP + ROW * place for place in PIPELINE)
    edge = STEP_AT - 8
    parts.append(
        f'<rect x="{edge}" y="{first}" width="{STEP_WIDTH + 16}" height="{last + ROW - first - 8}" rx="8" fill="none" '
        f"{DASHED}/>"
    )
    for place, step in enumerate(STEPS):
        top = TOP + ROW * place + 5
        middle = top + BOX / 2
        if place:
            parts.append(f'<path d="M{STEP_AT + STEP_WIDTH / 2:g} {top - 18} v14" stroke="{LINE}" stroke-width="2"/>')
        parts.append(
            f'<rect x="{STEP_AT}" y="{top}" width="{STEP_WIDTH}" height="{BOX}" rx="6" fill="{step.needs}" '
            f'stroke="{LINE}"/>'
        )
        parts.append(lines(STEP_AT + STEP_WIDTH / 2, middle, step.what, 'text-anchor="middle" font-weight="600"'))
        parts.append(lines(PEOPLE_AT, middle, step.who))
        parts.append(lines(FILE_AT + 4, middle, step.kept))
    return "\n".join([*filter(None, parts), "</svg>", ""])


if __name__ == "__main__":
    Path("docs/pipeline.svg").write_text(drawing(), "utf-8")
