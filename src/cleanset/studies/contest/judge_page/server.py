"""The judge page as a server: the HTML of a tab, NiceGUI's element around it, its keys, and the images."""

import asyncio
import datetime
import sys
from functools import cache
from pathlib import Path

from fastapi import FastAPI
from jinja2 import Environment
from nicegui import ui
from starlette.responses import PlainTextResponse, Response

from cleanset.errors import CleansetError
from cleanset.plumbing.file_locks import only_run
from cleanset.plumbing.validation import check_known
from cleanset.studies.contest.judge_page.session import JudgeSession
from cleanset.studies.contest.judge_page.tab import JudgeKey, JudgeTab
from cleanset.studies.contest.log import read
from cleanset.studies.contest.standing import replay
from cleanset.web import MIN_SHOWN_SECONDS, pages

AHEAD = 3
"""Number of images that the browser loads in advance."""


def render(tab: JudgeTab) -> str:
    """The HTML of the page, which the tab shows next."""
    tab.note_shown()
    session = tab.session
    task = tab.task
    draft = None if task is None else session.draft_of(task)
    content: dict[str, object] = {
        "tab": tab,
        "session": session,
        "task": task,
        "draft": draft,
        "size": None if task is None or tab.instructions else session.size(task.sha256),
        "groups": session.groups,
        "done": sum(task.sha256 in session.answers for task in session.tasks),
        "all": len(session.tasks),
        # the next images, for the browser to load in advance
        "ahead": " ".join(f"image/{session.tokens[task.sha256]}" for task in session.waiting()[1 : 1 + AHEAD]),
        "min_shown_seconds": MIN_SHOWN_SECONDS,
    }
    mode = tab.state if tab.state in ("instructions", "end") else "image"
    return _templates().get_template(f"{mode}.html").render(content, mode=mode)


@cache
def _templates() -> Environment:
    return pages.html_templates("cleanset.studies.contest.judge_page")


STATIC = Path(__file__).parent / "static"
_HEAD = """
<link rel="stylesheet" href="static/judge.css">
<script type="module" src="static/judge.js"></script>
"""


class JudgeElements(pages.KeyedTab):
    """The element in a browser that shows one tab and sends its keys."""

    SENT = JudgeKey

    def render(self) -> dict[str, str]:
        """The whole page."""
        return {"judging": render(self._tab)}


def serve_images(app: FastAPI, session: JudgeSession) -> None:
    """Add /image/<token> to an application: encoded again, so that no byte of the file itself is sent."""
    digests = {token: digest for digest, token in session.tokens.items()}

    @app.get("/image/{token}")
    def image(token: str) -> Response:
        if token not in digests:
            return PlainTextResponse("no such image\n", 404)
        try:
            data = session.photos.encoded(digests[token])
        except CleansetError as error:
            # for the terminal alone: a path might show the judge where the image is from
            print(f"error: {error}", file=sys.stderr, flush=True)
            return PlainTextResponse("the image cannot be shown\n", 500, pages.FRESH)
        return pages.image_response(data, pages.KEPT)


def run(folder: Path, judge: str, on: datetime.date, at: pages.PageAddress) -> None:
    """Serve the judge page of a contest to one judge: the images that are published by a day."""
    contest = replay(read(folder), on)
    check_known("judge", judge, sorted(contest.roster))
    # the server has the answers in memory: a second one would write over them
    with only_run(folder / "answers" / judge):
        session = JudgeSession(folder, contest, judge)
        pages.run_page(
            lambda: application(session),
            announcement="Judge page: {}  (Ctrl+C ends it; every answer is saved)",
            folder=folder,
            name=judge,
            people={judge: ""},
            at=at,
            command="cleanset contest judge",
        )


def application(session: JudgeSession) -> FastAPI:
    """Page, images and static files."""
    app = pages.new_application()
    serve_images(app, session)
    # held while the session is used
    lock = asyncio.Lock()

    @ui.page("/", title="Judging images")
    async def page() -> None:
        ui.add_head_html(_HEAD)
        async with lock:
            JudgeElements(JudgeTab(session), lock)

    pages.serve_page(app, STATIC, "Judging images")
    return app
