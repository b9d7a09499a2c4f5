"""Secrets that only their owner can read, and no server without a token."""

import ast
import os
import secrets
import stat
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from typer.main import get_command

from cleanset.cli import app
from cleanset.errors import CleansetError
from cleanset.web import tokens
from cleanset.web.tokens import kept_tokens, opening_file, page_tokens, private_folder
from tests.other_user import NOBODY, by_root, can_read

SOURCE = Path(__file__).resolve().parents[2] / "src" / "cleanset"
SERVED = {
    "review serve": "review/page/test_letting_nobody_in.py",
    "review audit": "review/page/test_letting_nobody_in.py",  # by the same `review/page/server.py:run`
    "review labels": "review/page/test_letting_nobody_in.py",
    "contest judge": "studies/contest/test_judge_page.py",
    "study serve": "studies/realness/test_serving.py",
}
"""The commands that serve a page, each with the file of the test in which other users are refused."""
LISTENING = {
    "bind", "create_server", "create_unix_server", "listen", "serve_forever", "start_server", "TCPServer", "HTTPServer",
    "ThreadingHTTPServer", "run_simple", "start_unix_server", "UnixStreamServer",
}  # fmt: skip
"""What a module would name to listen on a socket."""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of what this user keeps."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "cleanset"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_tokens_stay_while_their_secret_does(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    first = kept_tokens(secret, ["ana", "ben"])
    assert mode(secret) == 0o600
    assert kept_tokens(secret, ["ben", "ana", "cy"]).items() > first.items()
    secret.unlink()
    assert kept_tokens(secret, ["ana"])["ana"] not in first.values()
    secret.write_text("short")
    with pytest.raises(CleansetError, match="5 bytes; expected a secret: remove it for new links"):
        kept_tokens(secret, ["ana"])


def test_servers_that_start_at_once_have_one_secret(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: kept_tokens(tmp_path / "new" / "secret", ["ana"])["ana"], range(64)))
    assert len(set(found)) == 1


def test_a_token_opens_one_page_alone(state: Path, tmp_path: Path) -> None:
    """For one folder by any path, one kind of page, and one person; the names of folder, kind and person do not mix."""
    folder = tmp_path / "edition"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    found = page_tokens(folder, "review", ["ada", "ben"])
    assert page_tokens(tmp_path / "link" / ".." / "edition", "review", ["ben", "ada"]) == found
    others = [
        page_tokens(folder, "judge", ["ada"]), page_tokens(tmp_path, "review", ["ada"]),
        page_tokens(tmp_path, "edition review", ["ada"]), page_tokens(folder, "review ada", [""]),
    ]  # fmt: skip
    assert len({*found.values(), *(token for each in others for token in each.values())}) == 6
    assert all(len(token) >= 32 for token in found.values())
    (state / "pages" / "secret").unlink()
    assert not set(page_tokens(folder, "review", ["ada", "ben"]).values()) & set(found.values())


def test_the_secret_and_its_folder_are_their_owners_alone(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while it is written, whatever the umask."""
    drawn = []

    def draw(size: int) -> str:
        drawn.append({path.name: mode(path) for path in (state / "pages").rglob("new")})
        return "0" * 2 * size

    monkeypatch.setattr(secrets, "token_urlsafe", draw)
    before = os.umask(0)
    page_tokens(tmp_path, "review", ["ada"])
    os.umask(before)
    assert drawn == [{"new": 0o600}]
    assert (mode(state / "pages"), mode(state / "pages" / "secret")) == (0o700, 0o600)
    assert [each.name for each in (state / "pages").iterdir()] == ["secret"]
    (state / "pages").chmod(0o755)
    assert private_folder() == state / "pages"
    assert mode(state / "pages") == 0o700


def spoil(path: Path, how: str) -> None:
    """Let a file or folder be something else than a private one."""
    if how.startswith("mode "):
        path.chmod(int(how.removeprefix("mode "), 8))
        return
    if how == "another's":
        os.chown(path, NOBODY, -1)
        return
    path.rename(path.with_name("moved"))
    match how:
        case "link":
            path.symlink_to("moved")
        case "broken link":
            path.symlink_to("nowhere")
        case "folder":
            path.mkdir()
        case "file":
            path.write_text("")
        case "pipe":
            os.mkfifo(path)


ANOTHERS = pytest.param("another's", f"owned by uid {NOBODY}", marks=by_root)


@pytest.mark.parametrize(
    ("how", "found"),
    [
        ("mode 640", "mode 640"), ("mode 604", "mode 604"), ("link", "a symlink"), ("broken link", "a symlink"),
        ("folder", "not a regular file"), ("pipe", "not a regular file"), ANOTHERS,
    ],
)  # fmt: skip
def test_a_secret_that_others_know_or_put_there_is_refused(state: Path, tmp_path: Path, how: str, found: str) -> None:
    page_tokens(tmp_path, "review", ["ada"])
    spoil(state / "pages" / "secret", how)
    message = f"secret: {found}; expected a file of yours that only you can read, .*: remove it for new links"
    with pytest.raises(CleansetError, match=message):
        page_tokens(tmp_path, "review", ["ada"])


@pytest.mark.parametrize("how", ["file", "link", pytest.param("another's", marks=by_root)])
def test_if_no_secret_can_be_kept_tokens_are_drawn(state: Path, tmp_path: Path, how: str) -> None:
    page_tokens(tmp_path, "review", ["ada"])
    spoil(state / "pages", how)
    found = [page_tokens(tmp_path, "review", ["ada", "ben"]) for _ in range(2)]
    assert len({token for each in found for token in each.values()}) == 4
    assert all(len(token) >= 32 for each in found for token in each.values())


def test_without_a_home_tokens_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "state_folder", lambda: None)
    assert page_tokens(tmp_path, "review", ["ada"]) != page_tokens(tmp_path, "review", ["ada"])


@by_root
def test_other_users_cannot_read_what_the_pages_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder that everybody can enter."""
    with tempfile.TemporaryDirectory() as name:
        everybodys = Path(name)
        everybodys.chmod(0o755)
        monkeypatch.setenv("XDG_STATE_HOME", name)
        monkeypatch.setattr(tempfile, "tempdir", name)
        (everybodys / "known").write_text("everybody's")
        page_tokens(everybodys, "review", ["ada"])
        secret = everybodys / "cleanset" / "pages" / "secret"
        with opening_file("http://127.0.0.1:1/?token=x") as file:
            assert everybodys in file.parents
            assert [can_read(each) for each in (everybodys / "known", secret, file)] == [True, False, False]
            # the mode of each file protects it, not that of its folder alone
            secret.parent.chmod(0o755)
            file.parent.chmod(0o755)
            assert [can_read(each) for each in (secret, file)] == [False, False]
        assert not file.parent.exists()


def test_the_address_in_the_file_is_escaped() -> None:
    with opening_file('http://127.0.0.1:1/a/?token=x&y="><script>') as file:
        assert 'url=http://127.0.0.1:1/a/?token=x&amp;y=&quot;&gt;&lt;script&gt;"' in file.read_text()


def test_every_command_that_serves_is_one_whose_page_refuses_others() -> None:
    """A command that serves a page has the option --host."""

    def commands(command: object, name: str = "") -> list[str]:
        below = getattr(command, "commands", {})
        own = [name] if any("--host" in each.opts for each in getattr(command, "params", ())) else []
        return own + [each for key, value in below.items() for each in commands(value, f"{name} {key}".strip())]

    assert sorted(commands(get_command(app))) == sorted(SERVED)
    tests = SOURCE.parents[1] / "tests"
    assert all("check_refused_to_others(" in (tests / file).read_text() for file in SERVED.values())


def test_one_function_alone_starts_servers_and_one_page_alone_has_no_token() -> None:
    """A server that is started elsewhere has no guard; `people=None` is for those whom a recruiting service sends."""
    listening, unguarded = set(), []
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Import(names=names) if {"uvicorn", "http.server", "socketserver"} & {
                    each.name for each in names
                }:
                    listening.add(module)
                case ast.ImportFrom(module="uvicorn" | "http.server" | "socketserver" | "wsgiref.simple_server"):
                    listening.add(module)
                case ast.Attribute(attr=name) if name in LISTENING:
                    listening.add(module)
                case ast.Call(func=ast.Name(id="run_page") | ast.Attribute(attr="run_page"), keywords=keywords):
                    (people,) = (each.value for each in keywords if each.arg == "people")
                    unguarded += [ast.unparse(people)] * ("None" in ast.unparse(people))
    assert listening == {"web/pages.py"}
    assert unguarded == ["{'study': ''} if at.public_url is None else None"]
