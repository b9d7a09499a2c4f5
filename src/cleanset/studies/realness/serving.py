"""`cleanset study serve`: the web server of a plan's page, with its images, visits and answers (see study_server)."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from fastapi import FastAPI
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.staticfiles import StaticFiles

from cleanset.errors import system_error
from cleanset.plumbing.validation import first_problem
from cleanset.studies.realness.plan import page_data
from cleanset.studies.realness.plan_files import PAGE_IMAGES
from cleanset.studies.realness.planning import STATIC, static_file
from cleanset.studies.realness.study_server import ANSWERS_FOLDER, GivenAnswer, PageVisit, ServeSettings, StudyServer
from cleanset.web.pages import FRESH, PageAddress, new_application, run_page

# ten times what the longest answer takes
MAX_BODY_BYTES = 4_000


def serve_study(plan: Path, at: PageAddress, settings: ServeSettings) -> None:
    """Serve a plan's page until Ctrl+C."""
    server = StudyServer(plan, settings)
    found = f"{server.complete} of {server.wanted} people complete"
    announcement = f"Study, {found}: {{}}  (Ctrl+C ends it; answers are saved in {plan / ANSWERS_FOLDER})"
    run_page(
        lambda: application(server),
        announcement,
        folder=plan,
        name="study",
        # people whom a recruiting service sends have no token
        people={"study": ""} if at.public_url is None else None,
        at=at,
        command="cleanset study",
    )


Sent = TypeVar("Sent", bound=BaseModel)


async def _reply(request: Request, kind: type[Sent], answer: Callable[[Sent], object]) -> Response:
    body = b""
    try:
        # in parts: request.body() would take one of any size into memory
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY_BYTES:
                return PlainTextResponse(f"over {MAX_BODY_BYTES:,} bytes\n", 413)
    except ClientDisconnect:
        # a telephone out of reach; its page asks again
        return Response(status_code=400)
    try:
        return JSONResponse(await run_in_threadpool(answer, kind.model_validate_json(body)), headers=FRESH)
    except ValidationError as error:
        return PlainTextResponse(f"{first_problem(error)}\n", 422)
    except ValueError as error:
        return PlainTextResponse(f"{error}\n", 409)
    except OSError as error:
        print(f"error: {system_error(error)}", file=sys.stderr, flush=True)
        return PlainTextResponse("not saved\n", 503)


def application(server: StudyServer) -> FastAPI:
    """The page, its images, and the two requests that it makes: nothing else in the plan's folder is served."""
    app = new_application()
    found = server.files
    data = page_data(server.texts, found.layout, found.protocol, found.examples, found.shown_milliseconds)
    data |= {"study": server.study_id, "parameter": server.settings.id_parameter or "person"}

    @app.post("/visit")
    async def visit(request: Request) -> Response:
        return await _reply(request, PageVisit, server.visit)

    @app.post("/answer")
    async def answer(request: Request) -> Response:
        return await _reply(request, GivenAnswer, server.save)

    @app.get("/lists.js")
    def lists() -> Response:
        return Response(f"const STUDY = {json.dumps(data)};\n", media_type="text/javascript", headers=FRESH)

    @app.get("/")
    def index() -> Response:
        return Response(static_file("index.html"), media_type="text/html", headers=FRESH)

    app.mount("/images", StaticFiles(directory=server.plan / PAGE_IMAGES))

    @app.get("/{name}")
    def static(name: str) -> Response:
        if name not in STATIC:
            return PlainTextResponse("not found\n", 404)
        kind = {"css": "text/css", "js": "text/javascript"}.get(name.rpartition(".")[2], "text/plain")
        return Response(static_file(name), media_type=kind)

    return app
