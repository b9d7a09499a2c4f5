"""The parts that need no browser."""

import hashlib
import re
import subprocess
import sys
import time
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pandas as pd
import pytest
import yaml

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.images.boxes import Box
from cleanset.review import status as review_status
from cleanset.review.hints.background import BackgroundHints
from cleanset.review.page.keys import FILTERS, REASON_KEYS, VERDICTS, Screen
from cleanset.review.page.library import Library, open_library
from cleanset.review.page.server import open_session
from cleanset.review.page.session import CropScores, Pace, in_words
from cleanset.review.page.tab import Tab
from cleanset.review.page.view import render
from cleanset.review.queue import Candidate
from cleanset.review.verdicts import Review
from cleanset.sets.description import determining_params
from cleanset.tables import CROP_SCORES, write_table
from cleanset.vocabulary import Reason, class_indices, class_names, search_classes
from tests.review.texts import save

from .reviewing import REASONS as MEANT
from .reviewing import reviews

GOLDFISH = "n01443537"


@pytest.fixture
def library(edition: Path) -> Library:
    return open_library(Edition(edition))


def tab_of(edition: Path, library: Library, reviewer: str = "ada") -> Tab:
    tab = Tab(open_session(Edition(edition), library, reviewer))
    tab.start()
    render(tab)
    return tab


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


@pytest.mark.slow
def test_no_torch_at_the_start() -> None:
    program = "import sys, cleanset.review.page.server; sys.exit(bool({'torch', 'timm', 'scipy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_finding_classes() -> None:
    names = class_names()
    assert [name.name for name in search_classes(names, "TABBY")] == ["tabby"]
    assert [name.key for name in search_classes(names, " n02123045 ")] == ["n02123045"]
    assert search_classes(names, "cat tiger")[0].name == "tiger cat"
    assert [name.name for name in search_classes(names, "cat", most=4)] == [
        "tabby",
        "tiger cat",
        "Persian cat",
        "Siamese cat",
    ]
    assert search_classes(names, "(*[") == []
    assert len(search_classes(names, "")) == 12
    assert names[281].gloss == "a cat with a grey or tawny coat mottled with black"


def test_keys_are_distinct_and_complete() -> None:
    assert {reason: key for key, reason in REASON_KEYS.items()} == MEANT
    assert sorted(REASON_KEYS.values()) == sorted(Reason.__args__)  # type: ignore[attr-defined]
    assert "v" not in REASON_KEYS  # states that the object stays visible
    assert (len(set(FILTERS)), len(set(VERDICTS))) == (6, 4)


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


def test_examples_are_reviewed_as_clean_and_not_asked(edition: Path, library: Library) -> None:
    """Without a review there is none; an image that another reviewer found clean is one."""
    tab = tab_of(edition, library)
    html = render(tab)["view"]
    assert "an example" not in html
    assert "No image is reviewed as clean yet." in html
    *_, third, second, first = tab.cursor.asked()  # the last that would be asked
    for image_id, verdict in ((first, "clean"), (second, "unsure"), (third, "clean")):
        review = Review.model_validate({"verdict": verdict, "sha256": library.images[image_id].sha256})
        save(edition / "reviews", "ben", GOLDFISH, image_id, review)
    html = render(tab)["view"]
    assert set(tab.cursor.asked()).isdisjoint({first, second, third})
    section = html[html.index('class="examples"') : html.index('class="progress"')]
    assert sorted(re.findall(r"ILSVRC2012_val_\d{8}", section)) == sorted([first, third])
    tab.cursor.every = True  # beside themselves they are no examples
    assert "an example" not in render(tab)["view"]


def test_names_and_notes_are_escaped(edition: Path, library: Library) -> None:
    tab = tab_of(edition, library)
    tab.session.notes[tab.cursor.class_index, tab.cursor.focus or ""] = "<script>alert(1)</script>"
    html = render(tab)["view"]
    assert "<script>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_a_verdict_changed_since_it_was_shown_is_not_overwritten(edition: Path, library: Library) -> None:
    tab = tab_of(edition, library)
    focus = tab.cursor.focus
    assert focus is not None
    other = tab.session.library.images[focus]
    save(edition / "reviews", "ada", GOLDFISH, focus, Review(verdict="clean", sha256=other.sha256))
    tab.session.refresh()  # as for another tab; this one does not show it yet
    tab.press("u", [focus])
    assert tab.notice is not None
    assert tab.notice.is_error
    assert "changed meanwhile" in tab.notice.text
    assert reviews(edition) == {GOLDFISH: {focus: {"verdict": "clean"}}}
    render(tab)
    tab.press("u", [focus])  # now it is shown, and may be changed
    assert reviews(edition) == {GOLDFISH: {focus: {"verdict": "unsure"}}}


def test_a_verdict_beneath_an_open_crop_is_not_overwritten(edition: Path, library: Library) -> None:
    tab = tab_of(edition, library)
    focus = tab.cursor.focus
    assert focus is not None
    tab.press("x", [focus])
    save(edition / "reviews", "ada", GOLDFISH, focus, Review(verdict="clean", sha256=library.images[focus].sha256))
    for key in ("w", "v"):
        tab.press(key, [focus], (0, 0, 300, 200))
        render(tab)  # the cards are hidden
    tab.press("Enter", [focus], (0, 0, 300, 200))
    assert tab.notice is not None
    assert "changed meanwhile" in tab.notice.text
    assert reviews(edition) == {GOLDFISH: {focus: {"verdict": "clean"}}}


@pytest.mark.parametrize("before", [(), ("Enter",)])
def test_a_note_saves_no_verdict_that_could_not_be_written(
    edition: Path, library: Library, before: tuple[str, ...]
) -> None:
    tab = tab_of(edition, library)
    first, second = tab.cursor.images()[:2]
    for key in before:
        tab.press(key, [first, second])
    in_the_way = edition / "reviews" / "ada" / f".{GOLDFISH}.yaml.partial"
    in_the_way.mkdir(parents=True)
    tab.press("c", [first, second])
    assert tab.notice is not None
    assert tab.notice.is_error
    in_the_way.rmdir()
    for key in ("Escape", "ArrowRight", "e"):
        tab.press(key, [first, second])
    assert (tab.mode, tab.cursor.focus) == ("note", second)
    tab.leave_note("why so dark?")
    assert tab.notice is not None
    assert tab.notice.text == "The note is not saved yet: it is saved with a verdict."
    assert "Note, not saved before a verdict: “why so dark?”" in render(tab)["view"]
    assert reviews(edition) == {}
    tab.press("u", [second])
    assert reviews(edition) == {GOLDFISH: {second: {"verdict": "unsure", "note": "why so dark?"}}}


def test_a_note_belongs_to_one_class(edition: Path, library: Library) -> None:
    tab = tab_of(edition, library)
    assert tab.cursor.focus is not None
    tab.session.notes[tab.cursor.class_index + 1, tab.cursor.focus] = "of the other class"
    assert "of the other class" not in render(tab)["view"]
    assert tab.note()[1] == ""
    tab.press("u", [tab.cursor.focus])
    assert list(reviews(edition)[GOLDFISH].values()) == [{"verdict": "unsure"}]


def test_no_verdict_on_what_was_not_shown(edition: Path, library: Library) -> None:
    tab = tab_of(edition, library)
    for key, lost in (("c", "The key was"), ("u", "2 keys were"), ("r", "3 keys were"), ("x", "4 keys were")):
        tab.press(key, [])
        assert tab.notice is not None
        assert tab.notice.text.startswith(f"Not saved. {lost} pressed before the image")
        assert tab.mode == "class"
    assert reviews(edition) == {}


def saved_crop(tab: Tab, *keys: tuple[str, Box | None]) -> bool:
    """Whether a crop is saved of the image in focus with these keys, each with the box that is drawn then."""
    assert tab.cursor.focus is not None
    focus = tab.cursor.focus
    for key, box in (("x", None), ("w", None), *keys):
        tab.press(key, [focus], box)
    return tab.mode == "class"


def test_the_object_is_visible_in_one_box_only(edition: Path, library: Library) -> None:
    """Any change of the box takes the statement back, also one that is undone."""
    first, second = (0, 0, 300, 200), (0, 0, 300, 201)
    tab = tab_of(edition, library)
    assert not saved_crop(tab, ("v", first), ("Enter", second))
    assert tab.notice is not None
    assert tab.notice.text == "Not saved yet: state that the object stays fully visible, by v."
    tab.press("Escape", [])
    assert not saved_crop(tab, ("v", first), ("box", second), ("Enter", first))
    assert 'aria-checked="false"' in render(tab)["panel"]
    tab.press("Escape", [])
    assert not saved_crop(tab, ("v", None), ("Enter", first))
    tab.press("Escape", [])
    focus = tab.cursor.focus
    assert saved_crop(tab, ("v", first), ("box", first), ("Enter", first))
    tab.cursor.focus = focus
    assert not saved_crop(tab, ("Enter", first))  # opened again, it is not stated
    assert reviews(edition)[GOLDFISH][focus or ""]["crop"] == list(first)


@pytest.mark.parametrize(
    ("box", "is_saved"), [((5, 5, 37, 36), False), ((5, 5, 36, 37), False), ((5, 5, 37, 37), True)]
)
def test_a_crop_has_a_smallest_size(edition: Path, library: Library, box: Box, is_saved: bool) -> None:
    tab = tab_of(edition, library)
    assert saved_crop(tab, ("v", box), ("Enter", box)) == is_saved
    assert (reviews(edition) != {}) == is_saved
    if not is_saved:
        assert tab.notice is not None
        assert f"the box is {box[2] - 5} × {box[3] - 5} pixels, and no edge may be under 32" in tab.notice.text


def test_a_class_that_waits_for_others_is_not_called_settled(edition: Path) -> None:
    tab = tab_of(edition, set_review(edition, policy="majority", min_reviewers=2))
    while tab.wnid == GOLDFISH:
        tab.press("c", tab.cursor.images())
    assert tab.notice is not None
    assert tab.notice.text == "goldfish has all your verdicts, and waits for other reviewers."


def test_undo_is_of_one_tab(edition: Path, library: Library) -> None:
    one = tab_of(edition, library)
    other = Tab(one.session)
    other.start()
    first = one.cursor.focus
    one.press("c", one.cursor.images())
    render(other)
    other.press("z", other.cursor.images())
    assert other.notice is not None
    assert other.notice.text.startswith("Nothing to undo in this tab")
    assert list(reviews(edition)[GOLDFISH]) == [first]
    one.press("z", one.cursor.images())
    assert reviews(edition) == {}


@pytest.mark.parametrize(
    ("before", "elsewhere", "said"),
    [
        ("c", "c", "Nothing to undo: unsure was replaced elsewhere meanwhile; clean stays."),
        ("", "d", "Nothing to undo: unsure was replaced elsewhere meanwhile; no verdict is left."),
        ("", "", "Undone: unsure."),
    ],
)
def test_undo_of_what_another_tab_has_replaced(
    edition: Path, library: Library, before: str, elsewhere: str, said: str
) -> None:
    one = tab_of(edition, library)
    other = Tab(one.session)
    other.start()
    first = one.cursor.focus

    def press(tab: Tab, keys: str) -> None:
        for key in keys:
            tab.cursor.focus = first
            render(tab)
            tab.press(key, tab.cursor.images())

    press(one, f"{before}u")
    press(other, elsewhere)
    one.press("z", one.cursor.images())
    assert one.notice is not None
    assert one.notice.text == said
    assert one.session.own(one.cursor.class_index, first or "") == other.session.own(
        one.cursor.class_index, first or ""
    )
    assert [entry["verdict"] for entry in reviews(edition).get(GOLDFISH, {}).values()] == ["clean"] * len(before)


def test_a_short_class_names_the_models_that_lack_images(edition: Path, library: Library) -> None:
    """In the toast, at the class and at the end, with the way back to it; the same classes as `--status`."""
    tab = tab_of(edition, library)
    for image_id in library.candidates(tab.cursor.class_index):
        tab.cursor.every = True
        tab.cursor.focus = image_id
        if tab.wnid == GOLDFISH:
            tab.press("r", [image_id])
            tab.press("b", [image_id])
    assert tab.notice is not None
    lacking = "standard lacks 3, norm robust lacks 3, corruption robust lacks 3"
    assert tab.notice.text == f"goldfish is short: {lacking} of 3 images, and no candidate is left."
    tab.open(next(iter(library.classes)))
    assert f"short: {lacking}" in render(tab)["view"]
    tab.mode, tab.ended = "end", True
    shown = render(tab)["view"]
    assert f'<button data-visit="{GOLDFISH}">goldfish</button> {lacking}' in shown
    short = [index for index, status in tab.session.statuses.items() if status.state == "short"]
    assert review_status.run(Edition(edition)).asked.classes["short"] == short


def test_no_example_says_why(edition: Path, library: Library) -> None:
    tab = tab_of(edition, library)
    assert "No image is reviewed as clean yet." in render(tab)["view"]
    tab.press("c", tab.cursor.images())
    assert "No other image is reviewed as clean." in render(tab)["view"]


def test_a_crop_from_close_up_leads_back_to_the_cards(edition: Path, library: Library) -> None:
    tab = tab_of(edition, library)
    first, second = tab.cursor.images()[:2]
    for key in ("Enter", "x", "Escape"):
        tab.press(key, [first])
    assert tab.mode == "zoom"
    assert saved_crop(tab, ("v", (0, 0, 300, 200)), ("Enter", (0, 0, 300, 200)))
    assert (tab.mode, tab.cursor.focus) == ("class", second)


def test_a_guess_goes_on_as_any_verdict_and_its_reason_can_be_changed(edition: Path, library: Library) -> None:
    tab = tab_of(edition, library)
    first, second = tab.cursor.images()[:2]
    tab.press("guess", [first, second], card=first, screen=Screen(class_key=tab.wnid, reason="border"))
    assert tab.cursor.focus == second
    for key, reason in (("k", "duplicate"), ("l", "blur")):
        tab.press("reason", [first, second], screen=Screen(class_key=tab.wnid, reason=key))
        assert reviews(edition) == {GOLDFISH: {first: {"verdict": "reject", "reason": reason}}}
    tab.press("ArrowRight", [])
    tab.press("ArrowLeft", [])
    tab.press("reason", [first, second], screen=Screen(class_key=tab.wnid, reason="k"))
    assert set(reviews(edition)[GOLDFISH]) == {first, second}


def test_a_note_without_a_verdict_survives_a_reload(edition: Path, library: Library) -> None:
    tab = tab_of(edition, library)
    tab.press("e", tab.cursor.images())
    tab.leave_note("a stamp?")
    again = Tab(tab.session)
    again.start()
    assert "Note, not saved before a verdict: “a stamp?”" in render(again)["view"]
    again.press("u", again.cursor.images())
    assert [entry["note"] for entry in reviews(edition)[GOLDFISH].values()] == ["a stamp?"]
    assert "not saved before" not in render(again)["view"]


def test_no_verdict_at_the_end(edition: Path, library: Library) -> None:
    """Where no image is shown, nothing is saved or taken back."""
    tab = tab_of(edition, library)
    focus = tab.cursor.focus or ""
    tab.press("c", [focus])
    tab.cursor.focus, tab.mode, tab.ended = focus, "end", True
    for key in ("d", "u", "r", "x", "Enter", "e"):
        tab.press(key, [focus])
        assert tab.mode == "end"
    assert reviews(edition) == {GOLDFISH: {focus: {"verdict": "clean"}}}


def test_reject_stays_close(edition: Path, library: Library) -> None:
    """The image that is looked at closely stays on the screen while a reason is chosen, with its hints."""
    tab = tab_of(edition, library)
    for key in ("Enter", "r"):
        tab.press(key, tab.cursor.images())
    modes = [tab.mode]
    assert 'class="zoom"' in render(tab)["overlay"]
    assert "several objects" in render(tab)["panel"]
    tab.press("Escape", tab.cursor.images())
    modes.append(tab.mode)
    for key in ("r", "b"):
        tab.press(key, tab.cursor.images())
    modes.append(tab.mode)
    assert modes == ["reason", "zoom", "zoom"]
    tab.press("Escape", tab.cursor.images())
    assert (tab.mode, render(tab)["overlay"]) == ("class", "")


def test_hints_name_cards(edition: Path, library: Library) -> None:
    """Not image ids, which are long and stand nowhere else in full."""
    tab = tab_of(edition, library)
    first, second = tab.cursor.images()[:2]
    data = library.photos.read(first)
    tab.session.hints = BackgroundHints(lambda _: data)
    tab.session.hints.request([first, second])
    deadline = time.monotonic() + 60
    while len(tab.session.hints.of([first, second])) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    html = render(tab)["view"]
    assert "nearly the same as card 2" in html
    assert "nearly the same as card 1" in html
    # looked at closely, it stands beside the other
    tab.press("Enter", tab.cursor.images())
    closely = render(tab)["overlay"]
    tab.session.hints.close()
    assert closely.count("/image/full/") == 2
    assert f"/image/full/{second}" in closely
    assert "<figcaption>card 2</figcaption>" in closely


def test_one_tab_says_that_text_is_not_looked_for(
    edition: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session(Edition(edition), library, "ada")
    monkeypatch.setattr("cleanset.review.page.tab.can_read_text", lambda: False)
    notices = []
    for _ in range(2):
        tab = Tab(session)
        tab.start()
        notices.append(tab.notice.text if tab.notice else None)
    assert notices == ["Hints do not look for text: pip install 'cleanset[text]' adds that.", None]


@pytest.mark.parametrize(
    "box", [None, (0, 0, 407, 254), (5, 5, 5, 9), (-1, 0, 9, 9), (0, 0, 9, 9999), (9, 9, 2, 2), (0, 0, 10**30, 3)]
)
def test_no_box_that_is_none(edition: Path, library: Library, box: Box | None) -> None:
    tab = tab_of(edition, library)
    for key in ("x", "w", "v", "Enter"):
        tab.press(key, tab.cursor.images(), box)
    assert tab.notice is not None
    assert tab.notice.is_error
    assert reviews(edition) == {}


def test_a_crop_that_is_misclassified(edition: Path, library: Library) -> None:
    """Told beside the image, and the class needs another image for that model."""
    tab = tab_of(edition, library)
    focus = tab.cursor.focus
    assert focus is not None
    for key in ("x", "w", "v", "Enter"):
        tab.press(key, tab.cursor.images(), (0, 0, 300, 200))
    assert "misclassified by" not in render(tab)["view"]
    kept = dict(tab.cursor.status.kept)
    score_as_misclassified(tab, focus, edition / "elsewhere")
    assert "crop misclassified by standard" in render(tab)["view"]
    assert tab.cursor.status.kept == kept | {"standard": kept["standard"] - 1}


def score_as_misclassified(tab: Tab, image_id: str, folder: Path) -> None:
    """Let model `standard` take the crop [0, 0, 300, 200] for class 7."""
    elsewhere = Edition(folder)  # the edition's own data is shared with other tests
    tab.session.crop_scores = CropScores(elsewhere, list(tab.session.library.params.models))
    scores = pd.DataFrame({"image_id": [image_id], "crop": [[0, 0, 300, 200]]})
    scores["top5_class"], scores["top5_probability"] = [[7, 1, 2, 3, 4]], [[0.5, 0.2, 0.1, 0.1, 0.1]]
    scores["log_odds"] = 0.0
    write_table(elsewhere.crop_scores("standard"), scores, CROP_SCORES)
    tab.session.refresh()


def set_review(edition: Path, **changes: object) -> Library:
    params = yaml.safe_load((edition / "params.yaml").read_text())
    params["review"] |= changes
    (edition / "params.yaml").write_text(yaml.safe_dump(params))
    return open_library(Edition(edition))


def test_a_misclassified_crop_that_is_accepted(edition: Path) -> None:
    tab = tab_of(edition, set_review(edition, wrong_after_crop="accept"))
    focus = tab.cursor.focus
    assert focus is not None
    for key in ("x", "w", "v", "Enter"):
        tab.press(key, tab.cursor.images(), (0, 0, 300, 200))
    kept = dict(tab.cursor.status.kept)
    assert kept["standard"] > 0
    score_as_misclassified(tab, focus, edition / "elsewhere")
    assert tab.cursor.status.kept == kept


def test_an_own_misclassified_crop_is_out_while_it_waits_for_others(edition: Path) -> None:
    """The class needs another image of this reviewer for the model that errs."""
    tab = tab_of(edition, set_review(edition, policy="unanimous", min_reviewers=2))
    first, *others = tab.cursor.images()[:4]
    ranked = [Candidate(first, "top5", 1, 0.9)] + [
        Candidate(image_id, "reserve", rank, 0.9 - rank / 10) for rank, image_id in enumerate(others, start=2)
    ]
    library = tab.session.library
    tab.session.library = replace(library, classes={**library.classes, tab.cursor.class_index: {"standard": ranked}})
    tab.cursor.focus = first
    for key in ("x", "w", "v", "Enter"):
        tab.press(key, tab.cursor.images(), (0, 0, 300, 200))
    assert [(each.image_id, each.certain) for each in tab.cursor.status.questions] == list(
        zip(others, (True, True, False), strict=True)
    )
    score_as_misclassified(tab, first, edition / "elsewhere")
    assert [each.certain for each in tab.cursor.status.questions] == [True, True, True]


def test_one_unreadable_file_hinders_no_other_class(edition: Path, library: Library) -> None:
    (edition / "reviews" / "ben" / f"{GOLDFISH}.yaml").mkdir(parents=True)
    tab = tab_of(edition, library)
    tab.open(class_indices()[GOLDFISH])
    assert set(tab.session.statuses) == set(library.classes)
    assert [index for index, status in tab.session.statuses.items() if status.broken] == [class_indices()[GOLDFISH]]
    assert "a folder; expected a regular file" in render(tab)["view"]


def test_statuses_stay_until_the_new_ones_are_there(
    edition: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab = tab_of(edition, library)
    monkeypatch.setattr(tab.session.stored, "of_class", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        score_as_misclassified(tab, tab.cursor.focus or "", edition / "elsewhere")
    assert set(tab.session.statuses) == set(library.classes)


def test_the_end_is_no_class(edition: Path, library: Library) -> None:
    """Keys come with the class that they were pressed at."""
    tab = tab_of(edition, library)
    assert tab.wnid == GOLDFISH
    tab.mode, tab.ended = "end", True
    assert 'data-class-key=""' in render(tab)["view"]
    assert tab.wnid == ""
    tab.press("p", [])
    assert f'data-class-key="{tab.wnid}"' in render(tab)["view"]
    assert tab.wnid != ""


def test_images_that_people_took_for_modified_are_looked_at_again(
    edition: Path, library: Library, tmp_path: Path
) -> None:
    """As conflicts: in that filter, and shown with what people said, also where nothing else is asked."""
    class_index = next(iter(library.classes))
    image_id = list(library.candidates(class_index))[-1]
    wnid = library.names[class_index].key
    path = tmp_path / "look_again.csv"
    header = "image_type,image_id,wnid,ratings,negative,share,low,high,mean"
    path.write_text(f"{header}\nreal,{wnid}/{image_id}.JPEG,{wnid},13,8,0.6154,0.3552,0.8229,-0.4615\n")
    tab = Tab(open_session(Edition(edition), library, "ada", path))
    tab.start()
    assert tab.order.matching("conflicts") == [class_index]
    tab.cursor.go_to(class_index)
    assert image_id in tab.cursor.images()
    assert "".join(render(tab).values()).count("8 of 13 people took it for modified: look again") == 1
    path.write_text(f"{header}\nreal,17,{wnid},13,8,0.6154,0.3552,0.8229,-0.4615\n")
    with pytest.raises(CleansetError, match=r"look_again\.csv, line 2: '17' of class 'n\d+'; expected a candidate"):
        open_session(Edition(edition), library, "ada", path)


def test_second_opinions_are_questions(edition: Path) -> None:
    """On the card and closely, in words; they change no question and no deciding parameter; bad ones are refused."""
    text = (edition / "params.yaml").read_text()
    asked = tab_of(edition, open_library(Edition(edition)))
    focus = asked.cursor.focus
    (edition / "params.yaml").write_text(text.replace("review:\n", "review:\n  opinions: [found.csv]\n"))
    with pytest.raises(CleansetError, match=r"found\.csv: missing; expected a CSV file with the columns image_id,"):
        open_session(Edition(edition), open_library(Edition(edition)), "ada")
    (edition / "found.csv").write_text(
        f"image_id,flag,source\n{focus},several_objects,one\n{focus},<b>,two\n{focus},several objects,two\n"
    )
    tab = tab_of(edition, open_library(Edition(edition)))
    expected = (
        '<span class="sign">&lt;b&gt;?</span> <small>two</small> '
        '<span class="sign">several objects?</span> <small>one; two</small>'
    )
    view = " ".join(render(tab)["view"].split())
    assert expected in view  # in the column on the left
    signs = '<span class="sign">&lt;b&gt;?</span> <span class="sign">several objects?</span> '
    assert f"{signs}<small>two; one; two</small>" in view  # on the card, where the end may be cut off
    tab.press("Enter", tab.cursor.images())
    assert expected in " ".join(render(tab)["panel"].split())
    assert tab.cursor.asked() == asked.cursor.asked()
    assert determining_params(tab.session.library.params) == determining_params(asked.session.library.params)


@pytest.mark.parametrize("names", ['[""]', "[a.csv, a.csv]", "a.csv"])
def test_opinions_are_distinct_files(edition: Path, names: str) -> None:
    text = (edition / "params.yaml").read_text()
    (edition / "params.yaml").write_text(text.replace("review:\n", f"review:\n  opinions: {names}\n"))
    with pytest.raises(CleansetError, match=r"review\.opinions: "):
        open_library(Edition(edition))
