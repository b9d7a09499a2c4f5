"""Gold items and audits at the page, without a browser: the sample edition with empty reviews."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cleanset.classes import imagenet
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.files import sha256
from cleanset.review import audit_report, gold_images
from cleanset.review import status as review_status
from cleanset.review.audit_files import read_plan
from cleanset.review.calibration_report import run_calibration as calibration
from cleanset.review.file_format import review_fields
from cleanset.review.gold_files import read_gold_key
from cleanset.review.gold_images import PLANTERS
from cleanset.review.page.library import open_library
from cleanset.review.page.server import open_session
from cleanset.review.page.session import Session
from cleanset.review.page.tab import Tab
from cleanset.review.page.view import cards, render
from cleanset.review.store import read_reviews
from tests.checkouts import Checkout
from tests.review.texts import sent

from .conftest import with_empty_reviews

COUNTS = {"planted": 12, "published": 0, "settled": 0}


def set_share(edition: Path, share: float) -> None:
    params = re.sub(r"(?m)^  gold: .*\n", "", (edition / "params.yaml").read_text())
    gold = f"  gold: {{folder: gold, share: {share}}}\n"
    (edition / "params.yaml").write_text(re.sub(r"(?m)^export:", f"{gold}export:", params))


@pytest.fixture
def with_items(edition: Path) -> Path:
    """The sample edition with empty reviews and a gold item for each class."""
    gold_images.make(Edition(edition), edition / "gold", COUNTS, 0)
    set_share(edition, 0.3)
    return edition


def session_of(edition: Path, reviewer: str = "ada") -> Session:
    return open_session(Edition(edition), open_library(Edition(edition)), reviewer)


def review_all(
    session: Session, verdict: Callable[[Session, tuple[int, str]], str], until_end: bool = True
) -> list[str]:
    """Review whatever is asked; return the parts of the page that were shown."""
    tab = Tab(session)
    shown: list[str] = []
    tab.start()
    while not tab.ended and len(shown) < 300:
        shown.append(render(tab)["view"])
        focus = tab.cursor.focus
        assert focus is not None
        key = verdict(session, (tab.cursor.class_index, focus))
        tab.press(sent(key, [focus]))
        if key == "r":
            tab.press(sent("w", [focus]))
        if not until_end and not session.state.counts_golds:
            break
    session.hints.close()
    return shown


def careful(session: Session, key: tuple[int, str]) -> str:
    return "r" if key in session.golds else "c"


@pytest.mark.long
def test_a_careful_reviewer_finds_all_and_is_asked_nothing_twice(with_items: Path) -> None:
    session = session_of(with_items)
    assert len(session.golds) == 12
    shown = review_all(session, careful)
    (found,) = calibration(Edition(with_items))
    assert (found.sensitivity.correct, found.sensitivity.golds) == (12, 12)
    # as many verdicts as without gold items, and one for each
    progress = review_status.run(Edition(with_items)).progress["all models"]
    assert (progress.at_least, progress.at_most) == (0, 0)
    assert len(shown) == 12 + sum(len(by_name) for by_name in read_reviews(with_items / "reviews", imagenet()).values())


@pytest.mark.long
def test_a_careless_reviewer_reviews_what_the_items_stood_for_at_the_end(with_items: Path) -> None:
    session = session_of(with_items)
    review_all(session, lambda *_: "c")
    (found,) = calibration(Edition(with_items))
    assert (found.sensitivity.correct, found.sensitivity.golds, found.finding) == (0, 12, "misses many")
    assert not session.state.counts_golds
    assert not [index for index, status in session.statuses.items() if status.questions]
    assert review_status.run(Edition(with_items)).progress["all models"].at_most == 0
    # the next session has the answers, and asks nothing
    again = session_of(with_items)
    assert len(again.golds) == 12
    assert not again.unsettled()


@pytest.mark.long
def test_nothing_tells_a_gold_item_from_another_image(with_items: Path) -> None:
    """The parts of a card, its address and its entry in the file have the forms of all others."""
    session = session_of(with_items)
    tab = Tab(session)
    forms: dict[bool, set[str]] = {True: set(), False: set()}
    ranks: list[tuple[int, str, int]] = []
    for class_index in session.library.by_class:
        tab.open(class_index)
        html = render(tab)["view"]
        for figure in re.findall(r"(?s)<figure.*?</figure>", html):
            (image_id,) = set(re.findall(r'data-card="(\S+?)"', figure))
            form = re.sub(
                r"n\d{8}|[0-9a-f]{16}|\d+(\.\d+)?|top5|reserve|relaxed|serves|needed by this model|–", "#", figure
            )
            form = re.sub(r"focus|aria-current=\"true\"|tab.cursor", "", form)
            forms[(class_index, image_id) in session.golds].add(re.sub(r"#( #)?|\s+|title=\"\"", "", form)[:200])
        for card in cards(tab):
            ranks += [
                (class_index, role, each.rank) for role, each in card.models.items() if card.image.image_id in html
            ]
        for role in session.library.params.models:
            of_role = [(each.tier, each.rank) for each in session.library.by_class[class_index].get(role, ())]
            assert len(set(of_role)) == len(of_role)
            assert max((rank for tier, rank in of_role if tier == "top5"), default=0) <= 5
    assert forms[True] <= forms[False]
    assert len(ranks) == len(set(ranks))
    for image_id in {image_id for _, image_id in session.golds}:
        assert session.library.photos.encoded(image_id)
    session.hints.close()
    review_all(session_of(with_items), careful)
    fields = {
        (
            vote_.review.sha256 == item.sha256,
            tuple(name for name, value in review_fields(vote_.review).items() if value),
        )
        for key, item in read_gold_key(with_items / "reviews", imagenet()).items()
        for vote_ in session.stored.of_class(key[0]).get(key, {}).values()
    }
    assert fields == {(True, ("verdict", "reason", "sha256"))}
    assert sorted(path.name for path in (with_items / "reviews").iterdir()) == ["ada", "gold.csv"]


@pytest.mark.long
def test_the_share_is_kept_over_sessions(with_items: Path) -> None:
    set_share(with_items, 0.05)
    session = session_of(with_items)
    assert len(session.golds) == 4
    first = set(session.golds)
    review_all(session, careful)
    again = session_of(with_items)
    assert set(again.golds) == first
    # another reviewer sees others' answers as little as the items
    ben = session_of(with_items, "ben")
    assert all("ada" not in status.votes.get(key, {}) for key in first for status in ben.statuses.values())
    board = session_of(with_items, "board")
    assert not board.golds
    assert not [key for status in board.statuses.values() for key in status.votes if key in first]


@pytest.mark.long
def test_without_the_params_answers_do_not_count(with_items: Path) -> None:
    review_all(session_of(with_items), careful)
    text = (with_items / "params.yaml").read_text()
    (with_items / "params.yaml").write_text(re.sub(r"(?m)^  gold: .*\n", "", text))
    assert read_params(with_items).review.gold is None
    plain = session_of(with_items)
    assert plain.others == "shown"
    assert not plain.golds
    golds = read_gold_key(with_items / "reviews", imagenet())
    assert not [key for status in plain.statuses.values() for key in status.votes if key in golds]
    assert not plain.unsettled()


def test_an_image_that_is_missing_or_another(with_items: Path) -> None:
    paths = sorted((with_items / "gold").iterdir())
    assert [sha256(path.read_bytes()) for path in paths] == [
        item.sha256
        for item in sorted(read_gold_key(with_items / "reviews", imagenet()).values(), key=lambda item: item.image_id)
    ]
    for path in paths:
        path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(CleansetError, match=r"expected \w{64}, as in reviews/gold\.csv: restore the file"):
        session_of(with_items)
    shutil.rmtree(with_items / "gold")
    with pytest.raises(CleansetError, match=r"missing; expected .* cleanset review gold \S+/gold makes it again"):
        session_of(with_items)


def test_in_a_new_clone_the_images_are_made_again(with_items: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git has the list of the items, and ignores their images."""
    edition, none = Edition(with_items), dict.fromkeys(COUNTS, 0)
    listed = (with_items / "reviews" / "gold.csv").read_text()
    before = {path.name: path.read_bytes() for path in (with_items / "gold").iterdir()}
    shutil.rmtree(with_items / "gold")
    assert gold_images.make(edition, Path("gold"), none, 0) == "gold: 12 images of gold items made again"
    assert {path.name: path.read_bytes() for path in (with_items / "gold").iterdir()} == before
    assert (with_items / "reviews" / "gold.csv").read_text() == listed
    with pytest.raises(CleansetError, match="no number; expected how many"):
        gold_images.make(edition, Path("gold"), none, 0)
    next((with_items / "gold").iterdir()).unlink()
    assert len(gold_images.make(edition, Path("gold"), {"planted": 1}, 0).splitlines()) == 2
    assert len(read_gold_key(with_items / "reviews", imagenet())) == 13
    # drawn by another version of cleanset or Pillow
    (missing := sorted((with_items / "gold").iterdir())[0]).unlink()
    item = next(
        each for each in read_gold_key(with_items / "reviews", imagenet()).values() if each.image_id == missing.stem
    )
    monkeypatch.setattr(gold_images, "PLANTERS", {name: lambda image, _: image for name in PLANTERS})
    with pytest.raises(CleansetError, match=f"made again it has SHA-256 .*; expected {item.sha256}"):
        gold_images.make(edition, Path("gold"), none, 0)
    assert not missing.exists()


@pytest.mark.long
def test_an_audit_at_the_page(built: Checkout, tmp_path: Path) -> None:
    """Ada and Ben each reviewed half of the set, and look at the other's half; their gold items correct the bound."""
    with_items = with_empty_reviews(built, tmp_path / "edition")
    edition = Edition(with_items)
    set_share(with_items, 0.3)
    shutil.copytree(built.folder / "reviews", with_items / "reviews", dirs_exist_ok=True)
    gold_images.make(edition, with_items / "gold", COUNTS, 0)
    # nobody who is refused fixes the number of draws
    for name, problem in (
        ("board", "board decides on reviews"), ("ada", "ada has reviewed every image"), ("../x", "expected a name of"),
    ):  # fmt: skip
        with pytest.raises(CleansetError, match=problem):
            audit_report.draw(edition, "standard", 8, auditor=name)
    assert not (with_items / "reviews" / "audit").exists()
    plan, is_new = audit_report.draw(edition, "standard", 15, seed="1", auditor="cy")
    assert is_new
    assert audit_report.draw(edition, "standard", 15, seed="1") == (plan, False)
    with pytest.raises(CleansetError, match="board decides on reviews; expected the name of an auditor"):
        open_session(edition, open_library(edition), "board", plan=plan)
    session = open_session(edition, open_library(edition), "cy", plan=plan)
    assert set(session.golds).isdisjoint((each.class_index, each.image_id) for each in plan.draws)
    by_id = {each.image_id: each for each in plan.draws}
    for image_id, image in session.library.images.items():
        if image_id in by_id and by_id[image_id].crop is not None:
            left, top, right, bottom = by_id[image_id].crop  # type: ignore[misc]
            assert (image.width, image.height) == (right - left, bottom - top)
            assert session.library.photos.cropped(image_id, (0, 0, 5, 5), lambda each: each)
    (with_items / "reviews" / "GUIDELINES.md").write_text("# Ours\n")
    tab = Tab(session)
    tab.start()
    tab.press(sent("h", []))
    assert [part.html for part in tab.guidelines] == ["<h1>Ours</h1>\n"]
    review_all(session, careful)
    (found,) = audit_report.run_audit(edition)
    assert (found.seen, found.flawed, found.auditors) == (15, 0, ("cy",))
    assert found.sensitivity is not None
    assert found.corrected is not None
    assert found.at_most is not None
    assert found.corrected > found.at_most
    assert read_plan(edition.reviews, "standard", imagenet()) == plan
    # resumed: nothing is left, and another auditor is not asked again
    for name in ("cy", "dan"):
        resumed = open_session(edition, open_library(edition), name, plan=plan)
        left = {(index, q.image_id) for index, status in resumed.statuses.items() for q in status.questions}
        assert left <= set(getattr(resumed, "golds", ()))
        resumed.hints.close()


@pytest.mark.long
def test_the_verdicts_of_others_give_no_item_away(with_items: Path) -> None:
    """With two reviewers per image, everything except gold items would show the first one's verdicts."""
    params = with_items / "params.yaml"
    params.write_text(params.read_text().replace("policy: single", "policy: unanimous"))
    params.write_text(params.read_text().replace("min_reviewers: 1", "min_reviewers: 2"))
    review_all(session_of(with_items, "ben"), lambda *_: "c")
    session = session_of(with_items)
    review_all(session, lambda *_: "c")
    tab = Tab(session)
    shown = []
    for class_index in sorted({class_index for class_index, _ in session.golds}):
        tab.open(class_index)
        shown += cards(tab)
    assert any(card.own for card in shown)
    assert {bool(card.others) for card in shown} == {False}
    tab.press(sent("b", []))
    assert "reviewer: ben" not in tab.back.matching
