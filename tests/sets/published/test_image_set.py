"""The published set as files, from a drawn archive and from folders."""

import csv
import shutil
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from cleanset.classes import imagenet
from cleanset.dataset.labels import read_original_labels
from cleanset.errors import CleansetError
from cleanset.images.codec import ImageFacts
from cleanset.loading import load
from cleanset.sets import description, publish, verify
from cleanset.sets.description import Release
from cleanset.sets.folder import read_entries
from cleanset.sets.published import image_set, source_images
from cleanset.sets.published import source_images as digests
from cleanset.sets.published.image_set import select_images
from cleanset.sets.published.lists import (
    PUBLISHED_ROLES,
    PublishedChoice,
    ilsvrc_class,
    ilsvrc_classes,
    published_verdicts,
)
from cleanset.sets.published.source_images import SourceImages, archive_md5, check_sides
from replay import differences, numbers, real_labels
from tests.evaluation.compare.command import cleanset, says
from tests.sets.conftest import edit
from tests.sets.published.conftest import Drawn
from tests.sets.published.drawn_archive import draw_archive
from tests.small_disks import small_disk_at


def verdicts(repository: Path) -> dict[tuple[str, str], str]:
    """The published verdicts by wnid and image id, read line by line."""
    found, image_id = {}, ""
    for path in (repository / "imagenet" / "reviews" / "scooter").glob("*.yaml"):
        for line in path.read_text().splitlines():
            if line.startswith("  ILSVRC"):
                image_id = line.strip(" :")
            elif line.startswith("    verdict: "):
                found[path.stem, image_id] = line.removeprefix("    verdict: ")
    return found


def counted(written: image_set.WrittenSet) -> tuple[int, int, int]:
    """Whole images, cropped ones, and those that are left out for lack of a crop box."""
    cropped = sum(entry.crop is not None for entry in written.entries)
    return len(written.entries) - cropped, cropped, int((written.rejected["reason"] == "box_unknown").sum())


def ranks(repository: Path, model: str) -> dict[str, int]:
    rows = csv.DictReader((repository / "imagenet" / "published" / "top5.csv").open())
    return {row["image_id"]: int(row["rank"]) for row in rows if row["model"] == model}


def test_its_images_are_the_published_ones(drawn: Drawn, repository: Path) -> None:
    """Those found clean among the first three kept of each class; the crops of these are left out."""
    rank = ranks(repository, "norm_robust")
    kept: dict[str, list[tuple[int, str, str]]] = {}
    for (wnid, image_id), verdict in verdicts(repository).items():
        if verdict != "reject":
            kept.setdefault(wnid, []).append((rank.get(image_id, 6), image_id, verdict))
    first = {(wnid, image_id): verdict for wnid, found in kept.items() for _, image_id, verdict in sorted(found)[:3]}
    entries = read_entries(drawn.out)
    assert {(entry.wnid, entry.image_id) for entry in entries} == {key for key in first if first[key] == "clean"}
    assert len(entries) == 2857
    assert {entry.model for entry in entries} == {"norm_robust"}
    rows = list(csv.DictReader((drawn.out / "rejected.csv").open()))
    left_out = {(row["wnid"], row["image_id"]) for row in rows if row["reason"] == "box_unknown"}
    assert left_out == {key for key in first if first[key] == "crop"}
    assert counted(drawn.written) == (2857, 0, 109)


@pytest.mark.long
def test_the_published_numbers() -> None:
    assert differences(numbers(select_images(PublishedChoice()).filled.selection, published_verdicts())) == []


@pytest.mark.long
def test_each_file_is_its_member_of_the_archive(drawn: Drawn) -> None:
    with tarfile.open(drawn.archive) as tar:
        for entry in read_entries(drawn.out):
            member = tar.extractfile(f"{entry.image_id}.JPEG")
            assert member is not None
            assert (drawn.out / entry.file).read_bytes() == member.read()
    assert verify.run(drawn.out, decode=True).problems == []


@pytest.mark.long
def test_of_the_official_archive_it_has_a_date_and_can_be_published(
    few: Drawn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The few archive is declared official here; a trial archive, further reviews or a filled set have no date."""

    def release_of(choice: PublishedChoice, table: Path | None, name: str) -> Release:
        image_set.run(choice, few.archive, tmp_path / name, table)
        return description.release_of((tmp_path / name / "croissant.json").read_bytes(), imagenet())

    assert description.release_of((few.out / "croissant.json").read_bytes(), imagenet()).date == ""
    for module in (source_images, description):
        monkeypatch.setattr(module, "OFFICIAL_IMAGES_MD5", digests.read_digests(few.digests).archive_md5)
    official = release_of(PublishedChoice(), None, "official")
    assert (official.version, official.date) == ("1.0.0", "2026-11-23")
    (tmp_path / "reviews").mkdir()
    assert release_of(PublishedChoice(reviews=(tmp_path / "reviews",)), None, "further").date == ""
    publish.run(tmp_path / "official", tmp_path / "out", with_images=False, key=None)
    assert (tmp_path / "out" / "cleanset-norm_robust-1.0.0.tar").is_file()


def test_its_manifest_invents_nothing(drawn: Drawn, repository: Path) -> None:
    """Confidences are those of the list; images from beyond it have none."""
    rows = list(csv.DictReader((repository / "imagenet" / "published" / "top5.csv").open()))
    listed = {row["image_id"]: f"{np.float32(row['confidence']):.9g}" for row in rows if row["model"] == "norm_robust"}
    entries = read_entries(drawn.out)
    for entry in entries:
        assert entry.row(["confidence", "source_confidence"]) == [listed.get(entry.image_id, "")] * 2
        assert entry.source_check == "archive_md5"
        assert entry.real_classes == (entry.class_index,)
    assert sum(entry.confidence is None for entry in entries) == 107
    assert {entry.reviewers for entry in entries} == {1}


def test_its_card(drawn: Drawn) -> None:
    text = (drawn.out / "README.md").read_text()
    assert "2,857 images of 989 classes, up to 3 of each, out of 50,000 validation images of ImageNet" in text
    assert "because they are to be cropped and nobody has drawn the box yet: 109." in text
    assert "No network was run." in text
    assert "| `imagenet/published/top5.csv` | " in text
    assert "which is not ImageNet's official one: a trial, not for a study.**" in text
    assert "not verified" not in text.lower()
    assert "@misc{scooter," in text


@pytest.mark.slow
def test_the_labels_are_those_of_the_devkit(real: Path) -> None:
    devkit, _ = read_original_labels(real / "ILSVRC2012_devkit_t12.tar.gz")
    assert ilsvrc_classes() == tuple(devkit.values())


def test_every_candidate_has_one_reassessed_label_its_class() -> None:
    real = real_labels()
    for model in PUBLISHED_ROLES:
        table = select_images(PublishedChoice(model)).candidates
        for class_index, image_id in zip(table["class_index"], table["image_id"], strict=True):
            assert real[image_id] == [class_index]


@pytest.mark.parametrize(
    ("model", "unreviewed", "kept", "classes", "boxes", "asked"),
    [
        ("norm_robust", "pending", 2857, 989, 109, 0),
        ("norm_robust", "clean", 2857, 989, 109, 0),
        ("standard", "pending", 969, 668, 30, 3630),
        ("standard", "clean", 2950, 995, 21, 0),
        ("corruption_robust", "pending", 1236, 764, 45, 3226),
    ],
)
def test_the_other_models(
    model: str, unreviewed: str, kept: int, classes: int, boxes: int, asked: int, repository: Path
) -> None:
    """As docs/published_lists.md has them."""
    how = "`pending` or `clean`" if model == "norm_robust" else f"`{unreviewed}`"
    row = f"| `{model}` | {how} | {kept:,} | {classes} | {boxes} | {asked:,} |\n"
    assert row in (repository / "docs" / "published_lists.md").read_text()
    filled = select_images(PublishedChoice(model, unreviewed)).filled
    whole = filled.selection[~filled.selection["box_unknown"]]
    found = (
        len(whole),
        whole["class_index"].nunique(),
        len(filled.selection) - len(whole),
        int(filled.rejected["open"].sum()),
    )
    assert found == (kept, classes, boxes, asked)


def unpacked(drawn: Drawn, folder: Path, layout: str) -> Path:
    """The archive in another layout."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["tar", "-xf", drawn.archive, "-C", folder], check=True)
    for path in list(folder.iterdir()) if layout != "flat" else ():
        wnid = imagenet().keys[ilsvrc_class(path.stem)]
        (folder / wnid).mkdir(exist_ok=True)
        path.rename(folder / (f"{path.stem}_{wnid}.JPEG" if layout == "hugging_face" else f"{wnid}/{path.name}"))
    return folder


@pytest.mark.long
def test_a_folder_is_not_verified(few: Drawn, tmp_path: Path) -> None:
    """The same images; card, manifest and the last line say that nothing fixes their bytes."""
    images = unpacked(few, tmp_path / "val", "hugging_face")
    written = image_set.run(PublishedChoice(), images, tmp_path / "out")
    assert image_set.render(written).splitlines()[-1] == "not verified: no digest of single images is known"
    entries = read_entries(tmp_path / "out")
    assert {entry.source_check for entry in entries} == {"none"}
    expected = [replaced.model_copy(update={"source_check": "none"}) for replaced in read_entries(few.out)]
    assert entries == expected
    body = (tmp_path / "out" / "README.md").read_text().split("# cleanset-norm_robust\n\n")[1]
    assert body.startswith("**Not verified: no digest of single images is known.**\n")
    assert images.is_dir()


@pytest.mark.long
def test_a_folder_with_a_table_of_digests(few: Drawn, tmp_path: Path) -> None:
    images = unpacked(few, tmp_path / "val", "flat")
    written = image_set.run(PublishedChoice(), images, tmp_path / "out", few.digests)
    assert image_set.render(written).splitlines()[-1].startswith("verified: every image has the SHA-256 of the table")
    assert {entry.source_check for entry in read_entries(tmp_path / "out")} == {"image_sha256"}
    victim = images / f"{read_entries(few.out)[7].image_id}.JPEG"
    Image.open(victim).resize((32, 32)).save(victim)
    with pytest.raises(CleansetError, match=rf"val: {victim.stem} has \d+ bytes and SHA-256 .* not resized or encoded"):
        image_set.run(PublishedChoice(), images, tmp_path / "other", few.digests)
    assert not (tmp_path / "other").exists()


def refused(drawn: Drawn, images: Path, digests: Path | None = None) -> str:
    """The message with which images are refused; nothing is written."""
    out = images.with_name("refused")
    with pytest.raises(CleansetError) as raised:
        image_set.run(PublishedChoice(), images, out, digests)
    assert list(images.parent.glob("*refused*")) == []
    return str(raised.value)


def test_another_archive(few: Drawn, tmp_path: Path) -> None:
    with archive_md5(few.archive) as found:
        expected = (
            f"MD5 {found()}, expected 29b22e2961454d5413ddabcf34fc5622 of the official archive: download it again"
        )
    archive = Path(shutil.copy(few.archive, tmp_path))
    message = refused(few, archive)
    assert expected in message
    assert "give --images a folder" in message


def test_damaged_archives(few: Drawn, tmp_path: Path) -> None:
    archive = tmp_path / "val.tar"
    data = few.archive.read_bytes()
    archive.write_bytes(data[: len(data) // 2])
    assert f"{archive}: " in (message := refused(few, archive, few.digests))
    assert "fetch it again" in message
    archive.write_bytes(bytes(len(data)))
    assert "holds no image" in refused(few, archive, few.digests)
    archive.write_text("<html>please sign up</html>")
    assert "not an uncompressed tar" in refused(few, archive, few.digests)
    archive.unlink()
    assert refused(few, archive).startswith(f"{archive}: missing; expected ImageNet's validation images, the tar or a")


def test_images_that_were_resized(tmp_path: Path) -> None:
    """Nine of ten with one side are still taken; all with one short or one long side are not."""
    originals = [ImageFacts(64, 90 + height, "RGB", "") for height in range(9)]
    check_sides(tmp_path, [*originals, ImageFacts(75, 95, "RGB", "")])
    of_long_side = [ImageFacts(120, 60 + height, "RGB", "") for height in range(9)]
    for which, side, images in (("short", 64, originals), ("long", 120, of_long_side)):
        with pytest.raises(CleansetError, match=f"9 of 9 images have a {which} side of {side} pixels: resized; exp"):
            check_sides(tmp_path, images)


def test_images_that_are_missing_or_no_jpeg(few: Drawn, tmp_path: Path) -> None:
    names = sorted(entry.image_id for entry in read_entries(few.out))[:14]
    draw_archive(tmp_path / "val.tar", names[12:])
    (tmp_path / "val").mkdir()
    subprocess.run(["tar", "-xf", tmp_path / "val.tar", "-C", tmp_path / "val"], check=True)
    source = SourceImages(tmp_path / "val", None)
    with pytest.raises(CleansetError) as raised:
        source.locate(pd.DataFrame({"image_id": names}))
    listed = f"{tmp_path}/val: missing images: 12 of 14: {', '.join(names[:10])} and 2 more; expected"
    assert str(raised.value).startswith(listed)
    (tmp_path / "val" / f"{names[13]}.JPEG").write_bytes(b"")
    source.locate(pd.DataFrame({"image_id": names[12:]}))
    assert source.read(names[12])[1].width > 0
    with pytest.raises(
        CleansetError, match=rf"{names[13]} cannot be decoded \(empty\); expected the JPEG of ImageNet: "
    ):
        source.read(names[13])


def test_folders_that_are_not_the_originals(few: Drawn, tmp_path: Path) -> None:
    images = unpacked(few, tmp_path / "val", "flat")
    selected = sorted(entry.image_id for entry in read_entries(few.out))
    for image_id in selected[:12]:
        (images / f"{image_id}.JPEG").unlink()
    message = refused(few, images)
    assert message.startswith(
        f"{images}: missing images: 12 of {len(selected)}: {', '.join(selected[:10])} and 2 more; expected"
    )
    images = unpacked(few, images, "flat")
    (images / f"{selected[0]}.JPEG").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (images / f"{selected[1]}.JPEG").write_bytes(b"")
    message = refused(few, images)
    assert f"{images}: ILSVRC2012_val_" in message
    expected = f"expected the JPEG of ImageNet: fetch it again; images with a problem: 2 of {len(selected)}"
    assert message.endswith(expected)
    unpacked(few, images, "flat")
    for path in images.iterdir():
        Image.new("RGB", (64, 64), (int(path.stem[-8:]) % 256, 0, 0)).save(path)
    resized = f"{len(selected)} of {len(selected)} images have a short side of 64 pixels: resized; expected"
    assert resized in refused(few, images)


@pytest.mark.long
@pytest.mark.usefixtures("few")
@pytest.mark.slow
def test_two_images_that_imagenet_has_twice(tmp_path: Path) -> None:
    """Two kept images with equal pixels are both in the set: what is written can be verified and loaded."""
    kept = select_images(PublishedChoice()).filled.selection
    kept = kept[~kept["box_unknown"]].sort_values("image_id")
    first, first_class = kept["image_id"].tolist()[0], kept["class_index"].tolist()[0]
    second = kept.loc[kept["class_index"] > first_class, "image_id"].tolist()[0]
    archive = draw_archive(tmp_path / "val.tar", kept["image_id"], {second: first})
    digests.run(archive, tmp_path / "digests.csv")
    written = image_set.run(PublishedChoice(), archive, tmp_path / "out", tmp_path / "digests.csv")
    files = {entry.image_id: entry.file for entry in read_entries(tmp_path / "out")}
    notice = f"Images with the bytes or pixels of another one: 1, the first is {files[second]}, as {files[first]}."
    assert written.notices[-1] == notice
    assert f"**{notice}**" in (tmp_path / "out" / "README.md").read_text()
    found = verify.run(tmp_path / "out", decode=False)
    assert (found.problems, found.notices[-1]) == ([], notice)
    assert len(load("norm_robust", tmp_path / "out")) == len(kept)
    (tmp_path / "val").mkdir()
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "val")
    of_folder = image_set.run(PublishedChoice(), tmp_path / "val", tmp_path / "from_folder")
    assert of_folder.notices[-2:] == ["Not verified: no digest of single images is known.", notice]
    assert verify.run(tmp_path / "from_folder", decode=False).problems == []


def test_an_image_in_the_folder_of_another_class(few: Drawn, tmp_path: Path) -> None:
    images = unpacked(few, tmp_path / "val", "wnids")
    entry = next(each for each in read_entries(few.out) if each.class_index == each.ilsvrc_class == 7)
    (images / entry.wnid / f"{entry.image_id}.JPEG").rename(images / imagenet().keys[9] / f"{entry.image_id}.JPEG")
    message = f"{entry.image_id} in the folder or with the name of {imagenet().keys[9]}; expected {entry.wnid}, its"
    assert message in refused(few, images)


@pytest.mark.long
def test_an_output_that_is_there(drawn: Drawn, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").touch()
    done = cleanset("published", "--images", str(drawn.archive), "--out", "out", cwd=tmp_path)
    assert says(done) == (1, "", "error: out: exists already; expected a new or empty folder\n")


def test_unknown_choices(drawn: Drawn, tmp_path: Path) -> None:
    for choice, message in (
        (PublishedChoice("resnet"), "unknown model 'resnet'; expected one of norm_robust, standard, corruption_robust"),
        (PublishedChoice(unreviewed="yes"), "unreviewed 'yes'; expected pending or clean"),
        (PublishedChoice(reviews=(tmp_path / "none",)), "none: missing; make the folder"),
    ):
        with pytest.raises(CleansetError, match=message):
            image_set.run(choice, drawn.archive, tmp_path / "out", drawn.digests)


@pytest.mark.long
@pytest.mark.slow
def test_a_full_disk(drawn: Drawn, tmp_path: Path) -> None:
    with small_disk_at(tmp_path / "disk", kilobytes=1000) as disk:
        arguments = ("--images", str(drawn.archive), "--digests", str(drawn.digests), "--out", str(disk / "out"))
        done = cleanset("published", *arguments, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"error: {disk / 'out'}: No space left on device")
        assert list(disk.iterdir()) == []


@pytest.mark.long
def test_crops_whose_boxes_somebody_has_drawn(few: Drawn, tmp_path: Path) -> None:
    """One more image, as PNG; its confidence is not known. Verdicts on other images change nothing."""
    crops = [row for row in csv.DictReader((few.out / "rejected.csv").open()) if row["reason"] == "box_unknown"]
    wnid, image_id = crops[0]["wnid"], crops[0]["image_id"]
    path = tmp_path / "reviews" / "alice" / f"{wnid}.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(
        f"{wnid}:\n  {image_id}:\n    verdict: crop\n    reason: text\n    crop: [0, 1, 36, 37]\n"
        "    object_fully_visible: true\n    sha256: official\n"
    )
    choice = PublishedChoice(reviews=(tmp_path / "reviews",))
    written = image_set.run(choice, few.archive, tmp_path / "out", few.digests)
    whole, cropped, boxes = counted(few.written)
    assert (cropped, counted(written)) == (0, (whole, 1, boxes - 1))
    (entry,) = [each for each in read_entries(tmp_path / "out") if each.crop]
    assert (entry.image_id, entry.crop, entry.confidence, entry.reviewers) == (image_id, (0, 1, 36, 37), None, 2)
    assert entry.source_confidence is not None
    with Image.open(tmp_path / "out" / entry.file) as image:
        assert (image.format, image.size) == ("PNG", (36, 36))
    assert verify.run(tmp_path / "out", decode=True).problems == []
    assert "| `reviews of alice` | " in (tmp_path / "out" / "README.md").read_text()
    edit(path, "[0, 1, 36, 37]", "[0, 1, 360, 37]")
    with pytest.raises(CleansetError, match=rf"{wnid}.yaml, line 2, {image_id}: crop .* expected a box inside it"):
        image_set.run(choice, few.archive, tmp_path / "other", few.digests)
    edit(path, "[0, 1, 360, 37]", "[0, 1, 36, 37]")
    edit(path, "sha256: official", f"sha256: {'a' * 64}")
    with pytest.raises(CleansetError, match="other bytes were reviewed"):
        image_set.run(choice, few.archive, tmp_path / "other", few.digests)


@pytest.mark.long
@pytest.mark.usefixtures("few")
def test_unreviewed_images_taken_for_clean(tmp_path: Path) -> None:
    choice = PublishedChoice("standard", "clean")
    archive = draw_archive(tmp_path / "val.tar", select_images(choice).filled.selection["image_id"])
    digests.run(archive, tmp_path / "digests.csv")
    written = image_set.run(choice, archive, tmp_path / "out", tmp_path / "digests.csv")
    entries = read_entries(tmp_path / "out")
    reviewed = {image_id for _, image_id in published_verdicts()}
    assert {entry.image_id for entry in entries if entry.reviewers == 0} == {
        each.image_id for each in entries
    } - reviewed
    body = (tmp_path / "out" / "README.md").read_text().split("# cleanset-standard\n\n")[1]
    notice = "Images that nobody has reviewed were taken for clean: a first look, not for a study."
    assert body.startswith(f"**{notice}**\n")
    unreviewed = sum(entry.reviewers == 0 for entry in written.entries)
    assert f"\nimages that nobody has reviewed: {unreviewed:,}\n{notice}\n" in image_set.render(written)


def test_the_lines_it_prints(drawn: Drawn) -> None:
    official = replace(drawn.written, out="scooter", notices=[])
    assert image_set.render(official) == (
        "scooter: 2,857 whole images of 989 classes, model norm_robust\n"
        "left out, because nobody has drawn their crop boxes yet: 109 (rejected.csv)\n"
        "verified: the archive has the expected MD5"
    )
