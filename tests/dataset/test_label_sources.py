"""Label sources are read from files in their published forms, and other files are refused."""

from pathlib import Path

import pytest

from cleanset.dataset.label_sources import ImageLabels, known_sources, read_source, read_sources, sources_in
from cleanset.errors import CleansetError, InputError
from tests.dataset.label_files import ANNOTATIONS, PREFIX, PROPOSED, source_of

EXPECTED = {
    f"{PREFIX}00000002": ImageLabels(classes=(0, 7)),
    f"{PREFIX}00000004": ImageLabels(classes=(278,)),
    f"{PREFIX}00000006": ImageLabels(classes=(3,), unclear=(281, 282), problematic=True),
    f"{PREFIX}00000008": ImageLabels(classes=()),
}


@pytest.mark.parametrize(("name", "content"), [("multilabel", PROPOSED), ("multilabel_v3", ANNOTATIONS)])
def test_both_forms_give_the_same_labels(name: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(content)
    found = read_source(path, source_of(name, content))
    assert found.labels == EXPECTED
    assert list(found.labels) == sorted(EXPECTED)


def test_imagenet_m_has_its_images_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(ANNOTATIONS)
    name = f"{PREFIX}00000006"
    assert read_source(path, source_of("imagenet_m", ANNOTATIONS)).labels == {name: EXPECTED[name]}


def test_a_missing_file_names_what_to_download(tmp_path: Path) -> None:
    source = known_sources()["joined"]
    with pytest.raises(CleansetError) as raised:
        read_source(tmp_path / source.file, source)
    message = str(raised.value)
    assert f"{tmp_path / 'clean_validation.csv'}: missing" in message
    assert f"from {source.address} (SHA-256 {source.sha256}), and put it there" in message


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "multilabel.csv").write_text(PROPOSED)
    with pytest.raises(CleansetError, match=r"multilabel\.csv: SHA-256 [0-9a-f]{64}; expected 3d2068a3.*download"):
        read_sources(tmp_path)


def test_an_empty_folder_names_the_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no file of a label source; expected one of clean_validation\.csv, .*--list"):
        sources_in(tmp_path)


def test_an_unknown_source(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown label source 'kisel'; expected one of joined, finegrained"):
        read_sources(tmp_path, ["kisel"])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("278,278", "278,1000", r"line 2: '1000'; expected class indices 0 to 999"),
        ("278,278", "278,٢", r"line 2: '٢'; expected class indices 0 to 999"),
        (
            f"{PREFIX}00000004.JPEG",
            "cat.JPEG",
            r"line 2: 'cat\.JPEG'; expected an image id such as ILSVRC2012_val_00000001",
        ),
        (f"{PREFIX}00000004", f"{PREFIX}00000002", r"a second time"),
        ("id,category", "name,category", r"expected the columns id,proposed_labels"),
    ],
)
def test_invalid_rows(old: str, new: str, expected: str, tmp_path: Path) -> None:
    content = PROPOSED.replace(old, new, 1)
    path = tmp_path / "file"
    path.write_text(content)
    with pytest.raises(CleansetError, match=expected):
        read_source(path, source_of("multilabel", content))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("n02119789", "n00000000", r"00000004\.JPEG: 'n00000000'; expected a wnid"),
        ('"imagenet_m": [', '"m": [', r"no imagenet_m; expected annotations"),
        ('{"correct": ["n02119789"]', '{"correct": [1]', r"expected annotations of images by wnid"),
        ('"initial_annots"', '"initial_annots', r"not JSON"),
    ],
)
def test_invalid_annotations(old: str, new: str, expected: str, tmp_path: Path) -> None:
    content = ANNOTATIONS.replace(old, new, 1)
    path = tmp_path / "file"
    path.write_text(content)
    with pytest.raises(CleansetError, match=expected):
        read_source(path, source_of("multilabel_v3", content))
