"""What is finished on one machine arrives on another, over each kind of remote, by the README's lines."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from checkouts import Checkout
from readme import block, shell
from remotes.conftest import Cloning
from remotes.exports import ROLES, files, manifest_holds
from remotes.servers import Remote, nginx, s3, sshd

PUBLISH = 'dvc remote modify --local origin url "$REMOTE"'
PULL = "dvc pull export@standard"


@contextmanager
def folder(work: Path) -> Iterator[Remote]:
    yield Remote(str(work))


SERVERS: dict[str, Callable[[Path], AbstractContextManager[Remote]]] = {
    "ssh": lambda work: sshd(work / "dvc", work / "ssh"),
    "s3": lambda work: s3("bucket"),
    "folder": lambda work: folder(work / "dvc"),
}


@pytest.mark.parametrize("kind", SERVERS)
def test_pushed_by_one_and_pulled_by_another(kind: str, repository: Path, built: Checkout, tmp_path: Path) -> None:
    (tmp_path / "srv").mkdir()
    with SERVERS[kind](tmp_path / "srv") as remote:
        one = built.clone(tmp_path / "one" / "cleanset", **remote.variables)
        one.run("dvc", "cache", "dir", "--local", str(built.folder / ".dvc" / "cache"))
        pushed = shell(one, block(repository, PUBLISH), REMOTE=remote.url)
        assert (pushed.returncode, one.run("git", "status", "--porcelain").stdout) == (0, ""), pushed.stderr
        other = built.clone(tmp_path / "other" / "cleanset", **remote.variables)
        pulled = shell(other, f"{block(repository, PUBLISH).splitlines()[0]}\ndvc pull export", REMOTE=remote.url)
    assert pulled.returncode == 0, pulled.stderr
    assert files(other.folder / "data") == {
        f"export/{name}": sum_ for name, sum_ in files(built.folder / "data" / "export").items()
    }


def test_the_readers_lines_over_https(repository: Path, web: Remote, clone: Cloning, built: Checkout) -> None:
    """One model's set, then those of all, then everything; no other stage's data come with a set."""
    checkout = clone(web)
    of_one, of_all, everything = block(repository, PULL).splitlines()
    expected = files(built.folder / "data")
    for command, sets, rest in ((of_one, ROLES[:1], False), (of_all, ROLES, False), (everything, ROLES, True)):
        done = shell(checkout, command)
        assert done.returncode == 0, done.stderr
        there = files(checkout.folder / "data")
        assert there == {
            name: sum_
            for name, sum_ in expected.items()
            if name.startswith(tuple(f"export/{role}/" for role in sets)) or rest
        }
    assert "up to date" in checkout.run("dvc", "status").stdout
    assert all(manifest_holds(checkout.folder / "data" / "export" / role) for role in ROLES)


def test_nothing_can_be_written_over_https(web: Remote, clone: Cloning, pushed: Path) -> None:
    checkout = clone(web)
    checkout.run("dvc", "pull", "--quiet", "data/short_classes.csv")
    (checkout.folder / "data" / "short_classes.csv").write_text("other\n")
    checkout.run("dvc", "commit", "--force", "--quiet", "count", check=False)
    before = files(pushed)
    checkout.run("dvc", "push", "data/short_classes.csv", check=False)
    assert files(pushed) == before


def test_the_folder_is_not_listed(web: Remote) -> None:
    import ssl
    import urllib.error
    import urllib.request

    context = ssl.create_default_context(cafile=web.variables["SSL_CERT_FILE"])
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"{web.url}/files/md5/", context=context)


def test_a_server_with_another_certificate_is_refused(
    web: Remote, clone: Cloning, pushed: Path, tmp_path: Path
) -> None:
    """The certificates are checked: one that is not known brings nothing."""
    with nginx(lambda port: f"server {{ listen 127.0.0.1:{port} ssl; root {pushed}; }}", tmp_path / "other") as other:
        done = clone(Remote(f"{other.url}/dvc", web.variables)).run("dvc", "pull", "export@standard", check=False)
    assert done.returncode == 1
