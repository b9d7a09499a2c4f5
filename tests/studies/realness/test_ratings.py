import os
import re
from pathlib import Path

import pytest

from cleanset.errors import CleansetError
from cleanset.studies.realness.analysis import agreements, by_image, summary, taken_for_modified
from cleanset.studies.realness.ratings import Answer, View, parse_key, read_ratings, texts_of
from tests.studies.realness.conftest import ANSWER_HEADER, DIFFERENT_PEOPLE, VIEW, path_of, published
from tests.time_limits import at_most

HEADER = "rating,pid,image_type,image_id\n"
ANSWERS = ANSWER_HEADER
SEEN = View(shown_width=448, shown_height=448, pixel_ratio=1.0, window_width=1280, window_height=800)
"""What VIEW says."""
KEY = """stimulus,kind,image,expected,wnid,sha256
aa,real,n01440764/one.JPEG,,n01440764,0
bb,modified,two.png,,,0
cc,pair,n01440764/three.JPEG,left,,
dd,attention,,-2,,
"""
# mean, deviation of real, then of modified images; ratings of each
GOLDEN = {
    "semanticadv": (0.921, 1.288, -1.064, 1.315, 3700),
    "cadv": (0.920, 1.226, -1.674, 0.832, 3050),
    "cadv_4_6": (0.890, 1.241, -1.650, 0.866, 3400),
    "ncf": (1.030, 1.189, -1.688, 0.737, 3050),
    "diffattack": (1.000, 1.275, -1.386, 1.039, 2500),
    "advpp": (0.587, 1.382, -0.519, 1.367, 2500),
    "aca": (0.715, 1.404, -1.155, 1.190, 2500),
}
"""What the authors published of their seven studies."""


def answered(*rows: str) -> str:
    """A file of answers, of rows without their last cells."""
    return ANSWERS + "".join(f"{row},{VIEW}\n" for row in rows)


@pytest.mark.parametrize("study", GOLDEN)
def test_the_published_studies(study: str, repository: Path) -> None:
    ratings = published(repository, study)
    found: list[float | None] = []
    for kind in ("real", "modified"):
        one = summary(each.rating for each in ratings if each.kind == kind)
        assert (one.mean, one.deviation) != (None, None)
        found += [round(one.mean or 0, 3), round(one.deviation or 0, 3)]
        assert one.ratings == GOLDEN[study][4]
    assert found == list(GOLDEN[study][:4])


def test_which_published_images_people_take_for_modified(repository: Path) -> None:
    """174 of the 2,062 with five ratings or more, in the studies of different people; modified images never count."""
    answers = read_ratings(texts_of(path_of(repository, study) for study in DIFFERENT_PEOPLE))
    images = by_image(answers.ratings)
    real = [each for each in images if each.kind == "real"]
    assert (len(real), sum(each.ratings for each in real)) == (2958, 17300)
    enough = [each for each in real if each.ratings >= 5]
    assert len(enough) == 2062
    found = taken_for_modified(enough)
    assert len(found) == 174
    first = found[0]
    assert (first.image, first.ratings, first.negative, first.share) == ("1714", 7, 7, 1.0)
    assert first.interval == pytest.approx((0.6457, 1.0), abs=1e-4)
    assert len({each.person for each in answers.ratings}) == 346


def test_half_is_no_majority() -> None:
    def rated(image: str, *ratings: int) -> list[Answer]:
        return [Answer(f"p{number}", "real", image, rating) for number, rating in enumerate(ratings)]

    ratings = rated("half", -1, -2, 0, 2, -1, 1) + rated("most", -1, -2, -1, 0, 2) + rated("few", -2, -2, -2, -2)
    assert [each.image for each in taken_for_modified(by_image(ratings))] == ["few", "most"]


def test_agreement_by_hand() -> None:
    """Two people, three images: ratings agree on one, signs on two.

    Signs: shares of negative 1, 1/2, 0 in the images, so 1/2 of all: chance 1/2, kappa (2/3 - 1/2) / (1/2) = 1/3.
    """
    kinds = {"x": (-2, -1), "y": (-1, 1), "z": (2, 2)}
    given = {f"{name}{number}": ratings for name, ratings in kinds.items() for number in range(4)}
    ratings = [
        Answer(person, "real", image, each[at]) for image, each in given.items() for at, person in enumerate("ab")
    ]
    found = agreements(ratings)
    assert found.rating.images == found.negative.images == 12
    numbers = [found.rating.agreement, found.negative.agreement, found.negative.kappa]
    assert numbers == pytest.approx([1 / 3, 2 / 3, 1 / 3])
    # of two people who rate 24 times alpha is a little below 1 minus the share of the expected distances
    assert found.ordinal is not None
    assert found.ordinal.interval is not None
    assert 0 < found.ordinal.interval[0] < found.ordinal.value < found.ordinal.interval[1] < 1


def test_summary_of_none_and_one() -> None:
    assert (summary([]).mean, summary([3]).mean, summary([3]).deviation) == (None, 3, None)


def test_answers_and_the_key_of_their_plan() -> None:
    text = answered("ada,1,1,cc,right,5", "ada,1,2,aa,-1,5", "ada,1,3,dd,-2,5", "ada,1,4,bb,2,5")
    found = read_ratings({"answers": text}, parse_key(KEY, "key.csv"))
    assert (
        found.answers
        == found.trials
        == (
            Answer("ada", "pair", "n01440764/three.JPEG", 0, False, True, "1", "1", 5.0, SEEN),
            Answer("ada", "real", "n01440764/one.JPEG", -1, True, True, "1", "2", 5.0, SEEN),
            Answer("ada", "attention", "", 0, True, True, "1", "3", 5.0, SEEN),
            Answer("ada", "modified", "two.png", 2, True, True, "1", "4", 5.0, SEEN),
        )
    )
    assert (found.ratings, found.checks) == (found.answers[1::2], found.answers[::2])
    assert [each.kind for each in found.trials] == ["pair", "real", "attention", "modified"]


def test_a_time_may_be_missing() -> None:
    found = read_ratings({"answers": answered("ada,1,1,aa,-1,", "ada,1,2,bb,1,812.5")}, parse_key(KEY, "key.csv"))
    assert [each.milliseconds for each in found.trials] == [None, 812.5]


def test_sizes_may_be_missing() -> None:
    """One part of an answer at a time: then none is known. The last two may be left empty."""
    cells = VIEW.split(",")
    for place in range(len(cells) - 2):
        some = ",".join([*cells[:place], "", *cells[place + 1 :]])
        (found,) = read_ratings({"answers": f"{ANSWERS}ada,1,1,aa,-1,5,{some}\n"}, parse_key(KEY, "key.csv")).trials
        assert found.view is None


def test_several_studies_share_real_images_alone() -> None:
    texts = dict.fromkeys(("one", "two"), HEADER + "1,1,real,7\n-1,1,modified,7\n")
    found = read_ratings(texts).ratings
    assert [(each.person, each.kind, each.image) for each in found] == [
        ("one:1", "real", "7"), ("one:1", "modified", "one:7"), ("two:1", "real", "7"), ("two:1", "modified", "two:7"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("header", "row", "words"),
    [
        (HEADER, "3,1,real,7", "line 2, rating: '3'; expected one of -2, -1, 0, 1, 2"),
        (HEADER, "+1,1,real,7", "line 2, rating: '\\+1'"),
        (HEADER, "1,,real,7", "line 2, pid: ''; expected 1 to 200 printable characters"),
        (HEADER, "1,1,Real,7", "line 2, image_type: 'Real'; expected 'real' or 'modified'"),
        (HEADER, "1,1,real", "line 2: 3 cells"),
        (HEADER, '"1"x,1,real,7', "line 2: not CSV"),
        (ANSWERS, "ada,1,1,zz,1,5", "line 2: stimulus 'zz' is not in the plan's key"),
        (ANSWERS, "ada,1,1,cc,up,5", ", answer: 'up'; expected one of left, right"),
        (ANSWERS, "ada,1,1,aa,left,5", ", answer: 'left'; expected one of -2, -1, 0, 1, 2"),
        (ANSWERS, "ada,1,1,aa,1,-5", "line 2, milliseconds: '-5'; expected a number of 0 or more, or nothing"),
        (ANSWERS, "ada,1,1,aa,1,nan", "milliseconds: 'nan'"),
        (ANSWERS, "ada,1,1,aa,1,5,-448,448,1,1280,800,0,0", "shown_width: '-448'; expected a number of pixels"),
        (
            ANSWERS,
            "ada,1,1,aa,1,5,448,448,inf,1280,800,0,0",
            "pixel_ratio: 'inf'; expected device pixels for",
        ),
    ],
)
def test_bad_rows(header: str, row: str, words: str) -> None:
    """They are left out and reported; a file without a good row is refused."""
    key, good = parse_key(KEY, "key.csv"), "1,1,real,8\n" if header == HEADER else f"ada,1,2,bb,1,5,{VIEW}\n"
    row += f",{VIEW}" if header == ANSWERS and row.count(",") == 5 else ""
    with pytest.raises(CleansetError, match=words):
        read_ratings({"ratings": f"{header}{row}\n"}, key)
    found = read_ratings({"ratings": f"{header}{row}\n{good}"}, key)
    assert (len(found.ratings), len(found.trials)) == (1, header == ANSWERS)
    (message,) = found.invalid
    assert re.search(words, message)


def test_of_two_ratings_of_an_image_by_a_person_the_first_counts() -> None:
    found = read_ratings({"ratings": f"{HEADER}1,1,real,7\n2,1,real,7\n"})
    assert [each.rating for each in found.ratings] == [1]
    assert found.invalid == (
        "ratings, line 3: person '1' rates the real image '7' twice; expected once: remove one, or name the files of "
        "different studies apart",
    )


def test_a_file_of_answers_that_is_there_twice_counts_once() -> None:
    """A failed check in it, too."""
    text = answered("ada,1,1,cc,right,5", "ada,1,2,aa,-1,5")
    found = read_ratings({"answers": text, "copy": text}, parse_key(KEY, "key.csv"))
    assert (len(found.ratings), len(found.checks), len(found.trials), len(found.invalid)) == (1, 1, 2, 2)


def test_answers_without_a_plan() -> None:
    with pytest.raises(CleansetError, match="answers: answers of the study's page; expected --plan"):
        read_ratings({"answers": ANSWERS})


def test_a_key_with_a_stimulus_twice() -> None:
    with pytest.raises(CleansetError, match=r"key.csv, line 6: stimulus 'aa' a second time, after line 2"):
        parse_key(KEY + "aa,real,x,,,0\n", "key.csv")


def test_two_files_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for path in (tmp_path / "one.csv", tmp_path / "b" / "one.csv"):
        path.write_text(HEADER)
    with pytest.raises(CleansetError, match="a second file of the name one"):
        texts_of([tmp_path / "one.csv", tmp_path / "b" / "one.csv"])


def test_a_named_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ratings.csv")
    with at_most(5), pytest.raises(CleansetError, match=r"ratings\.csv: a named pipe; expected a regular file"):
        texts_of([tmp_path / "ratings.csv"])


@pytest.mark.parametrize("again", ["p1 ", " p1", "\u00a0p1", "p1\t"])
def test_a_name_with_spaces_around_it_is_the_same_name(again: str) -> None:
    """One person is not counted as two, and an image that they rate twice is found."""
    found = read_ratings({"a": f"{HEADER}1,p1,real,7\n2,{again},real,8\n"}).ratings
    assert {each.person for each in found} == {"p1"}
    (message,) = read_ratings({"a": f"{HEADER}1,p1,real,7\n2,{again},real,7\n"}).invalid
    assert "person 'p1' rates the real image '7' twice" in message
    answers = read_ratings({"a": answered("p1,1,1,aa,2,", f"{again},1 , 2,bb,-1,")}, parse_key(KEY, "key"))
    assert {(each.person, each.list_name) for each in answers.trials} == {("p1", "1")}


def test_names_that_look_the_same_are_the_same() -> None:
    """An accent as a letter of its own, as some systems write it; what cannot be seen is refused."""
    found = read_ratings({"a": f"{HEADER}1,Zoe\u0301 B,real,7\n2,Zo\u00e9  B,real,8\n"}).ratings
    assert {each.person for each in found} == {"Zo\u00e9 B"}
    with pytest.raises(CleansetError, match=r"a, line 2, pid: '.*'; expected 1 to 200 printable characters"):
        read_ratings({"a": f"{HEADER}1,p1\u200b,real,7\n"})
