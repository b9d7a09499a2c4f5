"""Scripts in the texts of strangers: on every page that the package writes or serves they are text.

Class names, notes, reasons, ids, names of files, models and teams, and what publishers say of a set are planted as they
come in; and every text that a template prints has a script behind it, whoever wrote it. A template, or code that makes
HTML, that no test here shows fails the last test.
"""

import json
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch
from urllib.parse import quote

import pandas as pd
import pytest
from markdown_it import MarkdownIt
from playwright.sync_api import Browser
from typer.testing import CliRunner

import cleanset
from cleanset.classes import imagenet
from cleanset.cli import app
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.edition.readme import readme
from cleanset.evaluation.function import Results
from cleanset.evaluation.measures import measures_frame
from cleanset.evaluation.notes import Note
from cleanset.evaluation.table import MeasureTable
from cleanset.report import hints, look
from cleanset.review.page.view import note_buttons
from cleanset.sets import publish, rebuild
from cleanset.studies.attacks.evaluation_tables import page_of
from cleanset.studies.attacks.page import attacks_page
from cleanset.studies.contest.judge_page.server import render as judge_html
from cleanset.studies.contest.judge_page.tab import JudgeKey, JudgeTab
from cleanset.studies.robustness import pages as robustness_pages
from cleanset.studies.robustness.families import StudyParams, family_named
from cleanset.studies.robustness.family import PagesData, SheetImage
from cleanset.studies.robustness.measuring import NOTE_COLUMNS
from cleanset.studies.robustness.results import DIFFERENCE_COLUMNS, LINE_COLUMNS
from cleanset.studies.training import summary
from cleanset.web import guard
from tests import own_edition
from tests.once import once
from tests.review.page.reviewing import TabAlone, serve
from tests.studies.attacks import test_comparison as of_attacks
from tests.studies.attacks import test_page as of_attack_study
from tests.studies.contest import test_page as of_contest
from tests.studies.contest.judging_page import session_of
from tests.studies.contest.made import JUDGES, appeal, decision
from tests.studies.contest.on_disk import OnDisk
from tests.studies.realness.conftest import attacked, export_folder, planned  # noqa: F401
from tests.studies.robustness.corruptions.test_measures import study as corruptions
from tests.studies.robustness.perturbations.test_measures import study as perturbations
from tests.studies.robustness.scenarios.test_measures import study as scenarios
from tests.studies.robustness.watermarks.test_measures import ANSWERS
from tests.studies.robustness.watermarks.test_measures import study as watermarks
from tests.studies.training.finished_study import finished_study
from tests.web.planted import SCRIPT, SOURCE, check, opened, own_with_scripts, planting, written

pytestmark = [pytest.mark.slow, pytest.mark.long]

NAME = SCRIPT.replace("=", "")
"""As the name of a model, which ends at an equals sign."""


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[Path]]:
    """The templates that a test uses, in which every text has a script behind it."""
    with planting(monkeypatch) as found:
        yield found


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """An edition with scripts; only its report may be written."""
    return Edition(once(tmp_path_factory, "planted", own_with_scripts) / "own")


def report(own: Edition, folder: Path) -> list[Path]:
    own_edition.run(own, "report")
    look.write(str(own.export("images")), folder / "look")
    hints.write(str(own.export("images")), folder / "hints.html", text=False)
    return [*own.report.rglob("*.html"), folder / "look" / "index.html", folder / "hints.html"]


def review(own: Edition, folder: Path) -> list[Path]:
    edition = shutil.copytree(own.folder.parent, folder / "copy") / "own"
    found = [note_buttons()]
    for reviewer in ("ada", "eve", "board"):
        for keys in ((), ("?",), ("h",), ("Enter",), ("x",), ("r",), ("b",), ("f",), ("c",)):
            tab = TabAlone(edition, reviewer, at=1)
            found.append("".join(tab.type(*keys).values()))
    ended = TabAlone(edition, "ada")
    found.append("".join(ended.type().values()))
    return [written(folder, str(place), html) for place, html in enumerate(found)]


def evaluation(own: Edition, folder: Path) -> list[Path]:
    export = own.export("images")
    images = cleanset.load("images", own.folder)
    rows = [(record["file"], index) for _, index, record in images]
    pd.DataFrame(rows, columns=["image", "class_index"]).to_csv(folder / "p.csv", index=False)
    asked = [str(export), "--predictions", f"{NAME}={folder / 'p.csv'}", "--report", str(folder / "page")]
    done = CliRunner().invoke(app, ["evaluate", *asked, "--hub", str(folder / "hub")])
    assert done.exit_code == 0, done.output
    results = cleanset.evaluate(str(folder / "p.csv"), images)
    named = Results(replace(results.images, name=SCRIPT), replace(results.model, name=SCRIPT), results.predictions)
    cards = [markdown(folder, path.read_text()) for path in (folder / "hub").iterdir()]
    in_notebook = named._repr_html_() + images._repr_html_()
    return [folder / "page" / "index.html", written(folder, "notebook", in_notebook), *cards]


def markdown(folder: Path, text: str) -> Path:
    """A page with the HTML that readers of Markdown make; GitHub and the hub would take scripts out, others not."""
    body = text.split("\n---\n", 1)[1] if text.startswith("---\n") else text
    return written(folder, text, MarkdownIt("commonmark").enable("table").render(body))


def texts(own: Edition, folder: Path) -> list[Path]:
    export = own.export("images")
    without = publish.run(export, folder / "without", False, None).folder
    released = publish.run(export, folder / "with", True, None).folder
    rebuild.run(without, own.folder.parent / "images", folder / "again")
    described = json.loads((released / ".zenodo.json").read_text())
    html = f"<p>{described['notes']}</p>{described['description']}"
    table = MeasureTable((SCRIPT,), (SCRIPT,), [((SCRIPT,), [])], SCRIPT, (Note("set", SCRIPT),))
    params = read_params(own.folder)
    cards = [(place / "README.md").read_text() for place in (export, without, released, folder / "again")]
    return [
        written(folder, html, html),
        *(markdown(folder, text) for text in (*cards, readme(params, "own"), table.in_form("markdown"))),
    ]


def robustness(own: Edition, folder: Path) -> list[Path]:
    found = []
    for name, study in {
        "corruptions": corruptions(), "perturbations": perturbations(), "scenarios": scenarios(),
        "watermarks": watermarks(ANSWERS),
    }.items():  # fmt: skip
        family = family_named(name)
        if name == "scenarios":
            images = replace(study.images, is_whole=True)
        else:
            images = replace(study.images, selections=["union"])
        whole = replace(study, images=images)
        tables = {
            name: measures_frame(list(whole.lines()), LINE_COLUMNS),
            family.differences: measures_frame(list(whole.differences()), DIFFERENCE_COLUMNS),
            "models": pd.DataFrame([(role, 5) for role in whole.answers], columns=["model", "parameters"]),
            "notes": pd.DataFrame(
                [(name, each, "set", SCRIPT) for each in whole.images.selections], columns=NOTE_COLUMNS
            ),
            **whole.tables(),
        }
        section = {"names": list(whole.wanted.names)} if hasattr(whole, "wanted") else {}
        data = PagesData(
            roles=list(whole.answers),
            classes=whole.images.classes,
            params=StudyParams.model_validate({name: section}),
            tables=tables,
            sheets={name: [SheetImage(SCRIPT, SCRIPT, defaultdict(lambda: SCRIPT))]},
            notices={name: SCRIPT},
            masks=pd.DataFrame({"left_out": [None], "origin": ["person"]}),
            published_top1={},
        )
        with patch.object(robustness_pages, "families_in", lambda _, family=family: [family]):
            pages = robustness_pages.pages(data)
        found += [written(folder, f"{name} {page}", html) for page, html in pages.items()]
    return found


def attacks(own: Edition, folder: Path) -> list[Path]:
    row = of_attack_study.ROW | dict.fromkeys(("image_id", "name", "before", "after"), SCRIPT)
    study = of_attack_study.data(sheets={("pgd", "mine"): [row]})
    evaluated = of_attacks.attacked(**{"strong": (), NAME: (0, 1)})
    images = replace(evaluated.images, name=SCRIPT, limits=[SCRIPT])
    evaluated = replace(evaluated, request=replace(evaluated.request, open_images=lambda: images))
    return [
        written(folder, "study", attacks_page(study, imagenet())),
        written(folder, "evaluated", page_of(evaluated)),
    ]


def training(own: Edition, folder: Path) -> list[Path]:
    study = finished_study(folder)
    summary.run(study)
    return list(study.report.glob("*.html"))


def contest(own: Edition, folder: Path) -> list[Path]:
    said = appeal("y", "red")
    said = said._replace(data={**said.data, "statement": SCRIPT})
    log = of_contest.log(appeals=[said], decisions=[decision("y", "invalid", reason=SCRIPT)])
    text = of_contest.html(log)
    made = OnDisk(folder / "made")
    made.story = [each for each in made.story if each[1] != "answers"]
    made.write()
    tab = JudgeTab(session_of(made.folder, JUDGES[0], "2026-11-14"))
    judging = [judge_html(tab)]
    for key in ("Enter", "4", "1"):
        tab.press(JudgeKey(key=key, number=0, subject=tab.question, seen={"image": 1.0}))
        judging.append(judge_html(tab))
    tab.notice = SCRIPT
    judging.append(judge_html(tab))
    tab.session.tasks = tab.session.tasks[:0]
    judging.append(judge_html(tab))
    return [written(folder, "contest", text), *(written(folder, html, html) for html in judging)]


def refusals(own: Edition, folder: Path) -> list[Path]:
    replies = [guard._question(SCRIPT, [SCRIPT]), guard._whose([SCRIPT]), guard._page(SCRIPT, "")]
    return [written(folder, str(place), bytes(reply.body).decode()) for place, reply in enumerate(replies)]


@dataclass(frozen=True, slots=True)
class Shown:
    """Pages of planted texts, and the folders whose templates they use, each of them."""

    make: Callable[[Edition, Path], list[Path]]
    folders: tuple[str, ...] = ()


_ROBUSTNESS = ("", "corruptions/", "perturbations/", "scenarios/", "watermarks/")
PAGES: Mapping[str, Shown] = {
    "report": Shown(report, ("report/templates",)),
    "review": Shown(review, ("review/page/templates",)),
    "evaluation": Shown(evaluation, ("evaluation/templates",)),
    "robustness": Shown(robustness, tuple(f"studies/robustness/{each}templates" for each in _ROBUSTNESS)),
    "attacks": Shown(attacks, ("studies/attacks/templates",)),
    "training": Shown(training, ("studies/training/templates",)),
    "contest": Shown(contest, ("studies/contest/templates", "studies/contest/judge_page/templates")),
    "texts": Shown(texts),
    "refusals": Shown(refusals),
}
MARKDOWN = {"sets/templates/card.jinja", "edition/templates/readme.jinja"}
"""The templates of what `texts` shows."""


@pytest.mark.parametrize("name", PAGES)
def test_no_script_runs(name: str, own: Edition, used: set[Path], tmp_path: Path, browser: Browser) -> None:
    for path in PAGES[name].make(own, tmp_path):
        page = opened(browser, path)
        check(page)
        page.close()
    assert {each for folder in PAGES[name].folders for each in templates(folder)} <= used


def test_no_script_runs_on_the_page_of_reviews(own: Edition, tmp_path: Path, browser: Browser) -> None:
    """As it is served: its first view comes in a script."""
    server = serve(shutil.copytree(own.folder.parent, tmp_path / "copy") / "own", "ada")
    try:
        page = opened(browser, server.address)
        page.wait_for_selector("#view")
        page.keyboard.press("/")
        page.get_by_role("dialog").get_by_text("<script>planted()").first.wait_for()
        check(page)
    finally:
        server.kill()


@pytest.mark.parametrize("query", ["list=1&person={}", "list={}", "list=1&person=a{}"])
def test_no_script_runs_on_the_page_of_a_study(query: str, planned: Path, browser: Browser) -> None:  # noqa: F811
    address = (planned / "page" / "index.html").resolve().as_uri()
    page = opened(browser, f"{address}?{query.format(quote(SCRIPT))}")
    page.wait_for_selector("h1")
    check(page)


def templates(folder: str = "") -> set[Path]:
    """The templates of pages below a folder of the package."""
    return {
        path.relative_to(SOURCE) for path in (SOURCE / folder).rglob("templates/*.html" if not folder else "*.html")
    }


def matching(pattern: str, suffix: str) -> set[str]:
    """The files of the package with a match; what others have made, in one line, is left out."""
    paths = [path for path in SOURCE.rglob(f"*{suffix}") if not path.name.endswith(f".min{suffix}")]
    return {path.relative_to(SOURCE).as_posix() for path in paths if re.search(pattern, path.read_text())}


def test_every_page_is_shown_here() -> None:
    folders = [Path(each) for shown in PAGES.values() for each in shown.folders]
    assert {path.parent for path in templates()} == set(folders)
    assert matching("", ".jinja") == MARKDOWN
    # the study's page, whose script writes HTML
    assert {path.name for path in SOURCE.rglob("*.html") if path.parent.name != "templates"} == {"index.html"}
    assert matching(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", ".js") == {
        "studies/realness/static/study.js"
    }


def test_html_is_made_in_few_places() -> None:
    """For pages by two environments, which escape everything."""
    assert matching(r"\bEnvironment\(", ".py") == {
        "report/pages.py", "web/pages.py", "sets/card.py", "edition/readme.py",
    }  # fmt: skip
    assert matching(r"autoescape=True", ".py") == {"report/pages.py", "web/pages.py"}
    made = r"_repr_html_|HTMLResponse|html\.escape|add_head_html|ui\.html\(|\bMarkup\(|text/html"
    assert matching(made, ".py") == {
        "api/results.py",
        "evaluation/function.py", "report/pages.py", "review/page/server.py", "sets/catalogues.py", "sets/image_set.py",
        "studies/contest/judge_page/server.py", "studies/realness/serving.py", "web/guard.py", "web/pages.py",
        "web/tokens.py",
    }  # fmt: skip
    # rendered from Markdown without its HTML and links
    assert matching(r"\|\s*safe\b|autoescape", ".html") == {"review/page/templates/guidelines.html"}
