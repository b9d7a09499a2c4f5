"""Attacks on a Ray cluster: the bytes of this machine, after a change of engine; skips without Ray (make test-ray)."""

import json
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import pytest

from cleanset.errors import CleansetError
from cleanset.scoring.computation import Task
from cleanset.scoring.validity import MadeFrom
from cleanset.studies.attacks.attack_stage import run_attack
from cleanset.studies.attacks.attacking import Attacking, FoundGroup, Search
from cleanset.studies.attacks.study import AttackParams, AttackStudy, Budget
from tests.scoring.cluster import WITH_TOKEN
from tests.studies.attacks.conftest import contents, copied
from tests.studies.attacks.study import ROLE

pytestmark = pytest.mark.slow
pytest.importorskip("ray", reason="Ray is not installed: make test-ray")

SETTINGS = AttackParams.model_validate(
    {"attacks": {"pgd": {"steps": 2, "group": 1}, "spsa": {"steps": 2, "samples": 4}}, "engine": "ray"}
)
LOCAL = SETTINGS.model_copy(update={"engine": "local"})


@pytest.fixture(scope="module", autouse=True)
def _on_this_machine() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in WITH_TOKEN.items():
            patch.setenv(name, value)
        patch.delenv("RAY_ADDRESS", raising=False)
        patch.setenv("CLEANSET_WORKERS", "1")
        yield


def results_of(study: AttackStudy, name: str) -> dict[str, bytes]:
    return contents(study.results(name, ROLE).folder)


def test_the_same_bytes_as_on_this_machine_alone(study: AttackStudy, tmp_path: Path) -> None:
    other = copied(study, tmp_path / "other")
    run_attack(other, ROLE, "pgd", LOCAL)
    run_attack(study, ROLE, "pgd", SETTINGS)
    assert results_of(study, "pgd") == results_of(other, "pgd")
    assert len(results_of(study, "pgd")) == 6


def test_ray_continues_what_this_machine_has_begun(study: AttackStudy, tmp_path: Path) -> None:
    other = copied(study, tmp_path / "other")
    run_attack(other, ROLE, "spsa", LOCAL)
    results = Search.results

    def until_the_third(search: Search, tasks: Iterable[Task]) -> Generator[tuple[int, FoundGroup], None, None]:
        for number, found in results(search, tasks):
            if number == 2:
                raise CleansetError("interrupted")
            yield number, found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Search, "results", until_the_third)
        with pytest.raises(CleansetError, match="interrupted"):
            run_attack(study, ROLE, "spsa", LOCAL)
    assert len(list(study.results("spsa", ROLE).partial.rglob("0*.parquet"))) == 2
    run_attack(study, ROLE, "spsa", SETTINGS)
    assert results_of(study, "spsa") == results_of(other, "spsa")


def test_a_budget_of_queries_counts_groups_in_their_order(study: AttackStudy, tmp_path: Path) -> None:
    other = copied(study, tmp_path / "other")
    budget = Budget(queries=11)
    run_attack(other, ROLE, "spsa", LOCAL.model_copy(update={"budget": budget}))
    run_attack(study, ROLE, "spsa", SETTINGS.model_copy(update={"budget": budget}))
    assert results_of(study, "spsa") == results_of(other, "spsa")
    record = json.loads((study.results("spsa", ROLE).folder / "record.json").read_text())
    assert (record["images"], record["attacked"]) == (4, 2)


def test_a_node_that_finds_other_weights_is_refused(study: AttackStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    made_from = Attacking.made_from
    # this process alone has other facts
    monkeypatch.setattr(Attacking, "made_from", lambda *given: MadeFrom({**made_from(*given).facts, "seed": 1}))
    with pytest.raises(CleansetError, match=r"^Ray node .*: seed 0, expected 1; expected the edition, code and"):
        run_attack(study, ROLE, "pgd", SETTINGS)
