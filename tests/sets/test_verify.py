"""`cleanset verify`: one line for each problem, and how many images are good."""

import csv
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import cleanset as cleanset_package
from cleanset.classes import ClassTable, class_table, imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.sets import verify
from cleanset.sets.description import Release
from cleanset.sets.folder import read_entries, write_descriptions
from cleanset.sets.manifest_checks import duplicates
from tests.evaluation.compare.command import cleanset, says
from tests.sets.conftest import FILES, edit, trial

ONE, TWO, THREE, FOUR, FIVE, SIX = FILES
OTHER = "f" * 64


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pixels(path: Path) -> str:
    """By NumPy, where the code asks Pillow for its bytes."""
    with Image.open(path) as image:
        return hashlib.sha256(np.asarray(image.convert("RGB")).tobytes()).hexdigest()


def rows(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((folder / "manifest.csv").read_text())))


def rewrite(folder: Path, line: int, **changes: str) -> None:
    """Change values in a line of the manifest, and its digest wherever that is kept."""
    before = sha(folder / "manifest.csv")
    lines = rows(folder)
    lines[line - 2] |= changes
    out = io.StringIO()
    writer = csv.DictWriter(out, lines[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    (folder / "manifest.csv").write_text(out.getvalue())
    describe_anew(folder, before)


def edit_digest(folder: Path, before: str, after: str) -> None:
    """Write another digest of the manifest into the Croissant description: in whole, and its start in the version."""
    path = folder / "croissant.json"
    text = path.read_text()
    assert (text.count(before), text.count(f"+manifest.{before[:16]}")) == (1, 1)
    path.write_text(text.replace(before, after).replace(f"+manifest.{before[:16]}", f"+manifest.{after[:16]}"))


def describe_anew(folder: Path, before: str) -> None:
    """Make metadata, description and checksums go with a manifest that had the SHA-256 `before`."""
    text = (folder / "manifest.csv").read_text()
    (folder / "metadata.csv").write_text(text.replace(",class_index,", ",label,").replace(",file,", ",file_name,"))
    edit_digest(folder, before, sha(folder / "manifest.csv"))
    names = ("LICENSE", "README.md", "croissant.json", "manifest.csv", "metadata.csv", "rejected.csv")
    lines = [f"{sha(folder / name)}  {name}\n" for name in names if (folder / name).exists()]
    (folder / "checksums.sha256").write_text("".join(lines))


def problems(folder: Path, decode: bool = False) -> list[str]:
    """The printed lines, without the summary and the notices."""
    found = verify.run(folder, decode)
    return verify.render(found, False).splitlines()[: len(found.problems)]


def test_the_manifest_matches_the_files(export_folder: Path) -> None:
    """The oracle: all digests, computed here."""
    assert [row["file"] for row in rows(export_folder)] == FILES
    for row in rows(export_folder):
        path = export_folder / row["file"]
        assert (row["file_sha256"], row["pixels_sha256"]) == (sha(path), pixels(path))
        assert (row["source_sha256"] == row["file_sha256"]) == (path.suffix == ".JPEG")


@pytest.mark.parametrize("arguments", [(), ("--decode",)])
def test_a_good_set(export_folder: Path, arguments: tuple[str, ...]) -> None:
    done = cleanset("verify", "standard", *arguments, cwd=export_folder.parent)
    assert says(done) == (0, f"standard: 6 of 6 images are good\n{trial(export_folder)}\n", "")


def test_a_set_outside_of_an_edition_is_verified_without_large_libraries(copy: Path) -> None:
    program = "import sys; from cleanset.cli import main\ntry: main()\nfinally: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program, "verify", copy], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, f"{copy}: 6 of 6 images are good")
    imported = set(done.stdout.splitlines()[-1].split())
    assert "pydantic" in imported
    assert imported.isdisjoint({"numpy", "pandas", "PIL", "pyarrow", "rich", "torch"})


def test_every_problem_has_its_line(copy: Path) -> None:
    (copy / ONE).unlink()
    (copy / "n01440764" / "notes.txt").write_text("mine")
    with Image.open(copy / TWO) as image:
        image.convert("RGB").save(copy / TWO, compress_level=1)
    Image.new("RGB", (9, 9)).save(copy / THREE, format="JPEG")
    (copy / FOUR).write_bytes((copy / FOUR).read_bytes()[:300])
    (copy / "n02606052").mkdir()
    shutil.move(copy / SIX, copy / "n02606052")
    done = cleanset("verify", "copy", cwd=copy.parent)
    was = {row["file"]: row["file_sha256"][:12] for row in rows(copy)}
    now = {name: sha(copy / name)[:12] for name in (TWO, THREE)}
    assert says(done) == (
        1,
        f"missing      {ONE}: nothing; expected {was[ONE]}...\n"
        f"reencoded    {TWO}: {now[TWO]}...; expected {was[TWO]}...\n"
        f"changed      {THREE}: {now[THREE]}...; expected {was[THREE]}...\n"
        f"undecodable  {FOUR}: Truncated File Read; expected {was[FOUR]}...\n"
        f"misplaced    n02606052/ILSVRC2012_val_00000006.JPEG: here; expected {SIX}\n"
        "surplus      n01440764/notes.txt: a file; expected nothing\n"
        "surplus      n02123045/: an empty folder; expected nothing\n"
        f"copy: 1 of 6 images are good; problems: 7\n{trial(copy)}\n",
        "",
    )


def test_json(copy: Path) -> None:
    before = sha(copy / SIX)
    (copy / SIX).unlink()
    done = cleanset("verify", "copy", "--json", cwd=copy.parent)
    assert done.returncode == 1
    assert json.loads(done.stdout) == {
        "folder": "copy",
        "model": "standard",
        "version": "1.2.3",
        "date": "2026-01-31",
        "images": 6,
        "good": 5,
        "with_images": True,
        "signed": False,
        "signer": None,
        "decoded": False,
        "card": True,
        "notices": [trial(copy)],
        "problems": [
            {"what": "missing", "file": SIX, "found": "nothing", "expected": before, "line": 7},
            {"what": "surplus", "file": "n02123045/", "found": "an empty folder", "expected": "nothing", "line": None},
        ],
    }


def test_pixels_are_decoded_only_where_bytes_differ_or_on_request(copy: Path) -> None:
    """The manifest has another digest of the pixels of a file whose bytes match."""
    real = rows(copy)[2]["pixels_sha256"]
    rewrite(copy, 4, pixels_sha256=OTHER)
    assert problems(copy) == []
    assert problems(copy, decode=True) == [f"pixels       {THREE}: {real[:12]}...; expected ffffffffffff..."]


def test_an_invalid_line_and_the_files_of_the_others(copy: Path) -> None:
    """What makes a line invalid is in test_manifest.py. Its file is not read, those of the others are."""
    rewrite(copy, 2, class_index="1")
    (copy / SIX).write_bytes((copy / ONE).read_bytes())
    found = verify.run(copy, decode=False)
    assert [str(problem).split(":")[0] for problem in found.problems] == [
        "manifest     manifest.csv, line 2", f"changed      {SIX}",
    ]  # fmt: skip
    assert (found.good, found.images) == (4, 6)


def test_an_unknown_class(copy: Path) -> None:
    rewrite(copy, 7, wnid="n00000001", file="n00000001/ILSVRC2012_val_00000006.JPEG")
    shutil.move(copy / "n02123045", copy / "n00000001")
    assert problems(copy) == [
        "manifest     manifest.csv, line 7: wnid n00000001; expected one of the 1,000 of ILSVRC2012"
    ]


def test_lines_out_of_order(copy: Path) -> None:
    before = sha(copy / "manifest.csv")
    header, one, two, *others = (copy / "manifest.csv").read_text().splitlines()
    (copy / "manifest.csv").write_text("\n".join([header, *others, one, two, ""]))
    describe_anew(copy, before)
    assert problems(copy) == [
        "manifest     manifest.csv, line 6: class 0 after 281; expected lines sorted by class and rank",
        "manifest     manifest.csv, line 7: class 0 after 281; expected lines sorted by class and rank",
    ]


def test_one_image_in_two_classes(copy: Path) -> None:
    """Under another id; and one id of two images."""
    first = rows(copy)[0]
    shared = {name: first[name] for name in ("source_sha256", "file_sha256", "pixels_sha256")}
    rewrite(copy, 7, **shared, source_check="none")
    shutil.copy(copy / ONE, copy / SIX)
    assert problems(copy) == []
    file = "n02123045/ILSVRC2012_val_00000001.JPEG"
    rewrite(copy, 7, image_id="ILSVRC2012_val_00000001", file=file)
    shutil.move(copy / SIX, copy / file)
    assert problems(copy) == [
        "manifest     manifest.csv, line 7: ILSVRC2012_val_00000001 as in line 2; expected each image once",
    ]


def test_one_of_your_own_images_twice(own: Edition) -> None:
    """Which is a fault, while ImageNet has some images twice."""
    first, second, *_ = read_entries(own.export("images"))
    for name in ("source_sha256", "pixels_sha256"):
        twice = {2: first, 3: second.model_copy(update={name: getattr(first, name)})}
        assert [(each.what, each.file, each.found, each.line) for each in duplicates(twice, own.read_classes())] == [
            ("twice", second.file, f"the same image as {first.file}", 3)
        ]


@pytest.mark.slow
def test_images_that_imagenet_has_twice(copy: Path) -> None:
    """Equal pixels are not a fault of the set, whether or not its bytes are verified: `load` accepts and reports it."""
    rewrite(copy, 7, pixels_sha256=rows(copy)[0]["pixels_sha256"])
    found = verify.run(copy, decode=False)
    twins = f"Images with the bytes or pixels of another one: 1, the first is {SIX}, as {ONE}."
    assert (found.problems, found.notices) == ([], [trial(copy), twins])
    images = cleanset_package.load("standard", copy)
    assert (len(images), images.notices) == (6, (trial(copy), twins))
    rewrite(copy, 2, source_check="none")
    rewrite(copy, 7, source_check="none")
    assert problems(copy) == []
    not_verified = "Not verified: no digest of single images is known."
    assert verify.run(copy, decode=False).notices == [not_verified, trial(copy), twins]


REVIEWS = "an image that nobody has reviewed is left out"
UNREVIEWED = "Images that nobody has reviewed were taken for clean: a first look, not for a study."


@pytest.mark.slow
def test_images_that_nobody_has_reviewed(copy: Path) -> None:
    """As the review policy in the description says; without a description, as the manifest's numbers do."""
    assert UNREVIEWED not in verify.run(copy, decode=False).notices
    described = (copy / "croissant.json").read_text()
    (copy / "croissant.json").write_text(described.replace(REVIEWS, REVIEWS.replace("is left out", "counts as clean")))
    describe_anew(copy, sha(copy / "manifest.csv"))
    found = verify.run(copy, decode=False)
    assert (found.problems, found.notices) == ([], [UNREVIEWED, trial(copy)])
    assert cleanset_package.load("standard", copy).notices == (UNREVIEWED, trial(copy))
    (copy / "croissant.json").write_text("{}")
    unseen = sum(row["reviewers"] == "0" for row in rows(copy))
    assert verify.run(copy, decode=False).notices == [f"Images that no reviewer is known to have judged: {unseen}."]


METADATA_OF_MANIFEST = "expected what is made from manifest.csv"


def test_every_file_that_describes_the_set_is_checked(copy: Path) -> None:
    """Other bytes, or none; with and without the digest of the other bytes in the checksums."""
    for name, derived in (("README.md", False), ("metadata.csv", True), ("croissant.json", True)):
        data, checksums = (copy / name).read_bytes(), (copy / "checksums.sha256").read_bytes()
        was = sha(copy / name)
        (copy / name).write_bytes(data + b"\n")
        now = sha(copy / name)
        unlike = [f"unlike       {name}: something else; {METADATA_OF_MANIFEST}"] if derived else []
        assert problems(copy) == [
            *unlike,
            f"changed      {name}: {now[:12]}...; expected {was[:12]}... as in checksums.sha256",
        ]
        assert verify.run(copy, decode=False).good == 6
        edit(copy / "checksums.sha256", was, now)
        assert problems(copy) == unlike
        (copy / "checksums.sha256").write_bytes(checksums)
        (copy / name).unlink()
        missing = [f"missing      {name}: nothing; {METADATA_OF_MANIFEST}"] if derived else []
        assert problems(copy) == [*missing, f"missing      {name}: nothing; expected {was[:12]}..."]
        (copy / name).write_bytes(data)
    assert problems(copy) == []


def test_the_checksums_themselves(copy: Path) -> None:
    path = copy / "checksums.sha256"
    lines = path.read_text().splitlines(keepends=True)
    assert [line.split()[1] for line in lines] == [
        "README.md", "croissant.json", "manifest.csv", "metadata.csv", "rejected.csv",
    ]  # fmt: skip
    done = subprocess.run(["sha256sum", "--check", "--strict", path.name], cwd=copy, capture_output=True, check=False)
    assert done.returncode == 0
    expected = "a SHA-256 and a name for each of croissant.json, manifest.csv, metadata.csv"
    for text in ("", "x", "".join(lines[:2]), "".join([*lines, lines[0]]), "".join(lines[::-1]), "".join(lines) + "\n",
                 "".join(lines).replace("README.md", "../README.md"), "".join(lines).upper()):  # fmt: skip
        path.write_text(text)
        assert problems(copy) == [f"unlike       checksums.sha256: something else; expected {expected}"], text
    path.write_bytes(b"\xff")
    assert len(problems(copy)) == 1
    path.unlink()
    assert problems(copy) == [
        "missing      checksums.sha256: nothing; expected the digests of the files that describe the set"
    ]


def test_a_flipped_bit_in_the_checksums_is_their_fault(copy: Path) -> None:
    """Detected by another file: an unknown name, a character that is not a digit, a digest that another file
    contradicts."""
    path = copy / "checksums.sha256"
    text = path.read_text()
    for name, witness in (("manifest.csv", "croissant.json"), ("metadata.csv", "manifest.csv")):
        was = sha(copy / name)
        wrong = was[:5] + ("0" if was[5] != "0" else "1") + was[6:]
        path.write_text(text.replace(was, wrong))
        assert problems(copy) == [
            f"changed      checksums.sha256: {wrong[:12]}... of {name}; "
            f"expected {was[:12]}..., with which {witness} agrees"
        ]
        for flipped in (text.replace(was, "g" + was[1:]), text.replace(name, name.replace("m", "-"))):
            path.write_text(flipped)
            assert [each.split(":")[0] for each in problems(copy)] == ["unlike       checksums.sha256"]
    was = sha(copy / "manifest.csv")
    path.write_text(text.replace(was, OTHER))
    with pytest.raises(CleansetError) as raised:
        cleanset_package.load("standard", copy)
    assert str(raised.value) == (
        f"{path}: {OTHER} for manifest.csv; expected {was}, which croissant.json has too; see cleanset verify {copy}"
    )


def test_a_changed_manifest_is_no_fault_of_the_checksums(copy: Path) -> None:
    """Nor are those files that nothing else is known of."""
    before = sha(copy / "manifest.csv")
    edit(copy / "manifest.csv", ",0.875,0.5,", ",0.625,0.5,")
    now = sha(copy / "manifest.csv")
    found = problems(copy)
    assert found[-1] == f"changed      manifest.csv: {now[:12]}...; expected {before[:12]}... as in checksums.sha256"
    assert not any("changed      checksums" in line for line in found)
    with pytest.raises(CleansetError, match=f"manifest.csv: SHA-256 {now}, expected {before} as in checksums.sha256"):
        cleanset_package.load("standard", copy)
    # with metadata and description to match, the checksums speak against all three
    (copy / "metadata.csv").write_bytes(
        (copy / "manifest.csv").read_bytes().replace(b",class_index,", b",label,").replace(b",file,", b",file_name,")
    )
    edit_digest(copy, before, now)
    assert [line.split(":")[0] for line in problems(copy)] == [
        f"changed      {name}" for name in ("croissant.json", "manifest.csv", "metadata.csv")
    ]


def test_without_a_data_card(copy: Path) -> None:
    """The checksums do not list the card, and verify reports it as missing."""
    (copy / "README.md").unlink()
    describe_anew(copy, sha(copy / "manifest.csv"))
    verification = verify.run(copy, decode=False)
    assert (verification.problems, verification.card) == ([], False)
    assert verify.render(verification, False) == (
        f"{copy}: 6 of 6 images are good; no data card (README.md)\n{trial(copy)}"
    )
    (copy / "README.md").write_text("# Mine\n")
    assert problems(copy) == ["surplus      README.md: a file; expected nothing, for checksums.sha256 does not list it"]


@pytest.mark.parametrize("name", ["metadata.csv", "croissant.json", "README.md", "checksums.sha256", "n01440764/pipe"])
def test_a_pipe_is_no_file(copy: Path, name: str) -> None:
    """Whoever opens one to read waits for ever."""
    (copy / name).unlink(missing_ok=True)
    os.mkfifo(copy / name)
    done = cleanset("verify", "copy", cwd=copy.parent)
    assert f"surplus      {name}: not a regular file; expected nothing\n" in done.stdout
    assert "copy: 6 of 6 images are good; problems: " in done.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [(name, f"{name}: a named pipe; expected a regular file") for name in ("manifest.csv", ONE)],
)
@pytest.mark.slow
def test_a_pipe_in_the_place_of_what_is_read(copy: Path, name: str, message: str) -> None:
    (copy / name).unlink()
    os.mkfifo(copy / name)
    packed = cleanset("pack", "copy", "--out", "shards", cwd=copy.parent)
    assert says(packed) == (1, "", f"error: copy/{message}: name another, or copy the content into one\n")
    assert sorted(path.name for path in copy.parent.iterdir()) == ["copy"]
    if name == ONE:
        assert problems(copy)[1:] == [f"surplus      {ONE}: not a regular file; expected nothing"]
        with pytest.raises(CleansetError, match=message):
            cleanset_package.load("standard", copy)[0]
    else:
        with pytest.raises(CleansetError, match=message):
            verify.run(copy, decode=False)
        with pytest.raises(CleansetError, match=message):
            cleanset_package.load("standard", copy)


def test_links_as_dvc_makes_them_and_hidden_files(copy: Path, export_folder: Path) -> None:
    (copy / ONE).unlink()
    (copy / ONE).symlink_to(export_folder / ONE)
    (copy / "n01440764" / ".DS_Store").touch()
    (copy / ".gitignore").touch()
    assert problems(copy) == []
    (copy / ONE).unlink()
    (copy / ONE).symlink_to("nowhere")
    assert problems(copy)[1:] == [f"surplus      {ONE}: not a regular file; expected nothing"]
    assert problems(copy)[0].startswith(f"missing      {ONE}: nothing; ")


def test_what_a_program_might_take_for_images_of_the_set(copy: Path, export_folder: Path) -> None:
    """Hidden files, hidden folders, links to folders: libraries that walk the folder find them."""
    (copy / ".1.npy").touch()
    (copy / ".payload").touch()
    (copy / "n01440764" / ".gitignore").touch()
    shutil.copy(copy / ONE, copy / "n01440764" / "._1.JPEG")
    (copy / ".ipynb_checkpoints").mkdir()
    shutil.copy(copy / ONE, copy / ".ipynb_checkpoints" / "1.JPEG")
    (copy / "n01440764" / "more").symlink_to(export_folder / "n01440764")
    assert [line.split(": ")[0].split()[1] for line in problems(copy)] == [
        ".1.npy", ".ipynb_checkpoints/1.JPEG", ".payload", "n01440764/._1.JPEG", "n01440764/.gitignore",
        "n01440764/more",
    ]  # fmt: skip


def test_names_that_do_not_print(copy: Path) -> None:
    (copy / "n01440764" / "a\nb\udcff.JPEG").touch()
    assert problems(copy) == ["surplus      n01440764/a\\nb\\udcff.JPEG: a file; expected nothing"]


@pytest.mark.parametrize("encoding", ["utf-8:strict", "ascii:strict"])
def test_a_folder_whose_name_is_no_text(copy: Path, encoding: str) -> None:
    folder = copy.rename(copy.with_name("a\nb\udcff"))
    program = "from cleanset.cli import main; main()"
    command = [sys.executable, "-c", program, "verify", folder.name]
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run(command, cwd=folder.parent, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("a\nb")
    assert ": 6 of 6 images are good\n" in done.stdout


@pytest.mark.parametrize("classes", [imagenet(), class_table([("cat", "cat"), ("dog", "dog")], "here")])
def test_an_empty_set(classes: ClassTable, tmp_path: Path) -> None:
    write_descriptions(tmp_path, [], Release(classes=classes))
    last = f"{tmp_path}: 0 of 0 images are good; no data card (README.md)"
    assert verify.render(verify.run(tmp_path, False), False) == last


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda folder: (folder / "manifest.csv").unlink(), "manifest.csv: missing; expected the folder of an export"),
        (lambda folder: (folder / "manifest.csv").write_bytes(b"\xff"), "manifest.csv: not a text file "),
        (
            lambda folder: (folder / "manifest.csv").write_text("a,b\n"),
            "manifest.csv, line 1, column 1: a; expected model: ",
        ),
    ],
)
def test_without_a_manifest_that_can_be_read(copy: Path, break_it: Callable[[Path], None], message: str) -> None:
    break_it(copy)
    with pytest.raises(CleansetError, match=rf"^{copy}/{message}"):
        verify.run(copy, decode=False)


def test_a_file_that_may_not_be_read(copy: Path) -> None:
    if os.geteuid() == 0:
        (copy / ONE).unlink()
        (copy / ONE).mkdir()
        assert {line.split()[0] for line in problems(copy)} == {"missing", "surplus"}
        return
    (copy / ONE).chmod(0)
    done = cleanset("verify", "copy", cwd=copy.parent)
    assert says(done) == (
        1,
        "",
        f"error: copy/{ONE}: Permission denied; expected a file or folder that you may use: change its permissions, or "
        "name another\n",
    )


def test_a_failing_disk_is_listed_and_the_rest_is_verified(copy: Path) -> None:
    """Two images that cannot be read, as on a disk with faults, and one with other bytes."""
    for file in (ONE, THREE):
        (copy / file).unlink()
        (copy / file).symlink_to("/proc/self/mem")
    (copy / TWO).write_bytes(b"no image")
    found = verify.run(copy, decode=False)
    kinds = [(each.what, each.file, each.found) for each in found.problems]
    assert kinds[:1] == [("unreadable", ONE, "Input/output error while reading")]
    assert [(what, file) for what, file, _ in kinds] == [
        ("unreadable", ONE), ("undecodable", TWO), ("unreadable", THREE)
    ]  # fmt: skip
    assert found.good == len(FILES) - 3
