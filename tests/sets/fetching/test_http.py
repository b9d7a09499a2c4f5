"""Files over HTTP: a stranger's server, or repository, leads to no address of this machine or its network."""

import json
import os
import shutil
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from cleanset.errors import CleansetError
from cleanset.plumbing.interpreter import python_command
from cleanset.sets.fetching.http import MissingError, download, is_internal, is_internal_ip, read_over_http
from tests.conftest import without
from tests.sets.fetching import two_addresses
from tests.sets.fetching.publisher import Publisher, serving
from tests.sets.fetching.two_addresses import INTERNAL, PUBLIC, SPELLINGS

REFUSED = "an address of this machine or its network, which a stranger's server or repository names; expected a public"


@pytest.mark.parametrize(
    ("ip", "expected"),
    [
        ("127.0.0.1", True), ("127.9.9.9", True), ("0.0.0.0", True), ("10.0.0.1", True), ("172.16.0.1", True),
        ("192.168.1.1", True), ("169.254.169.254", True), ("100.64.0.1", True), ("::1", True), ("fe80::1%eth0", True),
        ("fc00::1", True), ("fec0::1", True), ("::ffff:127.0.0.1", True), ("::ffff:10.0.0.1", True), ("::", True),
        ("64:ff9b::7f00:1", True), ("64:ff9b::b00:1", False), ("2002:7f00:1::", True), ("2002:b00:1::", False),
        ("11.0.0.1", False), ("172.32.0.1", False), ("2600::1", False), ("::ffff:11.0.0.1", False),
    ],
)  # fmt: skip
def test_internal_ips(ip: str, expected: bool) -> None:
    assert is_internal_ip(ip) is expected


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost/", "https://127.0.0.1:8443/a", "http://127.1/", "http://2130706433/", "http://0x7f000001/",
        "http://127.0.0.%31/", "http://user:secret@127.0.0.1/", "http://[::1]/", "http://[::ffff:127.0.0.1]/",
    ],
)  # fmt: skip
def test_spellings_of_this_machine(address: str) -> None:
    assert is_internal(address)


@pytest.mark.parametrize("address", ["http://11.0.0.1/", "http://", "/a/folder", "http://[::1/", "http://a..b/"])
def test_not_of_this_machine(address: str) -> None:
    assert not is_internal(address)


@pytest.mark.parametrize("address", ["file:///etc/hostname", "ftp://127.0.0.1/a", "data:,a"])
def test_only_http_is_opened(address: str, tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match="unknown url type"):
        download(address, tmp_path / "found", 100, named=address)


def test_a_name_that_leads_elsewhere_than_before(tmp_path: Path) -> None:
    """The address of a name is checked once more when the connection is made."""
    (tmp_path / "file").write_text("a file")
    with serving(tmp_path) as web:
        address = f"{web.url}/file"
        assert read_over_http(address, "a name", 100, allow_internal=True) == b"a file"
        with pytest.raises(CleansetError, match=REFUSED):
            read_over_http(address, "a name", 100, allow_internal=False)
        assert web.asked == ["/file"]


def test_the_proxy_may_be_internal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the user's own; it is asked for the whole address."""
    with serving(tmp_path) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "")
        with pytest.raises(MissingError):
            read_over_http("http://11.0.0.1/file", "a name", 100, allow_internal=False)
        assert proxy.asked == ["http://11.0.0.1/file"]


@pytest.mark.parametrize(
    "host", ["localhost.", "a.localhost", "user@11.0.0.1", "127.0.0.1\\\\@11.0.0.1", "[::1%25lo]", "127.0.0.%31"]
)
def test_redirects_that_a_proxy_would_follow(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may take such a host for another one than is looked up here."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(302)
            self.send_header("Location", f"http://{host}/secret")
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), Handler) as proxy:
        Thread(target=proxy.serve_forever, daemon=True).start()
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.server_port}")
        monkeypatch.setenv("no_proxy", "")
        with pytest.raises(CleansetError, match=REFUSED):
            download("http://11.0.0.1/file", tmp_path / "found", 100, named="http://11.0.0.1/file")
        proxy.shutdown()
    assert asked == ["http://11.0.0.1/file"]


@pytest.fixture
def outcomes(publisher: Publisher, export: Path, tmp_path: Path) -> dict[str, list[object]]:
    """With `two_addresses`, in a network of its own, without another machine; the set's remote is internal."""
    if os.getuid() != 0:
        pytest.skip("networks are made by root alone")
    if shutil.which("ip") is None:
        without("no iproute2: install the package iproute2")
    (tmp_path / "file").write_text("a file")
    publisher.push(export, "http://127.0.0.1:9/remote")
    program = python_command("-m", two_addresses.__name__, str(tmp_path))
    prepare = f"ip link set lo up && ip addr add {PUBLIC}/32 dev lo"
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", f'{prepare} && exec "$@"', "sh", *program],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, list[object]] = json.loads(done.stdout)
    return found


@pytest.mark.long
def test_redirects_and_remotes(outcomes: dict[str, list[object]]) -> None:
    """An internal address is not even requested, unless the given one is internal, too."""
    assert outcomes["public to public"] == [[PUBLIC], "done"]
    assert outcomes["internal to internal"] == [[INTERNAL], "done"]
    assert outcomes["internal to public"] == [[PUBLIC, INTERNAL], "done"]
    assert outcomes["repository: public to public"] == outcomes["repository: public"]
    for name in ("public to a file", *(f"public to {host}" for host in SPELLINGS), "repository: public to internal"):
        asked, end = outcomes[name]
        assert asked == [PUBLIC], name
        assert ("is not allowed" if name == "public to a file" else REFUSED) in str(end), name
    # the remote that a repository names
    asked, end = outcomes["repository: public"]
    assert (asked, f"http://127.0.0.1:9/remote: {REFUSED}" in str(end)) == ([PUBLIC], True)
    asked, end = outcomes["repository: internal"]
    assert (asked, "http://127.0.0.1:9/remote: remote unreachable (Connection refused)" in str(end)) == (
        [INTERNAL],
        True,
    )
