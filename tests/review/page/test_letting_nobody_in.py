"""Who may ask: Host, Origin, Sec-Fetch-Site, and a token; for requests and for websockets."""

import asyncio
import http.client
import signal
import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import uvicorn
from playwright.sync_api import Browser
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from cleanset.errors import CleansetError
from cleanset.web import pages
from cleanset.web.guard import PERSON, Guard, is_loopback, own_hosts, public_origin
from cleanset.web.pages import AnnouncingServer, address, bind, bind_usual, usual_port
from cleanset.web.tokens import kept_tokens
from tests.browser_tab import PATIENCE, Server
from tests.documents import blocks
from tests.other_user import HANDSHAKE, by_root, check_refused_to_others
from tests.remotes.servers import free_port, nginx

from .conftest import Open, Serve
from .reviewing import Reviewing, wait_until

ADA = "/ada/"
IMAGE = "/ada/image/card/ILSVRC2012_val_00000005"
SOCKET = "/ada/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
POLLING = "/ada/_nicegui_ws/socket.io/?EIO=4&transport=polling"


def status(server: Server, path: str, headers: Mapping[str, str], host: str | None = None) -> int:
    """What the server answers to a request with exactly these headers."""
    return status_at(server.port, path, headers, host)


def status_at(port: int, path: str, headers: Mapping[str, str], host: str | None = None) -> int:
    """The same by the port."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.putrequest("GET", path, skip_host=True, skip_accept_encoding=True)
    for name, value in ({"Host": host or f"127.0.0.1:{port}"} | dict(headers)).items():
        connection.putheader(name, value)
    connection.endheaders()
    found = connection.getresponse().status
    connection.close()
    return found


def known(server: Server, path: str, headers: Mapping[str, str], host: str | None = None) -> int:
    """What the server answers to a browser that has opened its link."""
    return status(server, path, server.cookie | dict(headers), host)


@pytest.fixture
def server(unchanged: Server) -> Server:
    return unchanged


@pytest.mark.parametrize("path", [ADA, IMAGE, POLLING, "/ada/static/page.js"])
def test_host_and_origin_of_requests(server: Server, path: str) -> None:
    own = f"http://127.0.0.1:{server.port}"
    assert (known(server, path, {}), status(server, path, {})) == (200, 403)
    assert known(server, path, {}, host=f"LOCALHOST:{server.port}") == 200
    assert known(server, path, {"Origin": own, "Sec-Fetch-Site": "same-origin"}) == 200
    for host in (
        "evil.example",
        f"evil.example:{server.port}",
        "127.0.0.1",
        "127.0.0.1:1",
        f"127.0.0.1:{server.port}.x",
    ):
        assert known(server, path, {}, host=host) == 403
    for origin in ("http://evil.example", "null", f"https://127.0.0.1:{server.port}", "http://127.0.0.1:1",
                   f"http://localhost:{server.port}"):  # fmt: skip
        assert known(server, path, {"Origin": origin}) == 403


def test_host_and_origin_of_websockets(server: Server) -> None:
    own = f"http://127.0.0.1:{server.port}"
    assert known(server, SOCKET, HANDSHAKE | {"Origin": own}) == 101
    assert status(server, SOCKET, HANDSHAKE | {"Origin": own}) == 403
    assert known(server, SOCKET, HANDSHAKE) == 403
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
        assert known(server, SOCKET, HANDSHAKE | {"Origin": origin}) == 403
    evil = f"evil.example:{server.port}"
    assert known(server, SOCKET, HANDSHAKE | {"Origin": f"http://{evil}"}, host=evil) == 403


def test_a_foreign_page_gets_no_image_but_may_link_here(server: Server) -> None:
    image = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    frame = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert known(server, IMAGE, image) == 403
    assert known(server, ADA, frame) == 403
    assert known(server, IMAGE, link) == 403
    assert (known(server, ADA, link), known(server, "/", link)) == (200, 303)


@pytest.mark.long
def test_a_foreign_page_in_the_browser(server: Server, visit: Open) -> None:
    """It can neither show an image nor open the socket; the page itself loads nothing from elsewhere."""
    at = visit(server)
    asked: list[str] = []
    at.page.on("request", lambda request: asked.append(request.url))
    at.page.reload()
    at.ready()
    assert len(asked) > 10
    assert [url for url in asked if not url.startswith((server.page, "data:"))] == []
    browser = at.page.context.browser
    assert browser is not None
    foreign = browser.new_page()
    foreign.goto("data:text/html,<title>foreign</title>")
    script = """url => new Promise(done => { const image = new Image();
        image.onload = () => done('shown'); image.onerror = () => done('refused'); image.src = url })"""
    assert foreign.evaluate(script, server.page.removesuffix(ADA) + IMAGE) == "refused"
    script = """url => new Promise(done => { const socket = new WebSocket(url);
        socket.onopen = () => done('open'); socket.onerror = () => done('refused') })"""
    assert foreign.evaluate(script, server.page.replace("http", "ws").removesuffix(ADA) + SOCKET) == "refused"
    foreign.close()


@pytest.mark.long
def test_off_loopback_a_token_is_needed(start: Serve, visit: Open) -> None:
    server = start("ada", "--host", "0.0.0.0")
    token = server.address.partition("?token=")[2]
    assert urlsplit(server.address).hostname not in ("localhost", "127.0.0.1", "0.0.0.0")  # another machine's way here
    assert len(token) >= 32
    for path in ("/", ADA, IMAGE, POLLING, "/ada/static/page.js", "/static/page.js", "/ada/?token=",
                 f"/ada/?token={token[:-1]}", "/?token=", f"/ben/?token={token}"):  # fmt: skip
        assert status(server, path, {}) == 403
    assert status(server, SOCKET, HANDSHAKE | {"Origin": f"http://127.0.0.1:{server.port}"}) == 403
    cookie = {"Cookie": f"cleanset-{server.port}-ada={token}"}
    assert status(server, IMAGE, cookie) == 200
    assert status(server, IMAGE, cookie | {"Origin": "http://evil.example"}) == 403
    assert status(server, IMAGE, {"Cookie": f"cleanset-{server.port}-ada={token}x"}) == 403
    at = visit(server)
    assert "token" not in at.page.url
    at.press("n")
    (kept,) = at.page.context.cookies()
    assert (kept["name"], kept["httpOnly"], kept["sameSite"]) == (f"cleanset-{server.port}-ada", True, "Lax")


@by_root
@pytest.mark.long
def test_other_users_of_the_machine_are_refused(server: Server) -> None:
    check_refused_to_others(server, IMAGE.removeprefix(ADA), POLLING.removeprefix(ADA), "static/page.js", "web/view.js")


@by_root
@pytest.mark.long
def test_other_users_are_refused_by_a_team(start: Serve) -> None:
    team = start("ada", "--reviewer", "ben", "--port", "0")
    check_refused_to_others(team, IMAGE.removeprefix(ADA), "static/page.js")


@pytest.mark.long
def test_a_browser_is_opened_where_asked_for(
    start: Serve, browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a private file, as arguments are everybody's; not for another, nor for several people at other machines."""
    opened, program, temporary = tmp_path / "opened", tmp_path / "browser", tmp_path / "temporary"
    program.write_text(f'#!/bin/sh\necho "$@" >> "{opened}"\n')
    program.chmod(0o755)
    temporary.mkdir()
    monkeypatch.setenv("BROWSER", f"{program} %s")
    monkeypatch.setenv("TMPDIR", str(temporary))
    for options in (("--host", "127.0.0.1"), ("--reviewer", "ben", "--browser")):
        assert status(start("ada", *options), ADA, {}) == 403
    for host in ("127.0.0.1", "0.0.0.0"):
        server = start("ada", "--port", "0", "--host", host, "--browser")
        wait_until(lambda: opened.is_file() and opened.read_text().endswith("\n"))
        file = Path(opened.read_text().strip().removeprefix("file://"))
        token = server.address.partition("?token=")[2]
        name = "localhost" if host == "0.0.0.0" else host
        assert f'content="0; url=http://{name}:{server.port}/ada/?token={token}"' in file.read_text()
        assert [path.stat().st_mode & 0o777 for path in (file.parent, file)] == [0o700, 0o600]
        assert token not in opened.read_text()
        page = browser.new_page()
        page.goto(file.as_uri())
        page.wait_for_selector("#view", timeout=PATIENCE)
        assert page.url.startswith(f"http://{name}:{server.port}/ada/")
        assert "token" not in page.url
        page.close()
        server.process.send_signal(signal.SIGINT if host == "0.0.0.0" else signal.SIGTERM)
        wait_until(lambda: not any(temporary.glob("cleanset-*")))
        opened.unlink()


@pytest.mark.long
def test_behind_a_proxy_with_tls(start: Serve, browser: Browser, repository: Path, tmp_path: Path) -> None:
    """By docs/study_people.md's configuration of nginx: websocket, keys, and the token that is printed."""
    port = free_port()
    (text,) = blocks(repository, "nginx", "docs/study_people.md")

    def configured(public: int) -> str:
        return text.replace("443 ssl", f"127.0.0.1:{public} ssl").replace(":8080", f":{port}")

    with nginx(configured, tmp_path / "nginx", "https://review.localhost:{port}") as proxy:
        server = start("ada", "--port", str(port), "--public-url", proxy.url)
        assert server.address.startswith(f"{proxy.url}/ada/?token=")
        token = server.address.partition("?token=")[2]
        context = browser.new_context(ignore_https_errors=True)
        page = context.new_page()
        refused = page.goto(proxy.url)
        assert refused is not None
        assert (refused.status, "token is missing" in refused.text()) == (403, True)
        at = Reviewing(page, server.address)
        at.press("n", "n", "x")
        assert at.mode == "crop"
        (kept,) = context.cookies()
        assert (kept["secure"], kept["value"]) == (True, token)
        context.close()
        cookie = {"Cookie": f"cleanset-{proxy.url.rpartition(':')[2]}-ada={token}"}
        host = proxy.url.removeprefix("https://")
        for origin, found in ((proxy.url, 200), ("https://evil.example", 403), (f"http://evil.{host}", 403)):
            assert status_at(port, IMAGE, cookie | {"Origin": origin}, host) == found
        assert status_at(port, IMAGE, cookie | {"Origin": proxy.url}, f"evil.{host}") == 403


def test_loopback_is_not_reached_from_other_addresses(server: Server) -> None:
    """127.0.0.2 is the same interface, and reaches what listens on all addresses."""
    with bind("0.0.0.0", 0) as everywhere:
        socket.create_connection(("127.0.0.2", everywhere.getsockname()[1]), timeout=5).close()
    socket.create_connection(("127.0.0.1", server.port), timeout=5).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", server.port), timeout=5)


@pytest.mark.long
@pytest.mark.server
def test_half_open_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a request, with half a header (also of a second one), with half a body; not those being answered."""
    monkeypatch.setattr(pages, "HALF_OPEN_TICKS", 3)
    answering = threading.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return
        while scope["method"] == "POST" and (await receive()).get("more_body"):
            pass
        while scope["path"] == "/slow" and not answering.is_set():
            await asyncio.sleep(0.05)
        await PlainTextResponse("answer")(scope, receive, send)

    listening = bind("127.0.0.1", 0)
    server = AnnouncingServer(uvicorn.Config(app, log_level="error", lifespan="off"), "", None)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    whole = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    half = (b"", whole[:20], whole + whole[:20], b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc")
    sockets = [socket.create_connection(listening.getsockname(), timeout=60) for _ in (*half, "slow")]
    for each, data in zip(sockets, (*half, whole.replace(b"/ ", b"/slow ")), strict=True):
        each.sendall(data)
    for each in sockets[:-1]:
        while each.recv(1000):
            pass
    answering.set()
    assert sockets[-1].recv(1000).startswith(b"HTTP/1.1 200")
    server.should_exit = True
    thread.join()
    for each in sockets:
        each.close()


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    assert address("127.0.0.1", 8080) == "http://127.0.0.1:8080/"
    assert address("::1", 8080) == "http://[::1]:8080/"
    monkeypatch.setattr(pages, "_ELSEWHERE", ("127.8.9.1", "::1"))  # the only way there is known: by loopback
    assert address("0.0.0.0", 8080) == "http://127.0.0.1:8080/"
    assert address("::", 8080) == "http://[::1]:8080/"
    monkeypatch.setattr(pages, "_ELSEWHERE", ("255.255.255.255", "ff02::1"))  # no address to connect to
    monkeypatch.setattr(socket, "gethostname", lambda: "tab")
    assert address("0.0.0.0", 8080) == "http://tab:8080/"


@pytest.mark.server
def test_the_usual_port(tmp_path: Path) -> None:
    """Always the same for a folder and a name, another for others; any free one while it is taken."""
    ports = [usual_port(tmp_path, "ada"), usual_port(tmp_path, "ben"),
             usual_port(tmp_path / "imagenet", "ada")]  # fmt: skip
    assert ports == [usual_port(tmp_path / "x" / "..", "ada"), *ports[1:]]
    assert len(set(ports)) == 3
    assert all(20_000 <= port < 30_000 for port in ports)
    with bind("127.0.0.1", 0) as taken, bind_usual("127.0.0.1", taken.getsockname()[1]) as other:
        assert other.getsockname()[1] != taken.getsockname()[1]


def test_hosts() -> None:
    assert own_hosts("127.0.0.1", 8080) == {"127.0.0.1:8080", "localhost:8080"}
    assert own_hosts("::1", 80) == {"[::1]:80", "localhost:80", "[::1]", "localhost"}
    assert own_hosts("0:0::1", 81) == {"[::1]:81", "localhost:81"}
    assert own_hosts("2001:DB8:0:0::5", 8080) == {"[2001:db8::5]:8080"}
    assert own_hosts("Tab.Example", 8080) == {"tab.example:8080"}
    assert own_hosts("LocalHost", 8080) == {"localhost:8080"}
    assert own_hosts("192.168.1.5", 8080) == {"192.168.1.5:8080"}
    assert [is_loopback(host) for host in ("127.0.0.1", "127.8.9.1", "::1", "localhost")] == [True] * 4
    assert [is_loopback(host) for host in ("0.0.0.0", "::", "192.168.1.5", "example.org", "")] == [False] * 5
    with pytest.raises(ValueError, match="any host without a token"):
        Guard(lambda *_: None, None, None)  # type: ignore[arg-type]
    for people in ({}, {"ada": ""}, {"ada": "token", "ben": ""}):
        with pytest.raises(ValueError, match="a page without a token"):
            Guard(lambda *_: None, {"localhost:8080"}, people)  # type: ignore[arg-type]


def test_the_origin_of_a_public_address() -> None:
    assert public_origin("https://Study.Example.org/") == "https://study.example.org"
    assert public_origin("https://study.example.org:443") == "https://study.example.org"
    assert public_origin("http://localhost:9000") == "http://localhost:9000"
    assert public_origin("http://[0:0::1]:80") == "http://[::1]"
    for url in ("study.example.org", "ftp://a", "https://", "https://a/path", "https://a/?q", "https://a#", "https://b@a",
                "https://a:x", "https://[", "//a", ""):  # fmt: skip
        with pytest.raises(CleansetError, match="expected the address that people open, without a path"):
            public_origin(url)


def test_each_of_several_people_by_their_own_token(tmp_path: Path) -> None:
    """Each under their own path, whatever else was opened in the browser; a token of nobody changes nothing."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(scope[PERSON])(scope, receive, send)

    tokens = kept_tokens(tmp_path / "new" / "secret", ["ana", "ben"])
    client = TestClient(Guard(app, {"testserver"}, tokens))
    for path in ("/", "/ana/", "/ben/image", f"/ana/?token={'0' * 64}", f"/ana/?token={tokens['ben']}", "/cy/", "/ana"):
        assert client.get(path).status_code == 403
    answer = client.get(f"/?token={tokens['ana']}")  # as links were printed before they named the person
    assert (answer.text, answer.url.path, answer.url.query) == ("ana", "/ana/", b"")
    assert list(client.cookies) == ["cleanset-80-ana"]
    assert client.get("/?class=c00").url == "http://testserver/ana/?class=c00"
    asked = client.get(f"/ben/?token={tokens['ben']}")
    assert (asked.status_code, "Continue as ben?" in asked.text, "Stay ana" in asked.text) == (403, True, True)
    assert client.get("/ben/").status_code == 403
    foreign = {"Origin": "http://evil.example"}
    assert client.post(f"/ben/?token={tokens['ben']}", headers=foreign, follow_redirects=False).status_code == 403
    assert client.post(f"/ben/?token={tokens['ben']}").text == "ben"
    for name in ("ana", "ben"):
        assert client.get(f"/{name}/?token={'0' * 64}").text == client.get(f"/{name}/image").text == name
        assert client.get(f"/{name}/?token={tokens[name]}").text == name
    assert client.get("/").status_code == 403  # whose is not known
