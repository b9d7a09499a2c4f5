"""A damaged output of a stage, changed behind DVC's back, is refused by its reader: one line names file and remedy."""

import ast
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.review.audit import AuditResult
from cleanset.review.audit_files import audit_json, read_audit_json
from cleanset.scoring import record as scores
from cleanset.sets.published import source_images
from cleanset.studies.attacks.warnings import read_warnings
from cleanset.studies.robustness import digests, measuring
from cleanset.studies.robustness.perturbations.family import PERTURBATION_FAMILY
from cleanset.studies.training import finished
from cleanset.studies.training.study import RunFiles
from cleanset.tables import SHARED, read_table
from tests.ten_images import SCORED

SHA = "0123456789abcdef" * 4
AUDIT = AuditResult(
    model="standard", kind="fixed", images=3, drawn=3, seen=3, flawed=1, auditors=("cy",), at_most=1, corrected=None,
    sensitivity=0.5, now=3, left=0, came=0, unmeasured=(),
)  # fmt: skip
LISTED: dict[str, Any] = {
    "role": "standard", "source": "lists", "name": "mine", "list_sha256": SHA, "beyond_sha256": None, "images": 4,
    "listed": 3, "beyond": [],
}  # fmt: skip
WARNED: dict[str, Any] = {
    "role": "mine", "images": 4, "parameters": {"eps": 0.5}, "warnings": [{"sign": "no_gradient", "text": "4 of 4"}],
    "not_told": [],
    "candidates": [
        {"file": "a.png", "search": "pgd of 9 steps", "was_correct": True, "is_error": True, "l2": 0.5, "linf": 0.1,
         "png_sha256": "a" * 64, "png": "aaaa"},
    ],
}  # fmt: skip
SHARED_ROWS = {"image_id": ["ILSVRC2012_val_00000001"], "class_index": [1]}
DIGESTS = {"file": ["a.png"], "change": ["tilt"], "frame": [1], "sha256": [SHA]}
RECORD_OF_RUN = {
    "epoch": 2, "epochs": 3, "parameters_in_millions": 0.5, "training_images": 8, "kept": "the last epoch",
}  # fmt: skip
HISTORY = "epoch,step,train_loss\n1,2,0.5\n2,4,0.25\n"
TESTED = "scenario,class_index,images,correct\noriginal,0,3,2\n"


def parquet(columns: Mapping[str, Any], **types: str) -> bytes:
    """A Parquet file with these columns, all without nulls."""
    content = pa.Table.from_pandas(pd.DataFrame(columns).astype(types), preserve_index=False)
    fields = [
        each.with_nullable(False).with_type(pa.string() if each.type == pa.large_string() else each.type)
        for each in content.schema
    ]
    out = io.BytesIO()
    pq.write_table(content.cast(pa.schema(fields)), out, write_page_checksum=True)
    return out.getvalue()


def changed(content: Mapping[str, Any], **values: object) -> bytes:
    return json.dumps({**content, **values}).encode()


def without(content: Mapping[str, Any], key: str) -> bytes:
    return json.dumps({name: value for name, value in content.items() if name != key}).encode()


def of_run(path: Path) -> object:
    """A run whose other files are whole."""
    for name, text in (("record.json", json.dumps(RECORD_OF_RUN)), ("history.csv", HISTORY), ("test.csv", TESTED)):
        if path.name != name:
            (path.parent / name).write_text(text)
    return finished.read_fold(RunFiles(path.parent), "one", "fold_01")


COMMON_MEASURES = ("measures/models.csv", "measures/notes.csv", "measures/flips_by_frame.csv")


def measures(path: Path) -> object:
    """The tables of one family, all but one whole."""
    for name, columns in measuring.MEASURE_FILES.items():
        if name.startswith("measures/perturbation") or name in COMMON_MEASURES:
            other = path.parent / Path(name).name
            if other != path:
                other.write_text(",".join(columns) + "\n" + ",".join("1" for _ in columns) + "\n")
    return measuring.read_measures(path.parent, [PERTURBATION_FAMILY], None)


@dataclass(frozen=True)
class Output:
    """A file that a stage writes: its content, what reads it, and damages of its values."""

    name: str
    content: bytes
    read: Callable[[Path], object]
    damages: Mapping[str, bytes] = field(default_factory=dict)
    is_optional: bool = False


OUTPUTS = {
    "tables.read_table": [
        Output(
            "shared.parquet",
            parquet(SHARED_ROWS, class_index="int16"),
            lambda path: read_table(path, SHARED, imagenet()),
            {
                "another type": parquet(SHARED_ROWS),
                "a missing column": parquet({"image_id": ["ILSVRC2012_val_00000001"]}),
                "an extra column": parquet(SHARED_ROWS | {"x": [1]}, class_index="int16"),
                "an unknown class": parquet(SHARED_ROWS | {"class_index": [1000]}, class_index="int16"),
            },
        ),
    ],
    "review.audit_files.read_audit_json": [
        Output(
            "standard.json", audit_json(AUDIT).encode(), read_audit_json,
            {
                "a missing key": without(asdict(AUDIT), "at_most"),
                "an extra key": changed(asdict(AUDIT), x=1),
                "text for a number": changed(asdict(AUDIT), images="3"),
                "a fraction of images": changed(asdict(AUDIT), flawed=0.5),
                "text for a list": changed(asdict(AUDIT), auditors="cy"),
                "another kind": changed(asdict(AUDIT), kind="half"),
                "no number": changed(asdict(AUDIT), sensitivity=float("nan")),
            },
        ),
    ],
    "scoring.record.read_record": [
        Output(
            "standard.json", json.dumps(SCORED).encode(), scores.read_record,
            {
                "a missing key": without(SCORED, "images"),
                "an extra key": changed(SCORED, x=1),
                "text for a number": changed(SCORED, images="ten"),
                "an invalid digest": changed(SCORED, weights_sha256="5"),
                "another source": changed(SCORED, source="lists"),
                "no number": changed(SCORED, images=float("nan")),
            },
        ),
        Output(
            "listed.json", json.dumps(LISTED).encode(), scores.read_record,
            {"a missing key": without(LISTED, "beyond"), "a negative number": changed(LISTED, images=-1)},
        ),
    ],
    "studies.attacks.warnings.read_warnings": [
        Output(
            "mine.json", json.dumps(WARNED).encode(), read_warnings,
            {
                "a missing key": without(WARNED, "images"),
                "an extra key": changed(WARNED, x=1),
                "a sign without a text": changed(WARNED, warnings=[{"sign": "no_gradient"}]),
                "a candidate without a file": changed(WARNED, candidates=[{"file": "a.png"}]),
            },
        ),
    ],
    "studies.robustness.digests.read_digests": [
        Output(
            "perturbations.parquet", parquet(DIGESTS, frame="int8"),
            lambda path: digests.read_digests(path, PERTURBATION_FAMILY, imagenet()),
            {
                "another family": parquet({key: DIGESTS[key] for key in ("file", "change", "sha256")}),
                "a frame beyond the last": parquet(DIGESTS | {"frame": [41]}, frame="int8"),
                "an invalid digest": parquet(DIGESTS | {"sha256": [SHA.upper()]}, frame="int8"),
            },
        ),
    ],
    "studies.robustness.digests.read_versions": [
        Output("versions.json", b'{"numpy": "2.4.6"}', digests.read_versions, {"a number": b'{"numpy": 2.4}'}),
    ],
    "studies.robustness.measuring.read_record": [
        Output(
            "standard.json", b'{"parameters": 3}', measuring.read_record,
            {"a missing key": b"{}", "text for a number": b'{"parameters": "3"}'},
        ),
    ],
    "studies.robustness.measuring.read_measures": [
        Output(
            "models.csv", b"model,parameters\n1,1\n", measures,
            {
                "text for a number": b"model,parameters\n1,x\n",
                "an extra column": b"model,parameters,x\n1,1,1\n",
                "a missing column": b"model\n1\n",
            },
        ),
    ],
    "studies.training.finished.read_fold": [
        Output(
            "record.json", json.dumps(RECORD_OF_RUN).encode(), of_run,
            {"a missing key": b'{"epoch": 2}', "text for a number": changed(RECORD_OF_RUN, epoch="2")},
        ),
        Output("history.csv", HISTORY.encode(), of_run, {"a missing column": HISTORY.replace("step", "x").encode()}),
        Output(
            "test.csv", TESTED.encode(), of_run, {"a missing column": TESTED.replace("images", "x").encode()},
            is_optional=True,
        ),
    ],
    "sets.published.source_images.read_digests": [
        Output(
            "digests.csv",
            f"image_id,size,sha256\narchive,9,md5:{SHA[:32]}\nILSVRC2012_val_00000001,9,{SHA}\n".encode(),
            source_images.read_digests,
            {
                "no archive": f"image_id,size,sha256\nILSVRC2012_val_00000001,9,{SHA}\n".encode(),
                "an extra column": f"image_id,size,sha256,x\narchive,9,md5:{SHA[:32]},1\n".encode(),
                "no images": f"image_id,size,sha256\narchive,9,md5:{SHA[:32]}\n".encode(),
            },
        ),
    ],
}  # fmt: skip
"""By function."""

ELSEWHERE = {
    "edition.labels.read_labelled_index": "as read_table: tests/selection/test_label_of_study.py",
    "dataset.pinned.read_pinned": "any other line is refused: tests/review/test_accepted.py",
    "scoring.validity.read_finished": "a damaged record means computing again: tests/scoring/test_validity.py",
    "sets.folder.read_checksums": "verified file by file: tests/sets/test_verify.py",
    "sets.folder.read_entries": "as read_manifest: tests/sets/test_manifest.py, tests/hostile",
    "sets.folder.read_image": "by its SHA-256: tests/sets/test_load.py",
    "sets.folder.read_regular_file": "bytes: tests/sets/test_load.py",
    "sets.folder.read_release": "a set without one is a set all the same: tests/sets/test_release.py",
    "sets.manifest_checks.read_manifest": "tests/sets/test_manifest.py, tests/hostile",
    "studies.realness.plan_files.read_plan": "by digests: tests/studies/realness/test_plan_files.py",
    "studies.training.fold_data.read_fold": "tests/studies/training/test_train.py",
}
"""Readers of stages' outputs that other tests show, and what they do."""

OF_PEOPLE = [
    "dataset.archives.read_md5_list",
    "dataset.folder.read_images",
    "dataset.folder.read_labels",
    "dataset.label_sources.read_source",
    "dataset.label_sources.read_sources",
    "dataset.labels.read_ground_truth",
    "dataset.labels.read_original_labels",
    "dataset.labels.read_reassessed",
    "edition.about.read_about",
    "reproduce.imagenet_c.read_published",
    "stages.export.read_columns",
    "stages.export.read_studies",
    "edition.params.read_params",
    "evaluation.compare.result_files.read_results",
    "evaluation.factors.read_annotations",
    "evaluation.image_lists.read_list",
    "evaluation.predictions.read_predictions",
    "review.audit_files.read_audit_votes",
    "review.audit_files.read_plan",
    "review.carried.read_old_reviews",
    "review.gold_files.read_gold_key",
    "review.opinions.read_look_again",
    "review.opinions.read_opinions",
    "review.store.read_file",
    "review.store.read_reviews",
    "review.store.read_votes",
    "scoring.brought.read_scores",
    "scoring.checkpoints.read_tensors",
    "sets.from_verdicts.read_verdicts",
    "sets.published.lists.read_extras",
    "sets.published.lists.read_top5",
    "studies.attacks.study.read_attack_params",
    "studies.contest.judge_page.session.read_answers",
    "studies.contest.log.read_content",
    "studies.contest.models.read_image",
    "studies.realness.plan_files.read_texts",
    "studies.realness.ratings.read_ratings",
    "studies.robustness.families.read_study_params",
    "studies.robustness.image_sets.read_prompts",
    "studies.robustness.scenarios.masks.read_png",
    "studies.robustness.scenarios.mask_formats.read_regions",
    "studies.training.images.read_unchanged",
    "studies.training.params.read_training_params",
    "studies.training.segmentation.examples.read_class_ids",
    "studies.training.segmentation.examples.read_label_map",
]
"""Readers of what people or other programs write: archives, labels, params, reviews, models, masks, contests."""

OF_NO_FILE = [
    "evaluation.measures.read_measures",
    "plumbing.csv_files.read_frame",
    "plumbing.csv_files.read_rows",
    "dataset.archives.read_checksums",
    "plumbing.files.read_bytes",
    "plumbing.files.read_known",
    "plumbing.files.read_text",
    "plumbing.json_files.read_json",
    "review.applied.read_inputs",
    "review.audit_files.read_audit_files",
    "review.status.read_decisions",
    "sets.fetching.http.read_over_http",
    "sets.folder.read_class_table",
    "sets.folder.read_set",
    "stages.export.read_inputs",
    "stages.preprocess.read_inputs",
    "stages.score.read_inputs",
    "plumbing.yaml_files.read_study_yaml",
    "plumbing.yaml_files.read_yaml",
    "studies.realness.plan.read_trials",
]
"""Readers of any file, of several outputs by the functions above, or of tables in memory."""


@pytest.mark.long
def test_every_reader_is_listed(repository: Path) -> None:
    """A new `read_…` belongs into the table if it reads what a stage writes."""
    source = repository / "src" / "cleanset"
    found = {
        ".".join((*path.relative_to(source).with_suffix("").parts, each.name))
        for path in source.rglob("*.py")
        for each in ast.parse(path.read_text()).body
        if isinstance(each, ast.FunctionDef) and each.name.startswith("read_")
    }
    listed = [*OUTPUTS, *ELSEWHERE, *OF_PEOPLE, *OF_NO_FILE]
    assert sorted(listed) == sorted(found)
    for text in ELSEWHERE.values():
        for name in text.partition("tests/")[2].replace(",", "").split():
            assert (repository / "tests" / name.removeprefix("tests/")).exists(), name


ALL = [(name, output) for name, outputs in OUTPUTS.items() for output in outputs]


@pytest.mark.parametrize(("name", "output"), ALL, ids=lambda each: getattr(each, "name", each))
def test_what_is_whole_is_read(name: str, output: Output, tmp_path: Path) -> None:
    path = tmp_path / output.name
    path.write_bytes(output.content)
    assert output.read(path) is not None


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut off": lambda content: content[: len(content) // 5],
    "not UTF-8": lambda content: b"\xff\xfe" + content,
    "of another format": lambda content: b"\x89PNG\r\n",
    "a list": lambda content: b"[1]",
    "deep": lambda content: b"[" * 5000,
}


@pytest.mark.parametrize(
    ("name", "output", "damage"),
    [
        (name, output, damage)
        for name, output in ALL
        for damage in (*DAMAGES, *output.damages, *([] if output.is_optional else ["missing"]))
    ],
    ids=lambda each: getattr(each, "name", each),
)
def test_what_is_damaged_is_refused(name: str, output: Output, damage: str, tmp_path: Path) -> None:
    path = tmp_path / output.name
    if damage != "missing":
        path.write_bytes(DAMAGES[damage](output.content) if damage in DAMAGES else output.damages[damage])
    with pytest.raises(CleansetError) as error:
        output.read(path)
    message = str(error.value)
    assert message.startswith(str(path))
    assert message.isprintable()
    assert any(words in message for words in ("dvc", "expected", "digests", "a newer version"))
