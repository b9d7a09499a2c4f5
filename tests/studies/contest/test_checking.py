"""Contests on the disk: reading and checking their folders, each line of bad input, and the commands."""

import io
import json
import os
import struct
import subprocess
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace as with_changes
from pathlib import Path

import pytest
import yaml
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.studies.contest.checking import manifest_entry, run
from cleanset.studies.contest.consistency import check_submissions
from cleanset.studies.contest.defending import run_defence, stake_yaml
from cleanset.studies.contest.history import append_log, check_log
from cleanset.studies.contest.reading import read_contest
from cleanset.studies.contest.standing import standing
from tests.documents import blocks
from tests.studies.contest.made import BIRD, BIRD_OR_BICYCLE, JUDGES, UNSURE, day
from tests.studies.contest.on_disk import CLEAN, FIRST, OnDisk, control_image, digest, named, png, stake_entry
from tests.time_limits import at_most

IMAGE = f"{FIRST}/images/x.png"


def refused(made: OnDisk, message: str, path: str | None = None, on: str | None = None) -> None:
    """In one line, which names what is expected."""
    with pytest.raises(CleansetError, match=message) as caught:
        run(made.folder, None if path is None else made.path(path), None if on is None else day(on))
    assert "\n" not in str(caught.value)


def test_a_whole_contest(made: OnDisk) -> None:
    files = read_contest(made.folder)
    assert list(files.defences) == ["gold/wall"]
    assert [str(each) for each in files.submissions] == [FIRST]
    assert standing(files, day("2026-11-14")).defences[0].status == "broken"
    assert run(made.folder, None, day("2026-11-14")).splitlines()[0] == "1 defences, 1 submissions with 1 images"
    assert run(made.folder, made.path(FIRST), None).splitlines()[0] == f"{FIRST}: 1 images"
    assert run(made.folder, made.path("defences/gold/wall"), None) == "gold/wall: 0 files as named"


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_an_entry_for_a_manifest(kind: str, made: OnDisk) -> None:
    data = png((1, 2, 3), (30, 20), kind)
    path = made.edition / f"drawn.{kind.lower()}"
    path.write_bytes(data)
    assert manifest_entry(path) == named(path.name, data)
    made.submit("submissions/blue/2026-11-09-1", {f"y.{kind.lower()}": data})
    assert run(made.folder, None, None).splitlines()[0].endswith("2 submissions with 2 images")


def replace(made: OnDisk, data: bytes, **changed: object) -> None:
    """Another image in the submission, whose entry is that of a good one, but for its SHA-256 and what is given."""
    entry = named("x.png", png((1, 0, 0))) | {"sha256": digest(data)} | changed
    made.changed(f"{FIRST}/manifest.yaml", images=[entry])
    made.path(IMAGE).write_bytes(data)
    for judge in JUDGES[:3]:
        made.path(f"answers/{judge}/2026-11-06.yaml").unlink()
    made.run("2026-11-07", {digest(data): "bird"})


@pytest.mark.slow
def test_a_manifest_from_images(made: OnDisk, tmp_path: Path) -> None:
    """What the command prints is a submission that is read and checked."""
    folder = made.path("submissions/blue/2026-11-05-1")
    (folder / "images").mkdir(parents=True)
    for name, color in (("a.png", (0, 0, 200)), ("b.png", (0, 200, 0))):
        (folder / "images" / name).write_bytes(png(color))
    images = [f"{folder}/images/{name}" for name in ("a.png", "b.png")]
    given = ["manifest", "--target", "gold/wall", "--at", "2026-11-05T12:00:00Z"]
    done = cleanset(made, *given, *images)
    assert (done.returncode, done.stderr) == (0, "")
    (folder / "manifest.yaml").write_text(done.stdout)
    assert run(made.folder, folder, None).splitlines()[0] == "submissions/blue/2026-11-05-1: 2 images"
    for arguments, message in (
        ((*given[:4], "today", *images), "manifest: submitted: expected an instant in UTC such as"),
        (
            (*given, f"{folder}/manifest.yaml"),
            "manifest.yaml: cannot be read (not a JPEG or PNG); expected a PNG or JPEG",
        ),
        ((*given, f"{folder}/c.png"), "c.png: no such file; expected a PNG or JPEG"),
        ((*given[:2], "wall", *given[3:], *images), "manifest: target: expected a match of"),
        (("unpublished", str(folder)), "contest unpublished: a part of check today: cleanset contest check FOLDER"),
    ):
        done = cleanset(made, *arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert message in done.stderr


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
        (png((1, 0, 0), (4097, 8)), "4097 x 8 pixels; expected at most 4096 a side"),
        (png((1, 0, 0), (99, 100)), "99 x 100 pixels; expected 100 x 100 of the manifest"),
        (png((2, 0, 0)), "x.png: pixels_sha256 [0-9a-f]{64}; expected"),
        (saved(Image.new("RGBA", (100, 100))), "mode RGBA; expected RGB or grayscale without transparency"),
        (saved(Image.new("RGB", (100, 100)), transparency=(0, 0, 0)), "without transparency"),
        (
            saved(
                Image.new("RGB", (9, 9)), save_all=True, append_images=[Image.new("RGB", (9, 9), "red")], duration=100
            ),
            "an animation; expected one image",
        ),
        (turned(), "an EXIF orientation; expected none"),
    ],
    ids=[
        "cut",
        "empty",
        "gif head",
        "gif",
        "bomb",
        "large",
        "size",
        "pixels",
        "alpha",
        "color key",
        "frames",
        "turned",
    ],
)
def test_refused_images(data: bytes, message: str, made: OnDisk) -> None:
    replace(made, data)
    refused(made, message)
    refused(made, message, FIRST)


DECISION = {"date": "2026-11-10", "reason": "no bird", "members": ["ada"], "verdict": "invalid"}


def answered(made: OnDisk, content: dict[str, object], judge: str = JUDGES[0], week: str = "2026-11-06") -> None:
    made.judge(judge, week, {made.sha256: {"date": "2026-11-07", **content}})


def answered_control(made: OnDisk, week: str, date: str) -> None:
    made.yaml("judges/controls.yaml", {"controls": {"0" * 64: {"contains": {"bird": True, "bicycle": False}}}})
    made.judge(JUDGES[3], week, {"0" * 64: BIRD | {"date": date}})


def answered_twice(made: OnDisk) -> None:
    path = made.path(f"answers/{JUDGES[0]}/2026-11-06.yaml")
    body = path.read_text().removeprefix("answers:\n")
    path.write_text(f"answers:\n{body}{body}")


def clean_image(made: OnDisk) -> None:
    """By its pixels: the file is another one."""
    data = png(CLEAN, (30, 30), optimize=True)
    replace(made, data, **named("x.png", data))


def linked(made: OnDisk, name: str) -> None:
    path = made.path(name)
    path.rename(made.edition / "elsewhere")
    path.symlink_to(made.edition / "elsewhere")


def linked_file(made: OnDisk) -> None:
    with_files(made, {"run.py": "print()"})
    linked(made, "defences/gold/wall/run.py")


def created(made: OnDisk, name: str) -> None:
    path = made.path(name)
    made.text(path, "{}") if path.suffix else path.mkdir(parents=True)


def moved(made: OnDisk, name: str, to: str) -> None:
    made.path(name).rename(made.path(to))


MANIFEST, RUN = f"{FIRST}/manifest.yaml", "results/runs/gold/wall/2026-11-07"
X = named("x.png", png((1, 0, 0)))
LATE_ROSTER = {each: {"joined": "2026-11-08"} for each in JUDGES}
SETS = "../../data/export/standard/manifest.csv"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (clean_image, "x.png: an image of the clean set; expected another"),
        (lambda made: made.path(SETS).unlink(), "no finished set to compare submitted images with; run dvc pull"),
        (
            lambda made: made.path(IMAGE).write_bytes(png((200, 0, 1))),
            r"x.png: SHA-256 [0-9a-f]{64}; expected [0-9a-f]{64} of the m",
        ),
        (lambda made: made.path(IMAGE).unlink(), "x.png: missing; expected every image that the manifest names"),
        (
            lambda made: made.path(f"{FIRST}/images/y.png").write_bytes(b""),
            "y.png: not in the manifest; expected the images that it names only",
        ),
        (
            lambda made: made.path(f"{FIRST}/y.png").write_bytes(b""),
            "y.png: not in the manifest; expected manifest.yaml and images/ only",
        ),
        (
            lambda made: made.changed(MANIFEST, images=[dict(X), dict(X)]),
            "the same image as submissions/red/2026-11-02-1/x.png",
        ),
        (lambda made: made.changed(MANIFEST, images=[X | {"file": "../../x.png"}]), "yaml: images.0.file: expected a"),
        (
            lambda made: made.changed(MANIFEST, submitted="2026-11-03T00:00:00Z"),
            "manifest.yaml: submitted on 2026-11-03; expected 2026-11-02, as its",
        ),
        *(
            (lambda made, name=name: linked(made, name), "a link; expected a file or folder: put a copy")
            for name in (IMAGE, f"{FIRST}/images", FIRST, "submissions/red", MANIFEST)
        ),
        (linked_file, "run.py: a link; expected a file or folder"),
        *(
            (lambda made, name=name: created(made, name), message)
            for name, message in (
                ("submissions/red/first", "red/first: not a submission; expected a name <date>-<n>"),
                ("submissions/red/2026-11-02-0", "expected a name <date>-<n>"),
                ("submissions/red/2026-13-02-1", "manifest.yaml: missing"),
                (
                    "submissions/Red/2026-11-02-1",
                    "submissions/Red: unexpected; expected a folder with a name of small letters, digits",
                ),
                (
                    "answers/aaaaaaaa/friday.yaml",
                    "friday.yaml: unexpected; expected a file <date>.yaml, such as 2026-11-27",
                ),
                ("answers/aaaaaaaa/2026-02-30.yaml", "unexpected; expected a file <date>.yaml"),
                ("board/opinions.yaml", "opinions.yaml: unexpected; expected decisions.yaml, appeals.yaml, stakes.ya"),
                (f"{RUN}.csv", "unexpected; expected a file <date>.json"),
                ("defences/gold/notes.txt", "notes.txt: unexpected; expected a folder"),
            )
        ),
        (
            lambda made: moved(made, f"{RUN}.json", "results/runs/gold/wall/2026-11-08.json"),
            "gold/wall on 2026-11-07; expected gold/wall on 2026-11-08, as its name",
        ),
        (answered_twice, "the key '[0-9a-f]{64}' a second time, first in line [0-9]+; a key comes once"),
        (
            lambda made: made.changed("judges/roster.yaml", judges=LATE_ROSTER),
            "answers/aaaaaaaa/2026-11-06.yaml: an answer of 2026-11-07; expected none before 2026-11-08, when",
        ),
        (lambda made: answered(made, BIRD, "Ada"), "answers/Ada: unexpected; expected a folder with a name"),
        (lambda made: answered_control(made, "2026-11-20", "2026-11-21"), "2026-11-20.yaml: .* never shown to this"),
        (lambda made: answered_control(made, "2026-11-06", "2026-11-06"), "2026-11-06.yaml: .* never shown to this"),
        (lambda made: answered(made, BIRD | {"outline": [[0, 0], [9, 9]]}), "06.yaml: answers.*an outline with 2 p"),
        (lambda made: made.path(f"answers/{JUDGES[0]}/2026-11-06.yaml").unlink(), "2 judges; expected at least 3: ask"),
        (lambda made: made.changed("contest.yaml", judges={"minimum": 4}), "3 judges; expected at least 4: ask"),
        (lambda made: made.changed("contest.yaml", judges={"minimum": 2}), "contest.yaml: judges.minimum: expected"),
        (lambda made: made.yaml("board/decisions.yaml", {"a": 1}), "decisions.yaml: .*; expected a list of entries"),
        (
            lambda made: made.yaml("board/decisions.yaml", [DECISION | {"image": made.sha256, "reason": None}]),
            "decisions.yaml: decisions.0.reason: expected a string",
        ),
        (
            lambda made: made.yaml("board/decisions.yaml", [{"image": made.sha256, "date": "2026-11-10"}]),
            "decisions.yaml: decisions.0.reason: Field required",
        ),
        (
            lambda made: made.yaml("board/decisions.yaml", [DECISION | {"image": made.sha256, "members": ["eve"]}]),
            "counts eve, who has a conflict with gold, red",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(change: Callable[[OnDisk], object], message: str, made: OnDisk) -> None:
    change(made)
    refused(made, message)


def test_what_is_refused_of_one_path(made: OnDisk) -> None:
    refused(made, "neither a submission nor a defence of this contest, nor an unpublished list; expected", "board")
    made.stake(date="2026-11-03")
    refused(made, "gold/wall is staked on 2026-11-03; expected a target that is staked by 2026-11-02", FIRST)


@pytest.mark.parametrize("name", ["contest.yaml", f"{FIRST}/manifest.yaml", "board/stakes.yaml"])
def test_a_named_pipe_is_refused_without_waiting(name: str, made: OnDisk) -> None:
    made.path(name).unlink()
    os.mkfifo(made.path(name))
    with at_most(5), pytest.raises(CleansetError, match="a named pipe; expected a regular file"):
        read_contest(made.folder)


def test_a_date_in_the_future(made: OnDisk) -> None:
    name = "submissions/blue/2026-11-09-1"
    made.submit(name, {"y.png": png((0, 9, 0))})
    for path in (None, name):
        refused(made, f"{name}: submitted on 2026-11-09; expected no day after 2026-11-08", path, "2026-11-08")
        assert run(made.folder, None if path is None else made.path(path), day("2026-11-09"))


@pytest.mark.parametrize(
    ("on", "message"),
    [
        ("2026-11-06", "answers/aaaaaaaa/2026-11-06.yaml: [0-9a-f]{12}…: dated 2026-11-07; expected no day after 2026"),
        ("2026-11-07", "board/stakes.yaml: dated 2026-11-09; expected no day after 2026-11-07"),
        ("2026-11-09", "defences/gold/moat: dated 2026-11-10; expected no day after 2026-11-09"),
        ("2026-11-10", "results/runs/gold/moat/2026-11-11.json: dated 2026-11-11; expected no day after 2026-11-10"),
    ],
)  # fmt: skip
def test_whatever_is_dated_in_the_future(on: str, message: str, made: OnDisk) -> None:
    defence = yaml.safe_load(made.path("defences/gold/wall/defence.yaml").read_text())
    made.yaml("defences/gold/moat/defence.yaml", defence | {"submitted": "2026-11-09"})
    moat = {"defences": ["gold/moat"], "digests": {"gold/moat": made.digest("gold/moat")}}
    made.yaml(
        "board/stakes.yaml",
        [stake_entry(digests={"gold/wall": made.digest()}), stake_entry(batch="second", date="2026-11-09") | moat],
    )
    made.run("2026-11-11", {made.sha256: "bird"}, "gold/moat")
    assert run(made.folder, None, day("2026-11-11"))
    if "moat:" in message:
        made.yaml("defences/gold/moat/defence.yaml", defence | {"submitted": "2026-11-10"})
        made.stake()
        made.run("2026-11-11", {made.sha256: "bird"}, "gold/moat")
    refused(made, message, None, on)


def test_unknown_teams_and_eleven_images(made: OnDisk) -> None:
    made.submit("submissions/pink/2026-11-03-1", {"y.png": png((0, 9, 0))})
    refused(made, "submissions/pink/2026-11-03-1: unknown team pink", "submissions/pink/2026-11-03-1")
    made.path("submissions/pink").rename(made.path("submissions/blue"))
    made.submit("submissions/red/2026-11-02-2", {f"y{n}.png": png((0, n, 0)) for n in range(10)})
    refused(made, "submissions/red/2026-11-02-2: 11 images of red on that day", "submissions/red/2026-11-02-2")


def test_notes_and_hidden_files_may_lie_anywhere(made: OnDisk) -> None:
    for folder in ("", "submissions", FIRST, "defences/gold/wall", "board", "answers"):
        made.text(made.path(f"{folder}/README.md"), "what this is")
        made.text(made.path(f"{folder}/.gitignore"), "/images")
    assert run(made.folder, None, None)


def with_files(made: OnDisk, files: dict[str, str]) -> None:
    """The defence names files, which are there."""
    for name, text in files.items():
        made.text(made.path(f"defences/gold/wall/{name}"), text)
    entries = [{"path": name, "sha256": digest(text.encode())} for name, text in files.items()]
    made.changed("defences/gold/wall/defence.yaml", files=entries)


def test_the_files_of_a_defence(made: OnDisk) -> None:
    with_files(made, {"run.py": "print()", "code/net.py": "pass"})
    assert run(made.folder, made.path("defences/gold/wall"), None) == "gold/wall: 2 files as named"
    made.text(made.path("defences/gold/wall/code/net.py"), "import os")
    for path in (None, "defences/gold/wall"):
        refused(made, r"code/net.py: SHA-256 [0-9a-f]{64}; expected [0-9a-f]{64} of defence.yaml: the file has", path)
    made.path("defences/gold/wall/code/net.py").unlink()
    refused(made, "code/net.py: missing; expected every file that defence.yaml names")
    made.text(made.path("defences/gold/wall/more.py"), "")
    refused(made, "more.py: not among the files of defence.yaml")


@pytest.mark.parametrize("name", [f"answers/{JUDGES[0]}/2026-11-06.yaml", "board/stakes.yaml"])
def test_a_week_of_answers_and_all_decisions_are_long_files(name: str, made: OnDisk) -> None:
    """Each of 1,750 images, ten a day of 25 teams, has some 700 characters."""
    path = made.path(name)
    path.write_text(path.read_text() + 20_000 * (99 * "#" + "\n"))
    assert run(made.folder, None, None)


def cleanset(made: OnDisk, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["cleanset", "contest", *arguments], cwd=made.folder, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_commands(made: OnDisk) -> None:
    done = cleanset(made, "check", "--on", "2026-11-14")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "1 defences, 1 submissions with 1 images")
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
    notice = made.path("results/notices/2026-11-06/gold.txt").read_text()
    assert notice == f"{made.sha256}: gold/wall gives bicycle, judged bird; final since 2026-11-14\n"
    table = cleanset(made, "standing", "--on", "2026-11-13").stdout
    assert "gold/wall" in table
    assert "staked" in table
    assert cleanset(made, "check", "--on", "2026-11-14").returncode == 0  # with what was written
    done = cleanset(made, "standing", "--on", "tomorrow")
    assert (done.returncode, done.stderr) == (1, "error: --on 'tomorrow'; expected a day such as 2026-11-27\n")
    made.path("contest.yaml").unlink()
    done = cleanset(made, "check")
    assert done.returncode == 1
    assert done.stderr.startswith("error: contest.yaml: missing; expected the folder of a contest")
    assert done.stderr.count("\n") == 1


def test_notices_before_the_verdict_is_final(made: OnDisk) -> None:
    from cleanset.studies.contest.report import notices

    files = read_contest(made.folder)
    name, text = (
        "2026-11-06/gold.txt",
        f"{made.sha256}: gold/wall gives bicycle, judged bird; appeals until 2026-11-14\n",
    )
    assert notices(files, standing(files, day("2026-11-13"))) == {name: text}
    assert notices(files, standing(files, day("2026-11-06"))) == {}


def test_the_contest_is_read_as_it_was_written(made: OnDisk) -> None:
    """Every value of a judge's file is in the answer."""
    content = yaml.safe_load(made.path(f"answers/{JUDGES[0]}/2026-11-06.yaml").read_text())
    ((_, given),) = content["answers"].items()
    (first,) = [each for each in read_contest(made.folder).answers if each.judge == JUDGES[0]]
    found = first.answers[made.sha256].model_dump(mode="json")
    assert found == given


def test_the_documented_files(repository: Path, tmp_path: Path) -> None:
    """Those of docs/contest.md are read as they are, and the submission can be made to the staked defence."""
    files, edition = (yaml.safe_load(text) for text in blocks(repository, "yaml", "docs/contest.md"))
    for name, content in files.items():
        text = yaml.safe_dump(content, allow_unicode=True).replace("a…", "a" + "b" * 58).replace("c…", "c" + "b" * 58)
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = read_contest(tmp_path)
    check_submissions(with_changes(found, digests=found.board.stakes[0].digests))
    assert (len(found.board.appeals), len(found.board.decisions), len(found.board.accepted)) == (1, 1, 1)
    assert found.roster == {"3f9c2a71"}
    assert Counter(edition["dataset"]["classes"]) == Counter(BIRD_OR_BICYCLE["bird"] + BIRD_OR_BICYCLE["bicycle"])


def test_a_log_of_digests(made: OnDisk) -> None:
    """Any change of what is dated before a line is seen, and so is a line that was rewritten."""
    path, files = made.path("board/log"), read_contest(made.folder)
    first, second = (append_log(made.folder, files, day(date)) for date in ("2026-11-06", "2026-11-14"))
    assert path.read_text() == f"{first}\n{second}\n"
    assert first.split()[2] == "0" * 64
    assert second.split()[2] == digest(first.encode())
    with pytest.raises(CleansetError, match=r"board/log: its last line is of 2026-11-14; expected a later day"):
        append_log(made.folder, files, day("2026-11-14"))
    assert run(made.folder, None, None)
    before = made.path(f"answers/{JUDGES[0]}/2026-11-06.yaml").read_text()
    answered(made, dict(UNSURE))
    refused(made, r"board/log, line 2: the files of 2026-11-14 have another digest today, .*; expected [0-9a-f]{64}: s")
    made.path(f"answers/{JUDGES[0]}/2026-11-06.yaml").write_text(before)
    decided = {"image": made.sha256, "date": "2026-11-10", "reason": "no bird", "members": ["ada"], "verdict": "bird"}
    made.yaml("board/decisions.yaml", [decided])  # dated back
    refused(made, r"board/log, line 2: the files of 2026-11-14 have another digest today")
    made.yaml("board/decisions.yaml", [decided | {"date": "2026-11-15", "verdict": "bird"}])
    assert run(made.folder, None, None)
    for text, message in (
        (f"{second}\n", "line 1: does not follow the line before"),
        (f"{first}\n{second[:-1]}0\n", "line 2: does not follow the line before"),
        (f"{first}\nno line\n", "line 2: 'no line'; expected a day, a digest and the digest of the line before"),
    ):
        path.write_text(text)
        refused(made, f"board/log, {message}")


def test_a_log_of_what_decides_whose_answers_count(made: OnDisk) -> None:
    """Of the controls those that were answered by then, and their masks; others may be added at any time."""
    control = control_image(made, answered="2026-11-08")
    mask = made.path(f"judges/masks/{control}.png")
    append_log(made.folder, read_contest(made.folder), day("2026-11-07"))
    mask.write_bytes(png((255, 255, 255), (100, 100)))
    append_log(made.folder, read_contest(made.folder), day("2026-11-08"))
    controls = yaml.safe_load(made.path("judges/controls.yaml").read_text())["controls"]
    new = {digest(b"new"): {"contains": {"bird": False, "bicycle": True}}}
    message = "board/log, line 2: the files of 2026-11-08 have another digest today"
    for changed, is_refused in ((controls | new, False), ({control: new[digest(b"new")]}, True), (controls, False)):
        made.yaml("judges/controls.yaml", {"controls": changed})
        if is_refused:
            with pytest.raises(CleansetError, match=message):
                append_log(made.folder, read_contest(made.folder), day("2026-11-20"))
        else:
            check_log(made.folder, read_contest(made.folder))
    mask.write_bytes(saved(Image.eval(Image.linear_gradient("L").resize((100, 100)), lambda level: 255 * (level > 99))))
    with pytest.raises(CleansetError, match=message):
        check_log(made.folder, read_contest(made.folder))


def test_the_entry_of_a_stake(made: OnDisk) -> None:
    """It is read as it is printed; only of defences whose files are as named."""
    with_files(made, {"run.py": "print()"})
    text = stake_yaml(made.folder, "first", day("2026-11-02"), "board", ["gold/wall"])
    assert yaml.safe_load(text) == [stake_entry(digests={"gold/wall": made.digest()})]
    made.path("board/stakes.yaml").write_text(text)
    assert run(made.folder, None, None)
    lines = {"run.py": "print()", "defence.yaml": made.path("defences/gold/wall/defence.yaml").read_text()}
    whole = "".join(f"{digest(lines[name].encode())}  {name}\n" for name in sorted(lines))
    assert made.digest() == digest(whole.encode())
    for names, batch, message in (
        (["gold/moat"], "first", "gold/moat: unknown defence; expected team/name of a folder in"),
        (["gold/wall"], "The first", "stake: batch: expected a match of"),
    ):
        with pytest.raises(CleansetError, match=message):
            stake_yaml(made.folder, batch, day("2026-11-02"), "board", names)
    made.text(made.path("defences/gold/wall/run.py"), "print(1)")
    with pytest.raises(CleansetError, match=r"run\.py: SHA-256 .*; expected .* of defence.yaml: the file has changed"):
        stake_yaml(made.folder, "first", day("2026-11-02"), "board", ["gold/wall"])


def test_a_staked_defence_that_is_changed(made: OnDisk) -> None:
    """Its defence.yaml or one of its files, with the SHA-256 entered anew; refused by name in every command."""
    with_files(made, {"run.py": "print()"})
    assert run(made.folder, None, None)
    before = made.path("board/stakes.yaml").read_text()
    with_files(made, {"run.py": "print('abstain')"})
    made.path("board/stakes.yaml").write_text(before)
    refused(
        made, "defences/gold/wall: digest [0-9a-f]{64} of defence.yaml and its files; expected [0-9a-f]{64}, staked"
    )
    for date in ("2026-11-02", "2026-11-14"):
        with pytest.raises(
            CleansetError, match=r"defences/gold/wall: digest .*, staked on 2026-11-02: git checkout it"
        ):
            standing(read_contest(made.folder), day(date))
    with pytest.raises(CleansetError, match=r"defences/gold/wall: digest .*, staked on 2026-11-02: git checkout it"):
        run_defence(made.folder, read_contest(made.folder), "gold/wall", day("2026-11-09"))
