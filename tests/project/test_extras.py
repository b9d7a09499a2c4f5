"""Each part of the package imports only what its extra installs."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from cleanset.cli import extra_of
from cleanset.edition.versions import locked_versions
from cleanset.errors import install_command
from tests.extras import required_by_extra

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
"""Extras that bring all that another one brings, whose imports come first; of the others, the core's."""


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
def test_a_library_that_is_not_there_is_named(tmp_path: Path) -> None:
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


CORE_ALONE = """
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from tests.extras import Hiding, other_modules, required_by_extra

Hiding.hidden = other_modules(required_by_extra(Path.cwd())[""])
sys.meta_path[sys.meta_path.index(PathFinder)] = Hiding
import cleanset
print(cleanset.evaluate(sys.argv[2], sys.argv[1]))
"""


def test_predictions_are_evaluated_by_the_core_alone(repository: Path, tmp_path: Path) -> None:
    """Without scipy, pyarrow, torch: as docs/evaluate.md has it."""
    (tmp_path / "predictions.csv").write_text("image,class_index\nn01440764/red.png,0\n")
    done = subprocess.run(
        [sys.executable, "-c", CORE_ALONE, str(a_set(tmp_path)), str(tmp_path / "predictions.csv")],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "1 image" in " ".join(done.stdout.split())
    assert "100.00 %" in done.stdout
