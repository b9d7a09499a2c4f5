"""Which settings of a stranger's DVC remote are taken: those of a list, in their form; those of the user's account."""

import base64
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from dvc.config_schema import REMOTE_SCHEMAS

from cleanset.edition.dvc_files import object_path
from cleanset.errors import CleansetError
from cleanset.plumbing.interpreter import python_command
from cleanset.sets.fetching.remotes import SETTINGS, Remote, default_remote
from cleanset.sets.fetching.stores import store_of
from tests.sets.fetching.publisher import Publisher

TAKEN = {
    *((kind, "version_aware") for kind in ("s3", "gs", "azure", "oss", "gdrive")),
    ("s3", "endpointurl"), ("s3", "region"),
}  # fmt: skip
VALID = {"version_aware": "true", "endpointurl": "https://s3.example.org", "region": "eu-west-1"}


def config(kind: str, **settings: str) -> str:
    url = f"{kind}://host/folder" if kind else "/srv/folder"
    lines = "".join(f"    {name} = {value}\n" for name, value in settings.items())
    return f"[core]\n    remote = origin\n['remote \"origin\"']\n    url = {url}\n{lines}"


def remote(text: str) -> Remote:
    return default_remote(text, ".", "here")


def test_every_kind_of_remote_that_dvc_reads() -> None:
    assert set(SETTINGS) == set(REMOTE_SCHEMAS) - {"remote"} | {"file"}
    assert {(kind, name) for kind, forms in SETTINGS.items() for name in forms} == TAKEN


@pytest.mark.parametrize("kind", sorted(set(REMOTE_SCHEMAS) - {"remote"}))
def test_every_setting_that_dvc_knows(kind: str) -> None:
    """Also one that a later DVC may know. All are reported but two, which change nothing that is downloaded."""
    known = {str(name) for name in REMOTE_SCHEMAS[kind]} - {"url"}
    assert len(known) > 5
    for name in (*sorted(known), "of_a_later_dvc"):
        found = remote(config(kind, **{name: VALID.get(name, "1")}))
        if (kind, name) in TAKEN:
            assert (found.settings, found.left_out) == ({name: VALID[name]}, ())
        else:
            assert found.settings == {}
            assert found.left_out == (() if name in ("verify", "jobs", "checksum_jobs") else (name,))


def test_other_sections_are_left_out() -> None:
    text = (
        config("s3") + "['remote \"other\"']\n    profile = a\n[cache]\n    dir = /srv\n[core]\n    analytics = true\n"
    )
    assert remote(text).left_out == ("cache.dir",)


def test_the_notice_of_many_names() -> None:
    settings = {f"a{number}": "1" for number in range(7)} | {"\x1b[2J": "1", "b": "1", "c": "1"}
    assert remote(config("s3", **settings)).notice() == (
        "left out of the repository's .dvc/config: a0, a1, a2, a3, a4, a5, a6, '\\x1b[2j' and 2 others (your own DVC "
        "configuration may have a remote with this url)"
    )
    assert remote(config("s3", verify="true", jobs="4")).notice() is None


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("s3", {"endpointurl": "file:///etc"}), ("s3", {"endpointurl": "http://a@b"}), ("s3", {"endpointurl": "//a"}),
        ("s3", {"endpointurl": "https://a b"}), ("s3", {"region": "a.example.org/"}), ("s3", {"region": ""}),
        ("s3", {"version_aware": "maybe"}), ("gs", {"version_aware": "1"}),
    ],
)  # fmt: skip
def test_forms_of_settings(kind: str, settings: dict[str, str]) -> None:
    ((name, value),) = settings.items()
    with pytest.raises(CleansetError) as raised:
        remote(config(kind, **settings))
    assert str(raised.value).startswith(f"here: {name} {value!r}; expected one that matches ")


@pytest.mark.parametrize(
    "url",
    [
        "ssh://-oProxyCommand=id/a", "ssh://$(id)/a", "ssh://a;id/a", "ssh://`id`@a/b", "ssh://a b/c", "s3:///a",
        "webdav://a'b/c", "hdfs://a|b/c", "ssh://[::1/a", "ssh://-o@a/b",
    ],
)  # fmt: skip
def test_hosts_that_a_shell_might_run(url: str) -> None:
    with pytest.raises(CleansetError, match=r"^here: url ['\"]"):
        remote(f"[core]\nremote = a\n['remote \"a\"']\nurl = {url}\n")


@pytest.mark.parametrize("url", ["remote://other/a", "ext::sh", "javascript://a", "rclone://a/b"])
def test_kinds_that_dvc_does_not_read(url: str) -> None:
    text = f"[core]\nremote = a\n['remote \"a\"']\nurl = {url}\n"
    if "://" not in url:
        assert remote(text).kind == ""  # a folder of this name
        return
    with pytest.raises(CleansetError, match="expected one of azure, file, gdrive, gs, hdfs, http, https, oss, s3"):
        remote(text)


@pytest.mark.parametrize(
    "url",
    ["ssh://a@nas.example.org:22/b", "s3://bucket-1/a", "azure://a_b/c", "ssh://[2001:db8::1]:22/a", "hdfs://a@b:9/c"],
)
def test_usual_addresses(url: str) -> None:
    assert remote(f"[core]\nremote = a\n['remote \"a\"']\nurl = {url}\n").url == url


@pytest.mark.long
def test_no_program_of_an_aws_profile_is_run(publisher: Publisher, export: Path, tmp_path: Path) -> None:
    """`configpath` and `profile` would lead to a file of the repository with a program, which botocore runs."""
    program = f'credential_process = /bin/sh -c "touch {tmp_path / "has_run"}; echo {{}}"'
    (publisher.repository / "docs.ini").write_text(f"[profile docs]\nregion = us-east-1\n{program}\n")
    publisher.push(export, "s3://bucket/store")
    publisher.lead("s3://bucket/store", configpath="docs.ini", profile="docs", endpointurl="http://127.0.0.1:9")
    publisher.commit("Lead to a program")
    variables = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        python_command("-m", "cleanset", "fetch", publisher.url, "standard"),
        cwd=publisher.repository, env=variables | {"HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.partition("asked now\n")[2].startswith("error: s3://bucket/store: remote unreachable (")
    assert done.stderr.endswith(
        "; left out of the repository's .dvc/config: configpath, profile (your own DVC configuration may have a remote "
        "with this url)\n"
    )
    assert not (tmp_path / "has_run").exists()


@contextmanager
def guarded(password: str, content: bytes) -> Iterator[tuple[str, list[str]]]:
    """A server that asks for a user's password: its address, and the passwords that it was sent."""
    sent: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            given = base64.b64decode(self.headers.get("Authorization", "").removeprefix("Basic ")).decode()
            sent.extend([given.partition(":")[2]] if given else [])
            self.send_response(200 if given == f"ada:{password}" else 401)
            self.end_headers()
            self.wfile.write(content)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", sent
        server.shutdown()


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The DVC configuration of the account."""
    monkeypatch.setenv("DVC_GLOBAL_CONFIG_DIR", str(tmp_path))
    return tmp_path / "config"


def test_a_remote_of_ones_own_with_the_same_url(own: Path) -> None:
    md5 = "0" * 32
    login = "    auth = basic\n    user = ada\n    password = secret\n"
    with guarded("secret", b"a file") as (url, sent):
        # a section without url, for a remote of the user's project, is not one for a stranger's of that name
        own.write_text(f"['remote \"origin\"']\n{login}")
        stranger = remote(config("http").replace("http://host/folder", url))
        with pytest.raises(CleansetError, match=r"refused \(HTTP 401"):
            store_of(stranger, "file:///repository").read(md5)
        own.write_text(f"['remote \"mine\"']\n    url = {url}/\n{login}")
        store = store_of(stranger, "file:///repository")
        assert store.read(md5) == b"a file"
        assert set(sent) == {"secret"}
        assert object_path(md5) == f"files/md5/00/{'0' * 30}"


@pytest.mark.parametrize(("kind", "setting"), [("webdavs", "bearer_token_command"), ("gs", "credentialpath")])
def test_what_was_left_out_is_reported_without_the_driver_too(kind: str, setting: str) -> None:
    stranger = remote(config(kind, **{setting: "a"}))
    with pytest.raises(CleansetError) as raised:
        store_of(stranger, "file:///repository")
    assert str(raised.value).startswith(f"{kind}://host/folder: ")
    assert f"; left out of the repository's .dvc/config: {setting} (" in str(raised.value)


def test_nothing_is_left_out_of_ones_own(own: Path) -> None:
    own.write_text("['remote \"mine\"']\n    url = s3://host/folder\n    profile = ada\n")
    stranger = remote(config("s3", profile="eve"))
    assert stranger.left_out == ("profile",)
    assert store_of(stranger, "file:///repository").notice is None


def test_an_unreadable_configuration_of_ones_own(own: Path) -> None:
    own.write_text("[remote")
    with pytest.raises(CleansetError, match=r"^your DVC configuration: not readable \(.+\); expected DVC's form$"):
        store_of(remote(config("http")), "file:///repository")
