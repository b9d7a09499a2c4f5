"""Trainings on a Ray cluster: the bytes of this machine, and a node that dies; skips without Ray (make test-ray)."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cleanset.errors import CleansetError
from cleanset.studies.training import data, spread, train
from cleanset.studies.training.study import INSTRUCTIONS, TrainingStudy
from tests.checkouts import Checkout
from tests.scoring.cluster import WITH_TOKEN, lack_of_namespaces, two_nodes, wait_for
from tests.studies.training.coloured_study import coloured_study, write_params

pytestmark = pytest.mark.slow
pytest.importorskip("ray", reason="Ray is not installed: make test-ray")

TRAIN = [sys.executable, "-c", "from cleanset.cli import main; main()", "training", "train"]
# writes a line for each step, and waits in the third, or after as many as the file says, while there is a file of its
# node's name
HELD = """
import os, time
from pathlib import Path
from torch import nn

class Held(nn.Sequential):
    def forward(self, pixels):
        if self.training:
            folder, node = Path(__file__).parent, os.environ.get("NODE", "local")
            steps, hold = folder / f"steps-{node}", folder / f"hold-{node}"
            with steps.open("a") as file:
                print(len(pixels), file=file)
            begun = len(steps.read_text().splitlines())
            while hold.exists() and begun > int(hold.read_text() or 2):
                (folder / f"held-{node}").touch()
                time.sleep(0.05)
        return super().forward(pixels)

def network():
    node = os.environ.get("NODE", "local")
    (Path(__file__).parent / f"instructions-{node}").write_text(os.environ.get("MKL_CBWR", ""))
    layers = nn.Conv2d(3, 16, 3, stride=2), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Dropout(), nn.Linear(256, 3)
    return Held(*layers), "timm-bilinear-36-32"
"""
RUNS: dict[str, dict[str, Any]] = {
    "one": {"network": "held:network", "folds": 3, "epochs": 2},
    "two": {"epochs": 1, "folds": 0, "test": None},
}
STEPS = 3 * 2 * 2
"""In run one: three folds, two epochs, and 18 images in batches of eight."""


@pytest.fixture(scope="module", autouse=True)
def _on_this_machine() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in WITH_TOKEN.items():
            patch.setenv(name, value)
        patch.delenv("RAY_ADDRESS", raising=False)
        patch.setenv("CLEANSET_WORKERS", "1")
        # the command sets them, too
        for name, value in INSTRUCTIONS.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def local(small: Checkout, tmp_path_factory: pytest.TempPathFactory) -> TrainingStudy:
    """A study whose two runs are trained on this machine; not to be changed."""
    found = coloured_study(small.folder, tmp_path_factory.mktemp("drawn"))
    (found.folder / "held.py").write_text(HELD)
    data.run(found)
    write_params(found, **RUNS)
    # in processes of their own: torch chooses a processor's instructions once, perhaps in an earlier test
    for name in RUNS:
        subprocess.run([*TRAIN, "--run", name], cwd=found.folder, check=True)
    return found


@pytest.fixture
def study(local: TrainingStudy, tmp_path: Path) -> TrainingStudy:
    """A copy of the study, in which nothing is trained, with engine ray."""
    shutil.copytree(local.edition.folder.resolve(), tmp_path / "edition", symlinks=True)
    found = TrainingStudy(tmp_path / "edition" / "studies" / "training")
    shutil.rmtree(found.runs)
    (found.folder / "steps-local").unlink()
    write_params(found, {"engine": "ray"}, **RUNS)
    return found


def results(study: TrainingStudy, name: str) -> dict[str, bytes]:
    folder = study.run(name)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def steps(study: TrainingStudy) -> int:
    """The number of steps of run one that any worker has begun."""
    return sum(len(path.read_text().splitlines()) for path in study.folder.glob("steps-*"))


def test_all_runs_have_the_bytes_of_this_machine(study: TrainingStudy, local: TrainingStudy) -> None:
    train.run_grid(study, None)
    assert steps(study) == STEPS
    for name in RUNS:
        train.run(study, name)
        assert results(study, name) == results(local, name)
    assert steps(study) == STEPS


def test_ray_continues_what_this_machine_has_begun(study: TrainingStudy, local: TrainingStudy) -> None:
    """One fold is finished, the second in its second epoch."""
    write_params(study, **RUNS)
    (study.folder / "hold-local").write_text("6")
    with subprocess.Popen([*TRAIN, "--run", "one"], cwd=study.folder, stderr=subprocess.PIPE, text=True) as process:
        wait_for((study.folder / "held-local").exists, process)
        process.kill()
    (study.folder / "hold-local").unlink()
    assert steps(study) == 4 + 3
    write_params(study, {"engine": "ray"}, **RUNS)
    train.run(study, "one")
    assert steps(study) == STEPS + 1
    assert results(study, "one") == results(local, "one")


def test_a_run_that_fails_is_reported(study: TrainingStudy) -> None:
    write_params(study, {"engine": "ray"}, one={"network": {"name": "resnet5"}})
    with pytest.raises(CleansetError, match=r"^timm:'resnet5': no such network; expected a name of timm"):
        train.run(study, "one")


def test_a_node_that_finds_other_settings_is_refused(study: TrainingStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    # this process alone has other facts
    facts = spread._facts
    monkeypatch.setattr(spread, "_facts", lambda *given: {**facts(*given), "seed": 1})
    with pytest.raises(CleansetError, match=r"^Ray node .*: seed 0, expected 1; expected the edition, code and"):
        train.run(study, "one")


def test_a_node_is_killed_in_its_second_epoch(
    study: TrainingStudy, local: TrainingStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other node continues after the first; no more than the step that has begun is repeated."""
    for name in INSTRUCTIONS:
        monkeypatch.delenv(name)
    reason = lack_of_namespaces()
    if reason and os.environ.get("CLEANSET_NO_SKIP"):
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    with two_nodes() as (head, other):
        head.start()
        other.start()
        # the head would end alone otherwise, before the other has started its worker
        holds = [study.folder / f"hold-{node.address}" for node in (head, other)]
        for hold in holds:
            hold.touch()
        with head.run([*TRAIN, "--run", "one"], cwd=study.folder, stderr=subprocess.PIPE) as process:
            wait_for((study.folder / f"held-{other.address}").exists, process)
            other.kill()
            holds[0].unlink()
            assert process.wait() == 0, process.communicate()
    assert results(study, "one") == results(local, "one")
    assert len((study.folder / f"steps-{other.address}").read_text().splitlines()) == 3
    assert steps(study) == STEPS + 1
    # the command has set them, not the node
    instructions = [study.folder / f"instructions-{node.address}" for node in (head, other)]
    assert [path.read_text() for path in instructions] == ["COMPATIBLE"] * 2
