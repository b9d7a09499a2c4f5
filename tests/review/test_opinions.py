"""Second opinions: what is read from their files, and what is refused in one line."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.review.opinions import Opinion, read_opinions
from tests.documents import blocks

FIRST, SECOND = "ILSVRC2012_val_00000293", "ILSVRC2012_val_00004698"
HEADER = "image_id,flag,source\n"


def read(tmp_path: Path, *texts: str) -> dict[str, tuple[Opinion, ...]]:
    paths = []
    for number, text in enumerate(texts):
        paths.append(tmp_path / f"{number}.csv")
        paths[-1].write_text(text)
    return dict(read_opinions(paths, imagenet()))


def test_opinions_of_several_files(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        f"{HEADER}{SECOND},wrong_class,label errors\n{FIRST}, several objects ,ImageNetMultiLabel\n",
        f'{HEADER}{FIRST},"problematic, unclear",ImageNet-Multilabel\n{FIRST},several objects,ImageNetMultiLabel\n',
        HEADER,
    )
    assert found == {
        SECOND: (Opinion(SECOND, "wrong class", "label errors"),),
        FIRST: (
            Opinion(FIRST, "several objects", "ImageNetMultiLabel"),
            Opinion(FIRST, "problematic, unclear", "ImageNet-Multilabel"),
        ),
    }
    assert read(tmp_path) == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "0.csv, line 1: ''; expected the header image_id,flag,source"),
        ("image,flag,source\n", "0.csv, line 1: 'image,flag,source'; expected the header image_id,flag,source"),
        (f"{HEADER}{FIRST},flag\n", "0.csv, line 2: 2 cells; expected image_id,flag,source"),
        (
            f"{HEADER}60000,a,b\n",
            "0.csv, line 2, image_id: '60000'; expected an image id such as ILSVRC2012_val_00000001",
        ),
        (f"{HEADER}{FIRST}.gif,a,b\n", "expected an image id such as ILSVRC2012_val_00000001"),
        (f"{HEADER}{FIRST},,b\n", "0.csv, line 2, flag: ''; expected 1 to 60 letters in one line"),
        (f"{HEADER}{FIRST},a, \n", "0.csv, line 2, source: ' '; expected 1 to 60 letters in one line"),
        (f"{HEADER}{FIRST},{'a' * 61},b\n", "expected 1 to 60 letters in one line"),
        (f'{HEADER}{FIRST},"a\nb",c\n', "flag: 'a\\\\nb'; expected 1 to 60 letters in one line"),
    ],
)
def test_anything_else_is_one_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(CleansetError) as caught:
        read(tmp_path, text)
    assert problem.replace("\\\\", "\\") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_another_encoding(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match=r"none\.csv: missing; correct the file, or take it out of review.opinions"):
        read_opinions([tmp_path / "none.csv"], imagenet())
    (tmp_path / "latin.csv").write_bytes("ä".encode("latin-1"))
    with pytest.raises(CleansetError, match=r"latin\.csv: not UTF-8 at byte 0; correct the file"):
        read_opinions([tmp_path / "latin.csv"], imagenet())
    with pytest.raises(CleansetError, match="a folder; expected a regular file"):
        read_opinions([tmp_path], imagenet())


def test_the_example_of_the_page(repository: Path, tmp_path: Path) -> None:
    (text,) = blocks(repository, "text", "docs/wrong_labels.md")
    found = read(tmp_path, text)
    assert [each.flag for opinions in found.values() for each in opinions] == ["wrong class", "several objects"]


def test_the_program_of_the_page(repository: Path, tmp_path: Path) -> None:
    """On files of the studies' formats, an image for each case."""
    names = [f"ILSVRC2012_val_{number:08d}" for number in range(1, 11)]
    votes = [(0, 1), (1, 4), (4, 1)]
    images = [
        {"url": f"https://labelerrors.com//static/n01440764/{name}.JPEG", "mturk": {"given": given, "both": both}}
        for name, (given, both) in zip(names, votes, strict=False)
    ]
    mistakes = {f"{names[3]}.JPEG": {"top_prediction": 192, "failure category": "Fine-grained error"}}
    annotated = {
        "initial_annots": {
            f"{names[4]}.JPEG": {"correct": ["n1", "n2"]},
            f"{names[5]}.JPEG": {"correct": ["n1"], "wrong": ["n2"]},
            f"{names[6]}.JPEG": {},
            "0123456789abcdef": {"correct": ["n1", "n2"]},  # an image of ImageNetV2
        },
        "problematic_images": {f"{names[6]}.JPEG": None},
    }
    table = pd.DataFrame(
        {"num_objects": [2, 1, 1], "main_top": [3, 4, 5], "imagenet_label": [3, 5, 5]},
        index=pd.Index([f"{name}.JPEG" for name in names[7:]], name="image"),
    )
    (tmp_path / "imagenet_mturk.json").write_text(json.dumps(images))
    (tmp_path / "vit3b_mistakes.json").write_text(json.dumps(mistakes))
    (tmp_path / "human_accuracy_v3.0.0.json").write_text(json.dumps(annotated))
    table.to_pickle(tmp_path / "annotations_classify_task.pkl")
    (program,) = blocks(repository, "python", "docs/wrong_labels.md")
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    assert read_opinions([tmp_path / "opinions.csv"], imagenet()) == {
        names[0]: (Opinion(names[0], "wrong class", "label errors"),),
        names[1]: (Opinion(names[1], "several objects", "label errors"),),
        names[3]: (Opinion(names[3], "Fine-grained error", "imagenet-mistakes"),),
        names[4]: (Opinion(names[4], "several labels", "ImageNet-Multilabel"),),
        names[6]: (Opinion(names[6], "problematic", "ImageNet-Multilabel"),),
        names[7]: (Opinion(names[7], "several objects", "ImageNetMultiLabel"),),
        names[8]: (Opinion(names[8], "another main object", "ImageNetMultiLabel"),),
    }
