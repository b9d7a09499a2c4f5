"""The files around the code: map, changelog, hooks, workflow and data pages agree with the tree."""

import ast
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.checkouts import Checkout
from tests.documents import shell

EDITIONS = (".", "imagenet", "imagenet-published")


def read(repository: Path, name: str) -> str:
    return (repository / name).read_text(encoding="utf-8")


def tree(repository: Path) -> str:
    """The tree of docs/architecture.md."""
    (block,) = re.findall(r"(?s)```\n(dvc\.yaml .*?)```", read(repository, "docs/architecture.md"))
    return str(block)


def parts(folder: Path) -> set[str]:
    """The packages, with a slash, and modules of a folder."""
    found = {f"{path.name}/" for path in folder.iterdir() if (path / "__init__.py").is_file()}
    return found | {path.name for path in folder.glob("*.py") if path.name != "__init__.py"}


def test_the_map_has_a_line_for_every_package_and_module(repository: Path) -> None:
    """Each once, with what it is; plumbing shares a line. That imports keep to the directions, import-linter checks."""
    lines = tree(repository).split("src/cleanset/\n")[1].splitlines()
    named: dict[str, list[str]] = {"": []}
    above = ""
    for line in lines:
        indent, names, subject = re.fullmatch(r"( +)(\S+(?: \S+)*) +(\S.+)", line).groups()  # type: ignore[union-attr]
        assert len(subject.split()) >= 3, line
        several = [f"{name}.py" for name in names.split()]
        folder = "" if len(indent) == 2 else above
        named.setdefault(folder, []).extend(several if len(several) > 1 else [names])
        above = above if folder else names
    for folder, found in named.items():
        assert sorted(found) == sorted(parts(repository / "src" / "cleanset" / folder)), folder or "src/cleanset"


def test_every_module_that_the_map_names_is_there(repository: Path) -> None:
    """In the folder of its line."""
    lines = tree(repository).split("src/cleanset/\n")[1].splitlines()
    folders: list[str] = []
    for line in lines:
        indent, name = re.match(r"( +)(\S+)", line).groups()  # type: ignore[union-attr]
        folders = [*folders[: len(indent) // 2 - 1], name]
        for inner in re.findall(r"\((\w+(?:\.py|/))\)", line):
            assert (repository / "src" / "cleanset" / "/".join(folders) / inner).exists(), line


def test_no_file_holds_an_unfinished_merge(repository: Path) -> None:
    found = subprocess.run(
        ("git", "grep", "-nIE", "^(<<<<<<<|>>>>>>>) "), cwd=repository, capture_output=True, text=True, check=False
    )
    assert found.stdout == ""
    assert found.returncode == 1, found.stderr  # nothing was found


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_page_in_data_names_every_output(edition: str, repository: Path) -> None:
    page = read(repository, f"{edition}/data/README.md")
    named = set(re.findall(r"(?m)^\| `([^`]+)` \| `(\w+)` ", page))
    outs = {
        (out.removeprefix("data/").replace("${item.model}", "<model>"), stage)
        for stage, entry in yaml.safe_load(read(repository, f"{edition}/dvc.yaml"))["stages"].items()
        # an out with options is a mapping with its path as the only key
        for out in (next(iter(each)) if isinstance(each, dict) else each for each in entry["outs"])
        if out.startswith("data/")
    }
    assert {(name.rstrip("/"), stage) for name, stage in named} == outs
    # made from lists: other archives, other scores
    if edition != "imagenet-published":
        assert page == read(repository, "data/README.md")


def test_git_takes_that_page_and_nothing_else_there(pristine: Checkout) -> None:
    for edition in EDITIONS:
        taken = f"{edition}/data/README.md"
        ignored = ["data/index.parquet", "data/raw/a.tar", "report/a", "data/a/b"]
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
    assert citation["license"] == "MIT"
    assert project["license"] == "MIT AND LicenseRef-WordNet"
    assert read(repository, "LICENSE").startswith("MIT License\n")
    changelog = read(repository, "CHANGELOG.md")
    assert "## [Unreleased]" in changelog or f"## [{project['version']}]" in changelog


def test_the_changelog_keeps_its_form(repository: Path) -> None:
    """Keep a Changelog's: versions in brackets, the newest first, and its six kinds of changes in their order."""
    versions = re.split(r"(?m)^## ", read(repository, "CHANGELOG.md"))[1:]
    heading = r"\[(Unreleased|\d+\.\d+\.\d+)\](?: - \d{4}-\d\d-\d\d)?"
    assert all(re.fullmatch(heading, version.partition("\n")[0]) for version in versions)
    kinds = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
    for version in versions:
        found = re.findall(r"(?m)^### (.+)$", version)
        assert found == [kind for kind in kinds if kind in found], version.partition("\n")[0]


def test_the_hooks_are_those_of_make_lint(repository: Path) -> None:
    hooks = yaml.safe_load(read(repository, ".pre-commit-config.yaml"))["repos"][0]["hooks"]
    recipe = re.search(r"(?m)^lint:.*\n((?:\t.*\n)+)", read(repository, "Makefile"))
    assert recipe is not None
    assert [hook["entry"] for hook in hooks] == [line.strip() for line in recipe[1].splitlines()]
    assert {hook["language"] for hook in hooks} == {"system"}


def test_the_workflow_and_ci_call_make_test(repository: Path) -> None:
    workflow = yaml.safe_load(read(repository, ".github/workflows/test.yml"))
    steps = [step.get("run") for step in workflow["jobs"]["test"]["steps"]]
    assert steps[-3:] == [
        "make test ALL=1", "make test-generate", 'sudo env "PATH=$PATH" CLEANSET_NO_SKIP=1 make test-ray',
    ]  # fmt: skip
    (environment,) = [step["env"] for step in workflow["jobs"]["test"]["steps"] if "env" in step]
    assert environment == {"PYTEST_ADDOPTS": "-m 'not real'", "CLEANSET_NO_SKIP": "1"}
    packages = set(re.findall(r"(?m)^packages=\"(.*)\"$", read(repository, ".ci/run"))[0].split())
    installed = set(re.findall(r"--no-install-recommends (.*)", "\n".join(filter(None, steps)))[0].split())
    assert installed == packages - {"chromium", "chromium-headless-shell"}
    assert read(repository, ".ci/run").endswith("\nmake test LONG=1\n")
    core = workflow["jobs"]["core"]
    tried = {(each["python"], each["versions"]) for each in core["strategy"]["matrix"]["include"]}
    assert tried == {("3.11", "lowest-direct"), *((each, "highest") for each in ("3.11", "3.12", "3.13"))}
    assert core["steps"][-1] == {"run": "python tests/project/core_use.py"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "--hypothesis-profile fast -m 'not exhaustive and not long'"),
        (("LONG=1",), "--no-loadscope-reorder  -m 'not exhaustive'"),
        (("ALL=1",), "--no-loadscope-reorder"),
    ],
)
def test_make_test_leaves_out_the_long_ones(arguments: tuple[str, ...], expected: str, repository: Path) -> None:
    # a make that runs the tests hands its own ALL=1 on
    handed_on = {"ALL", "LONG", "MAKEFLAGS", "MAKEOVERRIDES"}
    environment = {name: value for name, value in os.environ.items() if name not in handed_on}
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
    assert done.returncode == 0
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("make bench NAME=…, of ")]
    names = line.split(", of ")[1].split()
    assert set(names) == {path.stem for path in (repository / "bench").glob("*.py")} - {
        "measuring",
        "held_out",
        "planted",
    }
    assert shell(checkout, "make bench NAME=effor").returncode != 0
    run = shell(checkout, "make --dry-run --no-print-directory bench NAME=score OPTIONS=--help").stdout
    assert run.endswith("PYTHONPATH=sample:. python bench/score.py --help\n")


@pytest.mark.long
def test_module_docstrings_name_files_that_are_there(repository: Path) -> None:
    """A docstring of a part that was merged into the module would cite its old name."""
    elsewhere = {"make_imagenet_c.py", "make_imagenet_p.py", "corrupt.py", "eval_kit.py"}
    here = {
        path.name
        for folder in ("src", "sample", "bench", "tests", "docs")
        for path in repository.glob(f"{folder}/**/*.py")
    }
    missing = {
        f"{path.relative_to(repository)}: {name}"
        for path in repository.glob("src/**/*.py")
        for name in re.findall(r"\b\w+\.py\b", ast.get_docstring(ast.parse(path.read_text())) or "")
        if name not in here | elsewhere
    }
    assert missing == set()


def test_works_that_are_repeated_have_names(repository: Path) -> None:
    """No file speaks of a source by a number, which only the builders' own list would resolve."""
    done = subprocess.run(
        ["git", "grep", "--ignore-case", "-lE", r"sources?[ _-]00[0-9]", "--", ":!tests/project/test_house.py"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == ""
    terms = (repository / "docs" / "glossary.md").read_text()
    for name in ("SCOOTER", "XIMAGENET-12", "ImageNet-C, ImageNet-P", "Unrestricted Adversarial Examples"):
        assert f"\n| {name} | " in terms
