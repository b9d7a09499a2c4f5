"""Sets with columns from a table of the publishers: the example of docs/own_images.md, on the ten images."""

import csv
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from cleanset.classes import imagenet
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.loading import load, table
from cleanset.sets import publish, rebuild, verify
from cleanset.sets.made_from import outdated
from cleanset.sets.manifest import ManifestForm
from cleanset.sets.manifest_checks import check_manifest, read_manifest
from cleanset.stages import export
from tests.documents import block_of
from tests.ten_images import TAR, id_of

CAMERAS = {1: "Canon EOS R5", 4: "=Pixel, 8", 6: "", 8: "Leica", 9: "Ωμέγα", 10: "Canon EOS R5"}
COLUMNS = ("x_camera", "x_site")


def copied(edition: Edition, folder: Path, repository: Path, cameras: Mapping[int, str] = CAMERAS) -> Edition:
    """A copy of the edition of the ten images, with the params of the example, and its table."""
    found = Edition(Path(shutil.copytree(edition.folder, folder)))
    params = yaml.safe_load(found.params_yaml.read_text())
    params["export"] |= yaml.safe_load(block_of(repository, "yaml", "export:\n  columns", "docs/own_images.md"))[
        "export"
    ]
    found.params_yaml.write_text(yaml.safe_dump(params))
    with (found.folder / "cameras.csv").open("w", newline="") as file:
        header, _ = block_of(repository, "csv", "image,camera", "docs/own_images.md").split("\n", 1)
        writer = csv.writer(file)
        writer.writerow(header.split(","))
        # an id in another form, a column without a name, an image that is not in the set
        writer.writerows([f"{number:08}", camera, f"site {number}"] for number, camera in {**cameras, 2: "x"}.items())
    return found


@pytest.fixture(scope="module")
def pictured(edition: Edition, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """With its set; not to be changed."""
    found = copied(edition, tmp_path_factory.mktemp("pictured") / "edition", repository)
    export.run(found, "standard")
    return found


def test_the_columns_come_last_and_are_read_back(pictured: Edition, export_folder: Path) -> None:
    text = (pictured.export("standard") / "manifest.csv").read_text()
    header = text.partition("\n")[0].split(",")
    assert header == [*ManifestForm().columns(imagenet()), *COLUMNS]
    entries = read_manifest(text, "manifest.csv", imagenet())
    expected = {id_of(number): (("x_camera", name), ("x_site", f"site {number}")) for number, name in CAMERAS.items()}
    assert {entry.image_id: entry.further for entry in entries} == expected
    found = table("standard", pictured.folder).set_index("image_id")
    assert found["x_camera"].to_dict() == {id_of(number): camera for number, camera in CAMERAS.items()}
    assert [record["x_site"] for _, _, record in load("standard", pictured.folder)][:2] == ["site 1", "site 8"]
    # without them the manifest is that of the set without a table
    rows = [line.rsplit(",", 2)[0] for line in text.splitlines() if "Pixel" not in line]
    assert set(rows) < set((export_folder / "manifest.csv").read_text().splitlines())


def test_it_verifies_is_rebuilt_and_published(pictured: Edition, tmp_path: Path) -> None:
    folder = pictured.export("standard")
    assert verify.run(folder, decode=True).problems == []
    result = rebuild.run(folder / "manifest.csv", pictured.folder / "data" / "raw" / TAR, tmp_path / "rebuilt")
    assert result.problems == []
    assert (tmp_path / "rebuilt" / "manifest.csv").read_bytes() == (folder / "manifest.csv").read_bytes()
    assert "{name: x_camera, dtype: string}" in (folder / "README.md").read_text()
    assert "From a table of the publishers." in (folder / "croissant.json").read_text()
    publish.run(folder, tmp_path / "published", with_images=False, key=None)
    (card,) = (tmp_path / "published").rglob("README.md")
    assert "{name: x_site, dtype: string}" in card.read_text()
    assert verify.run(card.parent, decode=True).problems == []


def test_a_changed_table_makes_the_set_outdated(edition: Edition, repository: Path, tmp_path: Path) -> None:
    found = copied(edition, tmp_path / "edition", repository)
    export.run(found, "standard")
    assert outdated(found.export("standard")) == []
    (found.folder / "cameras.csv").write_text("image,camera,site\n")
    assert outdated(found.export("standard")) == ["cameras.csv"]


def test_a_cell_of_a_manifest_is_checked(pictured: Edition) -> None:
    text = (pictured.export("standard") / "manifest.csv").read_text().replace("Leica", "Lei\u200bca")
    (problem,) = check_manifest(text, "manifest.csv", imagenet()).problems
    assert str(problem).endswith(r"x_camera Lei\u200bca; expected printable text of at most 200 characters")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "00000008,Leica",
            "00000012,Leica",
            r"^cameras\.csv: no line on ILSVRC2012_val_00000008; expected one on each",
        ),
        ("00000008,", "00000001,", r"cameras\.csv, line 5: image '00000001'; a second time"),
        ("00000008,", "cat.png,", r"cameras\.csv, line 5: image 'cat\.png'; expected"),
        ("image,camera", "image,kamera", r"cameras\.csv, line 1: .* expected the columns image,camera,site, each once"),
        ("Leica", "L" * 201, r"csv, line 5, camera: 'LL.*; expected printable text of at most 200 char"),
    ],
)
def test_a_table_that_is_wrong(
    before: str, after: str, message: str, edition: Edition, repository: Path, tmp_path: Path
) -> None:
    found = copied(edition, tmp_path / "edition", repository)
    path = found.folder / "cameras.csv"
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after))
    with pytest.raises(CleansetError, match=message):
        export.run(found, "standard")


def test_the_stage_has_to_depend_on_it(edition: Edition, repository: Path, tmp_path: Path) -> None:
    found = copied(edition, tmp_path / "edition", repository)
    found.dvc_yaml.write_text("stages: {export: {cmd: cleanset export, deps: [reviews]}}\n")
    with pytest.raises(CleansetError, match=r"the deps of export lack cameras\.csv, which export\.columns\.file of"):
        export.run(found, "standard")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"file": "a.csv", "names": []}, "export.columns.names: "),
        ({"file": "a.csv", "names": ["a", "a"]}, "'a' twice; expected each once"),
        ({"file": "a.csv", "names": ["Camera model"]}, "export.columns.names.0: "),
        ({"names": ["a"]}, "missing key export.columns.file"),
    ],
)
def test_invalid_params(columns: object, message: str, edition: Edition, tmp_path: Path) -> None:
    params = yaml.safe_load(edition.params_yaml.read_text())
    params["export"]["columns"] = columns
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params))
    with pytest.raises(CleansetError, match=message):
        read_params(tmp_path)
