"""The files around the code: each says what is so."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.checkouts import Checkout
from tests.documents import shell

EDITIONS = (".", "imagenet")


def read(repository: Path, name: str) -> str:
    return (repository / name).read_text(encoding="utf-8")


def tree(repository: Path) -> str:
    """The tree of CONTRIBUTING.md."""
    (block,) = re.findall(r"(?s)```\n(dvc\.yaml .*?)```", read(repository, "CONTRIBUTING.md"))
    return str(block)


def test_the_map_names_every_package_and_module(repository: Path) -> None:
    package = repository / "src" / "cleanset"
    found = {f"{path.name}/" if path.is_dir() else path.name for path in package.iterdir() if path.name[0] not in "_."}
    found -= {"py.typed"}
    lines = tree(repository).split("src/cleanset/\n")[1].splitlines()
    (plumbing,) = [line for line in lines if line.startswith("  errors ")]
    named = {re.match(r"  (\S+)", line)[1] for line in lines if line != plumbing}  # type: ignore[index]
    named |= {f"{name}.py" for name in plumbing.split("  ")[1].split()}
    assert named == found


@pytest.mark.parametrize(
    ("question", "module", "words"),
    [
        ("how ties are broken", "selection/candidates.py", "Ties: the lower image id"),
        ("what an unreviewed image counts as", "review/decisions.py", "unreviewed_are_clean"),
        ("who may talk to it", "web/guard.py", "Who may talk to the server"),
        ("how an image is decoded and a crop is encoded", "images/codec.py", "def png("),
        ("which layouts of ImageNet are read", "dataset/layouts.py", "layout"),
    ],
)
def test_the_map_leads_to(question: str, module: str, words: str, repository: Path) -> None:
    """By the tree alone: the line of the folder says it, and names the module in which it is."""
    folder, name = module.split("/")
    (line,) = [line for line in tree(repository).splitlines() if line.startswith(f"  {folder}/ ")]
    assert f"{question} ({name})" in line
    assert words in read(repository, f"src/cleanset/{module}")


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_page_in_data_names_every_output(edition: str, repository: Path) -> None:
    page = read(repository, f"{edition}/data/README.md")
    named = set(re.findall(r"(?m)^\| `([^`]+)` \| `(\w+)` ", page))
    outs = {
        (out.removeprefix("data/").replace("${item.model}", "<model>"), stage)
        for stage, entry in yaml.safe_load(read(repository, f"{edition}/dvc.yaml"))["stages"].items()
        for out in entry["outs"]
        if isinstance(out, str) and out.startswith("data/")
    }
    assert {(name.rstrip("/"), stage) for name, stage in named} == outs
    assert page == read(repository, "data/README.md")


def test_git_takes_that_page_and_nothing_else_there(pristine: Checkout) -> None:
    for edition in EDITIONS:
        taken, ignored = f"{edition}/data/README.md", ["data/index.parquet", "data/raw/a.tar", "report/a", "data/a/b"]
        ignored += ["build/images/images.npy", "dvc_plots/index.html", "data/a.partial"]
        checked = pristine.run("git", "check-ignore", "--no-index", taken, *(f"{edition}/{name}" for name in ignored))
        assert checked.stdout.splitlines() == [f"{edition}/{name}" for name in ignored]
        assert pristine.run("git", "ls-files", taken).stdout != ""


def test_one_version(repository: Path) -> None:
    project = tomllib.loads(read(repository, "pyproject.toml"))["project"]
    citation = yaml.safe_load(read(repository, "CITATION.cff"))
    done = subprocess.run(["cleanset", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"cleanset {project['version']}\n"
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"] == "MIT"
    assert read(repository, "LICENSE").startswith("MIT License\n")
    assert "## Unreleased" in read(repository, "CHANGELOG.md") or f"## {project['version']}" in read(
        repository, "CHANGELOG.md"
    )


def test_the_hooks_are_those_of_make_lint(repository: Path) -> None:
    hooks = yaml.safe_load(read(repository, ".pre-commit-config.yaml"))["repos"][0]["hooks"]
    recipe = re.search(r"(?m)^lint:.*\n((?:\t.*\n)+)", read(repository, "Makefile"))
    assert recipe is not None
    assert [hook["entry"] for hook in hooks] == [line.strip() for line in recipe[1].splitlines()]
    assert {hook["language"] for hook in hooks} == {"system"}


def test_the_workflow_and_ci_call_make_test(repository: Path) -> None:
    workflow = yaml.safe_load(read(repository, ".github/workflows/test.yml"))
    steps = [step.get("run") for step in workflow["jobs"]["test"]["steps"]]
    assert steps[-2:] == ["make test ALL=1", "make test-ray test-generate"]
    assert read(repository, ".ci/run").endswith("\nmake --jobs=2 test ALL=1\n")


@pytest.mark.parametrize(
    ("arguments", "expected"), [((), "--hypothesis-profile fast -m 'not long'"), (("ALL=1",), "--no-loadscope-reorder")]
)
def test_make_test_leaves_out_the_long_ones(arguments: tuple[str, ...], expected: str, repository: Path) -> None:
    # a make that runs the tests hands its own ALL=1 on
    environment = {
        name: value for name, value in os.environ.items() if name not in {"ALL", "MAKEFLAGS", "MAKEOVERRIDES"}
    }
    done = subprocess.run(
        ["make", "--dry-run", "test", *arguments],
        cwd=repository, capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    (line,) = [line for line in done.stdout.splitlines() if " pytest " in line]
    assert line.rstrip().endswith(expected)


def test_make_bench_lists_what_can_be_measured(pristine: Checkout, repository: Path, tmp_path: Path) -> None:
    checkout = pristine.clone(tmp_path / "cleanset")
    (checkout.folder / ".venv").mkdir()
    (checkout.folder / ".venv" / ".ready").touch()
    done = shell(checkout, "make bench")
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("name one: make bench NAME=…, of ")]
    names = line.split(", of ")[1].split()
    others = {"hashing", "measuring", "simulation"}  # modules that the benches use
    assert set(names) == {path.stem for path in (repository / "bench").glob("*.py")} - others
    assert shell(checkout, "make bench NAME=effor").returncode != 0
    run = shell(checkout, "make --dry-run --no-print-directory bench NAME=score OPTIONS=--memory").stdout
    assert run.endswith("PYTHONPATH=sample:. python bench/score.py --memory\n")
