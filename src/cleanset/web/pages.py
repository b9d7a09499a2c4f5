"""A local page as a server: what is shown is given to it; binding, guard, announcement and NiceGUI are the same."""

import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from zlib import crc32

import uvicorn
from fastapi import FastAPI
from nicegui import ui
from starlette.staticfiles import StaticFiles

from cleanset.web.guard import Guard, is_loopback, own_hosts
from cleanset.web.serving import ANY_HOST, AnnouncingServer, address, bind, bind_usual

STATIC = Path(__file__).parent / "static"

RECONNECT_SECONDS = 60.0
"""How long tab and server wait for each other before the tab is loaded anew."""

MAX_RESENT_MESSAGES = 200
"""Kept for each tab in case its connection breaks: some 30 KB each."""

FIRST_PORT, PORTS = 20_000, 10_000
"""The usual ports lie here, below those that systems hand out."""


def usual_port(folder: Path, name: str) -> int:
    """The port that is always the same for this folder and name: a tab left open finds its own server again."""
    return FIRST_PORT + crc32(f"{folder.resolve()} {name}".encode()) % PORTS


def run_page(
    application: Callable[[], FastAPI],
    announcement: str,
    host: str,
    port: int | None,
    usual: int,
    browser: bool,
    command: str = "cleanset review",
) -> None:
    """Serve the application, made once the port is bound, until Ctrl+C; `port` None is `usual`, 0 any free one.

    `announcement`: what is printed, with the address in place of `{}`; `command`: what a refusal says started it.
    """
    bound = bind_usual(host, usual) if port is None else bind(host, port)
    port = bound.getsockname()[1]
    token = None if is_loopback(host) else secrets.token_urlsafe(24)
    hosts = None if host in ANY_HOST else own_hosts(host, port)
    guarded = Guard(application(), hosts, token, command)
    config = uvicorn.Config(guarded, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
    here = address("localhost" if host in ANY_HOST else host, port, token)
    server = AnnouncingServer(config, announcement.format(address(host, port, token)), here if browser else None)
    with suppress(KeyboardInterrupt):
        server.run(sockets=[bound])


def serve_page(app: FastAPI, static: Path, title: str) -> None:
    """Let an application serve the pages that were built with NiceGUI, their static files and those of all pages."""
    app.mount("/static", StaticFiles(directory=static))
    app.mount("/web", StaticFiles(directory=STATIC))
    ui.run_with(
        app, title=title, favicon="🔍", language="en-US", show_welcome_message=False, tailwind=False,
        binding_refresh_interval=None, gzip_middleware_factory=None, reconnect_timeout=RECONNECT_SECONDS,
        message_history_length=MAX_RESENT_MESSAGES,
    )  # fmt: skip
