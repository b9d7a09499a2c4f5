"""`cleanset publish`, and `cleanset verify --signature` of what it wrote."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.compare import releases
from cleanset.sets import archive, publish, rebuild, verify
from cleanset.sets.description import Release, release_of
from tests.evaluation.compare.command import cleanset, says
from tests.properties import examples
from tests.sets.conftest import FILES, edit, trial
from tests.small_disks import small_disk_at
from tests.ten_images import TAR, id_of

NAME = "cleanset-standard-1.2.3"
DESCRIPTIONS = [
    ".zenodo.json",
    "LICENSE",
    "README.md",
    "checksums.sha256",
    "croissant.json",
    "manifest.csv",
    "rejected.csv",
]

OF_EXPORT = ["README.md", "croissant.json", "manifest.csv", "metadata.csv", "rejected.csv"]
"""The files of an export."""


def new_key(folder: Path, name: str, kind: str = "ed25519") -> Path:
    """A private SSH key; the public one is next to it."""
    path = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", f"{name}@example.org", "-f", str(path)], check=True)
    return path


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the keys of alice and mallory."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("alice", "mallory"):
        new_key(folder, name)
    return folder


@pytest.fixture(scope="module")
def published(export_folder: Path, keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The export, published with its images and signed by alice; not to be changed."""
    out = tmp_path_factory.mktemp("published") / "out"
    publish.run(export_folder, out, with_images=True, key=keys / "alice")
    return out


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_without_images(export_folder: Path, tmp_path: Path) -> None:
    done = cleanset("publish", str(export_folder), "out", cwd=tmp_path)
    digest = hashlib.sha256((tmp_path / "out" / f"{NAME}.tar").read_bytes()).hexdigest()
    assert says(done) == (
        0,
        f"out/{NAME}: 6 images, published without its images, not signed (--key)\nout/{NAME}.tar: SHA-256 {digest}\n",
        "",
    )
    folder = tmp_path / "out" / NAME
    assert files(tmp_path / "out") == [f"{NAME}.tar", *(f"{NAME}/{name}" for name in DESCRIPTIONS)]
    for name in ("croissant.json", "manifest.csv", "rejected.csv"):
        assert (folder / name).read_bytes() == (export_folder / name).read_bytes()
    done = cleanset("verify", f"out/{NAME}", cwd=tmp_path)
    assert says(done) == (0, f"out/{NAME}: published without its 6 images\n{trial(folder)}\n", "")
    checked = subprocess.run(["sha256sum", "-c", "--strict", "checksums.sha256"], cwd=folder, check=False)
    assert checked.returncode == 0
    assert json.loads((folder / "croissant.json").read_text())["version"].startswith("1.2.3+manifest.")


def test_the_card_without_images(export_folder: Path, tmp_path: Path) -> None:
    """It tells how to make the images, and differs in nothing else."""
    publish.run(export_folder, tmp_path / "out", with_images=False, key=None)
    before, after = ((folder / "README.md").read_text() for folder in (export_folder, tmp_path / "out" / NAME))
    sections = [
        dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
        for text in (before.split("---\n", 2)[2], after.split("---\n", 2)[2])
    ]
    assert [name for name in sections[0] if sections[0][name] != sections[1][name]] == ["Loading"]
    assert list(sections[0]) == list(sections[1])
    assert "cleanset rebuild --manifest manifest.csv --images ILSVRC2012_img_val.tar --out ../images" in after


@pytest.mark.long
@pytest.mark.slow
def test_the_table_without_images_has_the_names_of_the_classes(export_folder: Path, tmp_path: Path) -> None:
    """By the lines of the card itself, with `datasets`, without a network."""
    publish.run(export_folder, tmp_path / "out", with_images=False, key=None)
    folder = tmp_path / "out" / NAME
    (program,) = re.findall(r"```python\n(.+?)```", (folder / "README.md").read_text(), re.DOTALL)
    shown = "import json; print(json.dumps([table.features['class_index'].names, list(table['class_index'])]))"
    environment = {"HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    done = subprocess.run(
        [sys.executable, "-c", program + shown], cwd=folder, env=os.environ | environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [list(imagenet().labels), [0, 0, 278, 278, 278, 281]]


def test_what_is_published_without_images_is_made_again(export_folder: Path, tmp_path: Path) -> None:
    """With the release that the Croissant description next to the manifest names."""
    publish.run(export_folder, tmp_path / "out", with_images=False, key=None)
    images = export_folder.parents[1] / "raw" / "ILSVRC2012_img_val.tar"
    result = rebuild.run(tmp_path / "out" / NAME / "manifest.csv", images, tmp_path / "again")
    assert result.problems == []
    for name in (*FILES, "croissant.json", "metadata.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (export_folder / name).read_bytes()


def test_with_images_the_terms_are_printed(export_folder: Path, published: Path, keys: Path, tmp_path: Path) -> None:
    key = str(keys / "alice")
    done = cleanset("publish", str(export_folder), "out", "--with-images", "--key", key, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.startswith("These are ImageNet's images, whole or cropped. Its terms of access allow research")
    assert done.stdout.startswith(f"out/{NAME}: 6 images, published with its images, signed\n")
    folder = tmp_path / "out" / NAME
    assert files(folder) == sorted([*DESCRIPTIONS, "checksums.sha256.sig", "metadata.csv", *FILES])
    # the same bytes again, whenever and wherever
    assert files(tmp_path / "out") == files(published)
    for name in files(published):
        assert (tmp_path / "out" / name).read_bytes() == (published / name).read_bytes(), name


def test_the_tar(published: Path, tmp_path: Path) -> None:
    with tarfile.open(published / f"{NAME}.tar") as tar:
        members = tar.getmembers()
    subprocess.run(["tar", "-xf", published / f"{NAME}.tar", "-C", tmp_path], check=True)
    assert [member.name for member in members] == [f"{NAME}/{name}" for name in files(published / NAME)]
    assert {(m.mtime, m.uid, m.gid, m.uname, m.gname, m.mode, m.type) for m in members} == {
        (315_576_000, 0, 0, "", "", 0o644, tarfile.REGTYPE)
    }
    for name in files(tmp_path / NAME):
        assert (tmp_path / NAME / name).read_bytes() == (published / NAME / name).read_bytes()


def test_an_unpacked_release_can_be_zipped(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A zip has no time before 1980, in the time of the place."""
    subprocess.run(["tar", "-xf", published / f"{NAME}.tar", "-C", tmp_path], check=True)
    for zone in ("UTC+12", "UTC-14"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert Path(shutil.make_archive(str(tmp_path / "zipped"), "zip", tmp_path, NAME)).is_file()
    monkeypatch.undo()
    time.tzset()


def test_diff_reads_the_tar_and_the_folder_above(published: Path, tmp_path: Path) -> None:
    shutil.copytree(published / NAME, tmp_path / "above" / NAME)
    for place in (published / f"{NAME}.tar", tmp_path / "above"):
        found = releases.diff(place, published / NAME)
        assert found.same
        assert found.lines[0] == f"A  {place}"


@pytest.mark.parametrize("what", [NAME, f"{NAME}.tar"])
def test_signed(published: Path, keys: Path, tmp_path: Path, what: str) -> None:
    """Checked with the public key, or with allowed signers, who have names."""
    fingerprint = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(keys / "alice.pub")], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    signed = f"{what}: 6 of 6 images are good; signed: standard 1.2.3 of 2026-01-31, by "
    done = cleanset("verify", what, "--signature", str(keys / "alice.pub"), cwd=published)
    assert says(done) == (0, f"{signed}ED25519 key {fingerprint}\n{trial(published / NAME)}\n", "")
    allowed = tmp_path / "allowed_signers"
    allowed.write_text(
        f"# who may\nbob@example.org {(keys / 'mallory.pub').read_text()}"
        f'alice@example.org namespaces="cleanset" {(keys / "alice.pub").read_text()}'
    )
    done = cleanset("verify", what, "--signature", str(allowed), cwd=published)
    assert says(done) == (
        0,
        f"{signed}alice@example.org, ED25519 key {fingerprint}\n{trial(published / NAME)}\n",
        "",
    )
    done = cleanset("verify", what, cwd=published)
    assert says(done) == (
        0,
        f"{what}: 6 of 6 images are good; signature not checked (--signature)\n{trial(published / NAME)}\n",
        "",
    )


def test_openssh_alone_checks_the_signature(published: Path, keys: Path, tmp_path: Path) -> None:
    """As somebody without this project does."""
    (tmp_path / "allowed").write_text(f"alice {(keys / 'alice.pub').read_text()}")
    command = ["ssh-keygen", "-Y", "verify", "-f", str(tmp_path / "allowed"), "-I", "alice", "-n", "cleanset"]
    with (published / NAME / "checksums.sha256").open("rb") as signed:
        done = subprocess.run([*command, "-s", "checksums.sha256.sig"], stdin=signed, cwd=published / NAME, check=False)
    assert done.returncode == 0


def signature_problems(folder: Path, signers: Path) -> list[str]:
    return [str(problem) for problem in verify.run(folder, decode=False, signers=signers).problems]


def test_signatures_that_do_not_hold(published: Path, keys: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(published / NAME, tmp_path / "copy"))
    alice, mallory = keys / "alice.pub", keys / "mallory.pub"
    (problem,) = signature_problems(copy, mallory)
    assert re.match(
        r"signature    checksums.sha256.sig: not by a signer in .*mallory.pub .*; expected one of checksums", problem
    )
    # mallory changes the card and its checksum, and signs that
    edit(copy / "README.md", "easy ones", "hard ones")
    lines = (copy / "checksums.sha256").read_text().splitlines(keepends=True)
    new = f"{hashlib.sha256((copy / 'README.md').read_bytes()).hexdigest()}  README.md\n"
    (copy / "checksums.sha256").write_text("".join(new if "README" in line else line for line in lines))
    assert verify.run(copy, decode=False).problems == []
    (problem,) = signature_problems(copy, alice)
    assert problem.startswith("signature    checksums.sha256.sig: not valid (")
    printed = verify.render(verify.run(copy, decode=False, signers=alice), as_json=False)
    assert "6 of 6 images are good; problems: 1; signature not valid\n" in printed
    (copy / "checksums.sha256.sig").unlink()
    command = ["ssh-keygen", "-q", "-Y", "sign", "-f", str(keys / "mallory"), "-n", "cleanset", "checksums.sha256"]
    subprocess.run(command, cwd=copy, check=True)
    assert len(signature_problems(copy, alice)) == 1
    assert signature_problems(copy, mallory) == []
    # a signature that alice gave for another purpose
    (copy / "checksums.sha256.sig").unlink()
    command[5:8] = [str(keys / "alice"), "-n", "git"]
    subprocess.run(command, cwd=copy, check=True)
    assert len(signature_problems(copy, alice)) == 1
    (copy / "checksums.sha256.sig").unlink()
    assert signature_problems(copy, alice) == [
        "signature    checksums.sha256.sig: nothing; expected a signature of checksums.sha256"
    ]


def test_keys_that_cannot_be_used(published: Path, export_folder: Path, keys: Path, tmp_path: Path) -> None:
    for signers, message in (
        (tmp_path / "none", r"none: missing; expected the signer's public key, or allowed signers"),
        (keys / "alice", r"alice: a private key; expected the public one, alice.pub"),
    ):
        with pytest.raises(CleansetError, match=message):
            verify.run(published / NAME, decode=False, signers=signers)
    (tmp_path / "text").write_text("no key\n")
    for key, message in (
        (tmp_path / "none", r"none: missing; expected an SSH key, such as ~/.ssh/id_ed25519"),
        (tmp_path / "text", r"text: not signed: "),
    ):
        with pytest.raises(CleansetError, match=message) as raised:
            publish.run(export_folder, tmp_path / "out", with_images=False, key=key)
        assert "\n" not in str(raised.value)
        assert not (tmp_path / "out").exists()


def is_refused(path: Path, signers: Path) -> bool:
    try:
        return bool(verify.run(path, decode=False, signers=signers).problems)
    except CleansetError:
        return True


@pytest.mark.parametrize("name", [*DESCRIPTIONS, "checksums.sha256.sig", "metadata.csv", *FILES])
def test_one_flipped_bit_in_any_file(published: Path, keys: Path, tmp_path: Path, name: str) -> None:
    copy = Path(shutil.copytree(published / NAME, tmp_path / NAME))
    data = (copy / name).read_bytes()
    for position in (0, len(data) // 3, len(data) // 2, len(data) - 1):
        flipped = bytearray(data)
        flipped[position] ^= 1 << position % 8
        (copy / name).write_bytes(flipped)
        assert is_refused(copy, keys / "alice.pub"), position
    (copy / name).write_bytes(data)
    assert not is_refused(copy, keys / "alice.pub")


@given(st.data())
@examples(60)
def test_one_flipped_bit_anywhere_in_the_tar(published: Path, keys: Path, data: st.DataObject) -> None:
    tar = bytearray((published / f"{NAME}.tar").read_bytes())
    position = data.draw(st.integers(0, len(tar) - 1))
    tar[position] ^= 1 << data.draw(st.integers(0, 7))
    flipped = published.parent / "flipped.tar"
    flipped.write_bytes(tar)
    assert is_refused(flipped, keys / "alice.pub")


@given(st.data())
@examples(60)
def test_one_flipped_bit_anywhere_in_the_signature(published: Path, keys: Path, data: st.DataObject) -> None:
    folder = published.parent / "flipped"
    if not folder.exists():
        shutil.copytree(published / NAME, folder)
    signature = bytearray((published / NAME / "checksums.sha256.sig").read_bytes())
    position = data.draw(st.integers(0, len(signature) - 1))
    signature[position] ^= 1 << data.draw(st.integers(0, 7))
    (folder / "checksums.sha256.sig").write_bytes(signature)
    assert is_refused(folder, keys / "alice.pub")


def test_what_is_not_published(copy: Path, tmp_path: Path) -> None:
    def refused(message: str) -> None:
        with pytest.raises(CleansetError, match=message):
            publish.run(copy, tmp_path / "out", with_images=True, key=None)
        assert not (tmp_path / "out").exists()

    data = (copy / FILES[0]).read_bytes()
    (copy / FILES[0]).write_bytes(data[:-1])
    refused(rf"copy: problems: 1, the first: .*{FILES[0]}.*; see cleanset verify ")
    (copy / FILES[0]).write_bytes(data)
    edit(copy / "croissant.json", '  "datePublished": "2026-01-31",\n', "")
    text = (copy / "checksums.sha256").read_text()
    digest = hashlib.sha256((copy / "croissant.json").read_bytes()).hexdigest()
    (copy / "checksums.sha256").write_text(re.sub(r"\w+(?=  croissant)", digest, text))
    refused(
        r"copy: version 1.2.3 without a date; set export.version and export.date in the edition's params.yaml, and run "
        r"dvc repro \(a set of cleanset published has one, unless it has --reviews or a notice\)"
    )
    (copy / "README.md").unlink()
    (copy / "checksums.sha256").write_text("".join((copy / "checksums.sha256").read_text().splitlines(True)[1:]))
    refused(r"copy: no data card \(README.md\); expected a set that stage export has written, not a rebuilt one")


def test_a_rebuilt_set_is_not_published(edition: Edition, export_folder: Path, tmp_path: Path) -> None:
    """It lacks what was decided and by whom; and a card that somebody wrote again cannot be made one without images."""
    rebuilt = tmp_path / "rebuilt"
    assert rebuild.run(export_folder, edition.folder / "data" / "raw" / TAR, rebuilt).problems == []
    with pytest.raises(
        CleansetError, match=r"rebuilt: no table of rejected candidates \(rejected.csv\); expected a set"
    ):
        publish.run(rebuilt, tmp_path / "out", with_images=False, key=None)
    shutil.copy(export_folder / "rejected.csv", rebuilt)
    lines = [f"{hashlib.sha256((rebuilt / name).read_bytes()).hexdigest()}  {name}\n" for name in OF_EXPORT]
    (rebuilt / "checksums.sha256").write_text("".join(lines))
    with pytest.raises(
        CleansetError, match=r"README.md: without the sections Loading and Motivation; expected the card"
    ):
        publish.run(rebuilt, tmp_path / "out", with_images=False, key=None)
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_another_release_than_expected(published: Path, keys: Path, tmp_path: Path) -> None:
    """A genuine one under the name of another: what is signed says which it is."""
    alice = str(keys / "alice.pub")

    def lines(path: Path, *expect: str) -> list[str]:
        done = cleanset("verify", path.name, "--signature", alice, *expect, cwd=path.parent)
        assert done.returncode == (1 if "problems: " in done.stdout else 0)
        return [line for line in done.stdout.splitlines() if line != trial(published / NAME)][:-1]

    tar, folder = published / f"{NAME}.tar", published / NAME
    for path in (tar, folder):
        assert lines(path) == lines(path, "--expect", "standard@1.2.3") == []
        for other in ("standard@2.0.0", "norm_robust@1.2.3", "standard@1.2.30"):
            assert lines(path, "--expect", other) == [f"release      croissant.json: standard@1.2.3; expected {other}"]
    name = "cleanset-standard-2.0.0"
    renamed = f"release      {name}: standard@1.2.3; expected the release of this name, or the name {NAME}"
    new = Path(shutil.copytree(folder, tmp_path / name))
    shutil.copy(tar, tmp_path / f"{name}.tar")
    for path in (new, tmp_path / f"{name}.tar"):
        assert lines(path) == [renamed]
        assert lines(path, "--expect", "standard@2.0.0") == [
            "release      croissant.json: standard@1.2.3; expected standard@2.0.0", renamed,
        ]  # fmt: skip
    (tmp_path / "cleanset-standard-3.0.0").symlink_to(folder)
    assert lines(tmp_path / "cleanset-standard-3.0.0") == [renamed.replace("-2.0.0", "-3.0.0")]
    # packed again under the other name, and given a name of no release
    archive.write_tar(new, tmp_path / "mine.tar")
    assert lines(tmp_path / "mine.tar") == [renamed]
    new.rename(tmp_path / "mine")
    assert lines(tmp_path / "mine") == []
    # the version is part of what is signed
    edit(tmp_path / "mine" / "croissant.json", '"version": "1.2.3+', '"version": "2.0.0+')
    found = lines(tmp_path / "mine", "--expect", "standard@2.0.0")
    assert [each.split(":")[0] for each in found] == ["unlike       .zenodo.json", "changed      croissant.json"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--expect", "standard@1.2.3"),
            "--expect standard@1.2.3: without a signature, anybody may have written the ve",
        ),
        (
            ("--expect", "1.2.3", "--signature", "x"),
            "--expect 1.2.3: not a release; expected MODEL@VERSION, such as st",
        ),
        (
            ("--expect", "", "--signature", "x"),
            "--expect : not a release; expected MODEL@VERSION, such as standard@1.0",
        ),
    ],
)
def test_releases_that_cannot_be_expected(published: Path, arguments: tuple[str, ...], message: str) -> None:
    done = cleanset("verify", NAME, *arguments, cwd=published)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["text.tar", "two.tar", "empty.tar", "cut.tar"])
def test_tars_of_others(published: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "text.tar":
        path.write_text("no tar")
    elif name in ("two.tar", "empty.tar"):
        with tarfile.open(path, "w") as tar:
            for file in ("a", "b") if name == "two.tar" else ():
                tar.add(published / NAME / "LICENSE", file)
    else:
        path.write_bytes((published / f"{NAME}.tar").read_bytes()[:1000])
    with pytest.raises(
        CleansetError, match=rf"{name}: (not a tar that can be read \(|entries at its top: [02]; expected)"
    ):
        verify.run(path, decode=False)


def test_release_of_anything(export_folder: Path) -> None:
    found = release_of((export_folder / "croissant.json").read_bytes(), imagenet())
    tables = [f"data/{name}/standard.parquet" for name in ("crop_scores", "rejected", "selection", "votes")]
    assert sorted(found.made_from) == sorted(
        ["params.yaml", "reviews", "data/index.parquet", "data/scores/standard.json", *tables]
    )
    assert replace(found, made_from={}) == Release(
        "1.2.3",
        "2026-01-31",
        "ILSVRC2012_img_val.tar",
        hashlib.md5((export_folder.parents[1] / "raw" / "ILSVRC2012_img_val.tar").read_bytes()).hexdigest(),
        "One reviewer is enough, and all who reviewed an image must agree; the board overrules; an image that nobody "
        "has reviewed is left out.",
        ("ann", "bob"),
        classes=imagenet(),
    )
    for text in (b"", b"[]", b"{}", b'{"distribution": [{"@type": "cr:FileSet"}]}', b"\xff", b"[" * 100_000):
        assert release_of(text, imagenet()) == Release(classes=imagenet())


def test_rejected_candidates(export_folder: Path) -> None:
    assert (export_folder / "rejected.csv").read_text() == (
        "wnid,class_index,class_name,image_id,tier,rank,reason\n"
        f"n01440764,0,tench,{id_of(2)},reserve,9,blur\n"
        f"n01440764,0,tench,{id_of(3)},reserve,9,not_needed\n"
        f"n02123045,281,tabby,{id_of(5)},reserve,9,unreviewed\n"
    )


def test_into_the_set_itself(copy: Path) -> None:
    for command in (("publish", "copy", "copy/out"), ("pack", "copy", "--out", "copy/n01440764/out")):
        done = cleanset(*command, cwd=copy.parent)
        out = command[-1]
        message = f"error: {out}: inside the set copy; expected a new or empty folder outside of it\n"
        assert says(done) == (1, "", message)
    assert verify.run(copy, decode=False).problems == []


def test_no_room_to_unpack_a_tar(published: Path, tmp_path: Path) -> None:
    """Once for its files, and once for the tar that is written again."""
    size = (published / f"{NAME}.tar").stat().st_size // 1024
    for kilobytes in (size // 2, size * 3 // 2):
        with small_disk_at(tmp_path / "disk", kilobytes) as disk, pytest.MonkeyPatch.context() as patch:
            patch.setattr("tempfile.tempdir", str(disk))
            with pytest.raises(CleansetError) as raised:
                verify.run(published / f"{NAME}.tar", decode=False)
            assert str(raised.value) == (
                f"{published}/{NAME}.tar: cannot be unpacked into {disk} ([Errno 28] No space left on device); "
                "expected room there for twice the tar: free some, or set TMPDIR to another folder"
            )
            assert list(disk.iterdir()) == []


OUTSIDE = "a path outside the archive"
LINK = "a link or device; expected plain files only"


@pytest.mark.parametrize(
    ("name", "kind", "link", "found"),
    [
        ("/a/outside", tarfile.REGTYPE, "", f"{OUTSIDE};"),
        ("a/../../outside", tarfile.REGTYPE, "", f"{OUTSIDE};"),
        ("a/..", tarfile.DIRTYPE, "", f"{OUTSIDE};"),
        ("a/link", tarfile.SYMTYPE, "/etc/passwd", f"{LINK}:"),
        ("a/link", tarfile.SYMTYPE, "manifest.csv", f"{LINK}:"),
        ("a/link", tarfile.LNKTYPE, "a/manifest.csv", f"{LINK}:"),
        ("a/pipe", tarfile.FIFOTYPE, "", f"{LINK}:"),
        ("a/null", tarfile.CHRTYPE, "", f"{LINK}:"),
        ("a/holes", tarfile.GNUTYPE_SPARSE, "", "a sparse file; expected plain files only:"),
    ],
)
def test_members_that_no_set_has(tmp_path: Path, name: str, kind: bytes, link: str, found: str) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("a/manifest.csv"))
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, link
        tar.addfile(member)
    done = cleanset("verify", "x.tar", cwd=tmp_path)
    assert says(done) == (
        1,
        "",
        f"error: x.tar, member '{name}': {found} expected one of cleanset publish\n",
    )
    assert files(tmp_path) == ["x.tar"]


def test_a_tar_of_another_program(published: Path, tmp_path: Path) -> None:
    """It has members for folders, so not the same bytes; the set in it is unchanged."""
    subprocess.run(["tar", "-cf", tmp_path / f"{NAME}.tar", "-C", published, f"./{NAME}"], check=True)
    (problem,) = verify.run(tmp_path / f"{NAME}.tar", decode=False).problems
    assert str(problem) == f"unlike       {NAME}.tar: other bytes; expected those that publish gives for its files"


def test_messages_name_the_tar(tmp_path: Path) -> None:
    for kind, message in (
        (tarfile.REGTYPE, "a/manifest.csv: not CSV|a/manifest.csv, line 1, column 1: nothing; expected model"),
        (tarfile.DIRTYPE, "x.tar, a/manifest.csv/manifest.csv: missing; expected the folder of an export"),
    ):
        with tarfile.open(tmp_path / "x.tar", "w") as tar:
            member = tarfile.TarInfo("a/manifest.csv")
            member.type = kind
            tar.addfile(member)
        with pytest.raises(CleansetError, match=message) as raised:
            verify.run(tmp_path / "x.tar", decode=False)
        assert str(tmp_path / "x.tar") in str(raised.value)


def test_errors_of_reading_name_the_tar(published: Path) -> None:
    tar = published / f"{NAME}.tar"
    with pytest.raises(FileNotFoundError) as raised, archive.unpack(tar) as (folder, _):
        (folder / "no.txt").read_bytes()
    assert raised.value.filename == f"{tar}, {NAME}/no.txt"
