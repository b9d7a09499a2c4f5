"""Second opinions: what is read from their files, and what is refused in one line."""

from pathlib import Path

import pytest

from cleanset.errors import CleansetError
from cleanset.review.opinions import Opinion, read_opinions

FIRST, SECOND = "ILSVRC2012_val_00000293", "ILSVRC2012_val_00004698"
HEADER = "image_id,flag,source\n"


def read(tmp_path: Path, *texts: str) -> dict[str, tuple[Opinion, ...]]:
    paths = []
    for number, text in enumerate(texts):
        paths.append(tmp_path / f"{number}.csv")
        paths[-1].write_text(text)
    return dict(read_opinions(paths))


def test_opinions_of_several_files(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        f"{HEADER}{SECOND},wrong_class,label errors\n{FIRST}, several objects ,ImageNetMultiLabel\n",
        f'{HEADER}{FIRST},"problematic, unclear",ImageNet-Multilabel\n{FIRST},several objects,ImageNetMultiLabel\n',
        HEADER,
    )
    assert found == {
        SECOND: (Opinion("wrong class", "label errors"),),
        FIRST: (
            Opinion("several objects", "ImageNetMultiLabel"),
            Opinion("problematic, unclear", "ImageNet-Multilabel"),
        ),
    }
    assert read(tmp_path) == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "0.csv, line 1: ''; expected the header image_id,flag,source"),
        ("image,flag,source\n", "0.csv, line 1: 'image,flag,source'; expected the header image_id,flag,source"),
        (f"{HEADER}{FIRST},flag\n", "0.csv, line 2: 2 cells; expected image_id,flag,source"),
        (f"{HEADER}293,a,b\n", "0.csv, line 2: '293'; expected an image id such as ILSVRC2012_val_00000001"),
        (f"{HEADER}{FIRST}.JPEG,a,b\n", "expected an image id such as ILSVRC2012_val_00000001"),
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
    with pytest.raises(CleansetError, match=r"none\.csv: missing; expected a CSV file with the columns image_id,flag"):
        read_opinions([tmp_path / "none.csv"])
    (tmp_path / "latin.csv").write_bytes("ä".encode("latin-1"))
    with pytest.raises(CleansetError, match=r"latin\.csv: not UTF-8 at byte 0; expected a CSV file"):
        read_opinions([tmp_path / "latin.csv"])
    with pytest.raises(CleansetError, match="a folder; expected a regular file"):
        read_opinions([tmp_path])
