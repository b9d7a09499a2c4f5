"""The judge page as a server."""

import asyncio
import datetime
from pathlib import Path

from fastapi import FastAPI

from cleanset.studies.contest.judge_page import page
from cleanset.studies.contest.judge_page.session import JudgeSession, open_session
from cleanset.web.pages import run_page, serve_page, usual_port

STATIC = Path(__file__).parent / "static"


def run(contest: Path, judge: str, on: datetime.date, host: str, port: int | None, browser: bool) -> None:
    """Serve the judge page of a contest to one judge; `port` None is the usual one, 0 any free one."""
    session = open_session(contest, judge, on)
    announcement = "Judge page: {}  (Ctrl+C ends it; every answer is on disk)"
    usual = usual_port(contest, judge)
    run_page(lambda: application(session), announcement, host, port, usual, browser, "cleanset contest judge")


def application(session: JudgeSession) -> FastAPI:
    """Page, images and static files."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    page.serve_images(app, session)
    page.build(session, asyncio.Lock())
    serve_page(app, STATIC, "Judging images")
    return app
