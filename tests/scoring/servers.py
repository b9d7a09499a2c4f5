"""Servers on this machine that play the Hugging Face hub and Google Drive."""

import hashlib
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PIECE = 1 << 16


@dataclass
class Plan:
    """What a server serves, how it fails, and what it was asked."""

    content: bytes
    breaks: list[int] = field(default_factory=list)
    """The number of bytes after which each answer with content breaks off; the others are complete."""
    ranges: bool = True
    page: str | None = None
    """A web page in place of the content."""
    etag: str | None = None
    confirm: bool = False
    """Drive: ask first whether a file that cannot be scanned for viruses is meant."""
    stall: threading.Event | None = None
    """Wait for this in the middle of the content."""
    halfway: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)

    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    plan: Plan

    def log_message(self, *arguments: object) -> None:
        pass

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def content(self, **headers: str) -> None:
        """The file, or the part that is asked for; it may break off."""
        plan = self.plan
        start = 0
        if plan.ranges and (asked := re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))):
            start = int(asked[1])
            headers["Content-Range"] = f"bytes {start}-{len(plan.content) - 1}/{len(plan.content)}"
        body = plan.content[start:]
        if self.command == "HEAD":
            self.answer(200, body, **headers)
            return
        most = plan.breaks.pop(0) if plan.breaks else len(body)
        self.send_response(206 if start else 200)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        for at in range(0, min(most, len(body)), PIECE):
            self.wfile.write(body[at : min(at + PIECE, most)])
            if at + start >= len(plan.content) // 2:
                self.wfile.flush()
                plan.halfway.set()
                if plan.stall is not None:
                    plan.stall.wait(60)
        self.wfile.flush()
        if most < len(body):
            self.close_connection = True

    def web_page(self, status: int, text: str) -> None:
        self.answer(status, text.encode(), Content_Type="text/html; charset=utf-8")


class _Hub(_Handler):
    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        plan = self.plan
        if not re.fullmatch(r"/timm/[\w.]+/resolve/\w+/model\.safetensors", self.path):
            self.answer(404, b"", X_Error_Code="EntryNotFound")
            return
        plan.asked.append(f"{self.command} {self.path} {self.headers.get('Range', '')}".strip())
        etag = {"ETag": f'"{plan.etag or plan.sha256()}"', "X_Repo_Commit": COMMIT, "Accept_Ranges": "bytes"}
        if plan.page is not None and self.command == "GET":
            self.web_page(200, plan.page)
        else:
            self.content(**etag, Content_Type="application/octet-stream")


class _Web(_Handler):
    def do_GET(self) -> None:
        self.plan.asked.append(self.path)
        if self.plan.page is not None:
            self.web_page(404, self.plan.page)
        else:
            self.content(Content_Type="application/octet-stream")


CONFIRM = (  # the form is one line, as Drive's is
    "<!DOCTYPE html><html><head><title>Google Drive - Virus scan warning</title></head><body>\n"
    '<form id="download-form" action="https://drive.usercontent.google.com/download" method="get">'
    '<input type="submit" id="uc-download-link" value="Download anyway"/><input type="hidden" name="id" value="{id}">'
    '<input type="hidden" name="export" value="download"><input type="hidden" name="confirm" value="t">'
    '<input type="hidden" name="uuid" value="5f0c"></form>\n</body></html>'
)
QUOTA = """<!DOCTYPE html><html><head><title>Google Drive - Quota exceeded</title></head><body>
<p class="uc-error-caption">Sorry, you can't view or download this file at this time.</p>
<p class="uc-error-subcaption">Too many users have viewed or downloaded this file recently. Please try again.</p>
</body></html>"""


class _Drive(_Handler):
    def do_GET(self) -> None:
        plan, url = self.plan, urlsplit(self.path)
        plan.asked.append(f"{self.headers['Host'].removesuffix(':443')}{self.path}")
        query = parse_qs(url.query)
        if plan.page is not None:
            self.web_page(200, plan.page)
        elif plan.confirm and "confirm" not in query:
            self.web_page(200, CONFIRM.format(id=query["id"][0]))
        else:
            disposition = 'attachment; filename="weights.pt"'
            self.content(Content_Type="application/octet-stream", Content_Disposition=disposition)


class _Proxy(BaseHTTPRequestHandler):
    """A proxy that leads every CONNECT to the server that plays Drive, behind a certificate of Google's hosts."""

    handler: type[_Handler]
    context: ssl.SSLContext

    def log_message(self, *arguments: object) -> None:
        pass

    def do_CONNECT(self) -> None:
        self.send_response(200, "Connection established")
        self.end_headers()
        with self.context.wrap_socket(self.connection, server_side=True) as secure, suppress(OSError):
            self.handler(secure, self.client_address, self.server)
        self.close_connection = True


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a client that went away


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def web(plan: Plan) -> Iterator[str]:
    """A server of one file; gives the file's address."""
    with _serving(type("Web", (_Web,), {"plan": plan})) as address:
        yield f"{address}/weights.pth"


@contextmanager
def hub(plan: Plan) -> Iterator[dict[str, str]]:
    """A hub; gives the environment that leads to it."""
    with _serving(type("Hub", (_Hub,), {"plan": plan})) as address:
        yield {"HF_ENDPOINT": address, "NO_PROXY": "127.0.0.1"}


@contextmanager
def drive(plan: Plan, folder: Path) -> Iterator[dict[str, str]]:
    """Drive, behind a proxy; gives the environment that leads to it. Keys and certificates go to `folder`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    cert = certificate(folder, "drive.google.com", "drive.usercontent.google.com", "docs.google.com")
    context.load_cert_chain(cert)
    handler = type("Drive", (_Drive,), {"plan": plan})
    with _serving(type("Proxy", (_Proxy,), {"handler": handler, "context": context})) as address:
        yield {"HTTPS_PROXY": address, "REQUESTS_CA_BUNDLE": str(cert), "NO_PROXY": "127.0.0.1"}


def certificate(folder: Path, *hosts: str) -> Path:
    """A key and a certificate that it signs itself, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a server in a test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = folder / "certificate.pem"
    path.write_bytes(private + certificate.public_bytes(pem))
    return path
