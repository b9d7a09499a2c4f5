"""Entering code into dvc.lock: DVC agrees, outputs keep their digests, and nothing is guessed."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from cleanset.edition.dependencies import relock
from cleanset.errors import CleansetError
from tests.checkouts import Checkout

CODE = "src/cleanset/selection/candidates.py"


def lock_of(checkout: Checkout, project: str = ".") -> dict[str, dict[str, list[dict[str, str]]]]:
    stages: dict[str, dict[str, list[dict[str, str]]]] = yaml.safe_load(
        (checkout.folder / project / "dvc.lock").read_text()
    )["stages"]
    return stages


@pytest.mark.long
@pytest.mark.parametrize("project", [".", "studies/robustness", "studies/contest"])
def test_a_lock_that_is_up_to_date_keeps_its_bytes(project: str, clone: Checkout) -> None:
    assert relock(clone.folder / project) == []
    assert clone.run("git", "status", "--porcelain").stdout == ""


@pytest.mark.long
def test_a_refactoring_is_entered_without_data(clone: Checkout) -> None:
    """Only the stages that name the module change, and only its digest."""
    path = clone.folder / CODE
    path.write_text(path.read_text() + "\n# refactored\n")
    before = lock_of(clone)
    changed = relock(clone.folder)
    assert "intersect" in changed
    assert "preprocess" not in changed
    after = lock_of(clone)
    for stage, entry in before.items():
        assert entry["outs"] == after[stage]["outs"]
        others = [dep for dep in entry["deps"] if not dep["path"].endswith(CODE)]
        assert others == [dep for dep in after[stage]["deps"] if not dep["path"].endswith(CODE)]
    assert CODE not in clone.run("dvc", "status", "intersect", check=False).stdout


@pytest.mark.long
def test_the_command_relocks_only_where_it_may_write(clone: Checkout) -> None:
    path = clone.folder / CODE
    path.write_text(path.read_text() + "\n# refactored\n")
    before = (clone.folder / "dvc.lock").read_bytes()
    for options in ([], ["--check", "--relock"]):
        assert clone.run("cleanset", "pipelines", *options).stdout == ""
        assert (clone.folder / "dvc.lock").read_bytes() == before
    relocked = clone.run("cleanset", "pipelines", "--relock").stdout.splitlines()
    assert re.fullmatch(r"dvc\.lock: [1-9]\d* stages changed", relocked[0])
    assert relocked[1::3] == [f"studies/{name}/dvc.lock: 0 stages changed" for name in ("attacks", "training")]
    assert (clone.folder / "dvc.lock").read_bytes() != before
    assert CODE not in clone.run("dvc", "status", "intersect", check=False).stdout


@pytest.mark.long
def test_a_stage_that_never_ran_is_refused(clone: Checkout) -> None:
    path = clone.folder / "dvc.lock"
    lock = yaml.safe_load(path.read_text())
    del lock["stages"]["intersect"]
    path.write_text(yaml.safe_dump(lock))
    with pytest.raises(CleansetError, match="no stage intersect; expected one that has run: dvc repro intersect"):
        relock(clone.folder)


@pytest.mark.parametrize("content", [b"", b"schema: '2.0'\nstages:\n  a:\n    cm", b"{", b"a: 1\n", b"\xff"])
def test_a_damaged_lock_is_left_alone(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "dvc.lock").write_bytes(content)
    with pytest.raises(
        CleansetError, match=r"dvc\.lock: (empty, cut off or damaged|not UTF-8 .*); run cleanset doctor"
    ):
        relock(tmp_path)
    assert (tmp_path / "dvc.lock").read_bytes() == content


def test_outside_of_a_repository(repository: Path, tmp_path: Path) -> None:
    shutil.copy(repository / "dvc.lock", tmp_path)
    with pytest.raises(CleansetError, match=r"DVC cannot read it \(.*\); expected a project of DVC"):
        relock(tmp_path)


@pytest.mark.long
def test_an_unknown_digest_is_refused(clone: Checkout) -> None:
    path = clone.folder / "dvc.yaml"
    read = "      - data/shared.parquet\n      - data/scores/"
    path.write_text(path.read_text().replace(read, read.replace("shared", "other")))
    with pytest.raises(CleansetError, match=r"no digest of data/other\.parquet; expected an output"):
        relock(clone.folder)


@pytest.mark.long
def test_a_raised_version_keeps_its_stages_out_of_date(clone: Checkout) -> None:
    """It says that the outputs change, which only running the stages gives."""
    (clone.folder / "src" / "cleanset" / "sets" / "VERSION").write_text("999\n")
    assert relock(clone.folder) == []
    assert "sets/VERSION" in clone.run("dvc", "status", "export", check=False).stdout
