"""Attacks by several worker processes: the bytes of one, after a kill and a change of engine, within a budget."""

import json
import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from cleanset.scoring import computation as engine
from cleanset.scoring.computation import Task
from cleanset.studies.attacks import evaluated_models
from cleanset.studies.attacks.attack_stage import run_attack
from cleanset.studies.attacks.attacking import Attacking, FoundGroup, Search, Spending
from cleanset.studies.attacks.study import AttackParams, AttackStudy, Budget
from tests.finished_shards import finished_shards
from tests.studies.attacks.conftest import contents, copied
from tests.studies.attacks.study import ROLE
from tests.ten_images import FORK_SERVER

pytestmark = pytest.mark.slow

SETTINGS = AttackParams.model_validate(
    {
        "search_precision": "float32",
        "attacks": {
            "pgd": {"steps": 2, "group": 1},
            "spsa": {"steps": 2, "samples": 4},
            "boundary": {"queries": 6, "group": 1},
        },
    }
)
DEADLINE_SECONDS = 240


def wait_for(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE_SECONDS
    while not is_so():
        assert time.monotonic() < end, "still waiting"
        time.sleep(0.02)


def finished_groups(study: AttackStudy, name: str) -> list[str]:
    return finished_shards(study.results(name, ROLE).partial)


@pytest.fixture(scope="module")
def alone(made: AttackStudy, tmp_path_factory: pytest.TempPathFactory) -> AttackStudy:
    """A study that one worker has attacked; not to be changed."""
    study = copied(made, tmp_path_factory.mktemp("alone") / "edition")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLEANSET_WORKERS", "1")
        for name in SETTINGS.attacks:
            run_attack(study, ROLE, name, SETTINGS)
    return study


def with_two_workers(study: AttackStudy, name: str, settings: AttackParams = SETTINGS, *, until: int = 1) -> None:
    """Attack with this process and another one; this one finishes its first group after `until` of the other's."""
    results = Search.results

    def later(search: Search, tasks: Iterable[Task]) -> Generator[tuple[int, FoundGroup], None, None]:
        for number, found in results(search, tasks):
            wait_for(lambda: len(finished_groups(study, name)) >= until)
            yield number, found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "available_cores", lambda: 2)
        patch.delenv("CLEANSET_WORKERS", raising=False)
        patch.setattr(Search, "results", later)
        run_attack(study, ROLE, name, settings)


def results_of(study: AttackStudy, name: str) -> dict[str, bytes]:
    return contents(study.results(name, ROLE).folder)


@pytest.mark.long
def test_processes_that_make_the_files_next_to_a_device(
    alone: AttackStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = copied(alone, tmp_path / "edition")
    shutil.rmtree(study.results("pgd", ROLE).folder)
    monkeypatch.setenv("CLEANSET_WORKERS", "1")
    monkeypatch.setattr(evaluated_models, "writers_beside", lambda device: 2)
    run_attack(study, ROLE, "pgd", SETTINGS)
    assert results_of(study, "pgd") == results_of(alone, "pgd")


@pytest.mark.long
@pytest.mark.parametrize("name", [*SETTINGS.attacks])
def test_the_same_bytes_with_two_workers(name: str, study: AttackStudy, alone: AttackStudy) -> None:
    with_two_workers(study, name)
    assert results_of(study, name) == results_of(alone, name)
    assert len(results_of(study, name)) == 6


def test_a_worker_computes_with_one_thread(study: AttackStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradients of large networks depend on the number of threads, in the last digits."""
    counts, rows = list[int](), Attacking.rows

    def watched(attacking: Attacking, *given: Any) -> pd.DataFrame:
        counts.append(torch.get_num_threads())
        return rows(attacking, *given)

    monkeypatch.setattr(Attacking, "rows", watched)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        run_attack(study, ROLE, "spsa", SETTINGS)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert counts == [1] * 4


def killed_after_two_groups(folder: Path) -> None:
    study = AttackStudy(folder)
    results = Search.results

    def endless(search: Search, tasks: Iterable[Task]) -> Generator[tuple[int, FoundGroup], None, None]:
        # this process keeps its own group open, the first one
        for number, found in results(search, tasks):
            wait_for(lambda: len(finished_groups(study, "pgd")) >= 2)
            (worker,) = multiprocessing.active_children()
            (folder / "worker").write_text(str(worker.pid))
            os.kill(os.getpid(), signal.SIGKILL)
            yield number, found

    Search.results = endless  # type: ignore[method-assign, assignment]
    vars(engine)["available_cores"] = lambda: 2
    os.environ.pop("CLEANSET_WORKERS", None)
    run_attack(study, ROLE, "pgd", SETTINGS)


@pytest.mark.exhaustive
def test_one_worker_continues_what_two_have_begun(
    study: AttackStudy, alone: AttackStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = FORK_SERVER.Process(target=killed_after_two_groups, args=(study.folder,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    # the group of the killed process is missing before others
    finished = finished_groups(study, "pgd")
    assert "00000.parquet" not in finished
    assert len(finished) >= 2
    worker = int((study.folder / "worker").read_text())
    wait_for(lambda: not Path(f"/proc/{worker}").exists())
    monkeypatch.setenv("CLEANSET_WORKERS", "1")
    run_attack(study, ROLE, "pgd", SETTINGS)
    assert results_of(study, "pgd") == results_of(alone, "pgd")


@pytest.mark.long
def test_a_budget_of_queries_counts_groups_in_their_order(study: AttackStudy, tmp_path: Path) -> None:
    # the images take 10, 5, 5 and 10 queries
    limited = SETTINGS.model_copy(update={"budget": Budget(queries=11)})
    other = copied(study, tmp_path / "other")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLEANSET_WORKERS", "1")
        run_attack(other, ROLE, "spsa", limited)
    # the other process finishes three groups, before this one has finished the first
    with_two_workers(study, "spsa", limited, until=3)
    assert results_of(study, "spsa") == results_of(other, "spsa")
    record = json.loads((study.results("spsa", ROLE).folder / "record.json").read_text())
    assert (record["images"], record["attacked"]) == (4, 2)


def test_which_groups_a_budget_of_queries_has() -> None:
    spending = Spending(Budget(queries=10), {2: 100})
    # what a later group has taken stops none before it
    assert [spending.may_begin(number) for number in (0, 1, 3)] == [True, True, False]
    assert spending.counted_groups() == 0
    for number in (1, 0):
        spending.begin(number)
        spending.finish(number, 5, 1.0)
    assert not spending.may_begin(2)
    assert spending.counted_groups() == 2
    assert Spending(Budget(queries=11), {0: 5, 1: 5, 2: 100}).counted_groups() == 3
    assert Spending(Budget(), {0: 5, 1: 5, 3: 5}).counted_groups() == 2


def test_seconds_are_the_sum_over_workers() -> None:
    now = 0.0
    spending = Spending(Budget(seconds=10), {}, clock=lambda: now)
    spending.begin(0)
    spending.begin(1)
    now = 4.0
    assert spending.seconds() == 8
    assert spending.may_begin(2)
    spending.finish(1, 1, 4.0)
    now = 6.0
    assert spending.seconds() == 10
    assert not spending.may_begin(2)
    # however little time is given
    assert spending.may_begin(0)
