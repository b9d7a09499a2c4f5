"""A program for a network with the addresses 127.0.0.1 and 11.0.0.1: downloads that one leads to the other.

Given a folder, serves it at both, also the git repository `repository` in it; all below /leads/ is redirected. Prints
the outcomes as JSON: for each download, the addresses that were asked, and how it ended.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cleanset.errors import CleansetError
from cleanset.sets.fetching import fetch
from cleanset.sets.fetching.http import download

PUBLIC = "11.0.0.1"
INTERNAL = "127.0.0.1"
SPELLINGS = (INTERNAL, "localhost", "127.1", "127.0.0.%31", "[::1]", "[::ffff:7f00:1]")
"""The name of this machine's address."""


class Server(ThreadingHTTPServer):
    """Both servers have the same lists."""

    asked: list[str]
    leads_to: str


class Handler(SimpleHTTPRequestHandler):
    """Leads on, or gives files and a git repository."""

    server: Server

    def log_message(self, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.asked.append(str(self.server.server_address[0]))
        if self.path.startswith("/leads/"):
            self.send_response(302)
            self.send_header("Location", self.server.leads_to + self.path.removeprefix("/leads"))
            self.end_headers()
        elif self.path.startswith("/repository/"):
            self.answer_as_git(b"")
        else:
            super().do_GET()

    def do_POST(self) -> None:
        self.answer_as_git(self.rfile.read(int(self.headers["Content-Length"])))

    def answer_as_git(self, body: bytes) -> None:
        """What git's own server answers."""
        path, _, query = self.path.partition("?")
        variables = {
            "GIT_PROJECT_ROOT": self.directory, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path, "QUERY_STRING": query,
            "REQUEST_METHOD": self.command, "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "CONTENT_LENGTH": str(len(body)),
        }  # fmt: skip
        done = subprocess.run(["git", "http-backend"], env=os.environ | variables, input=body, capture_output=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        self.send_response(200)
        for line in head.decode().splitlines():
            name, _, value = line.partition(": ")
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def serve(host: str, folder: Path) -> Server:
    server = Server((host, 0), partial(Handler, directory=str(folder)))
    server.asked = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def outcome(servers: tuple[Server, Server], leads_to: str, action: Callable[[], object]) -> tuple[list[str], str]:
    for server in servers:
        server.asked = []
        server.leads_to = leads_to
    try:
        action()
        end = "done"
    except CleansetError as error:
        end = str(error)
    return [each.asked[0] for each in servers if each.asked], end


def main(folder: Path) -> None:
    """Print the outcomes."""
    servers = (serve(PUBLIC, folder), serve(INTERNAL, folder))
    public, internal = (
        f"http://{host}:{each.server_port}" for host, each in zip((PUBLIC, INTERNAL), servers, strict=True)
    )
    found = {}

    def led(name: str, start: str, end: str) -> None:
        address = f"{start}/leads/file"
        found[name] = outcome(servers, end, lambda: download(address, folder / "found", 1000, named=address))

    led("public to public", public, public)
    led("internal to internal", internal, internal)
    led("internal to public", internal, public)
    led("public to a file", public, "file:///etc")
    for host in SPELLINGS:
        led(f"public to {host}", public, f"http://{host}:{servers[1].server_port}")

    def fetched(name: str, start: str, end: str, path: str) -> None:
        def run() -> None:
            fetch.run(f"{start}/{path}", "standard", None, ".", None, update=True)

        found[name] = outcome(servers, end, run)

    fetched("repository: public", public, "", "repository/.git")
    fetched("repository: internal", internal, "", "repository/.git")
    fetched("repository: public to public", public, public, "leads/repository/.git")
    fetched("repository: public to internal", public, internal, "leads/repository/.git")
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
