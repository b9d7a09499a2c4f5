"""The server: binds, prints its address, opens the browser, serves page and pictures until Ctrl+C."""

import asyncio
import secrets
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from nicegui import ui
from starlette.staticfiles import StaticFiles

from cleanset.edition import Edition
from cleanset.errors import CleansetError
from cleanset.ilsvrc import wnids
from cleanset.review.folder import review_file, reviewer_folders
from cleanset.reviewer import page, pictures
from cleanset.reviewer.crop_scores import CropScores
from cleanset.reviewer.guard import Guard, is_loopback, own_hosts
from cleanset.reviewer.library import Library, open_library
from cleanset.reviewer.room import Room
from cleanset.reviewer.said import Said
from cleanset.reviewer.signs import Signs

STATIC = Path(__file__).parent / "static"
RESCAN = 5.0
"""Seconds. How often all review files are looked at, for the progress over all classes."""

AT_ONCE = 25
"""Classes."""

PATIENCE = 60.0
"""Seconds. How long tab and server wait for each other: keys pressed before a connection is given up are lost."""


def run(edition: Edition, reviewer: str, host: str, port: int, browser: bool) -> None:
    """Serve the review page of an edition to one reviewer."""
    bound = _bind(host, port)
    port = bound.getsockname()[1]
    token = None if is_loopback(host) else secrets.token_urlsafe(24)
    library = open_library(edition)
    room = enter(edition, library, reviewer)
    shown = "localhost" if host in ("0.0.0.0", "::") else host
    address = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/{f'?token={token}' if token else ''}"
    hosts = None if host in ("0.0.0.0", "::") else own_hosts(host, port)
    config = uvicorn.Config(
        Guard(application(room), hosts, token), log_level="warning", access_log=False, timeout_graceful_shutdown=1
    )
    server = _Server(config, address, browser)
    with suppress(KeyboardInterrupt):
        server.run(sockets=[bound])


def enter(edition: Edition, library: Library, reviewer: str) -> Room:
    """The room of one reviewer, with every class looked at. Raises CleansetError for a name that is none."""
    review_file(edition.reviews, reviewer, wnids()[0])
    reviewer_folders(edition.reviews)
    crop_scores = CropScores(edition, list(library.params.models))
    said = Said(edition.reviews, reviewer, library.index)
    room = Room(library, said, reviewer, crop_scores, Signs(library.photos.read))
    room.look()
    return room


def application(room: Room) -> FastAPI:
    """Page, pictures and static files."""
    lock = asyncio.Lock()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(_rescan(room, lock))
        yield
        task.cancel()
        room.signs.close()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    pictures.serve(app, room.library)
    app.mount("/static", StaticFiles(directory=STATIC))
    page.build(room, lock)
    ui.run_with(
        app, title="cleanset review", favicon="🔍", show_welcome_message=False, tailwind=False,
        binding_refresh_interval=None, gzip_middleware_factory=None, reconnect_timeout=PATIENCE,
    )  # fmt: skip
    return app


async def _rescan(room: Room, lock: asyncio.Lock) -> None:
    """Few classes at a time, so that no key waits for it."""
    classes = list(room.library.classes)
    while True:
        for start in range(0, len(classes), AT_ONCE):
            some = classes[start : start + AT_ONCE]
            await asyncio.sleep(RESCAN * len(some) / len(classes))
            with suppress(CleansetError, OSError):  # a table that is being written: looked at again soon
                async with lock:
                    await asyncio.to_thread(room.look, some)


def _bind(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise CleansetError(
            f"{host}:{port}: {error.strerror}; expected an address of this machine and a free port: "
            "leave out --port to get one"
        ) from None


class _Server(uvicorn.Server):
    """Says where it is as soon as it answers."""

    def __init__(self, config: uvicorn.Config, address: str, browser: bool) -> None:
        super().__init__(config)
        self._address, self._browser = address, browser

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print(f"Review page: {self._address}  (Ctrl+C ends it; every verdict is on disk)", flush=True)
        if self._browser:
            threading.Thread(target=webbrowser.open, args=[self._address], daemon=True).start()
