"""The lists of a plan: balanced, seeded, and nobody sees an image and what was made of it."""

import hashlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.errors import CleansetError
from cleanset.studies.realness.plan import (
    PlanRequest,
    StudyImage,
    attention_places,
    balanced_lists,
    make_plan,
    rated_lists,
    seeded_order,
    show_counts,
    sources_twice,
    trials_csv,
)
from tests.properties import examples


def images(real: int, modified: int, sources: bool = True) -> list[StudyImage]:
    """So many of each kind; the modified ones are made of the first real ones."""
    found = [StudyImage("real", f"n/{number}.JPEG", f"id{number}") for number in range(real)]
    return found + [
        StudyImage("modified", f"a/{number}.png", f"id{number % real}" if sources else "") for number in range(modified)
    ]


def wish(seed: int, people: int, real: int = 50, modified: int = 50, attention: int = 3, pairs: int = 4) -> PlanRequest:
    return PlanRequest(people, real, modified, attention=attention, pairs=pairs, seed=seed)


def test_an_order_is_that_of_digests() -> None:
    """The same on any machine and in any version; a further name does not change the order of the others."""
    chosen = int.from_bytes(hashlib.sha256(b'[0, "study", "real", 0]').digest()[:4], "big")
    digest = {each: hashlib.sha256(f'[{chosen}, "{each}"]'.encode()).hexdigest() for each in "abcdef"}
    assert sorted(digest, key=digest.__getitem__) == SHUFFLED
    assert seeded_order(list("abcdef"), 0, "real") == SHUFFLED
    assert seeded_order(list("fedcba"), 0, "real") == SHUFFLED
    assert seeded_order(list("abcdef"), 1, "real") != SHUFFLED
    assert [each for each in seeded_order(list("abcdefgh"), 0, "real") if each < "g"] == SHUFFLED


SHUFFLED = list("edfbac")


@examples(150)
@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 5), st.data())
def test_balance(names: int, people: int, seed: int, data: st.DataObject) -> None:
    """Nobody sees an image twice, and how often two images are shown differs by at most 1, after every person."""
    each = data.draw(st.integers(1, names))
    lists = balanced_lists([str(number) for number in range(names)], people, each, seed, "real")
    assert len(lists) == people
    counts: Counter[str] = Counter({str(number): 0 for number in range(names)})
    for found in lists:
        assert len(set(found)) == len(found) == each
        counts.update(found)
        assert max(counts.values()) - min(counts.values()) <= 1


@examples(60)
@given(st.integers(4, 25), st.integers(4, 25), st.integers(2, 20), st.integers(1, 4), st.integers(0, 3))
def test_swaps_keep_the_balance(real: int, modified: int, people: int, each: int, seed: int) -> None:
    some = images(real, modified)
    lists = rated_lists(some, wish(seed, people, each, min(each, modified)))
    for kind in ("real", "modified"):
        chosen = [[image.name for image in found if image.kind == kind] for found in lists]
        assert all(len(set(found)) == len(found) == each for found in chosen)
    for low, high in show_counts(lists, some).values():
        assert high - low <= 1


def test_nobody_sees_an_image_and_what_was_made_of_it() -> None:
    """100 people, 50 and 50 of 300 images and their attacked versions: without swaps nearly everybody would."""
    some = images(300, 300)
    lists = rated_lists(some, wish(0, 100))
    assert sources_twice(lists) == 0
    unaware = rated_lists(images(300, 300, sources=False), wish(0, 100))
    by_name = {(each.kind, each.name): each for each in some}
    assert sources_twice([[by_name[each.kind, each.name] for each in found] for found in unaware]) > 90


def test_images_of_no_known_source_are_swapped_too() -> None:
    """And nobody gets one twice by that."""
    some = [StudyImage("real", f"n/{number}.JPEG", f"id{number}") for number in range(30)]
    some += [StudyImage("modified", f"a/{number}.png", f"id{number}" if number % 3 else "") for number in range(30)]
    for seed in range(5):
        lists = rated_lists(some, wish(seed, 20, 20, 20))
        for found in lists:
            assert len({(each.kind, each.name) for each in found}) == 40


def test_where_it_cannot_be_helped_it_is_counted() -> None:
    assert sources_twice(rated_lists(images(5, 5), wish(0, 4, 5, 5))) == 4


def test_too_few_images() -> None:
    with pytest.raises(CleansetError, match="49 real images; expected at least the 50 of a person"):
        rated_lists(images(49, 60), wish(0, 3))


@examples(60)
@given(st.integers(1, 100), st.integers(0, 6), st.integers(0, 9))
def test_attention_checks_are_spread(count: int, checks: int, person: int) -> None:
    places = attention_places(count, checks, 0, person)
    assert len(places) == checks
    assert places == sorted(places)
    assert all(0 <= place < count for place in places)
    if checks and count >= 2 * checks:
        assert [place * checks // count for place in places] == pytest.approx(list(range(checks)), abs=1)


def test_a_plan_tells_people_nothing() -> None:
    """Neither name nor kind nor source is in what the page and the survey tool get."""
    plan = make_plan(images(40, 40), wish(7, 6, 10, 10, 2, 3))
    for text in (str([each.data() for trials in plan.lists for each in trials]), trials_csv(plan)):
        for word in ("JPEG", "n/", "a/", "id1", "'real'", ",real", "'modified'", ",modified"):
            assert word not in text
    assert Counter(trial.kind for trial in plan.lists[0]) == {"pair": 3, "image": 20, "attention": 2}
    assert [trial.kind for trial in plan.lists[0][:3]] == ["pair"] * 3


def test_pairs_are_of_images_that_a_person_does_not_rate() -> None:
    plan = make_plan(images(200, 200), wish(7, 12, 10, 10, 0, 3))
    source = {plan.stimulus(each): each.source for each in plan.images}
    of_pair = {pair.stimulus: pair.image.source for pair in plan.pairs}
    for trials in plan.lists:
        rated_sources = {source[trial.stimulus] for trial in trials if trial.kind == "image"}
        assert rated_sources.isdisjoint(of_pair[trial.stimulus] for trial in trials if trial.kind == "pair")
    assert {pair.modified for pair in plan.pairs} == {"left", "right"}


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_the_sides_of_pairs_are_balanced(count: int) -> None:
    """For each person, the answers differ in number by at most 1; for odd numbers not always on the same side.

    Whoever always answers left fails half of the pairs, so that 4 pairs tell everyone who does from who looks.
    """
    for seed in range(5):
        plan = make_plan(images(200, 200), wish(seed, 20, 10, 10, 0, count))
        side = {pair.stimulus: pair.modified for pair in plan.pairs}
        assert abs(Counter(side.values())["left"] - len(side) / 2) <= 0.5
        lefts = [
            sum(side[trial.stimulus] == "left" for trial in trials if trial.kind == "pair") for trials in plan.lists
        ]
        assert set(lefts) == {count // 2, (count + 1) // 2}
        first = {side[trials[0].stimulus] for trials in plan.lists}
        assert first == {"left", "right"}


def test_an_unknown_pair_comes_before_a_balanced_one() -> None:
    """All but two of the images are rated: these two come first, whatever their sides."""
    some = images(12, 12)
    plan = make_plan(some, wish(3, 6, 10, 1, 0, 2))
    in_pairs = {pair.stimulus: pair.image for pair in plan.pairs}
    for trials in plan.lists:
        rated = {trial.stimulus for trial in trials if trial.kind == "image"}
        free = [each for each in in_pairs.values() if plan.stimulus(each) not in rated]
        of_modified = {each.source for each in some if plan.stimulus(each) in rated}
        free = [each for each in free if each.source not in of_modified]
        shown = {in_pairs[trial.stimulus] for trial in trials if trial.kind == "pair"}
        assert len(shown & set(free)) == min(2, len(free))


def test_another_seed_gives_other_lists_and_names() -> None:
    one, same, other = (make_plan(images(20, 20), wish(seed, 4, 5, 5)) for seed in (0, 0, 1))
    assert trials_csv(one) == trials_csv(same)
    assert {each.stimulus for each in one.lists[0]}.isdisjoint(each.stimulus for each in other.lists[0])
