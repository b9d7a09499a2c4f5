"""Binding a local page's server to an address, and telling people where it is."""

import socket
import threading
import webbrowser

import uvicorn

from cleanset.errors import CleansetError

ANY_HOST = ("0.0.0.0", "::")
_ELSEWHERE = ("192.0.2.1", "2001:db8::1")
"""Addresses for documentation, by which the system tells which of its own it would send from; nothing is sent."""


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
    """A socket on the usual port, so that a page left open finds its server again; if it is taken, on any free one."""
    try:
        return bind(host, port)
    except CleansetError:
        return bind(host, 0)


def address(host: str, port: int, token: str | None = None) -> str:
    """The address to open; for a server on all of a machine's addresses, the one by which others reach it."""
    name = _outward(host) if host in ANY_HOST else host
    return f"http://{f'[{name}]' if ':' in name else name}:{port}/{f'?token={token}' if token else ''}"


def _outward(host: str) -> str:
    """This machine's address towards others; its name, where it has no route to them."""
    is_six = ":" in host
    with socket.socket(socket.AF_INET6 if is_six else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((_ELSEWHERE[is_six], 9))
            return str(probe.getsockname()[0])
        except OSError:
            return socket.gethostname()


class AnnouncingServer(uvicorn.Server):
    """Prints a line, and opens the browser if asked to, as soon as it answers."""

    def __init__(self, config: uvicorn.Config, announcement: str, open_in_browser: str | None) -> None:
        super().__init__(config)
        self._announcement, self._open_in_browser = announcement, open_in_browser

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then tell."""
        await super().startup(sockets)
        print(self._announcement, flush=True)
        if self._open_in_browser:
            threading.Thread(target=webbrowser.open, args=[self._open_in_browser], daemon=True).start()
