"""What comes by mail: entered with its objects, refused in one line, and the commands."""

import io
import json
import os
import re
import struct
import subprocess
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.plumbing.yaml_files import parse_yaml
from cleanset.studies.contest.drafts import image_entry, kind_of
from cleanset.studies.contest.entering import check, enter, sign_entries
from cleanset.studies.contest.log_lines import LOG, entry_of
from cleanset.studies.contest.report import notices
from cleanset.studies.contest.rules import parse_instant
from cleanset.studies.contest.standing import standing
from tests.browser_tab import SOURCE
from tests.documents import blocks
from tests.forked_commands import forking
from tests.studies.contest.made import BIRD, BIRD_OR_BICYCLE, JUDGES, UNSURE, day
from tests.studies.contest.on_disk import CLEAN, MODEL, OPEN, OnDisk, digest, key, named, png, public, rules
from tests.time_limits import at_most

KEY = public("somebody").split()[1]


def refused(made: OnDisk, message: str, *paths: Path, at: str = "2026-11-09T12:00:00Z") -> None:
    """In one line; nothing is written, by whoever only checks nor by whoever enters."""
    before = made.path(LOG).read_bytes()
    for act in (made.check, made.enter):
        with pytest.raises(CleansetError, match=message) as caught:
            act(*paths, at=at)
        assert "\n" not in str(caught.value)
    assert made.path(LOG).read_bytes() == before


def test_a_whole_contest(made: OnDisk) -> None:
    files = made.state()
    assert list(files.defences) == ["gold/wall"]
    assert [str(each) for each in files.submissions] == ["line 5, red's submission"]
    assert standing(files, day("2026-11-14")).defences[0].status == "broken"
    first, second = check(made.folder)[:2]
    assert first == "1 defence, 1 submission with 1 image"
    assert second == f"11 lines, the last with digest {files.head}"


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_submission_by_mail(kind: str, made: OnDisk) -> None:
    """It counts in the week that ends after it; its images lie among the objects."""
    data, name = png((1, 2, 3), (30, 30), kind), f"y.{kind.lower()}"
    folder = made.mail("blue-1", {name: data})
    assert image_entry(folder / name) == named(name, data)
    before = made.path(LOG).read_bytes()
    shown = made.check(folder)
    assert made.path(LOG).read_bytes() == before
    assert not made.path(f"objects/{digest(data)}").exists()
    lines = made.entries()
    assert made.enter(folder) == shown
    assert shown[0] == f"line 11 (submission), {made.state().head}"
    assert made.entries().startswith(lines)
    assert made.path(f"objects/{digest(data)}").read_bytes() == data
    assert digest(data) not in standing(made.state(), day("2026-11-09")).images
    made.enter(at="2026-11-13T20:00:00Z", publish=True)
    assert standing(made.state(), day("2026-11-13")).images[digest(data)].stage == "open"


def bomb() -> bytes:
    """A PNG whose header promises 60,000 x 60,000 pixels."""
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b"")]
    body = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(body)


def saved(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def turned() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return saved(Image.new("RGB", (100, 100)), "JPEG", exif=exif)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (png((1, 0, 0))[:-30], "expected a PNG or JPEG that can be decoded"),
        (b"", r"x.png: cannot be read \(empty\); expected a PNG or JPEG"),
        (b"GIF89a", r"cannot be read \(not a JPEG or PNG\); expected a PNG or JPEG"),
        (png((1, 0, 0), kind="GIF"), "not a JPEG or PNG"),
        (bomb(), "60000 x 60000 pixels, more than 100,000,000|could be decompression bomb"),
        (png((1, 0, 0), (300, 300)), "300 x 300 pixels; expected at most 299 a side, as many as gold/wall sees"),
        (png((1, 0, 0), (99, 100)), "99 x 100 pixels; expected a square image"),
        (saved(Image.new("RGBA", (100, 100))), "mode RGBA; expected RGB or grayscale without transparency"),
        (saved(Image.new("RGB", (100, 100)), transparency=(0, 0, 0)), "without transparency"),
        (
            saved(
                Image.new("RGB", (9, 9)), save_all=True, append_images=[Image.new("RGB", (9, 9), "red")], duration=100
            ),
            "an animation; expected one image",
        ),
        (turned(), "an EXIF orientation; expected an image without one"),
    ],
    ids=[
        "cut",
        "empty",
        "gif head",
        "gif",
        "bomb",
        "large",
        "size",
        "alpha",
        "color key",
        "frames",
        "turned",
    ],
)
def test_refused_images(data: bytes, message: str, made: OnDisk) -> None:
    refused(made, message, made.mail("blue-1", {"x.png": data}))


def test_an_image_that_is_not_as_its_line_says(made: OnDisk) -> None:
    """Who writes a line by hand is found out by whoever has the image."""
    entry = dict(made.story[5][2]["images"][0])
    for wrong in ({"width": 99, "height": 99}, {"pixels_sha256": "0" * 64}):
        made.changed("submission", images=[entry | wrong])
        with pytest.raises(CleansetError, match=r"line 5 \(submission\), x.png: expected the size and pixels of"):
            check(made.folder)


Change = Callable[[OnDisk, Path], object]


def manifest_with(**changed: object) -> Change:
    def change(_: OnDisk, folder: Path) -> None:
        content = yaml.safe_load((folder / "manifest.yaml").read_text())
        (folder / "manifest.yaml").write_text(yaml.safe_dump(content | changed))

    return change


def clean_image(made: OnDisk, folder: Path) -> None:
    """By its pixels: the file is another one."""
    made.mail("blue-1", {"x.png": png(CLEAN, (30, 30), optimize=True)})


def linked(name: str) -> Change:
    def change(made: OnDisk, folder: Path) -> None:
        (folder / name).rename(made.edition / "elsewhere")
        (folder / name).symlink_to(made.edition / "elsewhere")

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (clean_image, "x.png: an image of the clean set; expected a new image"),
        (
            lambda made, _: (made.edition / "data/export/standard/manifest.csv").unlink(),
            "no finished set to compare submitted images with; run dvc pull",
        ),
        (lambda _, folder: (folder / "x.png").unlink(), "manifest.yaml: images: expected at least 1 item"),
        (lambda _, folder: (folder / "y.txt").write_text("note"), "y.txt: cannot be read"),
        (lambda _, folder: (folder / "x.png").rename(folder / "x y.png"), "images.0.file: expected a match of"),
        (manifest_with(team="pink"), "signed by pink, who has no key; expected a key in a line before it"),
        (manifest_with(target="gold/moat"), "unknown target gold/moat; expected a defence team/name"),
        (manifest_with(note="ours"), "manifest.yaml: unknown key 'note'; expected team, target, images"),
        (linked("x.png"), "x.png: a link; expected a file or folder: put a copy"),
        (linked("manifest.yaml"), "manifest.yaml: a link; expected a file or folder"),
    ],
)
def test_what_is_refused_of_a_submission(change: Change, message: str, made: OnDisk) -> None:
    folder = made.mail("blue-1", {"x.png": png((1, 0, 0))})
    change(made, folder)
    refused(made, message, folder)


def test_a_link_to_a_folder_is_refused(made: OnDisk) -> None:
    folder = made.mail("blue-1", {"x.png": png((1, 0, 0))})
    (made.edition / "link").symlink_to(folder)
    refused(made, "link: a link; expected a file or folder: put a copy", made.edition / "link")


def test_eleven_images_a_day(made: OnDisk) -> None:
    first = made.mail("red-1", {f"y{n}.png": png((0, n, 0)) for n in range(6)}, "red")
    second = made.mail("red-2", {f"z{n}.png": png((0, 0, n)) for n in range(5)}, "red")
    made.enter(first)
    refused(made, "red's submission: 11 images of red on 2026-11-09; expected at most 10", second)
    assert made.enter(second, at="2026-11-10T12:00:00Z")


def test_the_day_is_that_of_entering(made: OnDisk) -> None:
    """No instant in a manifest gives a team another ten images of one day."""
    first = made.mail("red-1", {f"y{n}.png": png((0, n, 0)) for n in range(10)}, "red")
    made.enter(first)
    early = made.mail("red-2", {"z.png": png((0, 0, 9))}, "red", received="2000-01-01T00:00:00Z")
    refused(made, "unknown key 'received'; expected team, target, images", early)


def test_an_image_in_a_folder_of_a_submission(made: OnDisk) -> None:
    """Refused in a line, as are folders in one another, as any archive may have them."""
    folder = made.mail("blue-1", {"x.png": png((1, 0, 0))})
    (folder / "more").mkdir()
    (folder / "x.png").rename(folder / "more" / "x.png")
    refused(made, "more: a folder; expected all images beside manifest.yaml: put them there", folder)
    deep = defence(made, {"run.py": "print()"})
    (deep / Path(*["d"] * 150)).mkdir(parents=True)
    refused(made, "more than 100 folders in one another; expected fewer", deep)


def test_a_control_is_no_submission(made: OnDisk) -> None:
    made.enter(controls(made, png((1, 0, 0))))
    refused(made, "a control image of the judges", made.mail("blue-1", {"x.png": png((1, 0, 0))}))


def controls(made: OnDisk, data: bytes, mask: bytes | None = None, **changed: object) -> Path:
    """A file of controls with one image, and perhaps its mask."""
    folder = made.edition / "mail" / "judges"
    for name, content in (("images/control.png", data), (f"masks/{digest(data)}.png", mask)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if content is not None:
            (folder / name).write_bytes(content)
    entry = {"contains": {"bird": True, "bicycle": False}} | changed
    return made.yaml("judges/controls.yaml", {"controls": {digest(data): entry}})


def grey(size: tuple[int, int] = (30, 30), value: int = 255) -> bytes:
    return saved(Image.new("L", size, value))


CONTROL = png((0, 90, 0), (30, 30))


def test_controls_and_their_masks(made: OnDisk) -> None:
    """The mask stands in the line, so that a standing needs no object."""
    made.enter(controls(made, CONTROL, grey()))
    made.path(f"objects/{digest(CONTROL)}").unlink()
    assert made.state().masks[digest(CONTROL)].shape == (30, 30)
    refused(made, "was entered before; expected each once: void the first one", controls(made, CONTROL))


@pytest.mark.parametrize(
    ("mask", "changed", "message"),
    [
        (grey((20, 30)), {}, r"a mask of 20 x 30 pixels; expected its image's 30 x 30$"),
        (grey()[:40], {}, "mask of a control: .*; expected a PNG, white where the object is$"),
        (b"no image", {}, "mask of a control: .*; expected a PNG, white where the object is$"),
        (grey(value=100), {}, "nothing in it is white; expected white where the object is$"),
        (None, {"contains": {"bird": True}}, r"[0-9a-f]{12}…: contains 'bird'; expected 'bicycle', 'bird'"),
        (None, {"contains": {}}, "contains nothing; expected 'bicycle', 'bird'"),
    ],
)
def test_refused_controls(mask: bytes | None, changed: dict[str, Any], message: str, made: OnDisk) -> None:
    refused(made, message, controls(made, CONTROL, mask, **changed))


def test_a_control_without_its_image(made: OnDisk) -> None:
    path = controls(made, CONTROL)
    (path.parent / "images" / "control.png").unlink()
    refused(made, "missing; expected every file that log.jsonl names", path)


def test_examples(made: OnDisk) -> None:
    data = png((0, 0, 90), (30, 30))
    one = {"contains": {"bird": "definitely_no", "bicycle": "definitely_no"}, "because": "It is blue."}
    path = controls(made, data).with_name("examples.yaml")
    for changed, message in (
        ({"contains": {"b\nx": "definitely_yes"}}, r"contains 'b\\nx'; expected 'bicycle', 'bird'"),
        (BIRD | {"outline": [[0, 0], [31, 0], [9, 9]]}, r"\[31, 0\], outside the image of 30 x 30 pixels"),
        ({"because": None}, r"because .*: expected a string"),
    ):
        path.write_text(yaml.safe_dump({"examples": {digest(data): one | changed}}))
        refused(made, message, path)
    path.write_text(yaml.safe_dump({"examples": {digest(data): one}}))
    made.enter(path)
    assert made.state().examples[digest(data)].because == "It is blue."


def defence(made: OnDisk, files: Mapping[str, str], **changed: object) -> Path:
    """The folder of a defence as it comes by mail."""
    entries = [{"path": name, "sha256": digest(text.encode()), "role": "weights"} for name, text in files.items()]
    content: dict[str, object] = {"name": "blue/roof", "open": False, "command": ["./run"], "files": entries}
    path = made.yaml("roof/defence.yaml", {name: one for name, one in (content | changed).items() if one is not None})
    for name, text in files.items():
        made.text(path.parent / name, text)
    return path.parent


def test_the_files_of_a_defence(made: OnDisk) -> None:
    folder = defence(made, {"run.py": "print()", "code/net.py": "pass"})
    assert made.check(folder)[0].startswith("line 11 (defence), ")
    made.text(folder / "code/net.py", "import os")
    refused(made, r"net.py: SHA-256 [0-9a-f]{64}; expected [0-9a-f]{64}: the file has changed", folder)
    (folder / "code/net.py").unlink()
    refused(made, "code/net.py: expected the files that defence.yaml names, and no others", folder)
    made.text(folder / "code/net.py", "pass")
    made.text(folder / "more.py", "")
    refused(made, "more.py: expected the files that defence.yaml names, and no others", folder)


def test_a_defence_of_a_name_that_is_taken(made: OnDisk) -> None:
    """What has changed needs another name."""
    folder = defence(made, {"run.py": "print()"}, name="gold/wall")
    refused(made, "gold/wall was entered before; expected each once", folder)


@pytest.mark.slow
def test_the_weights_of_an_open_model(made: OnDisk) -> None:
    """Those of the edition's params.yaml, entered or public; what it crops is entered with it."""
    given: dict[str, object] = {"command": None, "model": MODEL, **OPEN}
    made.enter(defence(made, {}, **given))
    found = made.state().defences["blue/roof"].model
    assert found is not None
    assert (found.pixels, found.crop) == (182, 160)  # test_efficientnet: the short side to 182 pixels, the middle 160
    for changed, message in (
        ({"public": {"source": "mine", "sha256": "0" * 64}}, "open, with weights of SHA-256 0{64}; expected 005427ac"),
        ({"public": None}, "open: no weights; expected them among the files, or public"),
        ({"model": MODEL | {"role": "none"}}, "none"),
    ):
        refused(made, message, defence(made, {}, **(given | {"name": "blue/attic"} | changed)))


@pytest.mark.long
def test_answers_of_a_judge(made: OnDisk) -> None:
    """Days in the file count nothing; what is entered again is the same, and nothing else."""
    answers = {made.sha256: UNSURE | {"date": "2026-11-07"}}
    path = made.yaml("d.yaml", {"judge": JUDGES[3], "week": "2026-11-06", "answers": answers})
    made.enter(path)
    (found,) = [each for each in made.state().answers if each.judge == JUDGES[3]]
    assert found.answers[made.sha256].date == day("2026-11-09")
    assert standing(made.state(), day("2026-11-10")).images[made.sha256].judges == 3
    for changed, message in (
        ({}, "no answer that was not entered before; expected new ones"),
        ({"answers": {made.sha256: BIRD}}, "was answered otherwise before; expected the same"),
        ({"judge": "f" * 8}, "signed by ffffffff, who has no key; expected"),
        ({"judge": JUDGES[4], "week": "2026-11-13"}, "an image never shown to this judge in the week of 2026-11-13"),
        ({"answers": {made.sha256: BIRD | {"outline": "1,1 2,2"}}}, "an outline with 2 points"),
        ({"answers": {made.sha256: BIRD | {"outline": [[0, 0], [101, 0], [9, 9]]}}, "judge": JUDGES[4]}, "outside the"),
        ({"answers": {"0" * 64: BIRD}}, "0{12}…: an image never shown to this judge"),
        ({"answers": [1]}, "d.yaml: not an entry of a contest"),
    ):
        content = {"judge": JUDGES[3], "week": "2026-11-06", "answers": answers} | changed
        refused(made, message, made.yaml("d.yaml", content), at="2026-11-11T12:00:00Z")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"opinion": {}}, r"x\.yaml: not an entry of a contest; expected manifest.yaml or defence.yaml in a folder"),
        ({"appeal": {}, "team": {}}, "not an entry of a contest"),
        ({"appeal": []}, "not an entry of a contest"),
        ([], r"\[\]; expected keys and values"),
        ({"team": {"name": "Pink"}}, r"line 11 \(team\): name: expected a match of"),
        (
            {"appeal": {"image": "0" * 64, "team": "red", "statement": "!"}},
            r"line 11 \(appeal\): statement: expected a match of",
        ),
        ({"contest": {}}, "contest: .*: Field required|contest; expected contest in the first line"),
        ({"stake": {"batch": "second", "by": "gold", "defences": ["gold/wall"]}}, "gold/wall is staked a second time"),
    ],
)
def test_what_is_no_entry(content: object, message: str, made: OnDisk) -> None:
    refused(made, message, made.yaml("x.yaml", content))


def test_an_entry_on_which_days_are_written(made: OnDisk) -> None:
    """As in contests of earlier versions: they count nothing."""
    made.enter(made.yaml("team.yaml", {"team": {"name": "pink", "key": public("pink")}}))
    appeal = {"image": made.sha256, "team": "gold", "statement": "no bird", "date": "2026-11-07"}
    made.enter(made.yaml("appeal.yaml", {"appeal": appeal}), at="2026-11-10T12:00:00Z")
    assert [each.date for each in made.state().appeals] == [day("2026-11-10")]
    assert "pink" in made.state().rules.teams


@pytest.mark.parametrize("name", ["appeal.yaml", "blue-1/manifest.yaml"])
def test_a_named_pipe_is_refused_without_waiting(name: str, made: OnDisk) -> None:
    path = made.mail("blue-1", {"x.png": png((1, 0, 0))})
    (path / "manifest.yaml").unlink()
    os.mkfifo(made.edition / "mail" / name)
    with at_most(5), pytest.raises(CleansetError, match=r"expected a regular file|a folder; expected"):
        made.check(made.edition / "mail" / name if name == "appeal.yaml" else path)


def test_a_week_of_answers_is_a_long_file(made: OnDisk) -> None:
    """Each of 1,750 images, ten a day of 25 teams, has some 700 characters."""
    path = made.yaml("d.yaml", made.answers_of(JUDGES[3], {made.sha256: UNSURE}))
    path.write_text(path.read_text() + 20_000 * (99 * "#" + "\n"))
    assert made.check(path)


def cleanset(made: OnDisk, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["cleanset", "contest", *arguments], cwd=made.folder, env=os.environ | forking(SOURCE),
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.slow
def test_the_commands(made: OnDisk) -> None:
    done = cleanset(made, "check")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "1 defence, 1 submission with 1 image")
    done = cleanset(made, "standing", "--on", "2026-11-14", "--json", "--write")
    found = json.loads(done.stdout)
    assert found == json.loads(made.path("results/standing.json").read_text())
    assert found["defences"]["gold/wall"] == {
        "status": "broken", "staked_on": "2026-11-02", "batch": "first", "reasons": [], "broken_in": "2026-11-06",
        "broken_by": ["red"], "shares": {"red": "1"}, "settled": True, "waits_for": [],
        "open_until": "", "overfitting": None,
    }  # fmt: skip
    assert (found["attackers"], found["defenders"]) == ({"red": "1"}, {})
    assert found["images"] == {
        made.sha256: {
            "stage": "final", "group": "bird", "reason": None, "by": "judges", "judges": 3, "final_on": "2026-11-14",
            "confirmed": False,
        }
    }  # fmt: skip
    assert found["head"] == made.state().head
    notice = made.path("results/notices/2026-11-06/gold.txt").read_text()
    assert notice == f"{made.sha256}: gold/wall gives bicycle, judged bird; final since 2026-11-14\n"
    table = cleanset(made, "standing", "--on", "2026-11-13").stdout
    assert "gold/wall" in table
    assert "staked" in table
    done = cleanset(made, "standing", "--on", "tomorrow")
    assert (done.returncode, done.stderr) == (1, "error: --on 'tomorrow'; expected a day such as 2026-11-27\n")
    mail = made.mail("blue-1", {"x.png": png((1, 0, 0))})
    given = ("enter", str(mail), "--key", str(key("staff")), "--at")
    done = cleanset(made, *given, "noon")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("error: --at 'noon'; expected an instant such as 2026-11-27T12:00:00Z")
    done = cleanset(made, "sign", str(mail), "--name", "blue", "--key", str(key("blue")))
    assert (done.returncode, done.stdout) == (0, f"{mail}.blue.sig\n")
    done = cleanset(made, *given, "2026-11-09T12:00:00Z")
    assert (done.returncode, done.stderr) == (0, "")
    lines = cleanset(made, "log").stdout.splitlines()
    assert len(lines) == 12
    assert lines[-1] == f"11 2026-11-09T12:00:00Z submission {made.state().head}"
    made.path(LOG).unlink()
    done = cleanset(made, "check")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("error: log.jsonl: missing; expected the log of a contest: cleanset contest enter")


def test_notices_before_the_verdict_is_final(made: OnDisk) -> None:
    text = f"{made.sha256}: gold/wall gives bicycle, judged bird; appeals until 2026-11-14\n"
    for date, expected in (("2026-11-13", {"2026-11-06/gold.txt": text}), ("2026-11-06", {})):
        files = made.state(date)
        assert notices(files, standing(files, day(date))) == expected


def test_the_documented_entries(repository: Path) -> None:
    """Those of docs/contest.md are entries as they are; the classes of birds and bicycles are the paper's."""
    entries, edition = blocks(repository, "yaml", "docs/contest.md")
    text = re.sub(r"\b([0-9a-f]{6,7})…", lambda found: found[1].ljust(64, "b"), entries).replace("AAAA…", KEY)
    kinds, in_folders = [], {"contest.yaml": "contest", "manifest.yaml": "submission", "defence.yaml": "defence"}
    documented: Any = parse_yaml(text, "docs/contest.md")
    for file, content in documented.items():
        kind, data = (in_folders[file], content) if file in in_folders else kind_of(Path(file), content)
        assert entry_of(kind, data, day("2026-11-14"), signers=["ada"], where=file)
        kinds.append(kind)
    assert len(set(kinds)) == len(kinds) == 13
    classes = yaml.safe_load(edition)["dataset"]["classes"]
    assert Counter(classes) == Counter(BIRD_OR_BICYCLE["bird"] + BIRD_OR_BICYCLE["bicycle"])


def test_signing(made: OnDisk) -> None:
    """In a file beside the entry, by whoever may; then it can be entered."""
    decision = {"image": made.sha256, "verdict": "bird", "reason": "looked at it"}
    path = made.yaml("decision.yaml", {"decision": decision})

    def entered(message: str) -> None:
        with pytest.raises(CleansetError, match=message):
            enter(made.folder, [path], key=key("staff"), at=parse_instant("2026-11-09T12:00:00Z"))

    entered(r"line 11 \(decision\): signed by nobody; expected 1 of ada, bob, eve: cleanset contest sign")
    (signed,) = sign_entries(made.folder, [path], "mallory", key("bob"))
    entered(r"line 11 \(decision\): signed by mallory; expected ada, bob, eve")
    signed.unlink()
    (signed,) = sign_entries(made.folder, [path], "ada", key("bob"))
    assert signed == path.with_name("decision.yaml.ada.sig")
    entered("the signature of ada is not .*; expected a signature of this entry in this contest")
    sign_entries(made.folder, [path], "ada", key("ada"))
    path.write_text(path.read_text().replace("looked at it", "did not look"))
    entered("the signature of ada is not valid")
    signed.write_text("ada")
    entered(r"decision\.yaml\.ada\.sig.*expected a signature of cleanset contest sign")
    sign_entries(made.folder, [path], "ada", key("ada"))
    assert enter(made.folder, [path], key=key("staff"), at=parse_instant("2026-11-09T12:00:00Z"))
    assert made.state().decisions[0].members == ["ada"]


def test_an_unpublished_list_before_the_contest_begins(made: OnDisk) -> None:
    """Its line is for contest.yaml, so that it is printed before there is a log, and the same later."""
    hidden = made.edition / "hidden"
    for group, shade in (("bird", 1), ("bicycle", 2)):
        (hidden / group).mkdir(parents=True)
        (hidden / group / "x.png").write_bytes(png((shade, 9, 9)))
    later = check(made.folder, hidden)
    made.text(made.path("contest.yaml"), yaml.safe_dump(rules()))
    made.path(LOG).unlink()
    assert check(made.folder, hidden) == later
    made.path("contest.yaml").unlink()
    with pytest.raises(CleansetError, match=r"log\.jsonl: missing; expected the log of a contest"):
        check(made.folder, hidden)


def test_a_whole_folder_of_mail(made: OnDisk) -> None:
    """Signatures are found beside their entries, and are none themselves."""
    path = made.yaml("one/stake.yaml", {"stake": {"batch": "second", "by": "board", "defences": ["gold/roof"]}})
    made.yaml("one/defence/defence.yaml", {"name": "gold/roof", **OPEN, "model": MODEL})
    made.sign(path.parent / "defence", path)
    mail = sorted(path.parent.iterdir())
    assert len(mail) == 4
    assert len(enter(made.folder, mail, key=key("staff"), at=parse_instant("2026-11-09T12:00:00Z"))) == 2
    with pytest.raises(CleansetError, match="nothing to enter"):
        enter(made.folder, [each for each in mail if each.suffix == ".sig"], key=key("staff"))


@pytest.mark.parametrize(("at", "is_refused"), [("2027-01-30T12:00:00Z", True), ("2027-01-31T12:00:00Z", False)])
def test_counts_while_a_defence_is_staked(at: str, *, is_refused: bool, made: OnDisk) -> None:
    """Of many runs they tell the group of each image in the unpublished list."""
    figures = {"images": 10, "correct": 9, "mistakes": 0, "mistakes_at_80": 0}
    hidden = {"list_sha256": "0" * 64, "against": [], "figures": figures}
    made.add(at, "run", made.run_of({made.sha256: "bicycle"}) | {"unpublished": hidden})
    if is_refused:
        with pytest.raises(CleansetError, match=r"line 11 \(run\): counts .* staked until 2027-01-31; expected"):
            check(made.folder)
    else:
        assert not any("counts" in line for line in check(made.folder))
