"""The HTML of a judge's tab, rendered from templates in which everything is escaped."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from cleanset.errors import CleansetError
from cleanset.studies.contest.judge_page.session import JudgeSession
from cleanset.studies.contest.judge_page.tab import JudgeTab
from cleanset.studies.contest.judging import CONTAINS
from cleanset.studies.contest.outlines import Point

WORDS = {
    "definitely_yes": ("Definitely yes", "and no other judge will say no"),
    "rather_yes": ("Rather yes", "I am not sure"),
    "rather_no": ("Rather no", "I am not sure"),
    "definitely_no": ("Definitely no", "and no other judge will say yes"),
}
"""The answers in the words of the page, each with its claim."""


def url_of(session: JudgeSession, sha256: str) -> str:
    """The address of an image, which reveals nothing about it."""
    return f"/image/{session.tokens[sha256]}"


def render(tab: JudgeTab) -> str:
    """The HTML of the page."""
    content: dict[str, Any] = {
        "tab": tab,
        "session": tab.session,
        "groups": tab.session.groups,
        "words": WORDS,
        "answers": [(str(number), *WORDS[name]) for number, name in enumerate(CONTAINS, start=1)],
        "url_of": lambda sha256: url_of(tab.session, sha256),
        "path": _path,
        "done": sum(task.sha256 in tab.session.answers for task in tab.session.tasks),
        "all": len(tab.session.tasks),
        "ahead": _ahead(tab.session),
    }
    template = f"{tab.mode}.html"
    if tab.mode == "instructions":
        content["sizes"] = {each: tab.session.size(each) for each in tab.session.examples}
    if tab.mode == "image":
        content |= _of_image(tab)
    return _templates().get_template(template).render(content)


def _of_image(tab: JudgeTab) -> dict[str, Any]:
    task, session = tab.task, tab.session
    assert task is not None
    draft = session.draft_of(task)
    try:
        width, height = session.size(task.sha256)
        fault = False
    except (CleansetError, OSError):
        width, height, fault = 1, 1, True
    step = draft.step(session.groups)
    return {
        "draft": draft, "step": step, "width": width, "height": height, "fault": fault, "side": task.side,
        "token": session.tokens[task.sha256], "object": draft.object_of(session.groups),
    }  # fmt: skip


def _path(corners: Sequence[Point], closed: bool) -> str:
    """The corners as the commands of an SVG path."""
    return "M" + "L".join(f"{x} {y}" for x, y in corners) + ("Z" if closed else "")


def _ahead(session: JudgeSession) -> str:
    """The addresses of the next images, for the browser to load in advance."""
    current = session.current()
    left = [task.sha256 for task in session.tasks if task.sha256 not in session.answers and task != current]
    return " ".join(url_of(session, each) for each in left[:3])


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("cleanset.studies.contest.judge_page"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    templates.filters["words"] = lambda name: name.replace("_", " ").replace("-", " ")
    return templates
