"""Sets that are compared with label sources: `denied_by` in the manifest, the numbers in the card."""

import csv
import json
import shutil
from pathlib import Path

import pytest
from pydantic import ValidationError

from cleanset.classes import imagenet
from cleanset.dataset import label_sources
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError, InputError
from cleanset.loading import load
from cleanset.sets import publish, rebuild, verify
from cleanset.sets.folder import read_entries
from cleanset.sets.manifest import DENIED_BY, Entry, ManifestForm, manifest_csv
from cleanset.sets.manifest_checks import check_manifest
from cleanset.sets.published.image_set import select_images
from cleanset.sets.published.lists import PublishedChoice
from cleanset.stages import export
from tests.dataset.label_files import ANNOTATIONS, PROPOSED, write_sources
from tests.sets.conftest import edit
from tests.sets.entries import CROPPED, WHOLE, changed
from tests.ten_images import TAR, id_of

NAMES = "[multilabel, imagenet_m]"


@pytest.fixture(scope="module")
def compared(edition: Edition, tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """A copy of the edition of the ten images, whose export names two label sources; not to be changed."""
    folder = Path(shutil.copytree(edition.folder, tmp_path_factory.mktemp("compared") / "edition"))
    params = yaml_with(folder / "params.yaml", f"label_sources: {NAMES}")
    (folder / "params.yaml").write_text(params)
    sources = write_sources(folder / label_sources.PLACE, {"multilabel": PROPOSED, "imagenet_m": ANNOTATIONS})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(label_sources, "known_sources", lambda: sources)
        export.run(Edition(folder), "standard")
    return Edition(folder)


def yaml_with(path: Path, line: str) -> str:
    """The text of a params.yaml with a further key of the section export."""
    text = path.read_text()
    assert "\nexport:" in text
    before, _, after = text.partition("\nexport:")
    if after.lstrip(" ").startswith("{"):
        return f"{before}\nexport: {{{line}, {after.lstrip(' ')[1:]}"
    return f"{before}\nexport:\n  {line}{after}"


def test_the_column(compared: Edition, export_folder: Path) -> None:
    """Image 6 shows class 3 to the experts, and 281 is unclear; in image 8 they find no class."""
    with (compared.export("standard") / "manifest.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == ManifestForm(has_studies=True).fields(imagenet())
    assert {row["image_id"]: row[DENIED_BY] for row in rows if row[DENIED_BY]} == {
        id_of(6): "multilabel imagenet_m",
        id_of(8): "multilabel",
    }
    # other than that the manifest is that of the set without studies, and so are the images
    with (export_folder / "manifest.csv").open(newline="") as file:
        assert [{name: row[name] for name in ManifestForm().fields(imagenet())} for row in rows] == list(
            csv.DictReader(file)
        )


def test_studies_of_other_images_alone_are_an_error(
    edition: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three of the six images are in the study, or none, when it has others."""
    copied = Edition(Path(shutil.copytree(edition.folder, tmp_path / "edition")))
    copied.params_yaml.write_text(yaml_with(copied.params_yaml, "label_sources: [multilabel]"))

    def run(text: str) -> None:
        sources = write_sources(copied.folder / label_sources.PLACE, {"multilabel": text})
        monkeypatch.setattr(label_sources, "known_sources", lambda: sources)
        export.run(copied, "standard")

    run(PROPOSED)
    assert "3 of 6 images of standard are in multilabel\n" in capsys.readouterr().err
    before = (copied.export("standard") / "manifest.csv").read_bytes()
    with pytest.raises(InputError, match="0 of 6 images of standard are in multilabel; expected images that a study"):
        run(PROPOSED.replace("val_0000", "val_0003"))
    assert (copied.export("standard") / "manifest.csv").read_bytes() == before


def test_the_card_has_the_numbers(compared: Edition) -> None:
    card = (compared.export("standard") / "README.md").read_text()
    assert "## Labels of further studies" in card
    assert "| `multilabel`: Shankar et al. 2020" in card
    assert "| 3 | 2 | none stated |" in card
    assert "| 1 | 1 | none stated for the file" in card
    assert "Images whose class at least one denies: 2.\n" in card
    assert "label_sources: [multilabel, imagenet_m]" in card
    fields = [line for line in card.splitlines() if "name: denied_by" in line]
    assert fields == ["  - {name: denied_by, dtype: string}"]


def test_catalogues_describe_the_column(compared: Edition) -> None:
    found = json.loads((compared.export("standard") / "croissant.json").read_text())
    (record_set,) = [each for each in found["recordSet"] if any("denied_by" in str(field) for field in each["field"])]
    assert any(
        "do not name the class" in field.get("description", "")
        for field in record_set["field"]
        if field["@id"].endswith("denied_by")
    )


def test_it_verifies_is_rebuilt_and_published(compared: Edition, tmp_path: Path) -> None:
    folder = compared.export("standard")
    assert verify.run(folder, decode=True).problems == []
    result = rebuild.run(folder / "manifest.csv", compared.folder / "data" / "raw" / TAR, tmp_path / "rebuilt")
    assert result.problems == []
    assert (tmp_path / "rebuilt" / "manifest.csv").read_bytes() == (folder / "manifest.csv").read_bytes()
    text = (tmp_path / "rebuilt" / "README.md").read_text()
    assert "at least one study of labels denies (`denied_by` in the manifest): 2." in text
    published = publish.run(folder, tmp_path / "published", with_images=False, key=None)
    (card,) = (tmp_path / "published").rglob("README.md")
    assert "name: denied_by, dtype: string" in card.read_text()
    assert verify.run(card.parent, decode=True).problems == []
    assert published


def test_records_are_text(compared: Edition) -> None:
    """As a DataLoader can put them together."""
    images = load("standard", compared.folder)
    assert [record[DENIED_BY] for _, _, record in images] == ["", "multilabel", "", "", "", "multilabel imagenet_m"]


def test_without_studies_there_is_no_column(export_folder: Path) -> None:
    assert DENIED_BY not in (export_folder / "manifest.csv").read_text()
    assert "further studies" not in (export_folder / "README.md").read_text()
    assert all(entry.denied_by is None for entry in read_entries(export_folder))


def test_entries_keep_their_studies() -> None:
    entries = [changed(WHOLE, denied_by=()), changed(CROPPED, denied_by=("label_errors_3of5", "multilabel"))]
    text = manifest_csv(entries, imagenet())
    assert list(check_manifest(text, "manifest.csv", imagenet()).entries.values()) == entries


@pytest.mark.parametrize("names", [("a", "a"), ("A b",), ("",)])
def test_invalid_names(names: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError):
        Entry.checked(WHOLE.model_dump() | {"denied_by": names}, imagenet())


def test_an_invalid_cell_is_a_problem_of_its_line() -> None:
    text = manifest_csv([changed(WHOLE, denied_by=("joined",))], imagenet()).replace("joined\n", "joined joined\n")
    (problem,) = check_manifest(text, "manifest.csv", imagenet()).problems
    assert str(problem).endswith("denied_by joined joined; expected names of label sources, each once")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("[kisel]", r"export\.label_sources: expected a list of distinct names among joined, finegrained"),
        ("[joined, joined]", r"export\.label_sources: expected a list of distinct names among joined"),
    ],
)
def test_invalid_params(names: str, message: str, edition: Edition, tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text(yaml_with(edition.folder / "params.yaml", f"label_sources: {names}"))
    with pytest.raises(CleansetError, match=message):
        read_params(tmp_path)


def test_a_missing_file_stops_the_export(compared: Edition, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(compared.folder, tmp_path / "edition"))
    (folder / label_sources.PLACE / "multilabel.csv").unlink()
    with pytest.raises(CleansetError, match=r"labels/multilabel\.csv: missing; .* download multilabel\.csv from https"):
        export.run(Edition(folder), "standard")


def test_own_images_have_none(compared: Edition) -> None:
    params = read_params(compared.folder)
    own = params.model_copy(update={"dataset": params.dataset.model_copy(update={"reader": "folder"})})
    with pytest.raises(CleansetError, match=r"label_sources: multilabel, imagenet_m with your own images"):
        export.read_studies(compared, own)


def test_the_published_choice_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = write_sources(tmp_path, {"multilabel": PROPOSED})
    monkeypatch.setattr(label_sources, "known_sources", lambda: sources)
    chosen = select_images(PublishedChoice(labels=tmp_path))
    assert chosen.params.export.label_sources == ["multilabel"]
    assert [each.source.name for each in chosen.studies] == ["multilabel"]
    edit(tmp_path / "multilabel.csv", "278,278", "278,279")
    with pytest.raises(CleansetError, match="the published file"):
        select_images(PublishedChoice(labels=tmp_path))
