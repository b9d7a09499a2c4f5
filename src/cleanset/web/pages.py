"""Serving a local page: address and usual port, guard, announcement, NiceGUI; tabs and their keys (sent by view.js)."""

import asyncio
import socket
import threading
import webbrowser
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit
from zlib import crc32

import uvicorn
from fastapi import FastAPI
from jinja2 import Environment, PackageLoader, StrictUndefined
from nicegui import events, ui
from pydantic import ValidationError
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from cleanset.errors import CleansetError
from cleanset.statistics.formats import FILTERS
from cleanset.web.guard import Guard, is_loopback, own_hosts, public_origin
from cleanset.web.keys import SentKey
from cleanset.web.tokens import drawn_tokens, opening_file, page_tokens

STATIC = Path(__file__).parent / "static"

RECONNECT_SECONDS = 60.0
"""Time that tab and server wait for each other before the tab is reloaded."""

MAX_RESENT_MESSAGES = 200
"""Messages kept for each tab in case its connection breaks, some 30 KB each."""

FIRST_PORT = 20_000
PORTS = 10_000
"""Range of the usual ports, below the ephemeral ports of operating systems."""

HALF_OPEN_TICKS = 200
"""Tenths of a second after which a connection is closed whose request has not come, or not come to its end."""

ANY_HOST = ("0.0.0.0", "::")
_ELSEWHERE = ("192.0.2.1", "2001:db8::1")
"""Documentation addresses (RFC 5737, 3849), to ask the system for its outward address; nothing is sent."""


# the address of an image changes with its bytes or with the server, so that no browser has to ask again
KEPT = {"Cache-Control": "private, max-age=86400, immutable"}
FRESH = {"Cache-Control": "no-store"}


@dataclass(frozen=True, slots=True)
class PageAddress:
    """The address at which a page is served, and how people reach it.

    `port`: None for its usual one, 0 for any free one. `browser`: whether the page is opened there. `public_url`: the
    page's address at a reverse proxy or a forwarded port.
    """

    host: str
    port: int | None
    browser: bool
    public_url: str | None


def usual_port(folder: Path, name: str) -> int:
    """The same port for the same folder and name every time, so that a tab left open finds its server again."""
    # not hash(), which gives another number in every process
    return FIRST_PORT + crc32(f"{folder.resolve()} {name}".encode()) % PORTS


def run_page(
    application: Callable[[], FastAPI],
    announcement: str,
    *,
    folder: Path,
    name: str,
    people: Mapping[str, str] | None,
    at: PageAddress,
    command: str = "cleanset review",
) -> None:
    """Serve an application, created once the port is bound, until Ctrl+C.

    `announcement`: the line printed, with the address in place of `{}`; `command`: the command named in refusals.
    `folder`, `name`: what is served, for `usual_port`. `people`: the token of each by name; an empty one is made. Each
    has an address; with several, each has a line, and no browser is opened. None: the page is everybody's.
    """
    host = at.host
    public = None if at.public_url is None else public_origin(at.public_url)
    bound = bind_usual(host, usual_port(folder, name)) if at.port is None else bind(host, at.port)
    port = bound.getsockname()[1]
    is_local = is_loopback(host if public is None else urlsplit(public).hostname or "")
    tokens = None if people is None else _tokens_of(people, folder, command, is_local)
    # on all addresses a server cannot know by which name it is reached; there the token protects it
    hosts = None if host in ANY_HOST and public is None else own_hosts(host, port)
    guarded = Guard(application(), hosts, tokens, command=command, public=public)
    # open tabs keep their connections: without a limit Ctrl+C would wait for them
    config = uvicorn.Config(guarded, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
    site = address(host, port) if public is None else f"{public}/"
    links = {person: f"{person}/?token={token}" for person, token in (tokens or {}).items()} or {"": ""}
    told = site + next(iter(links.values()))
    if len(links) > 1:
        told = "\n".join(f"{person}: {site}{link}" for person, link in links.items())
    here = address("localhost" if host in ANY_HOST else host, port) + next(iter(links.values()))
    server = AnnouncingServer(config, announcement.format(told), here if at.browser and len(links) == 1 else None)
    with suppress(KeyboardInterrupt):
        server.run(sockets=[bound])


def _tokens_of(people: Mapping[str, str], folder: Path, kind: str, is_local: bool) -> dict[str, str]:
    """The token of each by name, made where it is empty."""
    missing = [person for person, token in people.items() if not token]
    if not missing:
        return dict(people)
    # off this machine it goes over the network in the clear: a restart makes it invalid
    return {**people, **(page_tokens(folder, kind, missing) if is_local else drawn_tokens(missing))}


def new_application(**options: Any) -> FastAPI:
    """An application without pages about itself."""
    return FastAPI(docs_url=None, redoc_url=None, openapi_url=None, **options)


def image_response(data: bytes, headers: dict[str, str]) -> Response:
    """An image of `Photos`, PNG or JPEG."""
    return Response(data, media_type="image/png" if data.startswith(b"\x89PNG") else "image/jpeg", headers=headers)


def html_templates(package: str) -> Environment:
    """The templates of a package, with everything escaped, and names written as words."""
    templates = Environment(
        loader=PackageLoader(package), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    templates.filters |= FILTERS
    templates.filters["words"] = lambda name: name.replace("_", " ")
    return templates


class KeyedTab(ABC):
    """The elements in a browser that show one tab, and the keys that come from there.

    `tab`: counts the keys answered in its attribute `pressed`. `lock` is held while the state behind it is used.
    `SENT`: the kind of key; anything else is ignored.
    """

    SENT: ClassVar[type[SentKey]] = SentKey

    def __init__(self, tab: Any, lock: asyncio.Lock) -> None:
        self._tab = tab
        self._lock = lock
        # not sanitized here, because the templates escape everything
        self._parts = {name: ui.html(html, sanitize=False).classes(name) for name, html in self.render().items()}
        ui.on("key", self._answer)

    @abstractmethod
    def render(self) -> dict[str, str]:
        """The HTML of each part of the tab, by the name of its element."""

    def press(self, sent: Any) -> None:
        """Carry out a key of the kind SENT."""
        self._tab.press(sent)

    def show(self, parts: dict[str, str]) -> None:
        """Show the tab as rendered."""
        for name, html in parts.items():
            self._parts[name].set_content(html)

    async def do(self, what: Callable[[], None]) -> None:
        """Run one action after another, outside of the event loop: writing waits for the disk, images must not."""

        def done() -> dict[str, str]:
            what()
            return self.render()

        async with self._lock:
            self.show(await asyncio.to_thread(done))

    async def _answer(self, event: events.GenericEventArguments) -> None:
        """Answer a key once, however often it arrives: the browser sends it again until it is answered."""
        try:
            sent = self.SENT.model_validate(event.args)
        except ValidationError:
            return

        def once() -> None:
            if sent.number > self._tab.pressed:
                self.press(sent)
                self._tab.pressed = sent.number

        await self.do(once)


class _Code(StaticFiles):
    """Files that a browser keeps; it asks whether they have changed, since another version may be installed."""

    def file_response(self, *args: Any, **options: Any) -> Response:
        response = super().file_response(*args, **options)
        response.headers["Cache-Control"] = "no-cache"
        return response


def serve_page(app: FastAPI, static: Path, title: str) -> None:
    """Let an application serve the pages that were built with NiceGUI, their static files and the common ones."""
    app.mount("/static", GZipMiddleware(_Code(directory=static)))
    app.mount("/web", GZipMiddleware(_Code(directory=STATIC)))
    # not the sign alone, which NiceGUI takes for the name of a file in the current folder
    # no refresh of bindings: the pages use none, and NiceGUI would look through them ten times a second
    ui.run_with(
        app, title=title, favicon=STATIC / "favicon.svg", language="en-US", show_welcome_message=False, tailwind=False,
        binding_refresh_interval=None, reconnect_timeout=RECONNECT_SECONDS,
        message_history_length=MAX_RESENT_MESSAGES,
    )  # fmt: skip


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there; `port` 0 is any free one. Raises CleansetError if it cannot."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise CleansetError(
            f"{host}:{port}: {error.strerror}; expected an address of this machine and a free port: "
            "leave out --port to get one"
        ) from None


def bind_usual(host: str, port: int) -> socket.socket:
    """A socket on the usual port, so that a page left open finds its server again; if that is taken, on a free one."""
    try:
        return bind(host, port)
    except CleansetError:
        return bind(host, 0)


def address(host: str, port: int) -> str:
    """The address to open; for a server on all of a machine's addresses, the one that others can reach."""
    name = _outward(host) if host in ANY_HOST else host
    return f"http://{f'[{name}]' if ':' in name else name}:{port}/"


def _outward(host: str) -> str:
    """This machine's address as others see it; its name if it has no route."""
    is_six = ":" in host
    with socket.socket(socket.AF_INET6 if is_six else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((_ELSEWHERE[is_six], 9))
            return str(probe.getsockname()[0])
        except OSError:
            return socket.gethostname()


class AnnouncingServer(uvicorn.Server):
    """Prints a line, and opens the browser if asked to, as soon as it answers. Closes half-open connections.

    `open_in_browser`: the address to open.
    """

    def __init__(self, config: uvicorn.Config, announcement: str, open_in_browser: str | None) -> None:
        super().__init__(config)
        self._announcement = announcement
        self._open_in_browser = open_in_browser
        self._until_shutdown = ExitStack()
        self._waiting: set[tuple[Any, object]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then print the announcement."""
        await super().startup(sockets)
        print(self._announcement, flush=True)
        if self._open_in_browser:
            # without room for the file, the printed address remains
            with suppress(OSError):
                file = self._until_shutdown.enter_context(opening_file(self._open_in_browser))
                # in a thread, because some browsers return only when they are closed
                threading.Thread(target=webbrowser.open, args=[file.as_uri()], daemon=True).start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Remove the browser's file, and shut down; after a signal, nothing that follows would run."""
        self._until_shutdown.close()
        await super().shutdown(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Close connections that have waited for the same request since the last check; uvicorn alone never would."""
        if counter % HALF_OPEN_TICKS == 0:
            waiting = {(each, each.cycle) for each in list[Any](self.server_state.connections) if _is_half_open(each)}
            for each, _ in waiting & self._waiting:
                each.transport.close()
            self._waiting = waiting
        return await super().on_tick(counter)


def _is_half_open(connection: Any) -> bool:
    """Whether a request is not there, or not to its end. A websocket has none; what is kept alive ends by itself."""
    if not hasattr(connection, "cycle"):
        return False
    cycle = connection.cycle
    is_next_begun = cycle and cycle.response_complete and not connection.timeout_keep_alive_task
    return bool(cycle is None or cycle.more_body or is_next_begun)
