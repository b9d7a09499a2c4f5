"""The parts that need no browser."""

import hashlib
import re
import subprocess
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pandas as pd
import pytest

from cleanset.classes import imagenet, search_classes
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError, install_command
from cleanset.images.boxes import Box
from cleanset.review import status as review_status
from cleanset.review.hints.background import BackgroundHints
from cleanset.review.page.actions import FILTERS
from cleanset.review.page.library import open_library
from cleanset.review.page.pace import Pace, in_words
from cleanset.review.page.stored import CropScores
from cleanset.review.queue import Candidate
from cleanset.review.reasons import REASON_KEYS
from cleanset.sets.description import determining_params
from cleanset.tables import CROP_SCORES, write_table
from cleanset.vocabulary import REASONS
from tests.review.texts import GOLDFISH, sent

from .reviewing import REASONS as MEANT
from .reviewing import TabAlone, change_review, reviews, wait_until, write

BOX = (0, 0, 300, 200)
CLEAN = {"verdict": "clean"}


def test_the_vendored_files_are_those_of_the_registry() -> None:
    folder = files("cleanset.review.page") / "static"
    digests = dict(re.findall(r"^([0-9a-f]{64})  (cropper\.\S+)$", (folder / "VENDORED.txt").read_text(), re.MULTILINE))
    assert sorted(digests.values()) == ["cropper.LICENSE", "cropper.min.css", "cropper.min.js"]
    for digest, name in digests.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert b"Cropper.js v1.6.2" in (folder / "cropper.min.js").read_bytes()


def test_nothing_is_asked_of_other_machines() -> None:
    """No address of another host in what the browser loads from here, but those in comments."""
    for path in sorted(Path(str(files("cleanset.review.page"))).rglob("*")):
        if path.suffix in (".js", ".css", ".html") and path.is_file():
            text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
            hosts = set(re.findall(r"(?:https?:)?//([a-z0-9.-]+\.[a-z]{2,})", text)) - {"www.w3.org"}
            assert hosts == set(), path


@pytest.mark.long
@pytest.mark.slow
def test_no_torch_at_the_start() -> None:
    program = "import sys, cleanset.review.page.server; sys.exit(bool({'torch', 'timm', 'scipy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_finding_classes() -> None:
    names = imagenet().names
    for text, most, found in (
        ("TABBY", 12, ["tabby"]), (" n02123045 ", 12, ["tabby"]), ("cat tiger", 1, ["tiger cat"]), ("(*[", 12, []),
        ("cat", 4, ["tabby", "tiger cat", "Persian cat", "Siamese cat"]),
    ):  # fmt: skip
        assert [name.name for name in search_classes(names, text, most=most)] == found
    assert len(search_classes(names, "")) == 12
    assert names[281].gloss == "a cat with a grey or tawny coat mottled with black"


def test_keys_are_distinct_and_complete() -> None:
    assert MEANT.items() <= {reason: key for key, reason in REASON_KEYS.items()}.items()
    assert sorted(REASON_KEYS.values()) == sorted(REASONS)
    assert "v" not in REASON_KEYS  # states that the object stays visible
    assert len(set(FILTERS)) == 6


def test_pace() -> None:
    pace = Pace()
    for second in (0, 4, 8, 12, 500, 504, 508):  # a pause of 488 s does not count
        pace.count_verdict(second, settled=second in (8, 500))
    assert pace.seconds_left(10) is None
    pace.count_verdict(512, settled=True)
    assert (pace.seconds, pace.seconds_left(10)) == (24.0, 80.0)
    assert [in_words(seconds) for seconds in (3, 44, 60, 3_500, 3_600, 9_000)] == [
        "10 s", "40 s", "1 min", "58 min", "1 h 0 min", "2 h 30 min",
    ]  # fmt: skip


def test_examples_are_reviewed_as_clean_and_not_asked(edition: Path, tab: TabAlone) -> None:
    """None without a review; an image that another reviewer found clean counts."""
    html = tab.type()["view"]
    assert "an example" not in html
    assert "No image has been reviewed as clean yet." in html
    *_, third, second, first = tab.cursor.asked()  # the last that would be asked
    for image_id, verdict in ((first, "clean"), (second, "unsure"), (third, "clean")):
        write(edition, "ben", image_id, {"verdict": verdict})
    html = tab.type()["view"]
    assert set(tab.cursor.asked()).isdisjoint({first, second, third})
    section = html[html.index('class="examples"') : html.index('class="progress"')]
    assert sorted(re.findall(r"ILSVRC2012_val_\d{8}", section)) == sorted([first, third])
    tab.cursor.every = True  # they do not serve as examples for themselves
    assert "an example" not in tab.type()["view"]


def test_no_example_says_why(tab: TabAlone) -> None:
    assert "No other image has been reviewed as clean." in tab.type("c")["view"]


def test_names_and_notes_are_escaped(tab: TabAlone) -> None:
    tab.session.state.notes[tab.cursor.class_index, tab.cursor.focus or ""] = "<script>alert(1)</script>"
    html = tab.type()["view"]
    assert "<script>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


@pytest.mark.parametrize("keys", [(), ("x", "w", "v")])
def test_a_verdict_changed_since_it_was_shown_is_not_overwritten(
    edition: Path, tab: TabAlone, keys: tuple[str, ...]
) -> None:
    """Also beneath an open crop, which hides the cards."""
    focus = tab.cursor.focus or ""
    tab.type(*keys, box=BOX)
    write(edition, "ada", focus, CLEAN)
    tab.session.refresh()  # as for another tab; this one does not show it yet
    if keys:
        tab.type("v", "v", box=BOX)  # the cards, which are drawn meanwhile, are hidden
    tab.press(sent("Enter" if keys else "u", [focus], BOX))
    assert tab.failed
    assert "changed meanwhile" in tab.said
    assert reviews(edition) == {GOLDFISH: {focus: CLEAN}}
    tab.type("Escape", "u")  # now it is shown, and may be changed
    assert reviews(edition)[GOLDFISH][focus]["verdict"] == "unsure"


@pytest.mark.parametrize("before", [(), ("Enter",)])
def test_a_note_saves_no_verdict_that_could_not_be_written(
    edition: Path, tab: TabAlone, before: tuple[str, ...]
) -> None:
    second = tab.cursor.images()[1]
    tab.type(*before)
    in_the_way = edition / "reviews" / "ada" / f".{GOLDFISH}.yaml.partial"
    in_the_way.mkdir(parents=True)
    tab.type("c")
    assert tab.failed
    in_the_way.rmdir()
    tab.type("Escape", "ArrowRight", "e")
    assert (tab.mode, tab.cursor.focus) == ("note", second)
    tab.leave_note("why so dark?")
    assert tab.said == "The note will be saved together with a verdict."
    assert "Note, to be saved with your verdict: “why so dark?”" in tab.type()["view"]
    assert reviews(edition) == {}
    tab.type("u")
    assert reviews(edition) == {GOLDFISH: {second: {"verdict": "unsure", "note": "why so dark?"}}}


def test_a_note_belongs_to_one_class(edition: Path, tab: TabAlone) -> None:
    tab.session.state.notes[tab.cursor.class_index + 1, tab.cursor.focus or ""] = "of the other class"
    assert "of the other class" not in tab.type()["view"]
    assert tab.note()[1] == ""
    tab.type("u")
    assert list(reviews(edition)[GOLDFISH].values()) == [{"verdict": "unsure"}]


def test_no_verdict_on_what_was_not_shown(edition: Path, tab: TabAlone) -> None:
    """The question for a reason stays, so that its key does nothing else."""
    first = tab.cursor.focus
    for key, lost, mode in (
        ("c", "The key was", "class"),
        ("u", "2 keys were", "class"),
        ("r", "", "reason"),
        ("f", "3 keys were", "reason"),
    ):
        tab.press(sent(key, [first or ""], seconds_seen=0.49))
        assert tab.said.startswith(f"Not saved. {lost} pressed before the image" if lost else "")
        assert tab.mode == mode
    assert reviews(edition) == {}
    tab.press(sent("f", [first or ""], seconds_seen=0.5))
    assert reviews(edition)[GOLDFISH] == {first: {"verdict": "reject", "reason": "filter"}}


def saved_crop(tab: TabAlone, *keys: tuple[str, Box | None]) -> bool:
    """Whether a crop is saved of the image in focus with these keys, each with the box that is drawn then."""
    for key, box in (("x", None), ("w", None), *keys):
        tab.type(key, box=box)
    return tab.mode == "class"


def test_the_object_is_visible_in_one_box_only(edition: Path, tab: TabAlone) -> None:
    """Any change of the box takes the statement back, also one that is undone."""
    second, focus = (0, 0, 300, 201), tab.cursor.focus
    assert not saved_crop(tab, ("v", BOX), ("Enter", second))
    assert tab.said == "Not saved yet: confirm with v that the object is fully visible."
    tab.type("Escape")
    assert not saved_crop(tab, ("v", BOX), ("box", second), ("Enter", BOX))
    assert 'aria-checked="false"' in tab.type()["panel"]
    tab.type("Escape")
    assert not saved_crop(tab, ("v", None), ("Enter", BOX))
    tab.type("Escape")
    assert saved_crop(tab, ("v", BOX), ("box", BOX), ("Enter", BOX))
    tab.cursor.focus = focus
    assert not saved_crop(tab, ("Enter", BOX))  # opened again, it is not stated
    assert reviews(edition)[GOLDFISH][focus or ""]["crop"] == list(BOX)


@pytest.mark.parametrize(
    ("box", "is_saved"), [((5, 5, 37, 36), False), ((5, 5, 36, 37), False), ((5, 5, 37, 37), True)]
)
def test_a_crop_has_a_smallest_size(edition: Path, tab: TabAlone, box: Box, is_saved: bool) -> None:
    assert saved_crop(tab, ("v", box), ("Enter", box)) == is_saved
    assert (reviews(edition) != {}) == is_saved
    said = f"the box is {box[2] - 5} × {box[3] - 5} pixels, and each side needs at least 32"
    assert (said in tab.said) is not is_saved


@pytest.mark.parametrize(
    "box", [None, (0, 0, 407, 254), (5, 5, 5, 9), (-1, 0, 9, 9), (0, 0, 9, 9999), (9, 9, 2, 2), (0, 0, 10**30, 3)]
)
def test_no_box_that_is_none(edition: Path, tab: TabAlone, box: Box | None) -> None:
    assert not saved_crop(tab, ("v", box), ("Enter", box))
    assert tab.failed
    assert reviews(edition) == {}


def test_a_class_that_waits_for_others_is_not_called_settled(edition: Path) -> None:
    change_review(edition, policy="majority", min_reviewers=2)
    tab = TabAlone(edition)
    while tab.wnid == GOLDFISH:
        tab.type("c")
    assert tab.said == "goldfish has all your verdicts and is waiting for other reviewers."


@pytest.mark.parametrize(
    ("before", "elsewhere", "said", "others_say"),
    [
        ("c", "c", "Nothing to undo: unsure has been replaced elsewhere since; clean stays.", ""),
        ("", "d", "Nothing to undo: unsure has been replaced elsewhere since; no verdict is left.", ""),
        ("", "z", "Undone: unsure.", "Nothing to undo in this tab; d withdraws a verdict."),
    ],
)
def test_undo_is_of_one_tab(
    edition: Path, tab: TabAlone, before: str, elsewhere: str, said: str, others_say: str
) -> None:
    """What another tab did is not undone, and what it has replaced is reported."""
    other, first = TabAlone(edition, session=tab.session), tab.cursor.focus or ""
    for one, keys in ((tab, f"{before}u"), (other, elsewhere)):
        for key in keys:
            one.cursor.focus = first
            one.type(key)
    assert other.said.startswith(others_say)
    tab.press(sent("z", tab.cursor.images()))
    assert tab.said == said
    class_index = tab.cursor.class_index
    assert tab.session.own(class_index, first) == other.session.own(class_index, first)
    assert [entry["verdict"] for entry in reviews(edition).get(GOLDFISH, {}).values()] == ["clean"] * len(before)


@pytest.mark.long
def test_a_short_class_names_the_models_that_lack_images(edition: Path, tab: TabAlone) -> None:
    """In the toast, at the class and at the end, with the way back to it; the same classes as `--status`."""
    for image_id in tab.library.candidates(tab.cursor.class_index):
        tab.cursor.every, tab.cursor.focus = True, image_id
        if tab.wnid == GOLDFISH:
            tab.type("r", "b")
    lacking = "standard lacks 3, norm robust lacks 3, corruption robust lacks 3"
    assert tab.said == f"goldfish is short: {lacking} of 3 images, and no candidates are left."
    tab.open(next(iter(tab.library.by_class)))
    assert f"short: {lacking}" in tab.type()["view"]
    tab.base = "end"
    assert f'<button data-visit="{GOLDFISH}" dir="auto">goldfish</button> {lacking}' in tab.type()["view"]
    short = [index for index, status in tab.session.statuses.items() if status.state == "short"]
    assert review_status.run(Edition(edition)).asked.by_state["short"] == short
    assert tab.order.matching("short") == short


def test_a_crop_from_close_up_leads_back_to_the_cards(tab: TabAlone) -> None:
    second = tab.cursor.images()[1]
    tab.type("Enter", "x", "Escape")
    assert tab.mode == "zoom"
    assert saved_crop(tab, ("v", BOX), ("Enter", BOX))
    assert (tab.mode, tab.cursor.focus) == ("class", second)


def test_a_guess_continues_as_any_verdict_and_its_reason_can_be_changed(edition: Path, tab: TabAlone) -> None:
    first, second = tab.cursor.images()[:2]
    tab.type("guess", card=first, reason="border")
    assert tab.cursor.focus == second
    for key, reason in (("k", "duplicate"), ("l", "blur")):
        tab.type("reason", reason=key)
        assert reviews(edition) == {GOLDFISH: {first: {"verdict": "reject", "reason": reason}}}
    tab.type("ArrowRight", "ArrowLeft")
    tab.type("reason", reason="k")
    assert set(reviews(edition)[GOLDFISH]) == {first, second}


def test_a_note_without_a_verdict_survives_a_reload(edition: Path, tab: TabAlone) -> None:
    tab.type("e")
    tab.leave_note("a stamp?")
    again = TabAlone(edition, session=tab.session)
    assert "Note, to be saved with your verdict: “a stamp?”" in again.type()["view"]
    assert "to be saved with" not in again.type("u")["view"]
    assert [entry["note"] for entry in reviews(edition)[GOLDFISH].values()] == ["a stamp?"]


def test_no_verdict_at_the_end(edition: Path, tab: TabAlone) -> None:
    """If no image is shown, nothing is saved or taken back; the end is not a class."""
    focus = tab.cursor.focus or ""
    tab.type("c")
    tab.cursor.focus, tab.base = focus, "end"
    assert 'data-class-key=""' in tab.type()["view"]
    assert tab.wnid == ""
    for key in ("d", "u", "r", "x", "Enter", "e"):
        tab.press(sent(key, [focus]))
        assert tab.mode == "end"
    assert reviews(edition) == {GOLDFISH: {focus: CLEAN}}
    view = tab.type("p")["view"]
    assert tab.wnid != ""
    assert f'data-class-key="{tab.wnid}"' in view


def test_reject_stays_close(tab: TabAlone) -> None:
    """The image that is looked at closely stays on the screen while a reason is chosen, with its hints."""
    parts = tab.type("Enter", "r")
    modes = [tab.mode]
    assert 'class="zoom"' in parts["overlay"]
    assert "several objects" in parts["panel"]
    for keys in (["Escape"], ["r", "b"]):
        tab.type(*keys)
        modes.append(tab.mode)
    assert modes == ["reason", "zoom", "zoom"]
    assert (tab.type("Escape")["overlay"], tab.mode) == ("", "class")


@pytest.mark.long
def test_hints_name_cards(edition: Path, tab: TabAlone) -> None:
    """Not image ids, which are long and are nowhere else in full."""
    first, second = tab.cursor.images()[:2]
    data = tab.library.photos.read(first)
    hints = BackgroundHints(lambda _: data, imagenet())
    tab = TabAlone(edition, session=replace(tab.session, hints=hints))
    hints.request([first, second])
    wait_until(lambda: len(hints.of([first, second])) == 2)
    html = tab.type()["view"]
    assert "nearly the same as card 2" in html
    assert "nearly the same as card 1" in html
    # looked at closely, it is next to the other
    closely = tab.type("Enter")["overlay"]
    hints.close()
    assert closely.count("image/full/") == 2
    assert f"image/full/{second}" in closely
    assert "<figcaption>card 2</figcaption>" in closely


def test_one_tab_says_that_text_is_not_looked_for(
    edition: Path, tab: TabAlone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cleanset.review.page.tab.can_read_text", lambda: False)
    tab.session.state.told_about_text = False
    assert [TabAlone(edition, session=tab.session).said for _ in range(2)] == [
        f"Text detection is off; to turn it on: {install_command('text')}.", "",
    ]  # fmt: skip


def with_misclassified(edition: Path, tab: TabAlone, image_id: str) -> TabAlone:
    """Another tab of the class, once model `standard` has taken the crop BOX for class 7."""
    elsewhere = Edition(edition / "elsewhere")  # the edition's own data is shared with other tests
    crop_scores = CropScores(elsewhere, list(tab.library.params.models), imagenet())
    session = replace(tab.session, crop_scores=crop_scores)
    scores = pd.DataFrame({"image_id": [image_id], "crop": [list(BOX)]})
    scores["top5_class"], scores["top5_probability"] = [[7, 1, 2, 3, 4]], [[0.5, 0.2, 0.1, 0.1, 0.1]]
    scores["log_odds"] = 0.0
    write_table(elsewhere.crop_scores("standard"), scores, CROP_SCORES, imagenet())
    session.refresh()
    return TabAlone(edition, session=session, at=tab.cursor.class_index)


@pytest.mark.parametrize("wrong_after_crop", ["reject", "accept"])
def test_a_crop_that_is_misclassified(edition: Path, wrong_after_crop: str) -> None:
    """Reported next to the image, and the class needs another image for that model, unless the params accept it."""
    change_review(edition, wrong_after_crop=wrong_after_crop)
    tab = TabAlone(edition)
    focus = tab.cursor.focus or ""
    assert "misclassified by" not in tab.type("x", "w", "v", "Enter", box=BOX)["view"]
    kept = dict(tab.cursor.status.kept)
    assert kept["standard"] > 0
    tab = with_misclassified(edition, tab, focus)
    assert "crop misclassified by standard" in tab.type()["view"]
    assert tab.cursor.status.kept == kept | {"standard": kept["standard"] - (wrong_after_crop == "reject")}


def test_an_own_misclassified_crop_is_out_while_it_waits_for_others(edition: Path) -> None:
    """The class needs another image of this reviewer for the model that errs."""
    change_review(edition, policy="unanimous", min_reviewers=2)
    tab = TabAlone(edition)
    first, *others = tab.cursor.images()[:4]
    ranked = [Candidate(first, "top5", 1, 0.9)] + [
        Candidate(image_id, "reserve", rank, 0.9 - rank / 10) for rank, image_id in enumerate(others, start=2)
    ]
    classes = {**tab.library.by_class, tab.cursor.class_index: {"standard": ranked}}
    session = replace(tab.session, library=replace(tab.library, by_class=classes))
    tab = TabAlone(edition, session=session, at=tab.cursor.class_index)
    tab.cursor.focus = first
    tab.type("x", "w", "v", "Enter", box=BOX)
    found = [(each.image_id, each.certain) for each in tab.cursor.status.questions]
    assert found == list(zip(others, (True, True, False), strict=True))
    tab = with_misclassified(edition, tab, first)
    assert [each.certain for each in tab.cursor.status.questions] == [True, True, True]


def test_one_unreadable_file_hinders_no_other_class(edition: Path) -> None:
    (edition / "reviews" / "ben" / f"{GOLDFISH}.yaml").mkdir(parents=True)
    tab = TabAlone(edition, at=imagenet().indices[GOLDFISH])
    assert set(tab.session.statuses) == set(tab.library.by_class)
    assert [index for index, status in tab.session.statuses.items() if status.broken] == [imagenet().indices[GOLDFISH]]
    assert "a folder; expected a regular file" in tab.type()["view"]
    for key in ("a", "c", "r", "guess"):
        tab.type(key)
        assert tab.said.startswith("Not saved: ")
        assert f"ben/{GOLDFISH}.yaml: a folder; expected a regular file" in tab.said
        tab.notice = None
    assert reviews(edition) == {}


def test_statuses_stay_until_the_new_ones_are_there(
    edition: Path, tab: TabAlone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tab.session.stored, "of_class", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        with_misclassified(edition, tab, tab.cursor.focus or "")
    assert set(tab.session.statuses) == set(tab.library.by_class)


def test_images_that_people_took_for_modified_are_looked_at_again(edition: Path, tab: TabAlone) -> None:
    """As conflicts: in that filter, and shown with what people said, also if nothing else is asked."""
    class_index = next(iter(tab.library.by_class))
    image_id = list(tab.library.candidates(class_index))[-1]
    path, wnid = edition / "look_again.csv", tab.library.classes.keys[class_index]
    header = "image_type,image_id,wnid,ratings,negative,share,low,high,mean"
    path.write_text(f"{header}\nreal,{wnid}/{image_id}.JPEG,{wnid},13,8,0.6154,0.3552,0.8229,-0.4615\n")
    tab = TabAlone(edition, look_again=path)
    assert tab.order.matching("conflicts") == [class_index]
    tab.cursor.go_to(class_index)
    assert image_id in tab.cursor.images()
    assert "".join(tab.type().values()).count("8 of 13 people took it for modified: look again") == 1
    path.write_text(f"{header}\nreal,17,{wnid},13,8,0.6154,0.3552,0.8229,-0.4615\n")
    with pytest.raises(CleansetError, match=r"look_again\.csv, line 2: '17' of class 'n\d+'; expected a candidate"):
        TabAlone(edition, look_again=path)


def test_second_opinions_are_questions(edition: Path, tab: TabAlone) -> None:
    """On the card and closely, in words; they change no question and no deciding parameter; bad ones are refused."""
    focus = tab.cursor.focus
    change_review(edition, opinions=["found.csv"])
    with pytest.raises(
        CleansetError, match=r"found\.csv: missing; correct the file, or take it out of review.opinions"
    ):
        TabAlone(edition)
    (edition / "found.csv").write_text(
        f"image_id,flag,source\n{focus},several_objects,one\n{focus},<b>,two\n{focus},several objects,two\n"
    )
    asked = TabAlone(edition)
    expected = (
        '<span class="sign">&lt;b&gt;?</span> <small>two</small> '
        '<span class="sign">several objects?</span> <small>one; two</small>'
    )
    view = " ".join(asked.type()["view"].split())
    assert expected in view  # in the column on the left
    signs = '<span class="sign">&lt;b&gt;?</span> <span class="sign">several objects?</span> '
    assert f"{signs}<small>two; one; two</small>" in view  # on the card, where the end may be cut off
    assert expected in " ".join(asked.type("Enter")["panel"].split())
    assert asked.cursor.asked() == tab.cursor.asked()
    assert determining_params(asked.library.params, "standard") == determining_params(tab.library.params, "standard")


@pytest.mark.parametrize("names", [[""], ["a.csv", "a.csv"], "a.csv"])
def test_opinions_are_distinct_files(edition: Path, names: object) -> None:
    change_review(edition, opinions=names)
    with pytest.raises(CleansetError, match=r"review\.opinions: "):
        open_library(Edition(edition))
