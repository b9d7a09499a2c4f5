"""A git repository that publishes a set as DVC does, written by hand, and a web server with its remote."""

import hashlib
import json
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml

IDENTITY = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org",
}  # fmt: skip


@dataclass
class Publisher:
    """The repository, and the folder that its remote serves."""

    repository: Path
    remote: Path

    @property
    def url(self) -> str:
        return f"file://{self.repository}"

    def git(self, *arguments: str) -> str:
        """Run git in the repository; what it prints."""
        return subprocess.run(
            ["git", *arguments],
            cwd=self.repository,
            env=os.environ | IDENTITY,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    def object(self, md5: str) -> Path:
        """Where a file of this MD5 is on the remote."""
        return self.remote / "files" / "md5" / md5[:2] / md5[2:]

    def push(self, export: Path, url: str, folder: str = ".", model: str = "standard") -> str:
        """Put an export on the remote and into dvc.lock, and commit; the new commit."""
        listed = [
            {"md5": self._store(path.read_bytes()), "relpath": path.relative_to(export).as_posix()}
            for path in export.rglob("*")
            if path.is_file()
        ]
        listing = json.dumps(sorted(listed, key=lambda each: each["relpath"])).encode()
        out = {
            "path": f"data/export/{model}",
            "hash": "md5",
            "md5": self._store(listing, ".dir"),
            "nfiles": len(listed),
        }
        edition = self.repository / folder
        edition.mkdir(parents=True, exist_ok=True)
        lock = {"schema": "2.0", "stages": {f"export@{model}": {"cmd": "cleanset export", "outs": [out]}}}
        (edition / "dvc.lock").write_text(yaml.safe_dump(lock))
        (edition / "params.yaml").write_text("models: {}\n")
        (edition / "raw.md5").write_text("")
        self.lead(url)
        return self.commit("Publish")

    def lead(self, url: str, **options: str) -> None:
        """Name a remote as DVC writes it into .dvc/config."""
        (self.repository / ".dvc").mkdir(exist_ok=True)
        lines = [f"    {name} = {value}\n" for name, value in ({"url": url, "verify": "true"} | options).items()]
        text = f"[core]\n    remote = origin\n    analytics = false\n['remote \"origin\"']\n{''.join(lines)}"
        (self.repository / ".dvc" / "config").write_text(text)

    def commit(self, message: str) -> str:
        """Commit everything; the new commit."""
        if not (self.repository / ".git").exists():
            self.git("init", "--quiet", "--initial-branch", "main")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")

    def _store(self, data: bytes, ending: str = "") -> str:
        md5 = hashlib.md5(data).hexdigest() + ending
        self.object(md5).parent.mkdir(parents=True, exist_ok=True)
        self.object(md5).write_bytes(data)
        return md5


@dataclass
class Web:
    """A web server of a folder: what it was asked, and how it fails."""

    url: str
    asked: list[str] = field(default_factory=list)
    stall_after: int | None = None
    """After this number of answers, all others wait for `go_on`."""
    go_on: threading.Event = field(default_factory=threading.Event)
    stalled: threading.Event = field(default_factory=threading.Event)
    broken: int = 0
    """So many answers break off in the middle."""
    status: int | None = None
    """Answer everything with this."""


@contextmanager
def serving(folder: Path, context: ssl.SSLContext | None = None) -> Iterator[Web]:
    """Serve a folder over HTTP on loopback, or over HTTPS with the certificate of a context."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            with lock:
                web.asked.append(self.path)
                waits = web.stall_after is not None and len(web.asked) > web.stall_after
                breaks = web.broken > 0
                web.broken -= breaks
            if waits:
                web.stalled.set()
                web.go_on.wait(60)
            path = folder / self.path.lstrip("/")
            data = path.read_bytes() if path.is_file() else b""
            self.send_response(web.status or (200 if path.is_file() else 404))
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            with suppress(OSError):  # who refuses an answer hangs up, maybe while it is still sent
                self.wfile.write(data[: len(data) // 2] if breaks else data)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        web = Web(f"http{'s' if context else ''}://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield web
        finally:
            web.go_on.set()
            server.shutdown()
            thread.join()
