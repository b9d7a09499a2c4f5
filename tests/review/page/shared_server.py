"""One server of the review page for many tests: to start one, and to measure its images, takes longer than most tests.

As a script, this is the server: it prints a port for each of REVIEWERS, and serves the edition that `/edition` named
last. Each test has an edition of its own; images, their hints and what is read of the tables stay.
"""

import asyncio
import os
import subprocess
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Lock

import uvicorn
from fastapi import FastAPI, Request
from nicegui import core
from starlette.responses import PlainTextResponse

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.review.hints.background import BackgroundHints
from cleanset.review.page import server
from cleanset.review.page.library import Library, open_library
from cleanset.review.page.session import Session
from cleanset.web import pages
from tests.browser_tab import SOURCE, Server
from tests.forked_commands import PYTHON, forking

REVIEWERS = ("ada", "ben", "board")
ROOT = Path(__file__).resolve().parents[3]


class Shared:
    """The session of each reviewer with the edition of the test that runs."""

    def __init__(self, names: dict[int, str]) -> None:
        self._names, self._lock, self.loop = names, Lock(), asyncio.new_event_loop()
        self._folder, self._sessions = Path(), dict[str, Session]()
        self._libraries, self._hints = dict[str, Library](), list[BackgroundHints]()
        self.of_page = asyncio.Lock()
        self._rescans: list[asyncio.Task[None]] = []

    def change_edition(self, folder: str) -> None:
        self._folder, self._sessions = Path(folder), {}
        core.sio.eio.ping_timeout = 600  # the clocks of tabs, which tests set forward, run ahead of the pings
        for task in self._rescans:
            task.cancel()
        self._rescans = []

    def session_of(self, request: Request) -> Session:
        with self._lock:
            name = self._names[request.scope["server"][1]]
            if name not in self._sessions:
                self._sessions[name] = self._open(name)
            return self._sessions[name]

    def _open(self, name: str) -> Session:
        edition, params = Edition(self._folder), (self._folder / "params.yaml").read_text()
        library = self._libraries.setdefault(params, open_library(edition))
        self._hints = self._hints or [BackgroundHints(library.photos.read, imagenet())]
        session = server.open_session(edition, library, name, hints=self._hints[0])
        rescan = server._rescan(session, self.of_page)
        self.loop.call_soon_threadsafe(lambda: self._rescans.append(self.loop.create_task(rescan)))
        return session


def main() -> None:
    sockets = [pages.bind("127.0.0.1", 0) for _ in REVIEWERS]
    ports = [bound.getsockname()[1] for bound in sockets]
    shared = Shared(dict(zip(ports, REVIEWERS, strict=True)))
    pages.RECONNECT_SECONDS = 2.0  # else the tabs of tests that are over would be drawn for a minute

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        shared.loop = asyncio.get_running_loop()
        yield

    app = pages.new_application(lifespan=lifespan)

    @app.get("/edition")
    async def change(folder: str) -> PlainTextResponse:
        shared.change_edition(folder)
        return PlainTextResponse("")

    server.serve_images(app, shared.session_of)
    server.build(shared.session_of, shared.of_page)
    pages.serve_page(app, server.STATIC, "cleanset review")
    print(*ports, flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=sockets)


class SharedPage(Server):
    """The page of one reviewer on the shared server."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}/"

    def kill(self) -> None:
        """Nothing: other tests continue with it."""


class SharedServer:
    """The server as a process of its own."""

    def __init__(self, errors: Path) -> None:
        environment = os.environ | forking(SOURCE) | {"PYTHONPATH": f"{ROOT}{os.pathsep}{SOURCE}"}
        with errors.open("w") as file:
            self._process = subprocess.Popen(
                [PYTHON, __file__], cwd=ROOT, stdout=subprocess.PIPE, stderr=file, text=True, env=environment
            )
        assert self._process.stdout is not None
        ports = self._process.stdout.readline().split()
        assert len(ports) == len(REVIEWERS), errors.read_text()
        self._pages = {name: SharedPage(int(port)) for name, port in zip(REVIEWERS, ports, strict=True)}

    def page(self, reviewer: str, edition: Path | None) -> SharedPage:
        """The page of a reviewer; `edition`: for a test that begins, its edition."""
        page = self._pages[reviewer]
        if edition is not None:
            urllib.request.urlopen(f"{page.address}edition?folder={edition}", timeout=60).read()
        return page

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


if __name__ == "__main__":
    main()
