"""Each part of the package imports only what its extra installs."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

import pytest
from packaging.utils import canonicalize_name
from PIL import Image

from cleanset.cli import extra_of
from cleanset.edition.paths import Edition
from cleanset.edition.versions import locked_versions
from cleanset.errors import install_command
from cleanset.studies.attacks.study import ATTACKS
from tests.documents import pages
from tests.extras import distributions_brought_by, environment_with, required_by_extra

# Imports modules of the package while every library is hidden that an extra does not bring; in a fork of that process
# those of an extra that brings more, and so on. Prints each extra with the error of its imports.
PROGRAM = """
import importlib, json, os, sys, traceback
from importlib.machinery import PathFinder
from tests.extras import Hiding, other_modules

parts = json.loads(sys.argv[1])

def try_imports(extra, modules, names):
    before, Hiding.hidden = Hiding.hidden, other_modules(names)
    try:
        assert "pdqhash" in Hiding.hidden or "pdqhash" in names
        assert not before or Hiding.hidden <= before, "the extra lacks what the one before it brings"
        for module in modules.split():
            importlib.import_module(f"cleanset.{module}")
        problem = ""
    except BaseException:
        problem = traceback.format_exc()
    print(json.dumps([extra, problem]), flush=True)
    for after, (parent, *part) in parts.items():
        if parent == extra:
            if not (process := os.fork()):
                try_imports(after, *part)
                os._exit(0)
            os.waitpid(process, 0)

sys.meta_path[sys.meta_path.index(PathFinder)] = Hiding
try_imports("", *parts.pop("")[1:])
"""
MODULES = {
    "": "cli loading sets.fetching.fetch sets.verify sets.rebuild sets.archive sets.image_set sets.description "
    "sets.published.image_set sets.published.source_images "
    "measure.evaluation measure.rendering measure.function report.hints report.look",
    "evaluate": "cli measure.run measure.function",
    "torch": "loading sets.torch_dataset",
    "study": "cli studies.realness.analysis_report studies.realness.mixed",
    "review": "cli studies.contest.judge_page.server review.page.server review.status "
    "review.agreement_report review.hints.background review.hints.hints studies.realness.serving "
    "studies.realness.pilot",
    "build": "cli edition.create edition.doctor scoring.ensemble report.pages sets.arrays "
    "measure.compare.report stages.preprocess stages.score stages.intersect stages.select stages.crops "
    "stages.score_crops stages.review_apply stages.export stages.count stages.report "
    "studies.realness.analysis_report studies.realness.planning",
}
"""By extra, "" being the core, the modules for which it is enough."""
AFTER = {"evaluate": "torch", "build": "torch"}
"""Extras that bring all that another one brings, whose imports come first; for the others, the core's."""


@pytest.fixture(scope="module")
def problems(repository: Path) -> dict[str, str]:
    """By extra, the error with which its modules cannot be imported; "" where they can."""
    required = required_by_extra(repository)
    found = re.findall(
        r"(?m)^from cleanset(?:\.(\S+))? import (\w+)", (repository / "docs" / "reference.py").read_text()
    )
    assert ("", "tables") in found
    modules = MODULES | {"docs": " ".join(["cli", *(package or name for package, name in found)])}
    parts = {
        extra: (AFTER.get(extra, ""), named, required[""] + (required[extra] if extra else []))
        for extra, named in modules.items()
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(parts)],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.mark.exhaustive
@pytest.mark.parametrize("extra", MODULES)
def test_what_an_extra_brings_is_enough(extra: str, problems: dict[str, str]) -> None:
    assert problems[extra] == ""


@pytest.mark.parametrize(
    ("module", "command", "extras"),
    [
        ("torch", "evaluate standard", "evaluate"),
        ("torch", "robustness evaluate", "evaluate,robustness"),
        ("cv2", "robustness change", "build,robustness"),
        ("foolbox", "attacks evaluate", "evaluate,robustness,attacks"),
        ("imagecorruptions", "plan robustness evaluate", "evaluate,robustness"),
        ("torch", "plan evaluate", "evaluate"),
        ("segmentation_models_pytorch", "training train", "build,robustness,training"),
        ("nicegui", "review serve", "review"),
        ("playwright", "study pilot", "pilot"),
    ],
)
def test_all_extras_of_a_command_are_named_at_once(module: str, command: str, extras: str) -> None:
    assert extra_of(module, command) == extras


def test_the_extras_of_attacks_bring_the_library_of_each(repository: Path) -> None:
    """Which an attack imports when it searches, so that its module alone does not show it."""
    required = required_by_extra(repository)
    brought = distributions_brought_by(
        name for extra in ("", "evaluate", "robustness", "attacks") for name in required[extra]
    )
    needed = {name: {*map(canonicalize_name, attack.libraries)} for name, attack in ATTACKS.items()}
    assert {name: each - brought for name, each in needed.items() if each - brought} == {}


@pytest.mark.slow
def test_the_site_needs_no_other_extra(problems: dict[str, str]) -> None:
    """What docs/reference.py imports to fill in the reference."""
    assert problems["docs"] == ""


def test_the_lock_has_what_the_pipeline_and_the_tests_need(repository: Path) -> None:
    text = (repository / "requirements.txt").read_text()
    required = required_by_extra(repository)
    names = {name.lower() for extra in ("", "build", "review", "text", "dev") for name in required[extra]}
    assert set(locked_versions(text, names)) == names
    pinned = re.findall(r'"([\w-]+)==([\d.]+)"', (repository / "pyproject.toml").read_text())
    assert ("torch", "2.11.0") in pinned
    assert locked_versions(text, [name for name, _ in pinned]) == dict(pinned)


def a_set(folder: Path) -> Path:
    """A folder with one image, in the folder of its class."""
    path = folder / "set" / "n01440764" / "red.png"
    path.parent.mkdir(parents=True)
    Image.new("RGB", (8, 8), "red").save(path)
    return folder / "set"


@pytest.mark.long
@pytest.mark.slow
def test_a_library_that_is_not_there_is_reported(tmp_path: Path) -> None:
    """As from a core without extras: one line that says which extra."""
    hidden = (
        "import sys; sys.modules[{0!r}] = None; from cleanset.cli import main; sys.argv = ['cleanset', *{1}]; main()"
    )
    for module, command, extra in (
        ("pyarrow", ["count", "--edition", str(tmp_path)], "build"),
        ("torch", ["evaluate", str(a_set(tmp_path)), "--model", "timm:resnet50.a1_in1k"], "evaluate"),
        ("uvicorn", ["review", "serve", "--edition", str(tmp_path), "--reviewer", "ada"], "review"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", hidden.format(module, command)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert done.stderr == (
            f"error: {module}: not installed, and this command needs it: {install_command(extra)} (evaluate: any torch "
            "and timm; build: libraries of the stages; review: the review page; robustness, attacks and training: "
            "studies)\n"
        )


PROMISE = re.compile(
    r"\b[Nn]eeds? (?:no|neither|nothing)(?: of| a)? (?:torch|GPU|network|extra|edition|the edition)\b"
    r"|\b[Nn]either torch\b|\bpackage alone\b|\b(?:GPU|server) is (?:not )?needed\b|\bruns on a CPU\b"
    r"|\b[Ww]ithout (?:extras|internet|external|DVC|torch|a server|a model or|this project|the edition)\b"
    r"|\b[Nn]othing (?:below|on this page)\b|\bunder 300 MB\b"
)
CORE = "tests/project/test_extras.py::test_the_core_alone_without_a_network"
FETCHING = "tests/project/test_documents.py::test_using_a_published_set"
LOOKING = "tests/report/test_look.py::test_search_and_filters_in_a_browser"
RELEASE = "tests/sets/test_release.py::test_the_command_checks_a_release_without_its_edition"
REVIEWING = "tests/project/test_extras.py::test_reviewing_without_torch_and_internet"
SECOND_TIME = "tests/sets/fetching/test_fetch.py::test_no_network_the_second_time"
PROMISED = {
    "README.md": {"neither torch": CORE, "server is needed": LOOKING},
    "docs/curate.md": {"Nothing below": "tests/remotes/test_without_gpu.py::test_a_changed_review"},
    "docs/dvc.md": {"without DVC": FETCHING},
    "docs/evaluate.md": {"without external": "tests/report/test_boxes.py::test_a_set_and_its_evaluation"},
    "docs/install.md": {"package alone": CORE, "neither torch": CORE},
    "docs/own_model.md": {"runs on a CPU": "tests/project/test_documents.py::test_measuring_models"},
    "docs/predictions.md": {"needs no extra": CORE, "neither torch": CORE},
    "docs/problems.md": {"need neither a GPU": REVIEWING},
    "docs/publish.md": {"without the edition": RELEASE},
    "docs/published_lists.md": {"without a model or": "tests/stages/test_list_models.py::test_scores_need_no_torch"},
    "docs/published_set.md": {
        "needs no torch": CORE,
        "GPU is not needed": "tests/project/test_documents.py::test_measuring_models",
    },
    "docs/review.md": {"without internet": REVIEWING},
    "docs/robustness.md": {"needs no edition": "tests/project/test_documents.py::test_a_table_of_robustness"},
    "docs/study.md": {"needs no network": "tests/studies/realness/test_page.py::test_our_files_name_no_other_host"},
    "docs/tutorial.md": {"needs nothing of the edition": RELEASE},
    "docs/use.md": {
        "without this project": "tests/sets/test_libraries.py::test_torchvision",
        "Nothing on this page": FETCHING,
        "without extras": FETCHING,
        "needs no network": SECOND_TIME,
        "without a server": LOOKING,
    },
    "docs/decisions/images_sha256.md": {
        "without this project": "tests/review/test_accepted.py::test_sha256sum_reads_the_digests"
    },
    "docs/decisions/no_torch_in_the_core.md": {"without torch": CORE, "under 300 MB": CORE},
    "docs/decisions/own_fetcher.md": {"without DVC": FETCHING},
    "docs/reference/commands.md": {
        "without a server": LOOKING,
        "need no torch": CORE,
    },
    "docs/reference/python.md": {"needs no network": SECOND_TIME},
}
"""By page: every promise that something is not needed, and the test that keeps it."""


def test_every_promise_that_something_is_not_needed_has_a_test(repository: Path) -> None:
    found = {
        page: sorted({each[0] for each in PROMISE.finditer(" ".join((repository / page).read_text().split()))})
        for page in pages(repository)
    }
    assert {page: each for page, each in found.items() if each} == {
        page: sorted(each) for page, each in PROMISED.items()
    }
    for of_page in PROMISED.values():
        for test in of_page.values():
            path, name = test.split("::")
            assert f"def {name}" in (repository / path).read_text(), test


@pytest.mark.exhaustive
def test_the_core_alone_without_a_network(repository: Path, tmp_path: Path) -> None:
    """The published set is made, verified, rebuilt, packed, shown and measured: no extra, no DVC, no socket."""
    libraries = environment_with(repository, tmp_path / "site", network=False)
    done = subprocess.run(
        [sys.executable, repository / "tests" / "project" / "core_use.py"],
        cwd=repository,
        env={"PATH": os.defpath, "HOME": str(tmp_path)} | libraries,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(": 2,857 images\n")
    brought = distributions_brought_by(required_by_extra(repository)[""])
    files = {
        Path(str(path.locate()))
        for each in metadata.distributions()
        if canonicalize_name(each.name) in brought
        for path in each.files or []
    }
    assert 100 < sum(path.stat().st_size for path in files if path.is_file()) / 1e6 < 300


@pytest.mark.long
def test_reviewing_without_torch_and_internet(repository: Path, own: Edition, tmp_path: Path) -> None:
    """The review page is served by the core and the extra `review`; no process opens a connection."""
    libraries = environment_with(repository, tmp_path / "site", "review", network=False)
    assert "torch" in (tmp_path / "site" / "sitecustomize.py").read_text()
    edition = tmp_path / "own"
    shutil.copytree(own.folder, edition)
    serving = subprocess.Popen(
        [sys.executable, "-m", "cleanset", "review", "serve", "--reviewer", "ada", "--port", "0", "--no-browser"],
        cwd=edition,
        env={"PATH": os.defpath, "HOME": str(tmp_path)} | libraries,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert serving.stdout is not None
    try:
        (address,) = re.findall(r"http://\S+", serving.stdout.readline())
        with build_opener(HTTPCookieProcessor()).open(address) as answer:
            assert "ada" in answer.read().decode()
    finally:
        serving.kill()
        serving.communicate()


def test_predictions_are_evaluated_by_the_core_alone(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "predictions.csv").write_text("image,class_index\nn01440764/red.png,0\n")
    program = "import sys, cleanset; print(cleanset.evaluate(sys.argv[2], sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", program, str(a_set(tmp_path)), str(tmp_path / "predictions.csv")],
        env=environment_with(repository, tmp_path / "site", network=False),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "1 image" in " ".join(done.stdout.split())
    assert "100.00 %" in done.stdout
