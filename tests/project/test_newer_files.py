"""Every kind of file that cleanset writes and reads again: one of a newer version is refused with the same line."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cleanset.classes import CLASS_COLUMNS, imagenet, parse_class_table
from cleanset.edition.about import read_about
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.comparability import RESULTS_FORMAT
from cleanset.evaluation.compare.result_files import read_results
from cleanset.plumbing.json_files import json_record
from cleanset.review import audit_files
from cleanset.review.audit import AuditPlan
from cleanset.review.file_format import parse_reviews
from cleanset.review.gold_files import GOLD_COLUMNS, read_gold_key
from cleanset.review.opinions import look_again_columns, read_look_again
from cleanset.scoring.record import read_record
from cleanset.scoring.validity import MadeFrom, read_finished
from cleanset.sets.description import rejected_columns, rejections
from cleanset.sets.manifest import ManifestForm
from cleanset.sets.manifest_checks import read_manifest
from cleanset.sets.published.source_images import DIGEST_COLUMNS, read_digests
from cleanset.stages.report import totals
from cleanset.studies.attacks.warnings import read_warnings
from cleanset.studies.contest import log
from cleanset.studies.contest.judge_page.session import read_answers
from cleanset.studies.realness import plan_files, study_server
from cleanset.studies.realness.plan import read_trials
from cleanset.studies.realness.ratings import ANSWER_COLUMNS, TRIAL_COLUMNS, key_columns, parse_key, read_ratings
from cleanset.studies.robustness.digests import read_versions
from cleanset.studies.robustness.image_sets import _sources_before
from cleanset.studies.training.finished import record_of_weights
from cleanset.tables import SHARED, read_table

ROOT = Path(__file__).parents[2]
FORMATS = ROOT / "docs" / "formats.md"
IMAGENET = imagenet()
LOG = (ROOT / "studies" / "contest" / "log.jsonl").read_text().splitlines()[0]


def with_number(content: str) -> Callable[[Path, int], None]:
    """Writes a file with a number above 1 in its key `format`; the content is JSON, which is YAML, too."""

    def write(path: Path, number: int) -> None:
        key = {"format": number} if number > 1 else {}
        _write(path, json.dumps(json.loads(content) | key, separators=(",", ":")) + "\n")

    return write


def with_columns(known: Sequence[str], separator: str = ",") -> Callable[[Path, int], None]:
    """Writes a table without rows that has these columns, and as many further ones as the number is above 1."""

    def write(path: Path, number: int) -> None:
        _write(path, separator.join([*known, *(f"later{each}" for each in range(1, number))]) + "\n")

    return write


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def write_parquet(path: Path, number: int) -> None:
    fields = [*SHARED.schema, *(pa.field(f"later{each}", pa.int64()) for each in range(1, number))]
    pq.write_table(pa.schema(fields).empty_table(), path)


def of_text(read: Callable[..., object], *further: object) -> Callable[[Path], object]:
    return lambda path: read(path.read_text(), path.name, *further)


def read_audit_order(path: Path) -> object:
    plan = AuditPlan(IMAGENET, model="m", kind="fixed", seed="s", drawn=0, images=())
    kept = path.read_text()
    audit_files.write_plan(path.parents[1], plan)
    path.write_text(kept)
    return audit_files.read_plan(path.parents[1], "m", IMAGENET)


JSON = with_number("{}")
KINDS: dict[str, tuple[str, Callable[[Path, int], None], Callable[[Path], object]]] = {
    "`params.yaml`": ("params.yaml", JSON, lambda path: read_params(path.parent)),
    "`card.yaml`": ("card.yaml", JSON, read_about),
    "review files": ("n01443537.yaml", JSON, lambda path: parse_reviews(path.read_text(), path.stem, "r", IMAGENET)),
    "`gold.csv`": (
        "gold.csv", with_columns(("wnid", *GOLD_COLUMNS)), lambda path: read_gold_key(path.parent, IMAGENET),
    ),
    "audit plans": ("audit/m.yaml", JSON, lambda path: audit_files.read_plan(path.parents[1], "m", IMAGENET)),
    "orders of audits": ("audit/m.csv", with_columns(("wnid", *audit_files.DRAW_COLUMNS)), read_audit_order),
    "`look_again.csv`": (
        "a.csv", with_columns(look_again_columns("wnid")), lambda path: read_look_again(path, {}, IMAGENET),
    ),
    "Parquet tables": ("shared.parquet", write_parquet, lambda path: read_table(path, SHARED, IMAGENET)),
    "records of scores": ("m.json", JSON, read_record),
    "totals and other metrics": (
        "metrics/totals/t.json", JSON, lambda path: totals(Edition(path.parents[2])),
    ),
    "`manifest.csv`": (
        "manifest.csv", with_columns(ManifestForm().columns(IMAGENET)), of_text(read_manifest, IMAGENET),
    ),
    "`rejected.csv`": ("rejected.csv", with_columns(rejected_columns(IMAGENET)), of_text(rejections, IMAGENET)),
    "`classes.tsv`": ("classes.tsv", with_columns(CLASS_COLUMNS, "\t"), of_text(parse_class_table)),
    "digests of ImageNet's images": ("digests.csv", with_columns(DIGEST_COLUMNS), read_digests),
    "results": ("results.json", with_number('{"models": []}'), read_results),
    "records of predictions, answers and attacks": (
        "m.json", JSON, lambda path: read_finished(path, MadeFrom({"precision": "float64"})),
    ),
    "records of gradient masking": ("w.json", JSON, read_warnings),
    "versions of digests": ("versions.json", JSON, read_versions),
    "records of generated images": ("made_with.json", JSON, lambda path: _sources_before(path, {})),
    "records of trainings": ("record.json", JSON, lambda path: record_of_weights(path, path)),
    "costs of trainings": ("cost.json", JSON, lambda path: json_record(path, "the costs of a run", "remove it", ())),
    "plans of studies of people": ("plan.json", JSON, lambda path: plan_files.read_plan(path.parent)),
    "keys of such plans": ("key.csv", with_columns(key_columns("wnid")), of_text(parse_key)),
    "lists of such plans": ("trials.csv", with_columns(TRIAL_COLUMNS), of_text(read_trials)),
    "answers of people": (
        "answers.csv", with_columns(ANSWER_COLUMNS), lambda path: read_ratings({path.name: path.read_text()}, {}),
    ),
    "people of a study": (
        "people.csv", with_columns(study_server.PEOPLE_COLUMNS),
        lambda path: list(study_server._rows(path, study_server.PEOPLE_COLUMNS)),
    ),
    "contest files": ("2026-01-01.yaml", JSON, read_answers),
    "the log of a contest": ("log.jsonl", with_number(LOG), lambda path: log.read(path.parent)),
}  # fmt: skip
"""By the name in the table of docs/formats.md the name of a file, its writer and its reader."""


def listed() -> dict[str, int]:
    """The kinds in the table of the docs, with today's number."""
    table = FORMATS.read_text().partition("<!-- formats -->")[2].partition("<!-- /formats -->")[0]
    rows = re.findall(r"^\| (.+?) \| (?:key|columns|key of each line) \| (\d+) \|", table, re.MULTILINE)
    return {name: int(number) for name, number in rows}


def test_the_documentation_has_every_kind() -> None:
    assert listed().keys() == KINDS.keys()
    assert listed()["results"] == RESULTS_FORMAT


@pytest.mark.parametrize("kind", KINDS)
def test_one_of_a_newer_version_is_refused(kind: str, tmp_path: Path) -> None:
    name, write, read = KINDS[kind]
    today = listed()[kind]
    write(tmp_path / name, today + 1)
    has = "columns later1" if Path(name).suffix in (".csv", ".tsv", ".parquet") else f"format {today + 1}"
    line = rf"^.+: written by a newer version of cleanset: {has}; this version reads .+: install a newer one$"
    with pytest.raises(CleansetError, match=line):
        read(tmp_path / name)


@pytest.mark.parametrize("kind", KINDS)
def test_one_of_today_is_not_newer(kind: str, tmp_path: Path) -> None:
    name, write, read = KINDS[kind]
    write(tmp_path / name, listed()[kind])
    problem = ""
    try:
        read(tmp_path / name)
    except CleansetError as error:  # it has no content
        problem = str(error)
    assert "newer version" not in problem
