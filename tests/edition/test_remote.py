"""The DVC remote of an edition of your own: given when it is made, or later; pushed to and pulled from by DVC."""

import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from cleanset.cli import main
from cleanset.edition.remote import check_remote, with_remote
from cleanset.errors import CleansetError
from tests.ten_images import drawn_image

ADDED = "['remote \"origin\"']\n    url = s3://bucket/dvc\n    verify = true\n    jobs = 32\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[core]\n    no_scm = true\n", f"[core]\n    remote = origin\n    no_scm = true\n{ADDED}"),
        ("[core]\n    remote = other", f"[core]\n    remote = origin\n{ADDED}"),
        (
            "[core]\n    remote = origin\n['remote \"origin\"']\n    jobs = 3\n    url = /a\n    verify = true\n",
            "[core]\n    remote = origin\n['remote \"origin\"']\n    jobs = 3\n    url = s3://bucket/dvc\n"
            "    verify = true\n",
        ),
        (f"[core]\n    remote = origin\n{ADDED}", f"[core]\n    remote = origin\n{ADDED}"),
    ],
)
def test_the_config_of_dvc(before: str, after: str) -> None:
    assert with_remote(before, "s3://bucket/dvc") == after


@pytest.mark.parametrize("address", ["", " s3://b", "a#b", "it's", 'a"b', "a\nb"])
def test_an_address_that_dvc_would_read_otherwise(address: str) -> None:
    with pytest.raises(CleansetError, match=r"expected an address such as https://host/dvc"):
        check_remote(address)


def test_a_password_is_not_written() -> None:
    with pytest.raises(CleansetError, match=r"a password, which git would keep") as raised:
        check_remote("https://ada:lovelace@host/dvc")
    assert "lovelace" not in str(raised.value)
    assert check_remote("ssh://ada@host/srv/dvc") == "ssh://ada@host/srv/dvc"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    """Run `cleanset edition`."""
    monkeypatch.setattr(sys, "argv", ["cleanset", "edition", *arguments])
    with pytest.raises(SystemExit, match=r"^0$"):
        main()


def url(folder: Path) -> str:
    """The address of the remote that DVC uses in a project without being told."""
    parser = ConfigParser()
    parser.read_string((folder / ".dvc" / "config").read_text().replace("\n    ", "\n"))
    assert parser["core"]["remote"] == "origin"
    return parser["'remote \"origin\"'"]["url"]


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with images of two classes, which is the working folder."""
    for seed, key in enumerate(("cat", "dog")):
        (tmp_path / "photos" / key).mkdir(parents=True)
        drawn_image(40, 40, seed=seed).save(tmp_path / "photos" / key / "1.png")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_is_given_at_once_or_later(
    photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder given relative to the current one is the same for each project of the edition."""
    run(monkeypatch, "first", "--images", "photos", "--remote", "store", "--no-git")
    run(monkeypatch, "second", "--images", "photos", "--no-git")
    run(monkeypatch, "third", "--model", "a=random:0", "--remote", "https://host/dvc", "--no-git")
    capsys.readouterr()
    monkeypatch.chdir(photos / "second")
    run(monkeypatch, "--remote", "../store")
    changed = (".dvc/config", "studies/training/.dvc/config")
    assert capsys.readouterr().out == "".join(f"{name}: the remote is {photos}/store\n" for name in changed)
    for folder in (photos / "first", photos / "second"):
        assert url(folder) == url(folder / "studies" / "training") == str(photos / "store")
    projects = ("", *(f"studies/{name}" for name in ("robustness", "attacks", "contest", "training")))
    assert {url(photos / "third" / name) for name in projects} == {"https://host/dvc"}


@pytest.mark.long
def test_dvc_pushes_to_it(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, "mine", "--images", "photos", "--remote", "store", "--no-git")
    (photos / "mine" / "data" / "kept.txt").write_text("kept")
    for command in ("add data/kept.txt", "push"):
        subprocess.run(["dvc", *command.split(), "--quiet"], cwd="mine", check=True)
    assert [path.read_text() for path in photos.glob("store/files/md5/*/*")] == ["kept"]
