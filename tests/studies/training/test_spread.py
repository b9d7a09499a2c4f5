"""Folds and runs on several workers: the bytes of one, after a kill too, and what stage train then takes over."""

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cleanset.errors import CleansetError
from cleanset.plumbing.file_locks import only_run
from cleanset.scoring import computation, engines
from cleanset.studies.training import data, fold_training, spread, train
from cleanset.studies.training.finished import unfinished_runs
from cleanset.studies.training.study import StudyInputs, TrainingStudy
from tests.checkouts import Checkout
from tests.studies.training.coloured_study import coloured_study, run, write_params
from tests.ten_images import FORK_SERVER

pytestmark = pytest.mark.slow
DEADLINE_SECONDS = 120
# with a folder "met" it waits until two processes train; with a file "hold" it stops once there are states of two folds
MET = """
import os, time
from pathlib import Path
from torch import nn

FOLDER = Path(__file__).parent

class Held(nn.Sequential):
    def forward(self, pixels):
        while (FOLDER / "hold").exists() and len(list(FOLDER.glob("data/runs/one.partial/*/state.pt"))) == 2:
            time.sleep(0.01)
        return super().forward(pixels)

def network():
    met = FOLDER / "met"
    if met.exists():
        (met / str(os.getpid())).touch()
        while len(list(met.iterdir())) < 2:
            time.sleep(0.01)
    layers = nn.Conv2d(3, 16, 3, stride=2), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Dropout(), nn.Linear(256, 3)
    return Held(*layers), "timm-bilinear-36-32"
"""
FOLDS: dict[str, Any] = {"network": "met:network", "folds": 3, "epochs": 2}


@pytest.fixture(scope="module")
def drawn(small: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study's edition, with the tables of its images; not to be changed."""
    found = coloured_study(small.folder, tmp_path_factory.mktemp("drawn"))
    (found.folder / "met.py").write_text(MET)
    data.run(found)
    return found.edition.folder.resolve()


@pytest.fixture
def study(drawn: Path, tmp_path: Path) -> TrainingStudy:
    return copied(drawn, tmp_path / "edition")


def copied(drawn: Path, folder: Path) -> TrainingStudy:
    shutil.copytree(drawn, folder, symlinks=True)
    return TrainingStudy(folder / "studies" / "training")


@pytest.fixture(autouse=True)
def _one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEANSET_WORKERS", "1")


@pytest.fixture
def two_workers(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def set_two() -> None:
        monkeypatch.setenv("CLEANSET_WORKERS", "2")
        for module in (computation, spread):
            monkeypatch.setattr(module, "available_cores", lambda: 2)

    return set_two


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of all files in a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def alone(drawn: Path, tmp_path: Path) -> dict[str, bytes]:
    """The files of run one in three folds, trained one after the other in this process."""
    other = copied(drawn, tmp_path / "other")
    write_params(other, one=FOLDS)
    run(other)
    found = contents(other.run("one"))
    assert len(found) == 3 * 4
    return found


@pytest.mark.long
def test_two_workers(study: TrainingStudy, alone: dict[str, bytes], two_workers: Callable[[], None]) -> None:
    write_params(study, one=FOLDS)
    met = study.folder / "met"
    met.mkdir()
    two_workers()
    run(study)
    assert contents(study.run("one")) == alone
    assert len({*met.iterdir()}) == 2
    assert sorted(path.name for path in study.runs.iterdir()) == ["one"]


def wait_for(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE_SECONDS
    while not is_so():
        assert time.monotonic() < end, "still waiting"
        time.sleep(0.005)


def run_in_two(folder: Path) -> None:
    os.environ["CLEANSET_WORKERS"] = "2"
    computation.available_cores = spread.available_cores = lambda: 2  # type: ignore[attr-defined]
    run(TrainingStudy(folder))


@pytest.mark.exhaustive
def test_a_kill_costs_an_epoch_of_each_worker(study: TrainingStudy, alone: dict[str, bytes]) -> None:
    """Two folds of three have begun; then one worker ends what two have left."""
    write_params(study, one=FOLDS)
    (study.folder / "met").mkdir()
    (study.folder / "hold").touch()
    process = FORK_SERVER.Process(target=run_in_two, args=(study.folder,))
    process.start()
    partial = study.partial("one")
    wait_for(lambda: len(list(partial.glob("*/state.pt"))) == 2)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    pids = [int(path.name) for path in (study.folder / "met").iterdir()]
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    assert not study.run("one").exists()
    assert len(list(partial.glob("*/state.pt"))) == 2
    (study.folder / "hold").unlink()
    run(study)
    assert contents(study.run("one")) == alone
    assert not partial.exists()


# in another process than that of a number
ELSEWHERE = """
if os.getpid() != {}:
    def network():
        while not list(FOLDER.glob("data/runs/one.partial/*/state.pt")):
            time.sleep(0.01)
        raise RuntimeError("no network today")
"""


def test_a_worker_that_fails_ends_the_others(study: TrainingStudy, two_workers: Callable[[], None]) -> None:
    """The message is of the fold; what the other has trained so far stays."""
    write_params(study, one=FOLDS | {"epochs": 100_000})
    (study.folder / "met.py").write_text(MET + ELSEWHERE.format(os.getpid()))
    two_workers()
    with pytest.raises(CleansetError, match=r"^met:network: raises RuntimeError \(no network today\)"):
        run(study)
    assert len(list(study.partial("one").glob("*/state.pt"))) == 1


@pytest.fixture
def grid(study: TrainingStudy) -> TrainingStudy:
    """Runs of two folds and of one, one whose network there is not, and one that two devices share."""
    runs = {
        "one": FOLDS | {"folds": 2}, "two": {"epochs": 1, "test": None},
        "wild": {"network": "timm:resnet5", "test": None}, "shared": {"devices": 2, "test": None},
    }  # fmt: skip
    write_params(study, {"grids": {"small": ["t*"], "mixed": ["two", "shared"]}}, **runs)
    return study


def unfinished(study: TrainingStudy) -> list[str]:
    inputs = StudyInputs.read(study)
    return unfinished_runs(inputs, list(inputs.params.runs))


def trains_nothing(*given: object, **named: object) -> None:
    raise AssertionError("trained again")


@pytest.mark.long
def test_all_runs(
    grid: TrainingStudy,
    drawn: Path,
    tmp_path: Path,
    two_workers: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Stage train only takes over what is trained; a run that fails costs no other."""
    other = copied(drawn, tmp_path / "other")
    shutil.copy(grid.params_yaml, other.params_yaml)
    for name in ("one", "two"):
        run(other, name)
    two_workers()
    with pytest.raises(
        CleansetError, match=r"^1 of 3 runs failed: wild; expected all to finish: see the messages above"
    ):
        train.run_grid(grid, None)
    told = capsys.readouterr()
    assert told.out == "2 of 3 runs are trained: dvc repro takes them over\n"
    assert told.err.splitlines()[0] == "shared: needs 2 devices; its stage trains it: run dvc repro"
    assert "wild, fold_01: timm:'resnet5': no such network; expected a name of timm" in told.err
    assert not list(grid.runs.glob("*/*/state.pt"))
    assert not any(grid.run(name).exists() for name in ("one", "two", "wild"))
    with monkeypatch.context() as patch:
        patch.setattr(fold_training, "train", trains_nothing)
        for name in ("one", "two"):
            run(grid, name)
    for name in ("one", "two"):
        assert contents(grid.run(name)) == contents(other.run(name))
        assert not grid.partial(name).exists()
    assert unfinished(grid) == ["wild", "shared"]


def test_a_grid(grid: TrainingStudy, capsys: pytest.CaptureFixture[str]) -> None:
    train.run_grid(grid, "small")
    assert [path.name for path in grid.runs.iterdir()] == ["two.partial"]
    run(grid, "two")
    train.run_grid(grid, "small")
    assert capsys.readouterr().out.splitlines() == [
        "1 of 1 runs are trained: dvc repro takes them over", "every run is finished",
    ]  # fmt: skip
    train.run_grid(grid, "mixed")
    told = capsys.readouterr()
    assert told.out == "every other run is finished\n"
    assert told.err == "shared: needs 2 devices; its stage trains it: run dvc repro\n"
    with pytest.raises(CleansetError, match=r"^unknown grid 'large'; expected one of small, mixed$"):
        train.run_grid(grid, "large")


def test_what_is_unfinished(grid: TrainingStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for DVC, other settings, seeds, images and code make results old; machines and libraries do not."""
    write_params(grid, two={"epochs": 1})
    assert unfinished(grid) == ["two"]
    run(grid, "two")
    assert unfinished(grid) == []
    record = grid.fold("two", "fold_01").record
    before = json.loads(record.read_text())
    record.write_text(json.dumps(before | {"device": "another", "versions": {}}))
    assert unfinished(grid) == []
    for change in ({"seed": 1}, {"data_sha256": "0"}, {"folds_sha256": "0"}, {"threads": 2}, {"code": ""}):
        record.write_text(json.dumps(before | change))
        assert unfinished(grid) == ["two"]
    record.write_text(json.dumps(before))
    write_params(grid, two={"epochs": 2})
    assert unfinished(grid) == ["two"]
    write_params(grid, two={"epochs": 1})
    assert unfinished(grid) == []
    record.unlink()
    assert unfinished(grid) == ["two"]


@pytest.fixture
def trained(grid: TrainingStudy) -> TrainingStudy:
    """Run two, which is trained and not taken over."""
    train.run_grid(grid, "small")
    return grid


def test_a_finished_fold_that_is_damaged(trained: TrainingStudy) -> None:
    weights = trained.partial("two") / "fold_01" / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(CleansetError, match=r"weights\.safetensors: missing or damaged since the training ended; exp"):
        run(trained, "two")


def test_a_finished_fold_of_other_settings(trained: TrainingStudy) -> None:
    write_params(trained, two={"epochs": 2, "test": None})
    with pytest.raises(CleansetError, match=r"two\.partial/fold_01: begun with epochs 1, now 2; expected the same set"):
        run(trained, "two")


def test_two_commands_at_once(trained: TrainingStudy) -> None:
    with only_run(trained.partial("two")), pytest.raises(CleansetError, match="another run is using this folder"):
        train.run_grid(trained, "small")


@pytest.mark.parametrize(("cores", "threads", "workers"), [(4, 1, 4), (4, 2, 2), (2, 4, 1), (8, 1, 5)])
def test_a_worker_has_the_threads_of_the_params(
    study: TrainingStudy, monkeypatch: pytest.MonkeyPatch, cores: int, threads: int, workers: int
) -> None:
    """Over five folds: the weights depend on the number of threads, which is fixed."""
    write_params(study, {"threads": threads, "folds": 5}, one=FOLDS | {"folds": 5})
    counts: list[int] = []

    def count(given: list[object], *_: object) -> None:
        counts.append(len(given))

    monkeypatch.delenv("CLEANSET_WORKERS")
    monkeypatch.setattr(spread, "available_cores", lambda: cores)
    monkeypatch.setattr(computation, "available_cores", lambda: cores)
    monkeypatch.setattr(engines, "compute", count)
    monkeypatch.setattr(spread, "WorkerProcess", lambda *_: None)
    folds = [spread.FoldOfRun("one", f"fold_{number:02d}") for number in range(1, 6)]
    spread.Trainings(inputs=StudyInputs.read(study), folds=folds).run(lambda *_: None)
    assert counts == [workers]
