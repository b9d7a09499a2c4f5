"""Another user of this machine: what a local page answers them, and which files they can read."""

import http.client
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.browser_tab import Server

NOBODY = 65534
by_root = pytest.mark.skipif(os.geteuid() != 0, reason="the superuser alone can run a program as another user")
HANDSHAKE = {
    "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}  # fmt: skip
SOCKET = "_nicegui_ws/socket.io/?EIO=4&transport=websocket"
ASK = r"""exec 3<>/dev/tcp/127.0.0.1/"$1"; printf '%s' "$2" >&3; read -r _ status _ <&3; echo "$status" """


def as_other_user(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the system; the Python that runs tests may be in a folder of their user's."""
    return subprocess.run(
        command, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", env={"PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def answer_to_other_user(port: int, path: str, headers: dict[str, str] | None = None) -> int:
    """The status of the answer to a request by another user."""
    lines = [f"{name}: {value}\r\n" for name, value in {"Host": f"127.0.0.1:{port}", **(headers or {})}.items()]
    done = as_other_user("bash", "-c", ASK, "bash", str(port), f"GET {path} HTTP/1.1\r\n{''.join(lines)}\r\n")
    assert done.stdout, done.stderr
    return int(done.stdout)


def can_read(path: Path) -> bool:
    """Whether another user can read a file."""
    return as_other_user("cat", str(path)).returncode == 0


def check_refused_to_others(server: Server, *paths: str, socket: bool = True) -> None:
    """Check that a page, its `paths` and its socket are for whoever has opened the link, and refused to other users."""
    person = server.page.removeprefix(f"http://127.0.0.1:{server.port}")
    assert re.fullmatch(r"/\w+/", person), server.address
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    asked = [(person + path, dict[str, str]()) for path in ("", *paths)]
    if socket:
        asked.append((person + SOCKET, HANDSHAKE | {"Origin": f"http://127.0.0.1:{server.port}"}))
    for path, headers in asked:
        assert answer_to_other_user(server.port, path, headers) == 403, path
        assert answer_to_other_user(server.port, path, headers | server.cookie) in (101, 200), path
        wrong = {"Cookie": server.cookie["Cookie"][:-1] + ("1" if server.cookie["Cookie"][-1] == "0" else "0")}
        assert answer_to_other_user(server.port, path, headers | wrong) == 403, path
    for path in ("/", "/nobody/", f"{person}?token=", "/?token=", *(f"/{path}" for path in paths)):
        assert answer_to_other_user(server.port, path) == 403, path
    connection.request("GET", person)
    reply = connection.getresponse()
    assert (reply.status, "token is missing" in reply.read().decode()) == (403, True)
    connection.close()
