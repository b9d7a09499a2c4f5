"""`cleanset labels`: sources and the classes of a list, an edition and a set; the published images' counts."""

import csv
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from cleanset.dataset.label_sources import SourceLabels, read_source
from cleanset.edition.paths import Edition
from cleanset.errors import InputError
from cleanset.evaluation import labels as tool
from cleanset.selection.selected import selected_images
from cleanset.sets.published.image_set import select_images
from cleanset.sets.published.lists import PublishedChoice
from tests.dataset.label_files import ANNOTATIONS, PROPOSED, write_sources
from tests.evaluation import labels_apart
from tests.evaluation.compare.command import cleanset, says
from tests.ten_images import LABELS, id_of

DOCS = Path(__file__).parents[2] / "docs"
LIST = f"image_id,class_index\n{id_of(2)},0\n{id_of(4)},278\n{id_of(6)},281\n{id_of(8)},0\n{id_of(1)},1\n"


@pytest.fixture
def sources(tmp_path: Path) -> list[SourceLabels]:
    """Two studies, one in another form; their files are small."""
    folder = tmp_path / "sources"
    found = write_sources(folder, {"finegrained": PROPOSED, "multilabel_v3": ANNOTATIONS})
    return [read_source(folder / source.file, source) for source in found.values()]


@pytest.fixture
def report(sources: list[SourceLabels], tmp_path: Path) -> tool.LabelReport:
    """The report on a list of five images."""
    path = tmp_path / "list.csv"
    path.write_text(LIST)
    return tool.report_on(tool.labelled_set(str(path), Edition(tmp_path)), sources)


def test_the_command_asks_for_the_studies_that_are_named(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(LIST)
    (tmp_path / "sources").mkdir()
    given = ("labels", "list.csv", "--sources", "sources")
    lines = {more: says(cleanset(*given, *more, cwd=tmp_path))[2] for more in ((), ("--source", "mine"))}
    assert lines[()].startswith("error: sources: no file of a label source; expected one of")
    assert lines["--source", "mine"].startswith("error: unknown label source 'mine'; expected one of joined,")


def test_counts(report: tool.LabelReport) -> None:
    assert tool.counts(report) == "class denied by at least one study: 2, by several: 2"
    table = tool.sources_table(report)
    assert [(*texts, *(each.value for each in cells)) for texts, cells in table.rows] == [
        ("finegrained", "1", "1", "1", "0", "1", "1", "2"),
        ("multilabel_v3", "1", "1", "1", "0", "1", "1", "2"),
    ]
    assert [(*texts, *(each.value for each in cells)) for texts, cells in tool.agreement_table(report).rows] == [
        ("finegrained", "multilabel_v3", "4", "4", "0", "0", "0")
    ]


def test_the_images_that_are_denied(report: tool.LabelReport) -> None:
    assert tool.images_csv(report).splitlines() == [
        "image_id,class_index,denied_by,finegrained,finegrained_classes,multilabel_v3,multilabel_v3_classes",
        f"{id_of(6)},281,finegrained multilabel_v3,unclear,3,unclear,3",
        f"{id_of(8)},0,finegrained multilabel_v3,none,,none,",
    ]


def test_two_tables_of_one_study_count_once(sources: list[SourceLabels], report: tool.LabelReport) -> None:
    one, other = sources
    same_study = tool.LabelReport(
        name="",
        sources=[one, SourceLabels(source=replace(other.source, study=one.source.study), labels=other.labels)],
        images=report.images,
        agreements=(),
    )
    assert tool.counts(same_study) == "class denied by at least one study: 2, by several: 0"


def test_how_many_images_a_study_has(
    sources: list[SourceLabels], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "list.csv"
    for rows, matched in ((f"{id_of(2)},0\n{id_of(9)},5\n", 1), (f"{id_of(9)},5\n", 0)):
        path.write_text(f"image_id,class_index\n{rows}")
        found = tool.labelled_set(str(path), Edition(tmp_path))
        if matched:
            tool.report_on(found, sources)
            assert capsys.readouterr().err == f"1 of 2 images of {path} are in finegrained, multilabel_v3\n"
        else:
            with pytest.raises(
                InputError, match=f"^0 of 1 images of {path} are in finegrained, multilabel_v3; expected"
            ):
                tool.report_on(found, sources)


def test_json(report: tool.LabelReport) -> None:
    found = json.loads(json.dumps(tool.as_json(report)))
    assert (found["images"], found["denied"]) == (5, 2)
    assert found["sources"][0]["licence"] == report.sources[0].source.licence
    assert found["sources"][0]["findings"]["among"] == 1


def test_an_edition(edition: Edition, sources: list[SourceLabels]) -> None:
    """All its images that have one label; the original and the reassessed labels take part in the agreements."""
    found = tool.report_on(tool.labelled_set(None, edition), sources)
    assert {image.image_id for image in found.images} <= {id_of(number) for number in range(1, len(LABELS) + 1)}
    pairs = [(each.first, each.second) for each in found.agreements]
    assert pairs[:3] == [("ilsvrc", "real"), ("ilsvrc", "finegrained"), ("ilsvrc", "multilabel_v3")]
    assert found.agreements[1].images == 4


def test_own_images_have_no_studies(own: Edition) -> None:
    with pytest.raises(InputError, match="your own images, which no study has labelled"):
        tool.labelled_set(None, own)


def test_a_role_goes_with_a_list(edition: Edition) -> None:
    with pytest.raises(InputError, match="--role standard: goes with a list"):
        tool.labelled_set("standard", edition, "standard")


@pytest.mark.long
def test_the_program_apart_finds_the_same(tmp_path: Path) -> None:
    """tests/evaluation/labels_apart.py, which imports nothing of cleanset, on small files about published images."""
    chosen = selected_images(select_images(PublishedChoice()).filled.selection)
    one, two, three, *others = chosen
    of_images = {
        one.image_id: str(one.class_index),
        two.image_id: f'"{two.class_index}, {two.class_index + 1}"',
        three.image_id: str(three.class_index + 1),
        others[0].image_id: "",
    }
    text = "".join(["id,proposed_labels\n", *(f"{name}.JPEG,{classes}\n" for name, classes in of_images.items())])
    joined = "".join(["id,proposed_labels\n", *(f"{each.image_id}.JPEG,1\n" for each in [*others[1:], one])])
    contents = {name: joined if name == "joined" else text for name in ("joined", *labels_apart.TABLES)}
    found = write_sources(tmp_path, contents)
    table = labels_apart.table(labels_apart.loaded(tmp_path)).set_index("image_id")
    images = [(each.image_id, each.class_index) for each in chosen]
    report = tool.report_on(
        tool.LabelledSet(name="published", images=images, own={}),
        [read_source(tmp_path / found["finegrained"].file, found["finegrained"])],
    )
    expected = {"same": "names the class", "among": "names the class", "other": "names others", "none": "names none"}
    assert table["finegrained"].to_dict() == {
        image.image_id: expected[image.findings["finegrained"]]
        for image in report.images
        if image.image_id in {two.image_id, three.image_id, others[0].image_id}
    }


def test_the_published_images_in_the_docs() -> None:
    """docs/published_labels.csv has published images in their classes, and the numbers that docs/labels.md states."""
    chosen = select_images(PublishedChoice())
    class_of = {each.image_id: each.class_index for each in selected_images(chosen.filled.selection)}
    with (DOCS / "published_labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({row["image_id"] for row in rows}) == len(rows)
    assert all(class_of[row["image_id"]] == int(row["class_index"]) for row in rows)
    studies = ("finegrained", "label_errors", "multilabel")
    counts = {name: Counter(row[name] for row in rows) for name in (*studies, "label_errors_3of5")}
    denied = [sum(row[name] in ("names none", "names others") for name in studies) for row in rows]
    numbers = [len(class_of), len(rows), sum(map(bool, denied)), sum(each > 1 for each in denied)]
    assert numbers == [2966, 260, 117, 7]
    text = (DOCS / "labels.md").read_text()
    assert f"{numbers[1]} of the {numbers[0]:,}" in text
    for name, of_study in counts.items():
        others = of_study["names others"]
        none = of_study["names none"]
        assert f"| `{name}` | {others + none} | {others} | {none} |" in text
