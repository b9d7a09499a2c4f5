"""An edition and git: begun on request, known to DVC when it comes later, and the README and links of a clone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cleanset.cli import main
from cleanset.edition.code_link import LINKED, SRC, relink_code
from cleanset.edition.create import make_edition
from cleanset.edition.doctor import examine
from cleanset.edition.models import models_from_texts
from cleanset.edition.params import read_params
from cleanset.edition.repository import config_of, mend_scm, owner_problem, scm_problem
from tests.ten_images import drawn_image

PLAIN = "[core]\n    analytics = false\n    remote = origin\n['remote \"origin\"']\n    url = /srv\n"
WITHOUT_GIT = (
    "[core]\n    no_scm = true\n    analytics = false\n    remote = origin\n['remote \"origin\"']\n    url = /srv\n"
)


def git(folder: Path, *arguments: str) -> str:
    """Run git with a name, and with the line ends of Windows, as some have it everywhere."""
    settings = ("user.name=A", "user.email=a@example.org", "core.autocrlf=true")
    options = [word for each in settings for word in ("-c", each)]
    return subprocess.run(["git", *options, *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


def edition_command(monkeypatch: pytest.MonkeyPatch, folder: Path, *options: str) -> None:
    """Run `cleanset edition` for two drawn classes, in the folder above."""
    for seed, key in enumerate(("cat", "dog")):
        (folder.parent / "photos" / key).mkdir(parents=True, exist_ok=True)
        drawn_image(40, 40, seed=seed).save(folder.parent / "photos" / key / "1.png")
    monkeypatch.chdir(folder.parent)
    monkeypatch.setattr(sys, "argv", ["cleanset", "edition", folder.name, "--images", "photos", *options])
    with pytest.raises(SystemExit, match=r"^0$"):
        main()


@pytest.mark.parametrize(
    ("found", "in_git", "expected"),
    [
        (PLAIN, True, PLAIN),
        (PLAIN, False, WITHOUT_GIT),
        (WITHOUT_GIT, True, PLAIN),
        (WITHOUT_GIT, False, WITHOUT_GIT),
        (PLAIN.replace("]\n", "]\n  No_SCM=True\n", 1), True, PLAIN),
    ],
)
def test_the_config_of_dvc(found: str, in_git: bool, expected: str) -> None:
    assert config_of(found, in_git=in_git) == expected


def test_git_comes_later_and_goes_again(tmp_path: Path) -> None:
    """The printed command tells DVC so in all five projects of an edition, and changes nothing twice."""
    edition = tmp_path / "mine"
    make_edition(edition, models_from_texts(["a=random:0"]))
    configs = [edition / ".dvc" / "config", *sorted(edition.glob("studies/*/.dvc/config"))]
    before = [path.read_text() for path in configs]
    assert [text.count("no_scm = true") for text in before] == [1, 1, 1, 1, 1]
    assert (scm_problem(edition), mend_scm(edition)) == (None, [])
    git(edition, "init", "--quiet")
    assert scm_problem(edition) == (
        f"{configs[0]}: tells DVC that there is no git repository, but {edition} is one; run cleanset doctor"
    )
    repaired = examine(edition, quick=True).repaired
    assert repaired == [f"{path}: DVC now works in a git repository" for path in configs]
    assert "no_scm" not in "".join(path.read_text() for path in configs)
    assert (scm_problem(edition), examine(edition, quick=True).repaired) == (None, [])
    (edition / ".git").rename(tmp_path / "elsewhere")
    assert str(scm_problem(edition)).endswith(
        f"repository around {edition}; run git init, or cleanset doctor to go without"
    )
    assert len(mend_scm(edition)) == 5
    assert [path.read_text() for path in configs] == before


def test_a_repository_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    edition_command(monkeypatch, tmp_path / "a", "--git")
    assert capsys.readouterr().out.endswith("\nA new git repository: git add --all && git commit\n")
    assert (tmp_path / "a" / ".git" / "HEAD").is_file()
    assert "no_scm" not in (tmp_path / "a" / ".dvc" / "config").read_text()
    for options in ((), ("--no-git",)):
        folder = tmp_path / f"b{len(options)}"
        edition_command(monkeypatch, folder, *options)
        last = capsys.readouterr().out.splitlines()[-1]
        expected = "is not in a git repository, so its history is not kept: git init && cleanset doctor"
        assert last == f"{folder.name} {expected}"
        assert not (folder / ".git").exists()
    git(tmp_path, "init", "--quiet")
    edition_command(monkeypatch, tmp_path / "c", "--git")
    assert "git repository" not in capsys.readouterr().out
    assert not (tmp_path / "c" / ".git").exists()


@pytest.mark.parametrize(("answer", "begun"), [("", True), ("n", False)])
def test_on_a_terminal_it_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, begun: bool
) -> None:
    asked = []

    def confirm(text: str, default: bool) -> bool:
        asked.append(text)
        return {"": default, "n": False}[answer]

    monkeypatch.setattr("cleanset.cli.typer.confirm", confirm)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    edition_command(monkeypatch, tmp_path / "mine")
    assert asked == ["mine: not in a git repository, so its history is not kept. Create one (git init)?"]
    assert (tmp_path / "mine" / ".git").exists() == begun


def test_a_clone_gets_its_links_from_any_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the line ends of Windows, too, every file that git keeps has the same bytes there."""
    edition_command(monkeypatch, tmp_path / "mine", "--git")
    made = tmp_path / "mine"
    git(made, "add", "--all")
    git(made, "commit", "--quiet", "--message", "Begin")
    git(tmp_path, "clone", "--quiet", "mine", "clone")
    clone = tmp_path / "clone"
    names = git(made, "ls-files").splitlines()
    assert not [name for name in names if LINKED in name or name.startswith(".git/")]
    assert {name for name in names if (made / name).read_bytes() != (clone / name).read_bytes()} == set()
    assert git(made, "status", "--short") == git(clone, "status", "--short") == ""
    # the path in DVC's message on a missing file names the remedy
    link = clone / read_params(clone).root / "src"
    assert link == clone / "linked_by_cleanset_doctor" / "src"
    assert not link.exists()
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["cleanset", "agreement", "--edition", str(clone)])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().err.startswith(f"{link}: linked to the code of cleanset in {SRC}\n")
    assert (link / "cleanset" / "scoring" / "VERSION").is_file()
    assert (link.parent / "requirements.txt").samefile(SRC.parent / "requirements.txt")
    assert relink_code(clone) == []
    # of doctor itself it is a finding
    link.unlink()
    monkeypatch.setattr(sys, "argv", ["cleanset", "doctor", "--quick", "--edition", str(clone)])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr() == (f"{link}: linked to the code of cleanset in {SRC}\n", "")
    # an installation that was removed, found in the folder of a study
    link.unlink()
    link.symlink_to(tmp_path / "gone")
    study = clone / "studies" / "training"
    assert relink_code(study) == [f"{study / '../..' / LINKED / 'src'}: linked to the code of cleanset in {SRC}"]
    assert link.samefile(SRC)
    assert git(clone, "status", "--short") == ""


def test_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "labels.csv").write_text("file,class\ncat/1.png,cat\ndog/1.png,dog\n")
    (tmp_path / "card.yaml").write_text(
        "title: Small animals\nauthors: [{name: Ada}]\nimages: {source: drawn, licence: CC0-1.0, people: none}\n"
    )
    options = ("--labels", "labels.csv", "--card", "card.yaml", "--model", "animals=random:0")
    edition_command(monkeypatch, tmp_path / "mine", *options)
    lines = (tmp_path / "mine" / "README.md").read_text().splitlines()
    assert lines[0] == "# Small animals"
    assert "cleanset publish data/export/animals ../release" in lines
    # the card that was given says whose they are
    assert not any("export.about" in line for line in lines)
    inputs = lines[lines.index("## Inputs") + 2 : lines.index("## Reviewers") - 1]
    assert inputs == [
        "- The images: `../photos`, in folders of any names, with their classes in `labels.csv`. They are not in git. "
        "Put the same images there, or change `dataset.images` in `params.yaml`: `images.sha256` has the digest of "
        "each, and others are refused.",
        "- The set `animals` has no model: the images of a class come in a random order.",
    ]


def test_readme_of_an_imagenet_edition(tmp_path: Path) -> None:
    make_edition(
        tmp_path / "mine", models_from_texts(["a=timm:resnet50.tv_in1k", "b=robustbench:Linf/Salman2020Do_R50"])
    )
    lines = (tmp_path / "mine" / "README.md").read_text().splitlines()
    assert lines[0] == "# mine"
    inputs = lines[lines.index("## Inputs") + 2 : lines.index("## Reviewers") - 1]
    assert inputs == [
        "- The images of ImageNet: `data/raw/ILSVRC2012_img_val.tar`, and the devkit: "
        "`data/raw/ILSVRC2012_devkit_t12.tar.gz`. They are not in git. `raw.md5` has the MD5 of each archive, and "
        "others are refused.",
        "- The model `a`: `resnet50.tv_in1k` (timm).",
        "- The model `b`: `Salman2020Do_R50` (robustbench Linf).",
        "",
        "`cleanset models --pin` downloads weights and pins their SHA-256 in `params.yaml`.",
    ]
    assert not any("None" in line or len(line) > 400 for line in lines)


@pytest.mark.skipif(os.geteuid() != 0, reason="a folder is given to another user by the superuser alone")
def test_a_repository_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The edition is made all the same; one line has git's remedy, which works."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    shared = tmp_path / "our data"
    subprocess.run(["git", "init", "--quiet", shared], check=True)
    os.chown(shared, 12345, 12345)
    edition_command(monkeypatch, shared / "mine")
    command = f"git config --global --add safe.directory '{shared}'"
    said = capfd.readouterr()
    assert said.err.splitlines() == [
        "mine: in a git repository of another user, which git does not read, so that nothing can be committed; "
        f"expected a folder of your own, or your trust: {command}"
    ]
    assert said.out.splitlines()[0] == "mine: 2 images of 2 classes (cat, dog); run there"
    assert owner_problem(shared / "mine") is not None
    subprocess.run(command, shell=True, check=True)
    assert owner_problem(shared / "mine") is None
    edition_command(monkeypatch, shared / "another")
    assert capfd.readouterr().err == ""


def test_no_repository_and_one_of_your_own_have_no_owner_problem(tmp_path: Path) -> None:
    assert owner_problem(tmp_path) is None
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    assert owner_problem(tmp_path) is None
