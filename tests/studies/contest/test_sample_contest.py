"""The sample's contest comes out as its README says, its defences answer as recorded; a contest in a new edition."""

import datetime
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cleanset.edition.create import make_edition
from cleanset.errors import CleansetError
from cleanset.studies.contest.entering import check, enter
from cleanset.studies.contest.log import LOG, OBJECTS, Objects, read, read_content
from cleanset.studies.contest.programs import ProgramDefence
from cleanset.studies.contest.report import write_page
from cleanset.studies.contest.rules import ContestRules
from cleanset.studies.contest.runs import run_defence
from cleanset.studies.contest.standing import replay
from tests.browser_tab import SOURCE
from tests.checkouts import Checkout
from tests.documents import block
from tests.forked_commands import forking
from tests.report.pages import soup
from tests.studies.contest.made import standing
from tests.studies.contest.sample_copy import MAIL, copy_with_data, link_sets

PROGRAM = "reef/colors"
MODELS = ("tide/standard", "reef/corruption_robust")
CONTEST = Path("studies", "contest")


@pytest.fixture
def contest(repository: Path) -> Path:
    return repository / "studies" / "contest"


def test_its_history(contest: Path) -> None:
    """Every row of the table in its README."""
    rows = re.findall(r"(?m)^\| (20\d\d-\d\d-\d\d) \| (.*) \|$", (contest / "README.md").read_text())
    assert len(rows) == 7
    log = read(contest)
    for date, cells in rows:
        found = standing(log, date)
        status = {each.name: each.status for each in found.defences}
        shares = ", ".join(f"{team} {share}" for team, share in found.attackers.items())
        assert [cell.strip() for cell in cells.split("|")] == [*(status[name] for name in (*MODELS, PROGRAM)), shares]
    last = standing(log, "2027-01-31").defences
    assert [each.waits_for for each in last if each.name == MODELS[1]] == [("confirmations", "last_run")]


def test_its_images(contest: Path) -> None:
    images = replay(read(contest)).images.values()
    found = [(each.verdict.group, each.verdict.reasons, each.by_board) for each in images if each.verdict]
    rejected = (None, ("ambiguous",), False)
    assert found == [("fruit", (), True), rejected, ("fruit", (), False), rejected]


def output_of(commands: str, folder: Path) -> str:
    """What commands of a document print; none fails."""
    environment = os.environ | forking(SOURCE)
    done = subprocess.run(["bash", "-ec", commands], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_the_commands_of_its_documentation(built: Checkout, contest: Path, tmp_path: Path, repository: Path) -> None:
    """docs/contest.md, verbatim; they need neither a model nor the edition's data but the finished sets."""
    copy = copy_with_data(built, contest, tmp_path)
    printed = output_of(block(repository, "cleanset contest check --contest studies/contest"), tmp_path)
    assert "defences: 3; published images: 4" in printed
    assert "Standing on 2026-11-14" in printed
    assert re.search(r"tide/standard *broken *staked 2026-11-02 *grove", printed)
    assert printed.endswith("studies/contest/results/page.html\n")
    assert "orchard 1/2" in (copy / "results" / "page.html").read_text()


@pytest.mark.long
def test_the_rehearsal_of_its_documentation(built: Checkout, repository: Path, tmp_path: Path) -> None:
    """From an empty folder."""
    link_sets(built, tmp_path)
    output_of(block(repository, "mkdir -p studies/rehearsal"), tmp_path)
    contest = tmp_path / "studies" / "rehearsal"
    statuses = {each.name: each.status for each in standing(read(contest), "2026-11-14").defences}
    assert statuses == {"reef/corruption_robust": "staked", "tide/standard": "broken"}
    assert (contest / "results" / "page.html").is_file()


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
def test_its_defences_answer_as_recorded(name: str, built: Checkout, contest: Path, tmp_path: Path) -> None:
    """Only the rate differs from run to run."""
    copy = copy_with_data(built, contest, tmp_path)
    state = replay(read(copy))
    found = run_defence(copy, state, name, {})
    recorded = state.defences[name].runs[-1].entry
    assert found.model_copy(update={"images_per_minute": 0.0}) == recorded.model_copy(update={"images_per_minute": 0.0})


@pytest.mark.long
def test_its_program_answers_as_recorded(contest: Path) -> None:
    """To the published images; it runs again for each, which takes long for the clean ones."""
    state = replay(read(contest))
    objects = Objects(contest)
    recorded = state.defences[PROGRAM].answers
    answer = ProgramDefence(objects, state.defences[PROGRAM].defence, state.rules.groups().names, 1.0)
    assert answer({each: objects.path(each) for each in recorded})[0] == recorded


@pytest.mark.long
def test_the_log_is_built_from_what_came_by_mail(
    built: Checkout, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log and objects, byte for byte, from sample/contest and the answers of defences in the log."""
    copy = copy_with_data(built, repository / "studies" / "contest", tmp_path)
    monkeypatch.chdir(repository)
    runpy.run_path(str(repository / "sample" / "contest_log.py"))["main"]([str(copy)])
    assert (copy / LOG).read_bytes() == (repository / CONTEST / LOG).read_bytes()
    objects = {path.name for path in (copy / OBJECTS).iterdir()}
    assert objects == {path.name for path in (repository / CONTEST / OBJECTS).iterdir()}


@pytest.mark.long
def test_all_of_it_is_checked(built: Checkout, contest: Path, tmp_path: Path) -> None:
    """Every object is that of its name, and every line holds; the answers of models are computed again."""
    copy = copy_with_data(built, contest, tmp_path)
    log = read(copy)
    summary, last, *runs = check(copy, runs=True)
    assert summary == "defences: 3; published images: 4"
    assert last == f"lines: 30; digest of the last: {log.head}"
    assert runs == [
        "reef/colors: a program, whose runs are not computed again",
        *(f"{name}: all runs have the answers and figures that were computed again" for name in sorted(MODELS)),
    ]
    changed = log.lines[-1].text.replace('"creature"', '"abstain"')
    assert changed != log.lines[-1].text
    (copy / LOG).write_text("".join(f"{line.text}\n" for line in log.lines[:-1]) + changed + "\n")
    with pytest.raises(
        CleansetError, match=r"^line 29 \(run\), .* is abstain; expected creature, as computed: void the run"
    ):
        check(copy, runs=True)


def test_the_committed_standing_is_that_of_its_day(repository: Path) -> None:
    folder = repository / CONTEST
    asked = yaml.safe_load((folder / "params.yaml").read_text())["day"]
    written = json.loads((folder / "results" / "standing.json").read_text())
    found = standing(read(folder), asked)
    assert written["on"] == asked
    assert {name: each["status"] for name, each in written["defences"].items()} == {
        each.name: each.status for each in found.defences
    }


@pytest.mark.long
@pytest.mark.slow
def test_dvc_runs_standing_and_page_for_another_day(built: Checkout, tmp_path: Path) -> None:
    """In a clone without anything that is not in git but the data of the sample."""
    clone = built.clone_with_data(tmp_path / "clone")
    params = clone.folder / CONTEST / "params.yaml"
    params.write_text(params.read_text().replace('day: "2026-11-14"', 'day: "2026-11-12"'))
    printed = clone.run("dvc", "repro", cwd=str(CONTEST)).stdout
    assert "Standing on 2026-11-12" in printed
    assert "results/page.html" in printed


def test_a_new_edition_has_a_contest_of_birds_and_bicycles_that_can_begin(tmp_path: Path) -> None:
    make_edition(tmp_path / "mine")
    contest = tmp_path / "mine" / CONTEST
    with pytest.raises(CleansetError, match=r"log\.jsonl: missing; expected a contest's log: cleanset contest"):
        read(contest)
    rules = ContestRules.model_validate(read_content(contest / "contest.yaml"))
    assert {name: len(wnids) for name, wnids in rules.classes.items()} == {"bird": 59, "bicycle": 2}
    enter(contest, [contest / "contest.yaml"])
    page = soup(write_page(contest, read(contest), datetime.datetime.now(datetime.UTC).date()))
    assert "No image is published yet." in page.get_text()


def test_it_is_trained_without_cleanset(built: Checkout, repository: Path, tmp_path: Path) -> None:
    """A submitted defence is self-contained: train.py learns the committed weights if no cleanset is installed.

    And colors alone are as good as the contest's README says.
    """
    readme = (copy_with_data(built, repository / "studies" / "contest", tmp_path) / "README.md").read_text()
    contest = tmp_path / "mail" / "contest"
    shutil.copytree(MAIL, contest)
    weights = contest / "defences" / "reef" / "colors" / "weights.json"
    committed = json.loads(weights.read_text())
    weights.unlink()
    # a name that is None in sys.modules cannot be imported
    program = "import runpy, sys; sys.modules['cleanset'] = None; runpy.run_path(sys.argv[1], run_name='__main__')"
    train = str(weights.with_name("train.py"))
    done = subprocess.run(
        [sys.executable, "-c", program, train], cwd=contest, capture_output=True, text=True, check=True
    )
    assert json.loads(weights.read_text()) == committed  # 0.0 and -0.0 are equal: processors round to either
    (share,) = re.findall(r"correct on (\d+) of the 36 clean images", readme)
    assert done.stdout == f"{int(share) / 36:.3f} of 36 images correct, each left out once\n"
