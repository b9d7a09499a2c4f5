"""Published images: the layouts of the benchmarks, written from made images, and what is wrong with a folder."""

import hashlib
import io
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import cv2
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from PIL import Image

from cleanset.classes import class_table, imagenet
from cleanset.errors import CleansetError
from cleanset.evaluation.sets import ImageFile
from cleanset.studies.robustness import published_images
from cleanset.studies.robustness.corruptions.params import CORRUPTIONS as TEST_CORRUPTIONS
from cleanset.studies.robustness.digests import DigestRun
from cleanset.studies.robustness.families import (
    ChangePlan,
    StudyParams,
    change_plan,
    family_named,
    measured_images,
    notice,
)
from cleanset.studies.robustness.images import ChangedImages, ChangeName, Sources, Study
from cleanset.studies.robustness.pages import save_sheets
from cleanset.studies.robustness.published_images import EXPECTED_VIDEO, video
from tests.studies.robustness.drawn import drawn

pytestmark = pytest.mark.slow

CORRUPTIONS = {"names": ["fog", "contrast"], "severities": [1, 4]}
PERTURBATIONS = {"names": ["translate", "gaussian_noise"]}
CROPPED = "n01443537/ILSVRC2012_val_00000003_0_0_90_90.png"


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    """Two whole images of two classes, and a cropped one."""
    files: dict[str, ImageFile] = {}
    rows: list[tuple[Path, str, tuple[int, int, int, int] | None]] = []
    for number, wnid in ((1, "n01440764"), (2, "n01443537")):
        image_id = f"ILSVRC2012_val_{number:08}"
        path = tmp_path / "set" / wnid / f"{image_id}.JPEG"
        path.parent.mkdir(parents=True)
        Image.fromarray(np.roll(drawn(), 30 * number, axis=1)).save(path, quality=95)
        rows.append((path, image_id, None))
    path = tmp_path / "set" / CROPPED
    Image.fromarray(drawn(90, 90)).save(path)
    rows.append((path, "ILSVRC2012_val_00000003", (0, 0, 90, 90)))
    table = []
    for class_index, (path, image_id, crop) in enumerate(rows):
        name = path.relative_to(tmp_path / "set").as_posix()
        files[name] = ImageFile(path, hashlib.sha256(path.read_bytes()).hexdigest(), image_id)
        table.append((name, image_id, min(class_index, 1), crop, files[name].sha256, ["one"]))
    columns = ["file", "image_id", "class_index", "crop", "file_sha256", "sets"]
    images = pd.DataFrame(table, columns=columns)
    masks = pd.DataFrame({"file": images["file"], "left_out": ["no_mask"] * 3})
    return Sources(images=images, masks=masks, files=files, study=Study(tmp_path), classes=imagenet())


def wanted(jpeg: int | None = None, **sections: Any) -> StudyParams:
    return StudyParams.model_validate({"jpeg": jpeg, "seed": 5, **sections})


def made(sources: Sources, family: str, params: StudyParams) -> tuple[ChangePlan, ChangedImages]:
    found = change_plan(family_named(family), sources, params)
    return found, found.changed_images()


def written(
    sources: Sources, save: Callable[[Image.Image, Path], None], suffix: str, corruptions: dict[str, Any] = CORRUPTIONS
) -> None:
    """The made corruptions of the whole images in the layout of ImageNet-C."""
    family, changed = made(sources, "corruptions", wanted(corruptions=corruptions))
    for file, image_id in zip(family.images["file"], family.images["image_id"], strict=True):
        for change, severity in family.changes:
            folder = sources.study.folder / "published" / change / str(severity) / Path(file).parent
            folder.mkdir(parents=True, exist_ok=True)
            if file != CROPPED:
                save(changed(ChangeName(file, change, severity)), folder / f"{image_id}{suffix}")


def lossless(image: Image.Image, path: Path) -> None:
    image.save(path, format="PNG")


def read(sources: Sources, family: str = "corruptions", /, **section: Any) -> tuple[ChangePlan, ChangedImages]:
    defaults: dict[str, Any] = {"corruptions": CORRUPTIONS, "perturbations": PERTURBATIONS, "scenarios": {}}
    return made(sources, family, wanted(85, **{family: defaults[family] | {"published": "published"} | section}))


def told(images: pd.DataFrame, family: str = "corruptions", **given: bool) -> str:
    """The notice of published images."""
    measures = {"scenarios": {"answers": "restricted"}} if family == "scenarios" else {}
    params = StudyParams.model_validate({family: {"published": "published"}, "measures": measures})
    return notice(family_named(family), params, images, imagenet(), **given)


def pixels(changed: ChangedImages, name: ChangeName) -> NDArray[np.uint8]:
    return np.array(changed(name))


def test_lossless_images_are_those_that_were_made(sources: Sources) -> None:
    """No JPEG step is taken again; but for the unchanged image it is."""
    written(sources, lossless, ".JPEG")
    family, changed = read(sources)
    _, without_jpeg = made(sources, "corruptions", wanted(corruptions=CORRUPTIONS))
    _, with_jpeg = made(sources, "corruptions", wanted(85, corruptions=CORRUPTIONS))
    assert len(family.names()) == 2 * 5
    for name in family.names():
        expected = (with_jpeg if "unchanged" in name else without_jpeg)(name)
        np.testing.assert_array_equal(pixels(changed, name), np.array(expected))


def test_a_jpeg_of_the_benchmarks_quality_is_the_jpeg_step(sources: Sources) -> None:
    def as_published(image: Image.Image, path: Path) -> None:
        image.save(path, quality=85, optimize=True)  # as the published script saves

    written(sources, as_published, ".JPEG")
    family, changed = read(sources)
    _, with_jpeg = made(sources, "corruptions", wanted(85, corruptions=CORRUPTIONS))
    for name in family.names():
        np.testing.assert_array_equal(pixels(changed, name), np.array(with_jpeg(name)))


def test_imagenet_c_bar(sources: Sources) -> None:
    """Its folders have the authors' amounts as names, with two digits, or the severities; never both."""
    folder = sources.study.folder / "published"
    image = Image.fromarray(drawn()[::-1].copy())
    for place in ("plasma_noise/4.75", "plasma_noise/7.00", "sparkles/1.00", "sparkles/2.00"):
        for name in ("n01440764/ILSVRC2012_val_00000001", "n01443537/ILSVRC2012_val_00000002"):
            (folder / place / name).parent.mkdir(parents=True, exist_ok=True)
            image.save(folder / place / f"{name}.JPEG", format="PNG")
    names = ["sparkles", "plasma_noise"]
    family, changed = read(sources, names=names, severities=[1, 2])
    assert family.changes == [(name, severity) for name in ("plasma_noise", "sparkles") for severity in (1, 2)]
    found = pixels(changed, ChangeName("n01440764/ILSVRC2012_val_00000001.JPEG", "sparkles", 2))
    np.testing.assert_array_equal(found, np.asarray(image))
    params = wanted(corruptions={"names": names, "published": "published"})
    assert notice(family_named("corruptions"), params, sources.images, imagenet()).endswith(
        "not all of ImageNet-C-bar: no official numbers. Published images are whole: 1 that are cropped in the sets "
        "are left out. The corruptions of ImageNet-C-bar have no CE: AlexNet's errors on them were not published."
    )
    shutil.copytree(folder / "sparkles" / "2.00", folder / "sparkles" / "2")
    with pytest.raises(
        CleansetError, match=r"sparkles/2\.00 and sparkles/2, which are the same severity; expected one"
    ):
        read(sources, names=names, severities=[1, 2])
    shutil.rmtree(folder / "sparkles" / "2.00")
    _, again = read(sources, names=names, severities=[1, 2])
    np.testing.assert_array_equal(
        pixels(again, ChangeName("n01440764/ILSVRC2012_val_00000001.JPEG", "sparkles", 2)), np.asarray(image)
    )
    shutil.rmtree(folder / "sparkles" / "2")
    with pytest.raises(CleansetError, match=r"sparkles/2\.00: missing; expected <corruption>"):
        read(sources, names=names, severities=[1, 2])


def test_imagenet_3dcc(sources: Sources) -> None:
    """Its folders have the severities as names."""
    folder = sources.study.folder / "published"
    images = {severity: Image.fromarray(np.roll(drawn(), severity, axis=1)) for severity in (1, 2)}
    for name in ("flash", "h265_crf"):
        for severity, image in images.items():
            for image_id in ("n01440764/ILSVRC2012_val_00000001", "n01443537/ILSVRC2012_val_00000002"):
                path = folder / name / str(severity) / f"{image_id}.JPEG"
                path.parent.mkdir(parents=True, exist_ok=True)
                image.save(path, format="PNG")
    names = ["h265_crf", "flash"]
    family, changed = read(sources, names=names, severities=[1, 2])
    assert family.changes == [(name, severity) for name in ("flash", "h265_crf") for severity in (1, 2)]
    found = pixels(changed, ChangeName("n01443537/ILSVRC2012_val_00000002.JPEG", "flash", 2))
    np.testing.assert_array_equal(found, np.asarray(images[2]))
    params = wanted(corruptions={"names": names, "published": "published"})
    assert notice(family_named("corruptions"), params, sources.images, imagenet()).endswith(
        "CE on ImageNet-3DCC is relative to AlexNet's errors on 5,000 of its images (RobustBench)."
    )


@pytest.mark.parametrize(
    ("names", "benchmark"),
    [
        (["fog"], "ImageNet-C"),
        (["saturate"], "ImageNet-C"),
        (["sparkles"], "ImageNet-C-bar"),
        (["3dcc", "noise"], "ImageNet-C and ImageNet-3DCC"),
    ],
)
def test_the_benchmark_of_a_notice(names: list[str], benchmark: str) -> None:
    family = family_named("corruptions")
    params = StudyParams.model_validate({"corruptions": {"names": names, "published": "published"}})
    images = pd.DataFrame({"crop": [None]})
    assert f"not all of {benchmark}: no official numbers" in notice(family, params, images, imagenet())
    assert f"all of {benchmark}." in notice(family, params, images, imagenet(), is_official=True)
    own = class_table([("cat", "cat"), ("dog", "dog")], "here")
    of_own = "Measured without a reference: no published numbers are of these images."
    assert notice(family, params, images, own) == f"Published images, unverified. {of_own}"
    if "3dcc" not in names:
        made = StudyParams.model_validate({"corruptions": {"names": names}})
        assert f"No official {benchmark} numbers: a subset" in notice(family, made, images, imagenet())


def test_surplus_images_are_reported(sources: Sources, capsys: pytest.CaptureFixture[str]) -> None:
    """Files of no image that is measured, in all places together."""
    written(sources, lossless, ".png")
    read(sources)
    assert capsys.readouterr().err == ""
    folder = sources.study.folder / "published"
    for place in ("fog/4", "contrast/1"):
        shutil.copytree(folder / place / "n01440764", folder / place / "n07753592")
        for path in (folder / place / "n07753592").iterdir():
            path.rename(path.with_stem("ILSVRC2012_val_00000009"))
    read(sources)
    assert capsys.readouterr().err == (
        f"corruptions.published: 2 of 10 files in {folder} are of no image that is measured: they are not read\n"
    )


def test_digests_are_of_the_published_pixels(sources: Sources) -> None:
    written(sources, lossless, ".png")
    family, _ = read(sources)
    run = DigestRun(family, 1)
    path = sources.study.folder / "published/fog/4/n01440764/ILSVRC2012_val_00000001.png"
    with Image.open(path) as image:
        expected = hashlib.sha256(image.tobytes()).hexdigest()
    (found,) = run.digests([ChangeName("n01440764/ILSVRC2012_val_00000001.JPEG", "fog", 4)])
    assert found == expected
    Image.new("RGB", (224, 224)).save(path)
    after, _ = read(sources)
    assert family.changing.settings.keys() == after.changing.settings.keys() == {"published_sha256"}
    assert family.changing.settings != after.changing.settings
    assert family.changes == after.changes


def test_the_record_does_not_depend_on_where_the_folder_is(sources: Sources, tmp_path: Path) -> None:
    written(sources, lossless, ".png")
    before = read(sources)[0].as_record()
    elsewhere = shutil.move(tmp_path / "published", tmp_path / "elsewhere")
    assert read(sources, published=str(elsewhere))[0].as_record() == before


def test_an_image_in_the_folder_of_another_class(sources: Sources) -> None:
    """The label of the sets may be another than that of ILSVRC2012; an image id is unique all the same."""
    written(sources, lossless, ".png")
    folder = sources.study.folder / "published/fog/1"
    name = "ILSVRC2012_val_00000001.png"
    expected = np.array(Image.open(folder / "n01440764" / name))
    (folder / "n02110341").mkdir()
    shutil.move(folder / "n01440764" / name, folder / "n02110341" / name)
    _, changed = read(sources)
    found = pixels(changed, ChangeName("n01440764/ILSVRC2012_val_00000001.JPEG", "fog", 1))
    np.testing.assert_array_equal(found, expected)
    shutil.copytree(folder / "n02110341", folder / "n02110342")
    with pytest.raises(CleansetError, match=r"fog/1: n02110341/.*1\.png and n02110342/.*1\.png are one image twice"):
        read(sources)


def remove(path: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        if (folder / path).is_dir():
            shutil.rmtree(folder / path)
        else:
            (folder / path).unlink()

    return change


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            remove("."),
            "published: no folder; expected a folder with <corruption>/<severity>/<wnid>/<image id>.JPEG: c",
        ),
        (remove("contrast"), "published/contrast/1: missing; expected <corruption>/<severity>/"),
        (remove("fog/4"), "published/fog/4: missing; expected <corruption>/<severity>/"),
        (
            remove("fog/4/n01443537/ILSVRC2012_val_00000002.JPEG"),
            "published/fog/4: no image n01443537/ILSVRC2012_val_00000002; expected every measured image exactly once",
        ),
    ],
)
def test_what_a_folder_lacks_is_reported(sources: Sources, spoil: Callable[[Path], None], message: str) -> None:
    written(sources, lossless, ".JPEG")
    spoil(sources.study.folder / "published")
    with pytest.raises(CleansetError) as error:
        read(sources)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (half, "cannot be read ("),
        (lambda path: path.write_bytes(b""), "cannot be read (empty); expected a whole JPEG or PNG"),
        (lambda path: Image.new("RGB", (224, 225)).save(path), "224 x 225 pixels; expected 224 x 224"),
    ],
)
def test_an_image_that_is_none(sources: Sources, spoil: Callable[[Path], None], message: str) -> None:
    written(sources, lossless, ".JPEG")
    path = sources.study.folder / "published/contrast/1/n01443537/ILSVRC2012_val_00000002.JPEG"
    spoil(path)
    _, changed = read(sources)
    with pytest.raises(CleansetError) as error:
        changed(ChangeName("n01443537/ILSVRC2012_val_00000002.JPEG", "contrast", 1))
    assert message in str(error.value)
    assert str(path) in str(error.value)


def test_cropped_images_are_left_out(sources: Sources) -> None:
    """Published images are whole; without any there is nothing to measure."""
    written(sources, lossless, ".png")
    family, _ = read(sources)
    assert family.images["crop"].isna().all()
    assert len(family.images) == 2
    assert "1 that are cropped in the sets are left out" in told(sources.images)
    cropped = Sources(
        images=sources.images[2:], masks=sources.masks[2:], files=sources.files, study=sources.study, classes=imagenet()
    )
    with pytest.raises(CleansetError, match=r"corruptions\.published: all 1 images are cropped"):
        read(cropped)
    params = wanted(perturbations={"names": ["noise"], "max_images": 1, "published": "any"})
    assert measured_images(family_named("perturbations"), sources.images[1:], sources.masks, params)[
        "class_index"
    ].tolist() == [1]


def test_official_numbers_are_those_of_the_whole_benchmark(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    """All its images, and all 15 corruptions at all severities."""
    all_of_it: dict[str, Any] = {"names": ["noise", "blur", "weather", "digital"]}
    written(sources, lossless, ".png", {"names": ["fog"]})
    for name in set(TEST_CORRUPTIONS) - {"fog"}:
        shutil.copytree(sources.study.folder / "published/fog", sources.study.folder / "published" / name)
    whole = Sources(
        images=sources.images[:2], masks=sources.masks[:2], files=sources.files, study=sources.study, classes=imagenet()
    )
    assert not read(whole, **all_of_it)[0].changing.is_official
    assert told(whole.images).endswith("but not all of ImageNet-C: no official numbers.")
    monkeypatch.setattr(published_images, "VALIDATION_IMAGES", 2)
    official = read(whole, **all_of_it, severities=[1, 2, 3, 4, 5])[0]
    assert official.changing.is_official
    assert (
        told(whole.images, is_official=official.changing.is_official)
        == "Published images, unverified: all of ImageNet-C."
    )
    assert not read(whole)[0].changing.is_official
    one = Sources(
        images=sources.images[:1], masks=sources.masks[:1], files=sources.files, study=sources.study, classes=imagenet()
    )
    assert not read(one, **all_of_it, severities=[1, 2, 3, 4, 5])[0].changing.is_official
    Image.new("RGB", (224, 224)).save(sources.study.folder / "published/fog/3/n01440764/ILSVRC2012_val_00000009.png")
    assert not read(whole, **all_of_it, severities=[1, 2, 3, 4, 5])[0].changing.is_official


def save_video(path: Path, frames: list[NDArray[np.uint8]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    height, width = frames[0].shape[:2]
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), 30, (width, height))
    for frame in frames:
        writer.write(np.ascontiguousarray(frame[..., ::-1]))
    writer.release()


def smooth_frames(count: int, size: int = 224) -> list[NDArray[np.uint8]]:
    """Red grows from frame to frame, blue falls; a codec hardly changes flat colors."""
    return [np.full((size, size, 3), (6 * number, 100, 250 - 6 * number), np.uint8) for number in range(count)]


@pytest.fixture
def videos(sources: Sources) -> Path:
    """Those of the whole images in the layout of ImageNet-P."""
    folder = sources.study.folder / "published"
    for file in sources.images["file"][:2]:
        for name, count in (("translate", 41), ("gaussian_noise", 31), ("gaussian_noise_3", 31)):
            frames = smooth_frames(count)
            save_video(folder / name / Path(file).with_suffix(".mp4"), frames[::-1] if name[-1] == "3" else frames)
    return folder


def test_the_frames_of_videos(sources: Sources, videos: Path) -> None:
    assert videos.is_dir()
    family, changed = read(sources, "perturbations")
    assert len(family.changes) == 41 + 31
    file = sources.images["file"][0]
    for frame in (0, 7, 40):
        found = pixels(changed, ChangeName(file, "translate", frame)).reshape(-1, 3).mean(axis=0)
        np.testing.assert_allclose(found, (6 * frame, 100, 250 - 6 * frame), atol=4)
    hard = read(sources, "perturbations", difficulty=3)[1]
    found = pixels(hard, ChangeName(file, "gaussian_noise", 1)).reshape(-1, 3).mean(axis=0)
    np.testing.assert_allclose(found, (6 * 29, 100, 250 - 6 * 29), atol=4)
    of_first_30 = read(sources, "perturbations", frames="first_30")[0]
    assert len(of_first_30.changes) == 60
    assert not of_first_30.changing.is_official


@pytest.mark.parametrize(
    ("name", "frames", "size", "message"),
    [
        ("translate", 31, 224, "31 frames; expected 41"),
        ("gaussian_noise", 41, 224, "more than 31 frames; expected 31"),
        ("gaussian_noise", 0, 224, "cannot be read; expected a whole MP4 video"),
        ("translate", 41, 256, "256 x 256 pixels; expected 224 x 224"),
    ],
)
def test_a_video_that_is_none(
    sources: Sources, videos: Path, name: str, frames: int, size: int, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = videos / name / "n01443537" / "ILSVRC2012_val_00000002.mp4"
    if frames:
        save_video(path, smooth_frames(frames, size))
    else:
        path.write_bytes(b"no video")
    _, changed = read(sources, "perturbations")
    with pytest.raises(CleansetError) as error:
        changed(ChangeName("n01443537/ILSVRC2012_val_00000002.JPEG", name, 0))
    assert str(error.value).startswith(f"{path}: {message}")
    assert capfd.readouterr().err == ""  # OpenCV's library reports errors itself


def test_a_missing_video(sources: Sources, videos: Path) -> None:
    remove("translate/n01443537/ILSVRC2012_val_00000002.mp4")(videos)
    with pytest.raises(CleansetError, match="published/translate: no image n01443537/ILSVRC2012_val_00000002"):
        read(sources, "perturbations")
    with pytest.raises(CleansetError, match="published/shot_noise: missing; expected <perturbation>/<wnid>/"):
        read(sources, "perturbations", names=["shot_noise"])


def test_scenarios_of_any_name_and_size(sources: Sources) -> None:
    """No masks are needed; what is transparent is seen over the matte; a large image becomes a base image."""
    folder = sources.study.folder / "published"
    large, clear = drawn(300, 400), np.zeros((224, 224, 4), np.uint8)
    clear[:100] = (10, 20, 30, 255)
    for file in sources.images["file"][:2]:
        for name, image in (("in_the_rain", Image.fromarray(large)), ("transparent_image", Image.fromarray(clear))):
            path = (folder / name / file).with_suffix(".png")
            path.parent.mkdir(parents=True, exist_ok=True)
            image.save(path)
    family, changed = read(sources, "scenarios", names=["in_the_rain", "transparent"], matte="white")
    assert family.changes == [("transparent_image", 0), ("in_the_rain", 0)]
    file = family.images["file"][1]
    seen = pixels(changed, ChangeName(file, "transparent_image", 0))
    assert (seen[:100] == (10, 20, 30)).all()
    assert (seen[100:] == 255).all()
    resized = np.array(Image.fromarray(large).resize((341, 256), Image.Resampling.BILINEAR))
    left = round((341 - 224) / 2)
    rain = pixels(changed, ChangeName(file, "in_the_rain", 0))
    np.testing.assert_array_equal(rain, resized[16:240, left : left + 224])
    assert told(sources.images[:2], "scenarios") == (
        "Published images, unverified, read from a folder. Score is too low with few images a class: in simulations "
        "with three, by .02 as published and by .03 to .04 as written, and the 95 % interval covers 80 % (12 classes "
        "of 6 images) to 93 % (1,000 of 3). A prediction is correct if the class is the most probable of the "
        "edition's classes (answers: restricted)."
    )


def test_edited_validation_images_may_lie_in_one_folder(sources: Sources) -> None:
    """As ImageNet-E's do, by the ids in their names; two of one image are an error."""
    place = sources.study.folder / "published" / "background"
    place.mkdir(parents=True)
    for number in (1, 2):
        Image.fromarray(drawn()).save(place / f"ILSVRC2012_val_{number:08}_edited.png")
    found, _ = read(sources, "scenarios", names=["background"])
    assert found.images["image_id"].tolist() == ["ILSVRC2012_val_00000001", "ILSVRC2012_val_00000002"]
    Image.fromarray(drawn()).save(place / "ILSVRC2012_val_00000001.png")
    with pytest.raises(CleansetError, match="are one image twice"):
        read(sources, "scenarios", names=["background"])


def test_edited_images_of_your_own(sources: Sources, tmp_path: Path) -> None:
    """In the folder of the class, as in a finished set; so are their copies on the page."""
    path = sources.study.folder / "set" / "pond" / "a.jpg"
    path.parent.mkdir()
    edited = sources.study.folder / "published" / "rain" / "pond" / "a.png"
    edited.parent.mkdir(parents=True)
    for each in (path, edited):
        Image.fromarray(drawn()).save(each)
    own = replace(
        sources,
        images=sources.images[:1].assign(file="pond/a.jpg", image_id="pond/a.jpg"),
        masks=sources.masks[:1],
        files={"pond/a.jpg": ImageFile(path, hashlib.sha256(path.read_bytes()).hexdigest(), "pond/a.jpg")},
        classes=class_table([("lake", "lake"), ("pond", "pond")], "here"),
    )
    plan, _ = read(own, "scenarios", names=["rain"])
    assert plan.is_published
    (sheet,) = save_sheets([plan], tmp_path / "page")["scenarios"]
    assert all((tmp_path / "page" / name).is_file() for name in sheet.files.values())


def test_names_that_a_file_may_not_match_by(sources: Sources) -> None:
    """A name that is not an image id has to be in the folder of its own class."""
    folder = sources.study.folder
    own = folder / "set" / "n01440764" / "a.png"
    Image.fromarray(drawn()).save(own)
    images = sources.images[:1].assign(file="n01440764/a.png")
    one = Sources(
        images=images,
        masks=sources.masks[:1],
        files={"n01440764/a.png": ImageFile(own, "0" * 64, "a")},
        study=sources.study,
        classes=imagenet(),
    )
    buffer = io.BytesIO()
    Image.fromarray(drawn()).save(buffer, format="PNG")
    for wnid, is_found in (("n01443537", False), ("n01440764", True)):
        (folder / "published" / "rain" / wnid).mkdir(parents=True)
        (folder / "published" / "rain" / wnid / "a.png").write_bytes(buffer.getvalue())
        if is_found:
            assert read(one, "scenarios", names=["rain"])[0].is_published
        else:
            with pytest.raises(CleansetError, match="rain: no image n01440764/a"):
                read(one, "scenarios", names=["rain"])


def test_another_video_under_the_same_path_is_read_again(sources: Sources, videos: Path) -> None:
    """The frames of the last video are kept, as they follow each other."""
    path = videos / "translate" / "n01443537" / "ILSVRC2012_val_00000002.mp4"
    _, changed = read(sources, "perturbations")
    name = ChangeName("n01443537/ILSVRC2012_val_00000002.JPEG", "translate", 0)
    before = pixels(changed, name)
    save_video(path, smooth_frames(41)[::-1])
    assert not np.array_equal(before, pixels(changed, name))


def test_a_playlist_in_place_of_a_video(tmp_path: Path) -> None:
    """FFmpeg tells files by their content; it may read further files, but asks no address."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        for name, text in (
            ("hls", f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{address}/a.ts\n#EXT-X-ENDLIST\n"),
            ("concat", f"ffconcat version 1.0\nfile '{address}/a.mp4'\n"),
        ):
            path = tmp_path / f"{name}.mp4"
            path.write_text(text)
            with pytest.raises(CleansetError, match=f"{name}.mp4: {re.escape(EXPECTED_VIDEO)}"):
                video(path, 31)
        server.shutdown()
    assert asked == []
