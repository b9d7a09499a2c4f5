"""`cleanset verify`: one line for each fault, and what is good."""

import csv
import hashlib
import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cleanset.errors import CleansetError
from cleanset.sets import verify
from evaluate.command import cleanset, says
from handing.conftest import FILES, edit

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
    """Change values in a line of the manifest; nothing that is made from it stays."""
    lines = rows(folder)
    lines[line - 2] |= changes
    out = io.StringIO()
    writer = csv.DictWriter(out, lines[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    (folder / "manifest.csv").write_text(out.getvalue())
    for name in ("metadata.csv", "croissant.json"):
        (folder / name).unlink()


def faults(folder: Path, decode: bool = False) -> list[str]:
    """The printed lines, without the last."""
    return verify.printed(verify.run(folder, decode), False).splitlines()[:-1]


def test_the_manifest_is_right_about_the_files(export_folder: Path) -> None:
    """The oracle: all sums, computed here."""
    assert [row["file"] for row in rows(export_folder)] == FILES
    for row in rows(export_folder):
        path = export_folder / row["file"]
        assert (row["file_sha256"], row["pixels_sha256"]) == (sha(path), pixels(path))
        assert (row["source_sha256"] == row["file_sha256"]) == (path.suffix == ".JPEG")


@pytest.mark.parametrize("arguments", [(), ("--decode",)])
def test_a_good_set(export_folder: Path, arguments: tuple[str, ...]) -> None:
    done = cleanset("verify", "standard", *arguments, cwd=export_folder.parent)
    assert says(done) == (0, "standard: 6 of 6 pictures are good\n", "")


def test_every_fault_has_its_line(copy: Path) -> None:
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
        "copy: 1 of 6 pictures are good; faults: 7\n",
        "",
    )


def test_json(copy: Path) -> None:
    before = sha(copy / SIX)
    (copy / SIX).unlink()
    done = cleanset("verify", "copy", "--json", cwd=copy.parent)
    assert done.returncode == 1
    assert json.loads(done.stdout) == {
        "folder": "copy",
        "pictures": 6,
        "good": 5,
        "decoded": False,
        "faults": [
            {"what": "missing", "file": SIX, "found": "nothing", "expected": before, "line": 7},
            {"what": "surplus", "file": "n02123045/", "found": "an empty folder", "expected": "nothing", "line": None},
        ],
    }


def test_pixels_are_decoded_only_where_bytes_differ_or_on_request(copy: Path) -> None:
    """The manifest lies about pixels whose bytes are the right ones."""
    real = rows(copy)[2]["pixels_sha256"]
    rewrite(copy, 4, pixels_sha256=OTHER)
    assert faults(copy) == []
    assert faults(copy, decode=True) == [f"pixels       {THREE}: {real[:12]}...; expected ffffffffffff..."]


@pytest.mark.parametrize(
    ("line", "changes", "message"),
    [
        (2, {"class_index": "1"}, "line 2: class index 1; expected 0 of n01440764"),
        (2, {"tier": "best"}, "line 2: tier best; expected top5 or reserve or relaxed"),
        (2, {"confidence": "1.5"}, "line 2: confidence 1.5; expected 0 to 1"),
        (2, {"confidence": "nan"}, "line 2: confidence nan; expected 0 to 1"),
        (2, {"rank": "3"}, "line 2: rank 3 in n01440764; expected rank 1"),
        (3, {"rank": "1"}, "line 3: rank 1 in n01440764; expected rank 2"),
        (3, {"rank": "0"}, "line 3: rank 0; expected at least 1"),
        (3, {"right": "3"}, "line 3: crop box 3 4 3 40; expected left < right and top < bottom, from 0"),
        (3, {"left": "-1"}, "line 3: crop box -1 4 23 40; expected left < right and top < bottom, from 0"),
        (7, {"model": "mine"}, "line 7: model mine; expected standard as in line 2"),
        (7, {"pixels_sha256": "F" * 64}, f"line 7: pixels_sha256 {'F' * 64}; expected 64 hexadecimal digits"),
        (7, {"source_sha256": OTHER}, "line 7: file {6} of a whole picture; expected its source ffffffffffff..."),
    ],
)
def test_a_line_that_contradicts_itself(copy: Path, line: int, changes: dict[str, str], message: str) -> None:
    message = message.replace("{6}", sha(copy / SIX)[:12] + "...")
    rewrite(copy, line, **changes)
    found = verify.run(copy, decode=False)
    assert str(found.faults[0]) == f"manifest     manifest.csv, {message}"
    assert {fault.line for fault in found.faults} <= {line, line + 1}  # the next one may no longer follow
    assert found.good <= 5


def test_an_unknown_class(copy: Path) -> None:
    rewrite(copy, 7, wnid="n00000001", file="n00000001/ILSVRC2012_val_00000006.JPEG")
    shutil.move(copy / "n02123045", copy / "n00000001")
    assert faults(copy) == [
        "manifest     manifest.csv, line 7: wnid n00000001; expected one of the 1,000 of ILSVRC2012"
    ]


def test_a_file_name_of_another_class_or_kind_or_place(copy: Path) -> None:
    for file in (TWO, "n01440764/ILSVRC2012_val_00000001.png", "../copy/" + ONE, "/etc/passwd"):
        shutil.copy(copy / "manifest.csv", copy / "kept")
        rewrite(copy, 2, file=file)
        assert f"manifest     manifest.csv, line 2: file {file}; expected {ONE}" in faults(copy)
        shutil.move(copy / "kept", copy / "manifest.csv")
        (copy / "metadata.csv").touch()
        (copy / "croissant.json").touch()


def test_lines_out_of_order(copy: Path) -> None:
    header, one, two, *others = (copy / "manifest.csv").read_text().splitlines()
    (copy / "manifest.csv").write_text("\n".join([header, *others, one, two, ""]))
    assert [line for line in faults(copy) if "manifest.csv, " in line] == [
        "manifest     manifest.csv, line 6: class 0 after 281; expected lines sorted by class and rank",
        "manifest     manifest.csv, line 7: class 0 after 281; expected lines sorted by class and rank",
    ]


def test_one_picture_in_two_classes(copy: Path) -> None:
    """Under the same id, and under another one."""
    first = rows(copy)[0]
    shared = {name: first[name] for name in ("source_sha256", "file_sha256", "pixels_sha256")}
    for image_id in ("ILSVRC2012_val_00000001", "ILSVRC2012_val_00000006"):
        file = f"n02123045/{image_id}.JPEG"
        (copy / "metadata.csv").touch()
        (copy / "croissant.json").touch()
        rewrite(copy, 7, image_id=image_id, file=file, **shared)
        (copy / SIX).unlink(missing_ok=True)
        shutil.copy(copy / ONE, copy / file)
        assert faults(copy) == [f"twice        {file}: the same picture as {ONE}; expected one place for each"]
        (copy / file).unlink()


def test_one_image_id_in_two_classes(copy: Path) -> None:
    """Whatever the sums say."""
    file = "n02123045/ILSVRC2012_val_00000001.JPEG"
    rewrite(copy, 7, image_id="ILSVRC2012_val_00000001", file=file)
    shutil.move(copy / SIX, copy / file)
    assert faults(copy) == [f"twice        {file}: the same picture as {ONE}; expected one place for each"]


def test_a_line_that_occurs_twice(copy: Path) -> None:
    text = (copy / "manifest.csv").read_text()
    (copy / "manifest.csv").write_text(text + text.splitlines()[-1] + "\n")
    assert [line for line in faults(copy) if not line.startswith("unlike")] == [
        "manifest     manifest.csv, line 8: rank 1 in n02123045; expected rank 2",
        f"twice        {SIX}: the same picture as {SIX}; expected one place for each",
    ]


def test_what_is_made_from_the_manifest_says_the_same(copy: Path) -> None:
    edit(copy / "metadata.csv", ",278,2,", ",279,2,")
    old = sha(copy / "manifest.csv")
    edit(copy / "croissant.json", old, OTHER)
    assert faults(copy) == [
        "unlike       metadata.csv: something else; expected what is made from manifest.csv",
        "unlike       croissant.json: something else; expected what is made from manifest.csv",
    ]
    assert verify.run(copy, decode=False).good == 6
    for name in ("metadata.csv", "croissant.json", "README.md"):
        (copy / name).unlink()
    assert faults(copy) == []


def test_links_as_dvc_makes_them_and_hidden_files(copy: Path, export_folder: Path) -> None:
    (copy / ONE).unlink()
    (copy / ONE).symlink_to(export_folder / ONE)
    (copy / "n01440764" / ".DS_Store").touch()
    (copy / ".gitignore").touch()
    assert faults(copy) == []
    (copy / ONE).unlink()
    (copy / ONE).symlink_to("nowhere")
    assert faults(copy)[1:] == [f"surplus      {ONE}: a link that leads to no file; expected nothing"]
    assert faults(copy)[0].startswith(f"missing      {ONE}: nothing; ")


def test_what_a_program_might_take_for_pictures_of_the_set(copy: Path, export_folder: Path) -> None:
    """Hidden pictures, hidden folders, links to folders: libraries that walk the folder find them."""
    shutil.copy(copy / ONE, copy / "n01440764" / "._1.JPEG")
    (copy / ".ipynb_checkpoints").mkdir()
    shutil.copy(copy / ONE, copy / ".ipynb_checkpoints" / "1.JPEG")
    (copy / "n01440764" / "more").symlink_to(export_folder / "n01440764")
    assert [line.split(": ")[0].split()[1] for line in faults(copy)] == [
        ".ipynb_checkpoints/1.JPEG", "n01440764/._1.JPEG", "n01440764/more",
    ]  # fmt: skip


def test_line_ends_and_digits_are_those_that_were_written(copy: Path) -> None:
    text = (copy / "manifest.csv").read_text()
    rewrite(copy, 2)
    (copy / "manifest.csv").write_bytes(text.replace("\n", "\r\n").encode())
    assert [line.split(":")[0] for line in faults(copy)] == ["manifest     manifest.csv"]


def test_names_that_do_not_print(copy: Path) -> None:
    (copy / "n01440764" / "a\nb\udcff.JPEG").touch()
    assert faults(copy) == ["surplus      n01440764/a\\nb\\udcff.JPEG: a file; expected nothing"]


def test_an_empty_set(tmp_path: Path, export_folder: Path) -> None:
    header = (export_folder / "manifest.csv").read_text().splitlines()[0]
    (tmp_path / "manifest.csv").write_text(header + "\n")
    assert verify.printed(verify.run(tmp_path, False), False) == f"{tmp_path}: 0 of 0 pictures are good"


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda folder: (folder / "manifest.csv").unlink(), "manifest.csv: missing; expected the folder of an export"),
        (lambda folder: (folder / "manifest.csv").write_bytes(b"\xff"), "manifest.csv: not a text file "),
        (lambda folder: (folder / "manifest.csv").write_text("a,b\n"), "manifest.csv, line 1: 'a,b'; expected model,"),
        (lambda folder: edit(folder / "manifest.csv", ",278,2,", ",278,two,"), "manifest.csv, line 5: not an entry "),
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
        assert {line.split()[0] for line in faults(copy)} == {"missing", "surplus"}
        return
    (copy / ONE).chmod(0)
    done = cleanset("verify", "copy", cwd=copy.parent)
    assert says(done) == (1, "", f"error: copy/{ONE}: Permission denied\n")
