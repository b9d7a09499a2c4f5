"""What is finished on one machine arrives on another, over each kind of remote, by the lines of the documentation."""

import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.checkouts import Checkout, files
from tests.documents import block, shell
from tests.remotes.conftest import Cloning, lead
from tests.remotes.exports import ROLES, manifest_holds
from tests.remotes.servers import Remote, s3, sshd

PUBLISH = 'dvc remote modify --local origin url "$REMOTE"'


@contextmanager
def folder(work: Path) -> Iterator[Remote]:
    yield Remote(str(work))


SERVERS: dict[str, Callable[[Path], AbstractContextManager[Remote]]] = {
    "ssh": lambda work: sshd(work / "dvc", work / "ssh"),
    "s3": lambda work: s3("bucket"),
    "folder": lambda work: folder(work / "dvc"),
}


def written(checkout: Checkout) -> dict[str, str]:
    """SHA-256 of every file under data/ but the page that git has."""
    found = files(checkout.folder / "data")
    del found["README.md"]
    return found


def fetched(checkout: Checkout, url: str, out: Path) -> dict[str, str]:
    """SHA-256 of the files that `cleanset fetch` brings from a checkout that names this remote."""
    checkout.run("dvc", "remote", "modify", "origin", "url", url)
    checkout.commit("Publish")
    variables = {**checkout.variables, "CLEANSET_CACHE": str(out.with_name("cache"))}
    command = ("cleanset", "fetch", f"file://{checkout.folder}", "standard", "--out", str(out))
    Checkout(checkout.folder, variables).run(*command)
    return files(out)


@pytest.mark.long
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind == "folder" else pytest.mark.exhaustive) for kind in SERVERS]
)
def test_pushed_by_one_and_pulled_by_another(kind: str, repository: Path, built: Checkout, tmp_path: Path) -> None:
    (tmp_path / "srv").mkdir()
    with SERVERS[kind](tmp_path / "srv") as remote:
        one = built.clone(tmp_path / "one" / "cleanset", **remote.variables)
        lead(one, "unset", cache=built.folder / ".dvc" / "cache")
        pushed = shell(one, block(repository, PUBLISH), REMOTE=remote.url)
        assert (pushed.returncode, one.run("git", "status", "--porcelain").stdout) == (0, ""), pushed.stderr
        other = built.clone(tmp_path / "other" / "cleanset", **remote.variables)
        pulled = shell(other, f"{block(repository, PUBLISH).splitlines()[0]}\ndvc pull export", REMOTE=remote.url)
        third = fetched(built.clone(tmp_path / "third", **remote.variables), remote.url, tmp_path / "out")
    assert third == files(built.folder / "data" / "export" / "standard")
    assert pulled.returncode == 0, pulled.stderr
    assert written(other) == {
        f"export/{name}": digest for name, digest in files(built.folder / "data" / "export").items()
    }


@pytest.mark.exhaustive
def test_the_readers_lines_over_https(repository: Path, web: Remote, clone: Cloning, built: Checkout) -> None:
    """One model's set, then those of all, then everything; no other stage's data come with a set."""
    checkout = clone(web)
    of_one, header = block(repository, "dvc pull export@standard").splitlines()
    of_all, everything = block(repository, "dvc pull export").splitlines()
    expected = written(built)
    for command, sets, rest in ((of_one, ROLES[:1], False), (of_all, ROLES, False), (everything, ROLES, True)):
        done = shell(checkout, command)
        assert done.returncode == 0, done.stderr
        assert written(checkout) == {
            name: digest
            for name, digest in expected.items()
            if name.startswith(tuple(f"export/{role}/" for role in sets)) or rest
        }
    assert "up to date" in checkout.run("dvc", "status").stdout
    assert all(manifest_holds(checkout.folder / "data" / "export" / role) for role in ROLES)
    assert shell(checkout, header).stdout.startswith("model,wnid,class_index,class_name,rank,image_id,")
    measuring = shell(checkout, block(repository, "dvc pull\ndvc metrics show"))
    assert measuring.returncode == 0, measuring.stderr
    assert (checkout.folder / "build" / "images" / "images.npy").is_file()


@pytest.mark.long
def test_fetched_over_https(web: Remote, built: Checkout, tmp_path: Path) -> None:
    """Without dvc, which checks no file that it reads from another repository."""
    clone = built.clone(tmp_path / "clone", **web.variables)
    assert fetched(clone, web.url, tmp_path / "out") == files(built.folder / "data" / "export" / "standard")


def test_the_web_server_only_hands_out(web: Remote, pushed: Path) -> None:
    """It takes nothing, and does not list its folder."""
    context = ssl.create_default_context(cafile=web.variables["SSL_CERT_FILE"])
    for path, method, code in (("files/md5/", "GET", "403"), ("new", "PUT", "40[45]"), ("new", "POST", "40[45]")):
        request = urllib.request.Request(f"{web.url}/{path}", method=method, data=b"x" if method != "GET" else None)
        with pytest.raises(urllib.error.HTTPError, match=code):
            urllib.request.urlopen(request, context=context)
    assert [path.name for path in (pushed / "dvc").iterdir()] == ["files"]
