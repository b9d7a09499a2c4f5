"""Simulated people try a plan in a real browser; nothing of it is in the plan."""

import json
import re
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cleanset.errors import CleansetError
from cleanset.studies.realness import pilot
from cleanset.studies.realness.pilot import SeenTrial, SimulatedPerson
from cleanset.studies.realness.planning import PUBLISHED_FIT
from tests.studies.realness.conftest import SIZES, command, rows


def person(number: int, *, effect: float = 0.0, seed: int = 0) -> SimulatedPerson:
    return SimulatedPerson(number, seed, effect=effect, variances=PUBLISHED_FIT)


CHECKS = (
    (SeenTrial(kind="pair", stimulus="a", truth="right"), 1),
    (SeenTrial(kind="attention", stimulus="", truth="4"), 4),
    (SeenTrial(kind="plate", stimulus="b", truth="7"), 6),
    (SeenTrial(kind="plate", stimulus="c", truth="none"), 9),
)
"""What a careful person answers."""


def test_who_they_are() -> None:
    manners = [person(number).manner for number in range(10)]
    assert sorted(manners) == ["biased", "careful", "careful", "careful", "careful", "careful", "careful", "careful",
                               "careless", "fast"]  # fmt: skip
    assert [person(number).manner for number in range(10, 20)] == manners


@pytest.mark.parametrize(("trial", "choice"), CHECKS)
def test_careful_people_pass_all_checks_and_others_do_not(trial: SeenTrial, choice: int) -> None:
    careful = {person(0, seed=seed).answer(trial)[0] for seed in range(40)}
    careless = {person(2, seed=seed).answer(trial)[0] for seed in range(40)}
    biased = {person(8, seed=seed).answer(trial)[0] for seed in range(40)}
    assert careful == {choice}
    assert len(careless) > 1
    assert biased == {0}


def test_the_effect_is_that_of_careful_people() -> None:
    """For 400 people and 5 images of each kind; the end of the scale at 2 reduces it a little."""

    def mean(truth: str) -> float:
        trials = [SeenTrial(kind="image", stimulus=f"{truth}{number}", truth=truth) for number in range(5)]
        people = [person(10 * number, effect=-1.5) for number in range(400)]
        return float(sum(each.answer(trial)[0] for each in people for trial in trials) / 2000)

    assert mean("modified") - mean("real") == pytest.approx(-1.5, abs=0.45)


def test_the_same_seed_gives_the_same_answers() -> None:
    trials = [SeenTrial(kind="image", stimulus=f"{number}", truth="real") for number in range(20)]

    def answers(seed: int) -> list[object]:
        again = person(4, seed=seed)
        return [again.answer(trial) for trial in trials]

    assert answers(3) == answers(3)
    assert answers(3) != answers(4)
    seconds = sorted(person(0, seed=seed).answer(trials[0])[1] for seed in range(101))
    assert seconds[50] == pytest.approx(6, rel=0.25)


def test_payment_and_power_are_those_of_the_pilots_own_people() -> None:
    """Three of four are complete, and one is screened out after a minute: ten are until thirty are complete."""
    complete = [
        pilot.PilotPerson(manner="careful", seconds=180.0, end="Thank you", is_complete=True, is_screened_out=False)
    ] * 3
    stopped = pilot.PilotPerson(manner="fast", seconds=60.0, end="You cannot", is_complete=False, is_screened_out=True)
    found = pilot.Pilot(
        seed=0, settings=pilot.PilotSettings(wage=12), people=(*complete, stopped), planned_people=30, remaining=2,
        power=0.5, wanted_power=0.8, analysis="", screens=(),
    )  # fmt: skip
    _, _, _, payment, power, *_ = pilot.pilot_text(found, Path("out")).splitlines()
    assert payment == (
        "payment at 12 an hour: 0.60 each, 18.00 for 30 people; 2.00 for 10 people screened out on the way; "
        "20.00 in all"
    )
    assert power == ("power with the 30 people planned, 2 in 3 remaining after exclusions: 0.50 (wanted: 0.8)")
    alone = pilot.pilot_text(replace(found, people=tuple(complete[:1]), remaining=None, power=None), Path("out"))
    assert alone.startswith("1 simulated person, seed 0: 1 careful\n")
    assert "power with the 30 people planned: not known" in alone


seconds = st.integers(30, 3000).map(float)
person_of_pilot = st.one_of(
    seconds.map(lambda each: ("careful", each, True, False)),
    seconds.map(lambda each: ("fast", each, False, True)),
    seconds.map(lambda each: ("careless", each, False, False)),
)


@given(st.lists(person_of_pilot, min_size=1, max_size=12), st.integers(1, 40), st.integers(2, 60))
def test_pay_by_another_reckoning(people: list[tuple[Any, float, bool, bool]], wage: int, planned: int) -> None:
    """In exact fractions, person by person: who is screened out comes again for each complete person of the pilot."""
    complete = sorted(Fraction(int(seconds)) for _, seconds, is_complete, _ in people if is_complete)
    assume(complete)
    middle = complete[(len(complete) - 1) // 2] + complete[len(complete) // 2]
    per_second = Fraction(wage, 3600)
    each = per_second * middle / 2
    expected = [each, planned * each]
    screened = [Fraction(int(seconds)) for _, seconds, _, is_screened in people if is_screened]
    if screened:
        on_the_way = sum((per_second * one for one in screened), Fraction(0)) * planned / len(complete)
        expected += [on_the_way, planned * each + on_the_way]
    found = pilot.Pilot(
        seed=0, settings=pilot.PilotSettings(wage=wage), planned_people=planned, remaining=None, power=None,
        wanted_power=0.8, analysis="", screens=(),
        people=tuple(
            pilot.PilotPerson(manner=manner, seconds=took, end="", is_complete=is_complete, is_screened_out=is_screened)
            for manner, took, is_complete, is_screened in people
        ),
    )  # fmt: skip
    lines = pilot.pilot_text(found, Path("out")).splitlines()
    payment = next(line for line in lines if line.startswith("payment"))
    printed = [float(text.replace(",", "")) for text in re.findall(r"[\d,]+\.\d\d", payment)]
    assert printed == pytest.approx([float(value) for value in expected], abs=0.00501)


def test_the_power_of_those_who_remain() -> None:
    """For 120 people, 4,000,000 drawn estimates pass both tests in 89.8 % of cases."""
    record = {
        "list": {"real": 50, "modified": 50}, "images": {"real": 2966, "modified": 2966},
        "test": {"bound": 0.2, "alpha": 0.05, "effect": 0.0}, "variances": asdict(PUBLISHED_FIT),
    }  # fmt: skip
    assert [pilot._power(record, people) for people in (120, 1)] == [pytest.approx(0.898, abs=0.001), 0.0]


@pytest.mark.exhaustive
def test_a_pilot_of_the_published_protocol(export_folder: Path, attacked: Path, tmp_path: Path) -> None:
    """Three careful people of four end; the careless one fails the pairs. Every page of each window is photographed."""
    plan = tmp_path / "plan"
    parts = "protocol=as_published,plates=0,attention=2,pairs=4,min_correct_pairs=4,real=4,modified=4"
    command("plan", "--set", export_folder, "--attacked", attacked, "--out", plan, *SIZES[:3], parts)
    before = {path: path.read_bytes() for path in plan.rglob("*") if path.is_file()}
    said = command(
        "pilot", "--plan", plan, "--out", tmp_path / "pilot", "--people", "4", "--settings", "wage=12", "--seed", "1"
    )
    assert {path: path.read_bytes() for path in plan.rglob("*") if path.is_file()} == before
    assert "4 simulated people, seed 1: 3 careful, 1 careless\n" in said
    assert "complete: 3; 1 careless: You cannot continue to the main part\n" in said
    assert "payment at 12 an hour: " in said
    assert "protocol: as_published, but attention=2, pairs=4, min_correct_pairs=4, plates=0" in said
    record = json.loads((tmp_path / "pilot" / pilot.RESULT).read_text())
    careful = [each["seconds"] for each in record["people"] if each["manner"] == "careful"]
    assert all(60 + 14 * 3 < seconds < 60 + 14 * 12 for seconds in careful)
    answers = sorted((tmp_path / "pilot" / "plan" / "answers").glob("*.csv"))
    # 4 pairs, then 8 images and 2 checks; the careless one was stopped after the pairs
    assert sorted(len(rows(each)) for each in answers) == [4, 14, 14, 14]
    waited = [float(each["milliseconds"]) for path in answers for each in rows(path)]
    assert sorted(waited)[len(waited) // 2] == pytest.approx(6000, rel=0.5)
    assert [name.partition("-")[0] for name in record["screens"]].count("1280") == 5
    assert {name.rpartition("-")[2] for name in record["screens"]} == {
        "attention.png", "end.png", "image.png", "page.png", "pair.png",
    }  # fmt: skip
    assert (tmp_path / "pilot" / "analysis" / "images.csv").is_file()


@pytest.mark.long
def test_a_window_that_is_too_small_ends_a_pilot_in_words(export_folder: Path, attacked: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    command("plan", "--set", export_folder, "--attacked", attacked, "--out", plan, *SIZES, "--side", "900")
    with pytest.raises(CleansetError, match="in a window of 1280 x 800 the page says: This window is too small"):
        command("pilot", "--plan", plan, "--out", tmp_path / "pilot", "--people", "1")
    assert not (tmp_path / "pilot").exists()


@pytest.mark.long
def test_without_a_browser(
    export_folder: Path, attacked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pilot, "BROWSERS", ("no-such-browser",))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", "/nowhere")
    plan = tmp_path / "plan"
    command("plan", "--set", export_folder, "--attacked", attacked, "--out", plan, *SIZES)
    with pytest.raises(CleansetError, match="expected Chromium: install it, or run playwright install chromium"):
        command("pilot", "--plan", plan, "--out", tmp_path / "pilot", "--people", "1")
    assert not (tmp_path / "pilot").exists()
