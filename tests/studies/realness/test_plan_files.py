"""A plan's files are those that were written with it, and an answers file is of the person whose name it has."""

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from cleanset.errors import CleansetError
from cleanset.studies.realness.ratings import parse_key, read_ratings
from cleanset.studies.realness.study_server import StudyServer
from tests.studies.realness.conftest import ANSWER_HEADER, VIEW, command, rows

EASY = ("--settings", "random=intercepts")


def answers(plan: Path, folder: Path) -> list[Path]:
    """Files of answers of everybody, each in 2 s."""
    key = {each["stimulus"]: each for each in rows(plan / "key.csv")}
    texts: dict[str, str] = {}
    for place, trial in enumerate(rows(plan / "trials.csv")):
        kind, expected = key[trial["stimulus"]]["kind"], key[trial["stimulus"]]["expected"]
        answer = expected or str((place % 3) - (kind == "modified"))
        row = f"p{trial['list']},{trial['list']},{trial['position']},{trial['stimulus']},{answer},2000,{VIEW}\n"
        texts[trial["list"]] = texts.get(trial["list"], ANSWER_HEADER) + row
    paths = [folder / f"answers-{number}-p{number}.csv" for number in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text)
    return paths


def swap_kinds(path: Path) -> None:
    """Three real images become modified ones, and the other way round."""
    key = rows(path)
    for kind, other in (("real", "modified"), ("modified", "real")):
        for row in [each for each in key if each["kind"] == kind and "swapped" not in each][:3]:
            row |= {"kind": other, "swapped": ""}
    out = io.StringIO()
    writer = csv.DictWriter(out, list(key[0])[:6], extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(key)
    path.write_text(out.getvalue())


def test_a_changed_key_is_refused(plan: Path, tmp_path: Path) -> None:
    given = answers(plan, tmp_path)
    assert "8 people" in command("analyse", *given, "--plan", plan, *EASY)
    swap_kinds(plan / "key.csv")
    with pytest.raises(CleansetError, match=r"key.csv: changed since the plan was made; expected the SHA-256"):
        command("analyse", *given, "--plan", plan, *EASY)
    with pytest.raises(CleansetError, match=r"key.csv: changed since the plan was made"):
        StudyServer(plan)


@pytest.mark.parametrize("change", ["line", "order", "digit"])
@pytest.mark.parametrize("name", ["key.csv", "trials.csv"])
def test_any_change_of_the_tables_is_refused(plan: Path, tmp_path: Path, name: str, change: str) -> None:
    given = answers(plan, tmp_path)
    lines = (plan / name).read_text().splitlines(keepends=True)
    changed = {
        "line": lines[:-1],
        "order": [lines[0], lines[2], lines[1], *lines[3:]],
        "digit": [*lines[:-1], lines[-1].replace("a", "b").replace("1", "2")],
    }[change]
    (plan / name).write_text("".join(changed))
    for use in (lambda: command("analyse", *given, "--plan", plan, *EASY), lambda: StudyServer(plan)):
        with pytest.raises(CleansetError, match=f"{name}: changed since the plan was made"):
            use()


def test_images_that_were_exchanged_are_not_served(plan: Path) -> None:
    one, two, *_ = sorted((plan / "page" / "images").iterdir())
    data = one.read_bytes()
    shutil.copy(two, one)
    with pytest.raises(CleansetError, match=r"page/images: changed since the plan was made"):
        StudyServer(plan)
    one.write_bytes(data)
    StudyServer(plan).close()
    one.unlink()
    with pytest.raises(CleansetError, match=r"page/images: changed since the plan was made"):
        StudyServer(plan)


@pytest.mark.parametrize("key", ["sha256", "shown_milliseconds", "content_sha256"])
def test_a_plan_without_its_digests_is_refused(plan: Path, tmp_path: Path, key: str) -> None:
    given = answers(plan, tmp_path)
    record = json.loads((plan / "plan.json").read_text())
    del record[key]
    (plan / "plan.json").write_text(json.dumps(record, indent=2) + "\n")
    with pytest.raises(CleansetError, match=rf"plan\.json: .*{key}.*; expected .*cleanset study plan makes it again"):
        command("analyse", *given, "--plan", plan, *EASY)
    with pytest.raises(CleansetError, match=rf"plan\.json: .*{key}"):
        StudyServer(plan)


def test_a_plan_without_its_record_is_refused(plan: Path, tmp_path: Path) -> None:
    given = answers(plan, tmp_path)
    (plan / "plan.json").unlink()
    with pytest.raises(CleansetError, match=r"plan.json: missing; expected the folder that cleanset study plan wrote"):
        command("analyse", *given, "--plan", plan, *EASY)


def test_ratings_of_what_nobody_saw_are_left_out(plan: Path, tmp_path: Path) -> None:
    given = answers(plan, tmp_path)
    given[0].write_text(given[0].read_text().replace(",2000,", ",299,"))
    text = " ".join(command("analyse", *given, "--plan", plan, *EASY).split())
    assert "7 people" in text
    assert "not valid: 12; the first: answers-1-p1, line 2: answered after 299 ms; expected at least the plan's" in text


def test_rows_of_another_person_in_a_file(plan: Path, tmp_path: Path) -> None:
    """As two files put together by mistake; in files with other names, several people may appear."""
    one, two, *_ = (path.read_text() for path in answers(plan, tmp_path))
    both = one + two.partition("\n")[2]
    key = parse_key((plan / "key.csv").read_text(), "key.csv")
    assert len(read_ratings({"all": both}, key).invalid) == 0
    found = read_ratings({"answers-1-p1": both}, key)
    assert len(found.invalid) == 12
    assert found.invalid[0] == (
        "answers-1-p1, line 14: belongs to person 'p2' and list '2'; expected the ones in the file's name: move it to "
        "the file of this person"
    )


def test_a_server_does_not_continue_in_the_answers_of_another_person(plan: Path) -> None:
    server = StudyServer(plan)
    from tests.studies.realness.test_serving import give, opened

    for person in ("ada", "ben"):
        page = opened(server, person)
        give(server, page, 1)
    server.close()
    one, two = sorted((plan / "answers").iterdir())
    shutil.copy(one, two)
    with pytest.raises(
        CleansetError, match=r"answers-2-\w+.csv, line 2: belongs to another person or list; restore the file"
    ):
        StudyServer(plan)
