"""Real servers on loopback that hold a DVC remote: nginx over TLS, OpenSSH, S3's protocol; and a line that breaks."""

import getpass
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom

import boto3
import pytest

from tests.scoring.servers import certificate

NGINX = """\
daemon off;
pid {work}/nginx.pid;
error_log {work}/nginx.log;
{user}
events {{}}
http {{
    access_log off;
    client_body_temp_path {work}/body;
    proxy_temp_path {work}/proxy;
    fastcgi_temp_path {work}/fastcgi;
    uwsgi_temp_path {work}/uwsgi;
    scgi_temp_path {work}/scgi;
    ssl_certificate {work}/certificate.pem;
    ssl_certificate_key {work}/certificate.pem;
{server}
}}
"""
SSHD = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {work}/host
AuthorizedKeysFile {work}/client.pub
PidFile {work}/sshd.pid
PasswordAuthentication no
StrictModes no
UsePAM no
Subsystem sftp internal-sftp
"""
SSH_CONFIG = """\
Host server
    HostName 127.0.0.1
    Port {port}
    User {user}
    IdentityFile {work}/client
"""


@dataclass(frozen=True)
class Remote:
    """The address of a DVC remote, and the environment variables with which it is reached."""

    url: str
    variables: dict[str, str] = field(default_factory=dict)


def program(name: str) -> str:
    """The path of a server's program; if there is none, skips, saying so; fails if CLEANSET_NO_SKIP is set."""
    found = shutil.which(name, path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
    if found is None:
        reason = f"no {name}: install it (.ci/run names the packages)"
        if os.environ.get("CLEANSET_NO_SKIP"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@contextmanager
def nginx(server: Callable[[int], str], work: Path, address: str = "https://localhost:{port}") -> Iterator[Remote]:
    """nginx with the `server` block for a port, behind a certificate of localhost; logs go to `work`."""
    work.mkdir()
    port = free_port()
    cert = certificate(work, "localhost")
    user = f"user {getpass.getuser()};" if os.geteuid() == 0 else ""
    (work / "nginx.conf").write_text(NGINX.format(work=work, user=user, server=server(port)))
    with running(program("nginx"), "-p", str(work), "-e", str(work / "nginx.log"), "-c", str(work / "nginx.conf")):
        reach(port)
        yield Remote(address.format(port=port), {"SSL_CERT_FILE": str(cert)})


@contextmanager
def sshd(folder: Path, work: Path) -> Iterator[Remote]:
    """OpenSSH with keys of its own, known to the client as `server`; `folder` is on it."""
    (work / ".ssh").mkdir(parents=True)
    for key in ("host", "client"):
        command = (program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", str(work / key))
        subprocess.run(command, check=True)
    port = free_port()
    (work / "sshd_config").write_text(SSHD.format(port=port, work=work))
    (work / ".ssh" / "config").write_text(SSH_CONFIG.format(port=port, work=work, user=getpass.getuser()))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where sshd of root locks its children in
    with running(program("sshd"), "-D", "-e", "-f", str(work / "sshd_config")):
        reach(port)
        yield Remote(f"ssh://server{folder}", {"HOME": str(work), "SSH_AUTH_SOCK": ""})


@contextmanager
def s3(bucket: str) -> Iterator[Remote]:
    """A server of S3's protocol with an empty bucket."""
    from moto.server import ThreadedMotoServer  # half a second, for one of the servers

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        variables = {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
        }  # fmt: skip
        boto3.client(
            "s3", endpoint_url=variables["AWS_ENDPOINT_URL"], region_name="us-east-1",
            aws_access_key_id="test", aws_secret_access_key="test",
        ).create_bucket(Bucket=bucket)  # fmt: skip
        yield Remote(f"s3://{bucket}/dvc", variables)
    finally:
        server.stop()


@contextmanager
def breaking(port: int, after: int) -> Iterator[int]:
    """A port that leads to `port`, and breaks each connection when it has brought `after` bytes."""
    listening = socket.create_server(("127.0.0.1", 0))

    def lead(client: socket.socket) -> None:
        left = after
        with client, socket.create_connection(("127.0.0.1", port)) as server, suppress(OSError):
            threading.Thread(target=forward, args=(client, server), daemon=True).start()
            while left > 0 and (data := server.recv(min(left, 4096))):
                client.sendall(data)
                left -= len(data)
            client.shutdown(socket.SHUT_RDWR)

    def forward(client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(4096):
                server.sendall(data)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=lead, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


@contextmanager
def running(*command: str) -> Iterator[None]:
    """Run a server, and end it."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        yield
    finally:
        process.terminate()
        process.communicate(timeout=10)


def free_port() -> int:
    """A port that nobody listens on; not one that the system gives to whoever asks for any, until it is taken."""
    while True:
        port = SystemRandom().randrange(10_000, 32_768)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port


def reach(port: int) -> None:
    """Wait until someone listens on the port."""
    end = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
