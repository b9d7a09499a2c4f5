"""What a stage reads while DVC runs it: an input that changes meanwhile is never locked with results without it."""

import fcntl
import json
import os
import shutil
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
import yaml
from dvc.dependency import ParamsDependency
from dvc.repo import Repo

from cleanset.edition import stage_inputs
from cleanset.edition.doctor import examine
from cleanset.edition.locks import check_idle
from cleanset.edition.stage_inputs import declared_files, misread_inputs, noted_inputs, projects_in, unlock_misread
from cleanset.errors import CleansetError
from tests.checkouts import Checkout
from tests.ten_images import drawn_image

REPOSITORY = Path(__file__).resolve().parents[2]
PROJECTS = (".", "studies/robustness", "studies/attacks", "studies/training", "studies/contest")


STAGES = [(project, name) for project in PROJECTS for name in declared_files(REPOSITORY / project)]
FIRST = {(project, name.partition("@")[0]): name for project, name in reversed(STAGES)}
"""The first stage of each kind, by project and kind; `make test ALL=1` runs the others."""


@pytest.mark.long
@pytest.mark.parametrize("project", [*PROJECTS, "imagenet", "imagenet-published"])
def test_files_params_and_digests_are_those_of_dvc(project: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY / project)
    declared = declared_files(Path())
    reader = stage_inputs._Reader(Path())
    with Repo() as repo:
        stages = repo.stage.load_all("dvc.yaml")
        assert sorted(stage.name for stage in stages) == sorted(declared)
        for stage in stages:
            found = declared[stage.name]
            params = {dep.def_path: dep for dep in stage.deps if isinstance(dep, ParamsDependency)}
            files = {os.path.normpath(dep.def_path): dep for dep in stage.deps if dep not in params.values()}
            assert sorted(found.deps) == sorted(files)
            assert sorted(found.outs) == sorted(out.def_path for out in stage.outs)
            assert {path: sorted(keys) for path, keys in found.params.items()} == {
                path: sorted(dep.params) for path, dep in params.items()
            }
            assert reader.params(found.params) == {
                path: stage_inputs._plain(dep.read_params()) for path, dep in params.items()
            }
            for path, dep in files.items():
                assert reader.digest(path) == (dep.get_hash().value if dep.exists else None)


def small_project(tmp_path: Path, project: str, name: str) -> Path:
    """A project with the real dvc.yaml and params, and for each dependency of a stage a file or folder of its own."""
    edition = tmp_path / "edition"
    for each in PROJECTS:
        (edition / each / ".dvc").mkdir(parents=True)
        for file in ("dvc.yaml", "params.yaml"):
            shutil.copy(REPOSITORY / each / file, edition / each / file)
    folder = (edition / project).resolve()
    for dep in declared_files(folder)[name].deps:
        path = folder / dep
        is_file = bool(path.suffix) or path.name == "VERSION"
        path = path if is_file else path / "a.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("before\n")
    return folder


def change_file(path: Path, text: str) -> None:
    (path if path.is_file() else path / "a.yaml").write_text(text)


def change_there_and_back(path: Path) -> None:
    change_file(path, "changed\n")
    change_file(path, "before\n")


def change_param(path: Path, key: str) -> None:
    content: Any = yaml.safe_load(path.read_text())
    *tables, last = key.split(".")
    table = content
    for part in tables:
        table = table[part]
    table[last] = "changed"
    path.write_text(yaml.safe_dump(content))


def sizes(path: Path) -> dict[str, int]:
    """The fields of a folder in dvc.lock other than its MD5."""
    files = [each for each in path.rglob("*") if each.is_file()]
    return {"size": sum(each.stat().st_size for each in files), "nfiles": len(files)} if path.is_dir() else {}


@pytest.mark.parametrize(("most", "is_told_apart"), [(2, True), (1, False)])
def test_an_output_is_known_by_content_unless_it_has_many_files(
    most: int, is_told_apart: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two folders of two files and equal sizes that differ in one digit."""
    monkeypatch.setattr(stage_inputs, "HASHED_FILES", most)
    noted = []
    for digit in "45":
        path = tmp_path / digit / "report"
        path.mkdir(parents=True)
        (path / "index.html").write_text(f"{digit} images")
        (path / "style.css").write_text("")
        noted.append(stage_inputs._Reader(path.parent).output("report"))
    locked = {"md5": stage_inputs._Reader(tmp_path / "4").digest("report"), **sizes(tmp_path / "4" / "report")}
    assert [stage_inputs._is_output(locked, each) for each in noted] == [True, not is_told_apart]


def lock(folder: Path, name: str) -> None:
    """Write the dvc.lock that DVC would now write after the stage."""
    declared = declared_files(folder)[name]
    reader = stage_inputs._Reader(folder)
    (folder / "dvc.lock").write_text(
        yaml.safe_dump(
            {
                "schema": "2.0",
                "stages": {
                    "another": {"cmd": "true", "outs": []},
                    name: {
                        "cmd": "x",
                        "deps": [{"path": f"./{dep}", "md5": reader.digest(dep)} for dep in declared.deps],
                        "params": reader.params(declared.params),
                        "outs": [
                            {"path": out, "md5": reader.digest(out), **sizes(folder / out)} for out in declared.outs
                        ],
                    },
                },
            },
            sort_keys=False,
        )
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("project", "name"),
    [pytest.param(*each, marks=[] if each[1] in FIRST.values() else [pytest.mark.exhaustive]) for each in STAGES],
)
def test_every_dependency_of_every_stage(
    project: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changed while the stage runs, between its end and DVC's hashing, and back again; one file of its code."""
    folder = small_project(tmp_path, project, name)
    monkeypatch.chdir(folder)
    declared = declared_files(folder)[name]

    def stage() -> Any:
        monkeypatch.setenv("DVC_STAGE", name)
        return noted_inputs()

    for out in declared.outs:
        path = folder / out
        if not any(other != out and other.startswith(f"{out}/") for other in declared.deps):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("result\n")
    code = [dep for dep in declared.deps if "src/cleanset/" in dep]
    for dep in (each for each in declared.deps if each not in code[1:]):
        with pytest.raises(CleansetError, match="changed while the stage ran"), stage():
            change_file(folder / dep, "changed\n")
        assert misread_inputs(folder) == []
        change_file(folder / dep, "before\n")
        if dep not in code:
            # the stage may have read it in between
            with pytest.raises(CleansetError, match="changed while the stage ran"), stage():
                change_there_and_back(folder / dep)
        with stage():
            if dep in code:
                # a checkout of git, and back
                change_file(folder / dep, "before\n")
            else:
                # a backup by links changes the time of status
                path = folder / dep if (folder / dep).is_file() else folder / dep / "a.yaml"
                (folder.parent / "link").hardlink_to(path)
                (folder.parent / "link").unlink()
        lock(folder, name)
        assert misread_inputs(folder) == []
        change_file(folder / dep, "changed\n")
        lock(folder, name)
        change_file(folder / dep, "before\n")
        assert [dep in line for line in misread_inputs(folder)] == [True]
        assert len(unlock_misread(folder)) == 1
        assert (name in (folder / "dvc.lock").read_text(), misread_inputs(folder)) == (False, [])
    for file, keys in declared.params.items():
        for key in keys:
            text = (folder / file).read_text()
            with pytest.raises(CleansetError, match=f"{key} in .*changed while the stage ran"), stage():
                change_param(folder / file, key)
            (folder / file).write_text(text)
            with stage():
                # a param that no stage names
                (folder / file).write_text(f"{text}\nunnamed: 1\n")
            (folder / file).write_text(text)
            lock(folder, name)
            assert misread_inputs(folder) == []
            content = yaml.safe_load((folder / "dvc.lock").read_text())
            content["stages"][name]["params"][file][key] = "changed"
            (folder / "dvc.lock").write_text(yaml.safe_dump(content, sort_keys=False))
            assert [f"{key} in {file}" in line for line in misread_inputs(folder)] == [True]
            unlock_misread(folder)


def test_a_failed_stage_and_another_program_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = small_project(tmp_path, ".", "crops")
    monkeypatch.chdir(folder)
    for name in ("crops", "unknown", "../edition/dvc.yaml:crops"):
        monkeypatch.setenv("DVC_STAGE", name)
        with pytest.raises(SystemExit), noted_inputs():
            raise SystemExit(2)
        assert "DVC_STAGE" not in os.environ
    assert list(Path(".dvc").rglob("*.json")) == []
    monkeypatch.setenv("DVC_STAGE", "../edition/dvc.yaml:crops")
    with noted_inputs():
        raise SystemExit(0)
    (note,) = Path(".dvc").rglob("*.json")
    assert json.loads(note.read_text())["stage"] == "crops"
    # another one of a pipeline that this project does not write
    Path("dvc.yaml").write_text("stages:\n  crops:\n    foreach: [1]\n    do: {cmd: x}\n")
    monkeypatch.setenv("DVC_STAGE", "crops@1")
    with noted_inputs():
        pass


@pytest.mark.parametrize(
    ("name", "dep", "file"),
    [
        ("crops", "reviews", "data/crops.parquet"),
        ("export@standard", "data/votes/standard.parquet", "data/export/standard/n01443537/a.JPEG"),
    ],
)
def test_results_of_another_run_are_not_compared(
    name: str, dep: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as after dvc checkout of another branch, whose dvc.lock has other outputs."""
    folder = small_project(tmp_path, ".", name)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DVC_STAGE", name)
    with noted_inputs():
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text("result\n")
    change_file(Path(dep), "changed\n")
    lock(folder, name)
    assert len(misread_inputs(folder)) == 1
    Path(file).write_text("another\n")
    lock(folder, name)
    assert misread_inputs(folder) == []


def test_a_damaged_table_is_no_change_of_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DVC, which trusts its time, locks what an earlier stage wrote, and the stage has read other bytes."""
    folder = small_project(tmp_path, ".", "crops")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DVC_STAGE", "crops")
    change_file(Path("data/index.parquet"), "damaged\n")
    with noted_inputs():
        Path("data/crops.parquet").write_text("result\n")
    change_file(Path("data/index.parquet"), "before\n")
    lock(folder, "crops")
    content = yaml.safe_load(Path("dvc.lock").read_text())
    (index,) = [dep for dep in content["stages"]["crops"]["deps"] if dep["path"] == "./data/index.parquet"]
    content["stages"]["another"]["outs"] = [{"path": "data/index.parquet", "md5": index["md5"]}]
    Path("dvc.lock").write_text(yaml.safe_dump(content, sort_keys=False))
    ran_before = "crops ran before a change of data/index.parquet, which DVC has locked with it: wait"
    assert misread_inputs(folder, "wait") == [f"{folder}/dvc.lock: {ran_before}"]
    change_file(Path("data/index.parquet"), "damaged\n")
    assert misread_inputs(folder, "wait") == [
        f"{folder}/dvc.lock: crops has read data/index.parquet, damaged where DVC sees no change: run cleanset doctor, "
        "then dvc repro"
    ]


def test_a_large_dependency_is_known_by_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_inputs, "HASHED_BYTES", 3)
    folder = small_project(tmp_path, ".", "crops")
    monkeypatch.chdir(folder)
    path = Path("reviews/a.yaml")
    before = path.stat()
    monkeypatch.setenv("DVC_STAGE", "crops")

    def rewrite_in_place() -> None:
        with path.open("r+") as file:
            file.write("BEFORE")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    with pytest.raises(CleansetError, match="crops: reviews changed while the stage ran"), noted_inputs():
        rewrite_in_place()


@pytest.fixture
def edition(tmp_path: Path) -> Checkout:
    """An edition of two classes of three images each, ready for dvc repro, with clean images."""
    for number, key in enumerate(("cat", "dog")):
        (tmp_path / "photos" / key).mkdir(parents=True)
        for place in range(3):
            drawn_image(40, 40, seed=10 * number + place).save(tmp_path / "photos" / key / f"{place}.png")
    at = Checkout(tmp_path)
    at.run("git", "init", "--quiet")
    at.run("cleanset", "edition", "mine", "--images", "photos")
    params = tmp_path / "mine" / "params.yaml"
    params.write_text(params.read_text().replace("unreviewed: pending", "unreviewed: clean"))
    return Checkout(tmp_path / "mine")


def racing(at: Checkout, stage: str, before: str, after: str) -> Checkout:
    """The edition with a `cleanset` that changes params.yaml once a stage has ended, before DVC hashes it."""
    program = at.folder.parent / "bin" / "cleanset"
    program.parent.mkdir(exist_ok=True)
    change = f"sed -i 's/{before}/{after}/' {at.folder}/params.yaml; rm {program}"
    real = shutil.which("cleanset")
    lines = ["#!/bin/bash", f'"{real}" "$@"; code=$?', f'if [ "$1" = {stage} ]; then {change}; fi', "exit $code", ""]
    program.write_text("\n".join(lines))
    program.chmod(0o755)
    return Checkout(at.folder, {"PATH": f"{program.parent}:{os.environ['PATH']}"})


def images_of(at: Checkout) -> int:
    return len((at.folder / "data/export/images/manifest.csv").read_text().splitlines()) - 1


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_change_before_dvc_hashes_comes_with_the_next_repro(edition: Checkout) -> None:
    """Neither dvc.lock nor DVC's run cache keeps what was made without it."""
    race = racing(edition, "review_apply", "images_per_class: 3", "images_per_class: 2")
    done = race.run("dvc", "repro", check=False)
    assert done.returncode != 0
    assert (
        "dvc.lock: review_apply@images ran before a change of export.images_per_class in params.yaml, which DVC has "
        "locked with it: run dvc repro again"
    ) in done.stderr
    edition.run("dvc", "repro")
    assert images_of(edition) == 4
    assert edition.run("cleanset", "status").returncode == 0
    # from the run cache
    (edition.folder / "dvc.lock").unlink()
    edition.run("dvc", "repro")
    assert images_of(edition) == 4


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_change_after_the_last_stage_is_reported_and_mended(edition: Checkout) -> None:
    edition.run("dvc", "repro")
    params = edition.folder / "params.yaml"
    params.write_text(params.read_text().replace("images_per_class: 3", "images_per_class: 2"))
    edition.run("dvc", "repro", "select", "crops", "score_crops", "review_apply")
    race = racing(edition, "export", "images_per_class: 2", "images_per_class: 1")
    race.run("dvc", "repro", "--single-item", "export")
    line = (
        "export@images ran before a change of export in params.yaml, which DVC has locked with it: run cleanset "
        "doctor, then dvc repro"
    )
    status = edition.run("cleanset", "status", check=False)
    assert (status.returncode, f"dvc.lock: {line}" in status.stdout.splitlines()) == (1, True)
    verified = edition.run("cleanset", "verify", "data/export/images", check=False)
    assert (verified.returncode, "export@images ran before a change of export" in verified.stdout) == (1, True)
    (repaired,) = examine(edition.folder, quick=True).repaired
    assert "export@images ran before a change" in repaired
    edition.run("dvc", "repro")
    assert images_of(edition) == 2
    assert edition.run("cleanset", "status").returncode == 0


CHANGING = """
from pathlib import Path
from cleanset.edition.stage_inputs import noted_inputs
with noted_inputs():
    text = Path("input").read_text()
    if text == "two":
        Path("input").write_text("one")
    Path("output").write_text(text)
"""
"""A stage that copies a file, and changes it meanwhile where it is "two"."""


@pytest.mark.slow
@pytest.mark.long
def test_nothing_of_a_stage_that_failed_is_kept(tmp_path: Path) -> None:
    """There and back again: dvc.lock and DVC's run cache have the results of "one" alone."""
    at = Checkout(tmp_path)
    at.run("git", "init", "--quiet")
    at.run("dvc", "init", "--quiet")
    (tmp_path / "stage.py").write_text(CHANGING)
    (tmp_path / "dvc.yaml").write_text(
        "stages:\n  copy:\n    cmd: python stage.py\n    deps: [input]\n    outs: [output]\n"
    )
    (tmp_path / "input").write_text("one")
    at.run("dvc", "repro")
    locked = (tmp_path / "dvc.lock").read_bytes()
    (tmp_path / "input").write_text("two")
    failed = at.run("dvc", "repro", check=False)
    assert failed.returncode != 0
    assert "copy: input changed while the stage ran" in failed.stderr
    assert (tmp_path / "dvc.lock").read_bytes() == locked
    assert len([path for path in (tmp_path / ".dvc/cache/runs").rglob("*") if path.is_file()]) == 1
    at.run("dvc", "repro")
    assert (tmp_path / "output").read_text() == "one"
    assert misread_inputs(tmp_path) == []


def test_projects_and_a_dvc_at_work(tmp_path: Path) -> None:
    (tmp_path / "studies" / "attacks").mkdir(parents=True)
    (tmp_path / ".dvc" / "tmp").mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "studies" / "attacks"):
        (folder / "dvc.lock").touch()
    assert projects_in(tmp_path) == [tmp_path, tmp_path / "studies" / "attacks"]
    check_idle(tmp_path)
    with chdir(tmp_path):
        Path(".dvc/tmp/lock").touch()
        with Path(".dvc/tmp/lock").open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            with pytest.raises(CleansetError, match=r"DVC is running \(lock is held\): wait"):
                check_idle(Path())
