"""The sample's training study as a DVC project, in miniature: the commands of docs/training.md."""

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from cleanset.studies.training.study import TrainingStudy
from tests.checkouts import Checkout
from tests.documents import block, shell

pytestmark = pytest.mark.exhaustive

VARY = "cd studies/training\ndvc exp run -S runs.standard.rate=0.01 train@standard"
PLAN = "cd studies/training\ncleanset plan --grid recipes"
SEVERAL = "cd studies/training\ndvc repro data\ncleanset training train --grid recipes"
KEPT = ("standard", "ex1", "ex2_random_background")
SMALL = {"size": 32, "batch": 8, "epochs": 1, "folds": 1}


@pytest.fixture(scope="module")
def checkout(built: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A clone with six training images of each class, and three runs of one epoch; what it trains is committed."""
    made = built.clone_with_data(tmp_path_factory.mktemp("training") / "cleanset").with_environment()
    made.run("python", "training_images.py", "--per-class", "6", cwd="sample")
    study = TrainingStudy(made.folder / "studies" / "training")
    params = yaml.safe_load(study.params_yaml.read_text())
    params["runs"] = {name: {**params["runs"][name], **SMALL} for name in KEPT}
    params["runs"]["ex1"]["test"] = ["original", "random_background"]
    params["grids"] = {"recipes": ["standard"], "ex2": ["ex1", "ex2_*"]}
    study.params_yaml.write_text(yaml.safe_dump(params, sort_keys=False))
    made.commit("Train in miniature")
    return made


def study_of(checkout: Checkout) -> TrainingStudy:
    return TrainingStudy(checkout.folder / "studies" / "training")


def test_runs_next_to_each_other(checkout: Checkout, repository: Path) -> None:
    """DVC takes the runs of a grid over, and trains the others; the lock is the one that it writes by itself."""
    study = study_of(checkout)
    lock = study.folder / "dvc.lock"
    lock.unlink()
    done = shell(checkout, block(repository, SEVERAL).replace("--grid recipes", "--grid ex2"))
    assert done.returncode == 0, done.stderr
    assert "2 of 2 runs are trained: dvc repro takes them over" in done.stdout
    taken_over = lock.read_bytes()
    lock.unlink()
    shutil.rmtree(study.runs)
    checkout.run("dvc", "repro", "--quiet", "--force", cwd="studies/training")
    assert lock.read_bytes() == taken_over
    checkout.commit("Train")
    assert "Data and pipelines are up to date" in checkout.run("dvc", "status", cwd="studies/training").stdout
    metrics = json.loads(checkout.run("dvc", "metrics", "show", "--json", cwd="studies/training").stdout)
    found = metrics[""]["data"]["metrics/accuracy/random_background.json"]["data"]
    assert sorted(found) == ["ex1", "ex2_random_background"]
    assert (study.report / "experiments.html").is_file()
    assert (study.costs / "costs.csv").is_file()
    assert not list(study.runs.glob("*.partial"))


def test_make_training_twice(checkout: Checkout) -> None:
    """The runs in parallel; the second time nothing is left to do, and git sees no change."""
    for _ in range(2):
        done = shell(checkout, "make training TRAINING_IMAGES=6")
        assert done.returncode == 0, done.stderr
        assert "metrics/accuracy/random_background.json" in done.stdout
        assert checkout.run("git", "status", "--porcelain").stdout == ""
    assert "Running stage" not in done.stdout


def test_a_plan(checkout: Checkout, repository: Path) -> None:
    """Finished runs are not measured; others are, and a budget stops what would start."""
    text = block(repository, PLAN)
    done = shell(checkout, text)
    assert (done.returncode, "done already: standard" in done.stdout) == (0, True), done.stderr
    study = study_of(checkout)
    aside = study.runs.rename(study.folder / "aside")
    done = shell(checkout, text.replace("recipes", "ex2 --steps 6"), COLUMNS="100")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in lines[1:4]] == ["computation", "ex1", "ex2_random_background"]
    # 48 of 72 images, eight at a time
    assert [line[2] for line in lines[2:4]] == ["48", "48"]
    before = study.params_yaml.read_text()
    study.params_yaml.write_text(re.sub("budget_hours: .*", "budget_hours: 0.00001", before))
    done = shell(checkout, text.replace("recipes", "ex2 --steps 2 --start"))
    assert done.returncode == 1
    assert re.search(r"ex2: [\d.e-]+ hours; expected at most 1e-05: run a part", done.stderr)
    study.params_yaml.write_text(before)
    assert not study.runs.exists()
    # what DVC's cache has is not trained again
    done = shell(checkout, text.replace("recipes", "ex2 --steps 2 --start"))
    assert (done.returncode, "every run is finished" in done.stdout) == (0, True), done.stderr
    assert "Running stage" not in done.stdout
    weights = Path("ex1") / "fold_01" / "weights.safetensors"
    assert (study.runs / weights).read_bytes() == (aside / weights).read_bytes()
    shutil.rmtree(study.runs)
    aside.rename(study.runs)


def test_a_varied_run(checkout: Checkout, repository: Path) -> None:
    """Another rate is an experiment with weights of its own; the histories of both are drawn."""
    study = study_of(checkout)
    before = (study.run("standard") / "fold_01" / "weights.safetensors").read_bytes()
    done = shell(checkout, block(repository, VARY))
    assert done.returncode == 0, done.stderr
    assert "runs.standard.rate" in done.stdout
    record = json.loads((study.run("standard") / "fold_01" / "record.json").read_text())
    assert record["settings"]["rate"] == 0.01
    assert (study.run("standard") / "fold_01" / "weights.safetensors").read_bytes() != before
    checkout.run("dvc", "repro", "--quiet", cwd="studies/training")
    checkout.run("dvc", "plots", "diff", "HEAD", cwd="studies/training")
    page = (study.folder / "dvc_plots" / "index.html").read_text()
    assert all(name in page for name in ('"workspace"', '"HEAD"', '"ex2_random_background"', '"validation"'))
