"""Who is excluded from an analysis, by which rule."""

from dataclasses import replace
from pathlib import Path

import pytest

from cleanset.errors import CleansetError
from cleanset.studies.realness.analysis import AnalysisSettings, ShownSizes, analyse, shown_sizes
from cleanset.studies.realness.exclusions import ExclusionLimits, exclusions, leave_out, repeated_lists
from cleanset.studies.realness.ratings import IMAGE_KINDS, Answer, AnswerKind, StudyAnswers, View
from tests.studies.realness.conftest import ANSWER_HEADER, VIEW, command, path_of, rows


def trial(person: str, list_name: str, position: int, kind: AnswerKind, milliseconds: float | None) -> Answer:
    place = {"is_trial": True, "list_name": list_name, "position": str(position)}
    return Answer(person, kind, milliseconds=milliseconds, **place)  # type: ignore[arg-type]


def trials(person: str, list_name: str, count: int, milliseconds: float | None = 900) -> tuple[Answer, ...]:
    """The first trials of a list, all of real images."""
    return tuple(trial(person, list_name, place, "real", milliseconds) for place in range(1, count + 1))


def test_who_is_excluded() -> None:
    """By default two failed attention checks, or one wrong pair; the rule is reported, and a person may break both."""
    failed = {"a": ("attention",), "b": ("attention",) * 2, "c": ("pair",), "d": ("pair", "attention", "attention")}
    checks = [Answer(person, kind, passed=False) for person, kinds in failed.items() for kind in kinds]  # type: ignore[arg-type]
    checks += [Answer(person, "pair", passed=True) for person in "abe"]
    answers = StudyAnswers((*(Answer(person, "real", "x", 1) for person in "abcde"), *checks))
    found = exclusions(answers)
    assert found.by_rule == {"attention": ("b", "d"), "comprehension": ("c", "d")}
    assert (found.checked, sorted(found.people)) == (5, ["b", "c", "d"])
    assert [each.person for each in leave_out(answers, found.people).ratings] == ["a", "e"]
    assert exclusions(answers, ExclusionLimits(attention=0, comprehension=1)).by_rule == {
        "attention": ("a", "b", "d"),
        "comprehension": (),
    }


def test_nobody_passes_by_answering_no_attention_check() -> None:
    """One failed check is allowed by default, so that no check at all is found only by a rule of its own."""
    checks = tuple(Answer(person, "attention", passed=True) for person in "aab")
    answers = StudyAnswers(checks + trials("a", "1", 3) + trials("b", "2", 3) + trials("c", "3", 3))
    assert exclusions(answers).people == frozenset()
    assert exclusions(answers).without_attention == ("c",)
    assert exclusions(answers, ExclusionLimits(min_attention=1)).by_rule["unchecked"] == ("c",)
    assert exclusions(answers, ExclusionLimits(min_attention=2)).by_rule["unchecked"] == ("b", "c")


def test_a_share_of_the_trials() -> None:
    """Half of a list is enough for a half; the lists of a person count together, an answer in two files counts once."""
    sizes = {"1": 4, "2": 4, "3": 8}
    given = trials("half", "1", 2) + trials("less", "2", 1) + trials("two", "1", 4) + trials("two", "3", 1)
    given += trials("less", "2", 1)
    found = exclusions(StudyAnswers(given), ExclusionLimits(min_share=0.5), sizes)
    assert found.by_rule["incomplete"] == ("less", "two")
    with pytest.raises(CleansetError, match="the answers of 'half': list '1' is not in the plan"):
        exclusions(StudyAnswers(given), ExclusionLimits(min_share=0.5), {"2": 4})


def test_one_rating_for_nearly_everything() -> None:
    given = {"same": [2] * 10, "nearly": [0] * 9 + [1], "varied": [-2] * 5 + [2] * 5}
    ratings = tuple(
        Answer(person, "real", str(place), each)
        for person, values in given.items()
        for place, each in enumerate(values)
    )
    answers = StudyAnswers(ratings)
    limits = {0.95: ("same",), 0.9: ("same",), 0.8: ("nearly", "same"), 1.0: ()}
    for limit, expected in limits.items():
        assert exclusions(answers, ExclusionLimits(max_same=limit)).by_rule["straight_lining"] == expected
    assert exclusions(answers).by_rule == {"attention": (), "comprehension": ()}


def test_a_share_that_is_exactly_the_limit_excludes_nobody() -> None:
    """.7 of 90 and .55 of 100 are not whole numbers in floating point."""
    ratings = tuple(Answer("a", "real", str(place), 1 if place < 63 else 2) for place in range(90))
    assert exclusions(StudyAnswers(ratings), ExclusionLimits(max_same=0.7)).by_rule["straight_lining"] == ()
    found = exclusions(StudyAnswers(trials("a", "1", 55)), ExclusionLimits(min_share=0.55), {"1": 100})
    assert found.by_rule["incomplete"] == ()


def test_too_fast_is_judged_by_the_median_of_images() -> None:
    """One pause does not make up for haste; checks and pairs are not counted, nor people without times."""
    given = (*trials("fast", "1", 4, 150), trial("fast", "1", 5, "real", 90_000))
    given += trials("slow", "2", 3, 300) + (trial("slow", "2", 4, "attention", 1),) * 4
    given += trials("untimed", "3", 3, None)
    found = exclusions(StudyAnswers(given), ExclusionLimits(min_milliseconds=300))
    assert found.by_rule["too_fast"] == ("fast",)
    with pytest.raises(CleansetError, match="no milliseconds"):
        exclusions(StudyAnswers(trials("untimed", "3", 3, None)), ExclusionLimits(min_milliseconds=300))


def test_a_list_of_two_people() -> None:
    """The first of equals by name is kept; a person excluded by another rule takes the list from nobody."""
    given = trials("ben", "1", 4) + trials("ada", "1", 3) + trials("cleo", "2", 4) + trials("dora", "2", 4)
    given += trials("emil", "3", 4)
    given += (trial("fay", "3", 1, "plate", 900),)  # screened out, and the list given out again
    answers = StudyAnswers(given)
    assert repeated_lists(answers) == exclusions(answers).repeated == {"1": ("ada", "ben"), "2": ("cleo", "dora")}
    assert exclusions(answers).people == frozenset()
    limits = ExclusionLimits(one_person_a_list=True)
    assert exclusions(answers, limits).by_rule["repeated_list"] == ("ada", "dora")
    careless = StudyAnswers((Answer("ben", "pair", passed=False), *given))
    assert exclusions(careless, limits).by_rule["repeated_list"] == ("dora",)


@pytest.mark.parametrize(
    "limits",
    [
        ExclusionLimits(min_attention=1),
        ExclusionLimits(min_share=0.5),
        ExclusionLimits(min_milliseconds=1),
        ExclusionLimits(one_person_a_list=True),
    ],
)
def test_published_ratings_have_no_lists_times_or_checks(limits: ExclusionLimits) -> None:
    with pytest.raises(CleansetError, match="no lists, times, sizes or checks; expected answers of the study's page"):
        exclusions(StudyAnswers((Answer("a", "real", "x", 1),)), limits)


@pytest.mark.parametrize(
    ("answered", "remedy"),
    [((), "allow more"), (trials("a", "1", 1), "check that --plan is the plan of these answers, or allow more")],
)
def test_all_excluded_is_reported_as_that(answered: tuple[Answer, ...], remedy: str) -> None:
    ratings = tuple(Answer(person, kind, "x", 1) for person in "ab" for kind in IMAGE_KINDS)
    checks = (Answer("a", "pair", passed=False), Answer("b", "pair", passed=False))
    message = (
        "all 2 people who rated images are excluded, by rule: comprehension 2; expected some who are not: " + remedy
    )
    with pytest.raises(CleansetError, match=message):
        analyse(StudyAnswers(ratings + checks + answered), AnalysisSettings())


def test_ratings_given_too_early_are_of_those_who_are_analysed() -> None:
    """Person 0 has a rating and an attention check; person 4, who failed the pair, is left out."""
    given = [
        replace(
            trial(f"{person}", "1", 4 * person + place, IMAGE_KINDS[place % 2], 900),
            image=f"{place}",
            rating=(person + place) % 5 - 2,
        )
        for person in range(5)
        for place in range(4)
    ]
    given = [replace(each, milliseconds=299) if number in (1, 16, 17) else each for number, each in enumerate(given)]
    given += [replace(trial("0", "1", 90, "attention", 100), passed=True), Answer("4", "pair", passed=False)]
    found = analyse(StudyAnswers(tuple(given)), AnalysisSettings(random="intercepts"))
    assert (found.people, found.fast) == (4, 1)


def test_published_people_who_give_one_rating(repository: Path) -> None:
    """Without a rule all 50 people of advpp are analysed, as published."""
    text = command("analyse", path_of(repository, "advpp"), "--settings", "random=intercepts")
    assert "50 people" in text
    assert "nobody excluded" in text
    text = command(
        "analyse", path_of(repository, "advpp"), "--settings", "random=intercepts", "--exclude", "max_same=0.6"
    )
    assert "48 people, 1,937 images, 4,800 ratings" in text
    assert "straight_lining 2, of 50 people" in text


def seen_at(person: str, width: int | None) -> Answer:
    """The rating of an image of this width in device pixels."""
    view = None if width is None else View(
        shown_width=width, shown_height=width, pixel_ratio=1.5, window_width=1280, window_height=800
    )  # fmt: skip
    return replace(trial(person, "1", 1, "real", 900), view=view)


def test_sizes_on_the_screen() -> None:
    """One image at another size is enough; an attention check has no size."""
    check = replace(seen_at("ada", 0), kind="attention")
    given = (seen_at("ada", 448), check, seen_at("bob", 448), seen_at("bob", 896), seen_at("cleo", None))
    answers = StudyAnswers(given)
    assert exclusions(answers, ExclusionLimits(max_shown=448)).by_rule["size"] == ("bob", "cleo")
    assert exclusions(answers, ExclusionLimits(min_shown=449)).by_rule["size"] == ("ada", "bob", "cleo")
    assert exclusions(answers, ExclusionLimits(min_shown=448, max_shown=896)).by_rule["size"] == ("cleo",)
    assert "size" not in exclusions(answers).by_rule
    with pytest.raises(CleansetError, match="no shown_width"):
        exclusions(StudyAnswers((seen_at("cleo", None),)), ExclusionLimits(max_shown=448))
    assert shown_sizes(answers) == ShownSizes(
        sizes={"448 x 448": 2, "896 x 896": 1}, pixel_ratios={"1.5": 3}, unknown=1
    )
    assert shown_sizes(StudyAnswers((Answer("ada", "real", "1", 2),))) is None


def test_rules_by_the_command(planned: Path, tmp_path: Path) -> None:
    """List 1 by two people: one skips the checks and half of the images; the others are fast."""
    key = {each["stimulus"]: each for each in rows(planned / "key.csv")}
    lines = [ANSWER_HEADER.strip()]
    for place, trial in enumerate(rows(planned / "trials.csv")):
        stimulus = key[trial["stimulus"]]
        ratings = {"real": str(1 + place % 2), "modified": str(-1 - place % 2)}
        answer = ratings.get(stimulus["kind"], stimulus["expected"])
        cells = (trial["list"], trial["position"], trial["stimulus"], answer)
        person = f"person{trial['list']}"
        lines.append(",".join((person, *cells, "400" if person == "person8" else "2000", VIEW)))
        if trial["list"] == "1" and stimulus["kind"] == "real":
            lines.append(",".join(("zoe", *cells, "2000", VIEW)))
    (tmp_path / "answers.csv").write_text("\n".join(lines) + "\n")
    arguments = ("analyse", tmp_path / "answers.csv", "--plan", planned, "--settings", "random=intercepts")
    text = command(*arguments)
    assert "9 people" in text
    assert "no attention check answered by 1: --exclude min_attention=1" in text
    assert "lists answered by several people: 1: --exclude one_person_a_list=yes" in text
    rules = "min_attention=1,min_share=0.5,min_milliseconds=500,one_person_a_list=yes"
    text = command(*arguments, "--exclude", rules)
    assert "7 people" in text
    rules = "attention 0, comprehension 0, unchecked 1, incomplete 1, too_fast 1, repeated_list 0, of 9 people"
    assert f"excluded by rule: {rules}" in " ".join(text.split())
    assert all(len(line.rstrip()) <= 80 for line in text.splitlines())
