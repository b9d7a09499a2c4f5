"""Audits of finished sets: the order of drawing, whose verdicts count, the bound, its files and its commands."""

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.review.audit import (
    AuditKind,
    AuditPlan,
    AuditResult,
    SetImage,
    audit_numbers,
    audit_result,
    continued,
    draw_order,
    draws_for,
    least_sensitivity,
    new_plan,
    percent,
    sentences,
)
from cleanset.review.audit_files import read_audit_json, read_plan, write_plan
from cleanset.review.calibration import GoldScore
from cleanset.review.file_format import parse_review
from cleanset.review.store import read_reviews
from cleanset.review.verdicts import Vote
from cleanset.stages import count, review_apply
from cleanset.statistics.finite import Draws, fixed_bound, open_bound
from cleanset.statistics.shares import lower_limit, lower_limit_at_any_time
from cleanset.tables import REJECTED
from tests.evaluation.compare.command import cleanset, says
from tests.stages.test_stages import REJECTED_ROWS, ROLES, edition_in, put, sha, val

SET = tuple(SetImage(number % 7, f"ILSVRC2012_val_{number:08d}", None) for number in range(1, 201))
Verdicts = dict[tuple[int, str], dict[str, Vote]]


def key(image: SetImage) -> tuple[int, str]:
    return image.class_index, image.image_id


def vote(verdict: str) -> Vote:
    fields = {"verdict": verdict, "reason": "text" if verdict == "reject" else None, "sha256": sha(1)}
    return Vote("n01440764", val(1), parse_review(fields, "here"), "")


def votes_on(images: Collection[SetImage], flawed: int = 0, auditor: str = "cy") -> Verdicts:
    return {key(each): {auditor: vote("reject" if n < flawed else "clean")} for n, each in enumerate(images)}


def result(
    plan: AuditPlan,
    votes: Verdicts,
    reviewers: Mapping[tuple[int, str], Collection[str]] = {},
    golds: Mapping[str, GoldScore] = {},
    now: Collection[SetImage] = SET,
) -> AuditResult:
    return audit_result(plan, votes, reviewers, golds, now)


def test_the_order_depends_on_set_and_seed_alone() -> None:
    order = draw_order(SET, "1", imagenet())
    assert sorted(order) == sorted(SET) != list(order)
    assert draw_order(SET[::-1], "1", imagenet()) == order
    assert draw_order(SET, "2", imagenet()) != order
    assert [each.image_id[-3:] for each in draw_order(SET[:6], "1", imagenet())] == [
        "002",
        "006",
        "003",
        "004",
        "005",
        "001",
    ]


@pytest.mark.slow
def test_every_image_is_drawn_first_about_as_often() -> None:
    first = [draw_order(SET[:10], str(seed), imagenet())[0] for seed in range(2000)]
    assert all(140 <= first.count(each) <= 260 for each in SET[:10])


def test_a_finished_fixed_audit_has_the_exact_bound() -> None:
    plan = new_plan(model="standard", kind="fixed", seed="1", drawn=60, images=SET, classes=imagenet())
    found = result(plan, votes_on(plan.draws, 2))
    assert (found.seen, found.flawed, found.auditors) == (60, 2, ("cy",))
    assert found.at_most == found.bound == fixed_bound(Draws(200, 60, 2)) == 18
    assert audit_numbers(found) == {"audit_seen": 60, "audit_flawed": 2, "audit_flawed_at_most_uncorrected": 9.0}
    assert next(sentences(found)) == "At most 9.00 % flawed (18 of 200 images), with 95 % confidence."


def test_a_fixed_audit_says_nothing_before_its_last_draw() -> None:
    plan = new_plan(model="standard", kind="fixed", seed="1", drawn=60, images=SET, classes=imagenet())
    found = result(plan, votes_on(plan.draws[:59]))
    assert (found.seen, found.bound) == (59, None)
    assert next(sentences(found)).startswith("No statement yet: 59 of 60 draws")
    assert audit_numbers(found) == {"audit_seen": 59, "audit_flawed": 0}


def test_an_open_audit_counts_the_draws_up_to_the_first_that_is_left_out() -> None:
    plan = new_plan(model="standard", kind="open", seed="1", drawn=60, images=SET, classes=imagenet())
    votes = votes_on(plan.draws)
    del votes[key(plan.draws[40])]
    found = result(plan, votes)
    assert (found.seen, found.at_most) == (40, open_bound(Draws(200, 40, 0)))


def test_whoever_reviewed_an_image_does_not_audit_it() -> None:
    plan = new_plan(model="standard", kind="open", seed="1", drawn=60, images=SET, classes=imagenet())
    reviewers = {key(plan.draws[10]): {"cy", "ada"}}
    assert result(plan, votes_on(plan.draws), reviewers).seen == 10
    assert plan.draws[10] not in draws_for("cy", plan, reviewers)
    assert len(draws_for("dan", plan, reviewers)) == 60
    # another auditor did not review it
    votes = votes_on(plan.draws)
    votes[key(plan.draws[10])]["dan"] = vote("unsure")
    found = result(plan, votes, reviewers)
    assert (found.seen, found.flawed, found.auditors) == (60, 1, ("cy", "dan"))


def test_the_bound_is_corrected_for_what_an_auditor_misses() -> None:
    plan = new_plan(model="standard", kind="fixed", seed="1", drawn=60, images=SET, classes=imagenet())
    golds = {"cy": GoldScore(38, 40), "ada": GoldScore(1, 40)}
    found = result(plan, votes_on(plan.draws), golds=golds)
    assert found.sensitivity == lower_limit(38, 40, 0.975)
    assert found.corrected == fixed_bound(Draws(200, 60, 0), 0.975, found.sensitivity)
    assert found.bound == found.corrected > (found.at_most or 0)
    assert "at least 83 % of the flaws" in list(sentences(found))[2]
    assert audit_numbers(found)["audit_flawed_at_most"] == 6.0
    assert "none of them has judged a flawed gold item" in list(sentences(result(plan, votes_on(plan.draws))))[2]


def test_the_most_sensitive_auditor_of_each_draw_and_the_least_sensitive_draw_count() -> None:
    """Several auditors share the risk; those of an open audit as if more might join."""
    golds = {"cy": GoldScore(38, 40), "ada": GoldScore(30, 40)}
    both, cy, ada = ("cy", "ada"), ("cy",), ("ada",)
    assert least_sensitivity([cy, both, cy], golds, "fixed") == lower_limit(38, 40, 0.9875)
    assert least_sensitivity([cy, both, ada], golds, "fixed") == lower_limit(30, 40, 0.9875)
    assert least_sensitivity([cy, ada], golds, "open") == lower_limit_at_any_time(30, 40, 1 - 0.025 / 6)
    assert least_sensitivity([cy], {"cy": GoldScore(38, 40)}, "open") == lower_limit_at_any_time(38, 40, 0.9875)
    # whoever has no gold items adds nothing, and may have missed everything
    assert least_sensitivity([cy, ("cy", "dan")], {"cy": GoldScore(38, 40)}, "fixed") == lower_limit(38, 40, 0.975)
    assert least_sensitivity([cy, ("dan",)], {"cy": GoldScore(38, 40)}, "fixed") == 0.0
    assert least_sensitivity([cy], {}, "fixed") is None


@pytest.mark.parametrize("kind", ["fixed", "open"])
def test_a_look_that_rests_on_less_makes_no_claim_stronger(kind: AuditKind) -> None:
    """An auditor who finds 0 of 10 gold items; somebody without any calls a draw clean, too, or another one alone."""
    plan = new_plan(model="standard", kind=kind, seed="1", drawn=60, images=SET, classes=imagenet())
    golds = {"cy": GoldScore(0, 10)}
    votes = votes_on(plan.draws)
    assert result(plan, votes, golds=golds).bound == 200
    votes[key(plan.draws[3])]["bo"] = vote("clean")
    found = result(plan, votes, golds=golds)
    assert (found.bound, found.auditors, found.unmeasured) == (200, ("bo", "cy"), ())
    votes[key(plan.draws[3])] = {"bo": vote("clean")}
    for share in (GoldScore(0, 10), GoldScore(40, 40)):
        found = result(plan, votes, golds={"cy": share})
        assert (found.bound, found.sensitivity, found.unmeasured) == (200, 0.0, ("bo",))
        assert "Draws looked at only by people without flawed gold items (bo) count as if" in list(sentences(found))[3]


def test_a_result_without_a_field_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "standard.json"
    path.write_text(
        '{"model": "standard", "kind": "fixed", "images": 200, "drawn": 60, "seen": 60, "flawed": 0, "auditors": [], '
        '"at_most": 9, "corrected": null, "sensitivity": null, "now": 200, "left": 0, "came": 0}'
    )
    with pytest.raises(
        CleansetError, match=r"standard\.json: unmeasured: .*; expected the output of .*: run dvc repro$"
    ):
        read_audit_json(path)


def test_a_set_that_has_changed_since() -> None:
    """Two flawed draws are taken out, three unknown images come; one clean one goes."""
    plan = new_plan(model="standard", kind="fixed", seed="1", drawn=60, images=SET, classes=imagenet())
    gone = {*plan.draws[:2], plan.draws[5]}
    new = [SetImage(3, f"ILSVRC2012_val_{number:08d}", None) for number in (901, 902, 903)]
    before = result(plan, votes_on(plan.draws, 3))
    after = result(plan, votes_on(plan.draws, 3), now=[*(each for each in SET if each not in gone), *new])
    assert (after.left, after.came, after.now) == (2, 3, 200)
    assert after.bound == (before.bound or 0) + 1
    *_, changed = sentences(after)
    assert changed.startswith("The set has changed since: 2 images found to be flawed were removed")
    cropped = replace(plan, images=plan.images)
    assert result(cropped, votes_on(plan.draws), now=[SET[0]._replace(crop=(0, 0, 5, 5)), *SET[1:]]).came == 1


@given(st.integers(0, 60), st.integers(0, 60), st.sampled_from(["fixed", "open"]))
def test_more_flaws_never_lower_the_bound(one: int, other: int, kind: AuditKind) -> None:
    plan = AuditPlan(classes=imagenet(), model="standard", kind=kind, seed="1", drawn=60, images=SET)
    few, many = (result(plan, votes_on(plan.draws, count)).bound or 0 for count in sorted((one, other)))
    assert max(one, other) <= many
    assert few <= many


def test_only_an_open_audit_grows() -> None:
    plan = new_plan(model="standard", kind="open", seed="1", drawn=60, images=SET, classes=imagenet())
    assert continued(plan, 100).draws[:60] == plan.draws
    for wrong, message in ((59, "60 are drawn; expected at least as many"), (201, "expected 1 to 200")):
        with pytest.raises(CleansetError, match=message):
            continued(plan, wrong)
    with pytest.raises(CleansetError, match=r"100 draws, but 60 were fixed beforehand.*expected 60"):
        continued(replace(plan, kind="fixed"), 100)


def test_a_bound_is_rounded_up() -> None:
    assert (percent(29, 2966), percent(0, 5), percent(1, 3)) == ("0.98 %", "0.00 %", "33.34 %")


# In an edition


@pytest.fixture
def edition(tmp_path: Path) -> Edition:
    """The tiny edition of the stages' tests, with the set of standard finished: images 2 (cropped), 4 and 5."""
    edition = edition_in(tmp_path / "edition")
    rows = [(*row[:5], "not_needed", False) if row[-1] else row for row in REJECTED_ROWS["standard"]]
    put(edition.rejected("standard"), rows, REJECTED)
    return edition


def audited(edition: Edition, verdicts: Mapping[int, str], auditor: str = "cy") -> None:
    """Let an auditor judge images 2, 4 (class 0) and 5 (class 1)."""
    for wnid, numbers in (("n01440764", (2, 4)), ("n01443537", (5,))):
        path = edition.reviews / "audit" / "standard" / auditor / f"{wnid}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"  {val(n)}: {{{verdicts[n]}, sha256: {sha(n)!r}}}\n" for n in numbers if n in verdicts]
        path.write_text(f"{wnid}:\n{''.join(lines)}" if lines else "# none\n")


def test_an_audit_from_the_drawing_to_the_metrics(edition: Edition) -> None:
    code, out, error = says(cleanset("review", "audit", "3", "--model", "standard", cwd=edition.folder))
    assert (code, error) == (0, "")
    assert out.startswith("standard: 3 of 3 images are drawn (fixed). If all are clean")
    plan = read_plan(edition.reviews, "standard", imagenet())
    assert plan is not None
    assert sorted(plan.images) == [
        SetImage(0, val(2), (0, 0, 40, 30)), SetImage(0, val(4), None), SetImage(1, val(5), None),
    ]  # fmt: skip
    code, _, error = says(cleanset("review", "audit", "3", "--model", "standard", "--seed", "2", cwd=edition.folder))
    assert (code, "drawn with seed '1', not '2'; leave out --seed" in error) == (1, True)
    # the folder does not belong to a reviewer
    before = read_reviews(edition.reviews, imagenet())
    audited(edition, {2: "verdict: clean", 4: "verdict: reject, reason: blur", 5: "verdict: clean"})
    assert read_reviews(edition.reviews, imagenet()) == before
    code, out, _ = says(cleanset("audit", "--json", cwd=edition.folder))
    assert code == 0
    found = json.loads(out)["standard"]
    assert (found["seen"], found["flawed"], found["bound"], found["corrected"]) == (3, 1, 1, None)
    assert "standard: At most 33.34 % flawed" in says(cleanset("audit", cwd=edition.folder))[1]
    review_apply.run(edition, "standard")
    kept = read_audit_json(edition.audit("standard"))
    assert kept is not None
    assert kept.bound == 1
    count.run(edition)
    totals = edition.metrics / "totals"
    assert json.loads((totals / "audit_flawed_at_most_uncorrected.json").read_text()) == {"standard": 33.34}
    assert json.loads((totals / "audit_seen.json").read_text()) == {"standard": 3}


def test_without_an_audit_nothing_is_written(edition: Edition) -> None:
    for role in ROLES:
        review_apply.run(edition, role)
        assert edition.audit(role).read_text() == "null\n"
        assert read_audit_json(edition.audit(role)) is None
    count.run(edition)
    assert not list((edition.metrics / "totals").glob("audit*"))
    code, _, error = says(cleanset("audit", cwd=edition.folder))
    assert code == 1
    assert "no audit; cleanset review audit 100" in error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["3"], "several models (standard, norm_robust, corruption_robust); pass --model ROLE"),
        (["3", "--model", "other"], "no model 'other'; expected one of"),
        (["4", "--model", "standard"], "found 4 draws; expected 1 to 3"),
        (["1", "--model", "norm_robust"], "1 classes of its set still wait for reviews; expected a finished set"),
    ],
)
def test_what_cannot_be_drawn(edition: Edition, options: list[str], message: str) -> None:
    code, _, error = says(cleanset("review", "audit", *options, cwd=edition.folder))
    assert code == 1
    assert message in error
    assert not (edition.reviews / "audit").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["audit", "2", "--share", "1/2"], "No such option: --share"),
        (["audit", "2", "--look-again", "look_again.csv"], "No such option: --look-again"),
        (["serve", "--reviewer", "ada", "--model", "standard"], "No such option: --model"),
        (["serve", "--reviewer", "ada", "--fixed"], "No such option: --fixed"),
        (["status", "--seed", "7"], "No such option: --seed"),
        (["--audit", "2"], "No such option: --audit"),
        (["serve"], "Missing option '--reviewer'"),
    ],
)
def test_a_command_has_its_own_options(edition: Edition, options: list[str], message: str) -> None:
    code, out, error = says(cleanset("review", *options, cwd=edition.folder))
    assert (code, out) == (2, "")
    assert message in error
    assert not (edition.reviews / "audit").exists()


@pytest.mark.parametrize("drawn", [1, 3])
def test_an_audit_of_one_image_or_of_all_is_read_back(tmp_path: Path, drawn: int) -> None:
    plan = new_plan(model="standard", kind="fixed", seed="1", drawn=drawn, images=SET[:3], classes=imagenet())
    write_plan(tmp_path, plan)
    assert read_plan(tmp_path, "standard", imagenet()) == plan
    assert len(plan.draws) == drawn


@pytest.mark.parametrize("drawn", [0, 4])
def test_an_audit_of_no_image_or_of_too_many_is_refused(tmp_path: Path, drawn: int) -> None:
    message = f"audit of standard: found {drawn} draws; expected 1 to 3, the images of its set$"
    with pytest.raises(CleansetError, match=message):
        new_plan(model="standard", kind="fixed", seed="1", drawn=drawn, images=SET[:3], classes=imagenet())
    order = draw_order(SET[:3], "1", imagenet())
    write_plan(tmp_path, AuditPlan(imagenet(), "standard", kind="fixed", seed="1", drawn=drawn, images=order))
    with pytest.raises(CleansetError, match=f"standard.csv: {drawn} of 3 images of standard, not in the order"):
        read_plan(tmp_path, "standard", imagenet())


def test_files_that_were_changed(edition: Edition) -> None:
    says(cleanset("review", "audit", "2", "--model", "standard", cwd=edition.folder))
    order = edition.reviews / "audit" / "standard.csv"
    header, *rows = order.read_text().splitlines()
    for text, message in (
        ("\n".join([header, *rows[::-1]]), "not in the order of seed '1'"),
        ("\n".join([header, "n0,x,1,2,3,4"]), "expected a wnid, an image id, and a box or nothing"),
    ):
        order.write_text(text)
        with pytest.raises(CleansetError, match=message):
            read_plan(edition.reviews, "standard", imagenet())
    order.write_text("\n".join([header, *rows]))
    audited(edition, {4: f"verdict: clean, note: {'x'}"})
    path = edition.reviews / "audit" / "standard" / "cy" / "n01440764.yaml"
    path.write_text(path.read_text().replace(sha(4), sha(3)))
    code, _, error = says(cleanset("audit", cwd=edition.folder))
    assert code == 1
    assert "other bytes were reviewed" in error
