"""The guard over VERSION and deps: code that writes other bytes without saying so does not get through.

The sample is built from nothing and compared with the committed dvc.lock, stage by stage.
"""

import shutil
from pathlib import Path

import pytest

from tests.checkouts import Checkout
from tests.locks import lock_problems, parse_lock

LOCK = """
schema: '2.0'
stages:
  preprocess:
    cmd: cleanset preprocess
    deps:
    - {path: ./src/dataset/VERSION, md5: v1}
    - {path: raw.md5, md5: r1}
    outs:
    - {path: data/index.parquet, md5: i1}
  score@a:
    cmd: cleanset score --model a
    deps:
    - {path: ./src/scoring/VERSION, md5: v1}
    - {path: data/index.parquet, md5: i1}
    params:
      params.yaml:
        score.precision: float64
    outs:
    - {path: data/scores/a.json, md5: j1}
    - {path: data/scores/a.parquet, md5: s1}
  score_crops@a:
    cmd: cleanset score_crops --model a
    deps:
    - {path: ./src/scoring/VERSION, md5: v1}
    - {path: data/scores/a.json, md5: j1}
    outs:
    - {path: data/crop_scores/a.parquet, md5: c1}
  export@a:
    cmd: cleanset export --model a
    deps:
    - {path: ./src/exports/card.py, md5: e1}
    - {path: data/scores/a.json, md5: j1}
    outs:
    - {path: data/export/a, md5: x1.dir}
"""
"""A lock in miniature."""
UNDECLARED = "writes other bytes, though neither its VERSION nor a named module changed"
RESCORED = f"score {UNDECLARED}: raise src/scoring/VERSION, then run dvc repro and commit dvc.lock"
MUTATIONS = {
    "scoring": ("scoring/logits.py", "np.argsort(-probabilities", "np.argsort(probabilities"),
    "decoding": (
        "images/codec.py",
        "image.load()",
        'image.draft("L", None); image.load()',
    ),
}
"""A module below src/cleanset, what occurs once in it, and what a mistake puts in its place."""
CAUGHT_IN = {
    "scoring": ("score@standard", "src/cleanset/scoring/VERSION", "data/scores/standard.parquet"),
    "decoding": ("preprocess", "src/cleanset/dataset/VERSION", "data/index.parquet"),
}
"""The first stage that writes other bytes then, its VERSION, and what it writes."""


def problems(*replacements: tuple[str, str]) -> list[str]:
    """The findings when the lock above is rebuilt with replacements."""
    rebuilt = LOCK
    for old, new in replacements:
        assert old in rebuilt
        rebuilt = rebuilt.replace(old, new)
    return lock_problems(parse_lock(LOCK), parse_lock(rebuilt))


def test_the_same_lock_is_fine() -> None:
    assert problems() == []


def test_other_bytes_without_a_reason() -> None:
    """Only the first stage is reported: the others read what it wrote."""
    assert problems(("i1", "i2"), ("s1", "s2"), ("j1", "j2"), ("x1", "x2")) == [
        f"preprocess {UNDECLARED}: raise src/dataset/VERSION, then run dvc repro and commit dvc.lock "
        "(data/index.parquet)"
    ]
    assert problems(("s1", "s2")) == [f"{RESCORED} (data/scores/a.parquet)"]
    assert problems(("j1", "j2"), ("x1", "x2")) == [f"{RESCORED} (data/scores/a.json)"]
    assert problems(("x1", "x2")) == [
        f"export {UNDECLARED}: add the module that changed to its deps in dvc.yaml, then run dvc repro "
        "and commit dvc.lock (data/export/a)"
    ]


@pytest.mark.parametrize(
    ("old", "new", "stage", "what"),
    [
        ("./src/dataset/VERSION, md5: v1", "./src/dataset/VERSION, md5: v2", "preprocess", "src/dataset/VERSION"),
        ("path: raw.md5, md5: r1", "path: raw.md5, md5: r2", "preprocess", "raw.md5"),
        ("float64", "float32", "score", "its command or params"),
        ("score --model a", "score --model a --fast", "score", "its command or params"),
    ],
)
def test_a_lock_that_is_older_than_the_checkout(old: str, new: str, stage: str, what: str) -> None:
    """With other outs and without."""
    message = f"{stage} has other dependencies than the committed dvc.lock says ({what}): run dvc repro"
    for outs in ([], [("i1", "i2"), ("s1", "s2"), ("j1", "j2")]):
        lines = problems((old, new), *outs)
        assert [line.startswith(message) for line in lines if line.startswith(f"{stage} ")] == [True]


def test_a_stage_that_was_never_locked() -> None:
    only_first = LOCK.split("  score@a")[0]
    lines = lock_problems(parse_lock(only_first), parse_lock(LOCK))
    assert (
        lines[0]
        == "dvc.lock lacks score: run dvc repro and commit dvc.lock (data/scores/a.json, data/scores/a.parquet)"
    )


def test_paths_of_a_lock_in_a_folder() -> None:
    """The sample's draw writes ../data/raw/…, which the stages above read as data/raw/…"""
    (stage,) = parse_lock("stages: {draw: {cmd: x, outs: [{path: ../raw.md5, md5: r1}]}}", "sample").values()
    assert dict(stage.outs) == {"raw.md5": "r1"}


@pytest.mark.long
def test_the_sample_built_from_nothing_is_the_committed_one(rebuilt: Checkout) -> None:
    """Every stage wrote what dvc.lock says; metrics, raw.md5 and the plan's truth are as committed."""
    found = []
    for lock, folder in (("dvc.lock", "."), ("sample/dvc.lock", "sample")):
        committed = parse_lock(rebuilt.run("git", "show", f"HEAD:{lock}").stdout, folder)
        found += lock_problems(committed, parse_lock((rebuilt.folder / lock).read_text(), folder))
    assert found == [], "\n" + "\n".join(found)
    assert rebuilt.run("git", "status", "--porcelain").stdout == ""


def of_lock(checkout: Checkout) -> list[str]:
    """The guard's findings between the committed lock and the one in the checkout."""
    committed = parse_lock(checkout.run("git", "show", "HEAD:dvc.lock").stdout)
    return lock_problems(committed, parse_lock((checkout.folder / "dvc.lock").read_text()))


@pytest.fixture
def copy(small: Checkout, tmp_path: Path) -> Checkout:
    """A clone of the small edition with its data."""
    clone = small.clone(tmp_path / "cleanset")
    shutil.copytree(small.folder / ".dvc" / "cache", clone.folder / ".dvc" / "cache")
    clone.run("dvc", "checkout", "--quiet")
    return clone


def mutate(checkout: Checkout, module: str, old: str, new: str) -> None:
    path = checkout.folder / "src" / "cleanset" / module
    text = path.read_text()
    assert text.count(old) == 1, f"{module}: {old!r} occurs {text.count(old)} times; the mutation needs another place"
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    "mutation",
    [pytest.param("decoding", marks=pytest.mark.long), pytest.param("scoring", marks=pytest.mark.exhaustive)],
)
def test_a_changed_rule_without_a_raised_version_fails(mutation: str, copy: Checkout) -> None:
    """With VERSION raised and the lock committed it passes."""
    stage, version, out = CAUGHT_IN[mutation]
    mutate(copy, *MUTATIONS[mutation])
    assert "up to date" in copy.run("dvc", "status", stage).stdout  # DVC sees nothing
    copy.run("dvc", "repro", "--force", "--single-item", stage)
    name = stage.partition("@")[0]
    assert of_lock(copy) == [f"{name} {UNDECLARED}: raise {version}, then run dvc repro and commit dvc.lock ({out})"]

    (copy.folder / version).write_text("1000\n")
    assert copy.stages_run(stage) == [stage]
    (line,) = [line for line in of_lock(copy) if line.startswith(f"{name} ")]
    assert line.startswith(f"{name} has other dependencies than the committed dvc.lock says ({version}): run dvc repro")
    copy.commit("Raise the VERSION")
    copy.run("dvc", "repro", "--force", "--single-item", stage)
    assert of_lock(copy) == []
