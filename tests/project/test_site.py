"""The site of docs/: it builds without a warning, is filled in from the code, and needs no network and no server."""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from html import unescape
from pathlib import Path

import pytest
import yaml
from hypothesis import settings
from playwright.sync_api import Browser, Page, Request
from playwright.sync_api import TimeoutError as PlaywrightTimeout

import cleanset
from cleanset import tables
from cleanset.classes import imagenet
from cleanset.edition.params import PROTOCOLS, Params
from cleanset.review.hints.kinds import HINTS
from cleanset.sets.manifest import COLUMNS
from cleanset.studies.attacks.results import ATTACKED
from cleanset.studies.attacks.results import MEASURE_COLUMNS as ATTACK_COLUMNS
from cleanset.studies.attacks.study import ATTACKS
from cleanset.studies.robustness.answers import ANSWER_TABLES
from cleanset.studies.robustness.corruptions.params import CORRUPTION_ENTRIES
from cleanset.studies.robustness.images import MASKS, STUDY_IMAGES
from cleanset.studies.robustness.measuring import MEASURE_FILES
from cleanset.tables import Table
from tests.once import once
from tests.properties import FAST

pytestmark = pytest.mark.slow

PHONE = 390
WIDTHS = (PHONE, 1280)
TABLES = "[...document.querySelectorAll('article table:not([class])')]"
TOO_WIDE = f"{TABLES}.filter(each => each.scrollWidth > innerWidth).map(each => each.innerText)"
UNLABELLED = f"{TABLES}.flatMap(each => [...each.querySelectorAll('td:not([data-label])')]).map(each => each.innerText)"
SEARCHED = (
    ("damaged server", 1, {"publish.html", "reproducibility.html"}),
    ("how many images per class", 3, {"problems.html", "own_images.html"}),
    ("cite", 3, {"problems.html", "index.html"}),
    ("own model", 3, {"own_model.html", "models.html"}),
    ("no GPU", 3, {"problems.html", "own_model.html", "curate.html"}),
    ("conda", 1, {"install.html"}),
    ("docker", 1, {"install.html"}),
    ("windows", 3, {"install.html"}),
    ("macos", 1, {"install.html"}),
    ("offline", 2, {"install.html"}),
    ("prolific", 1, {"study_people.html"}),
    ("jupyter", 2, {"tutorial.html", "install.html"}),
    ("normalize", 3, {"own_model.html"}),
    ("uninstall", 1, {"install.html"}),
)
"""Searched text, the number of first answers that count, and the pages: one of them is among those answers."""
DECISIONS = Path(__file__).parents[2] / "docs" / "decisions"
LISTED_LAST = {"CHANGELOG.html"} | {path.with_suffix(".html").name for path in DECISIONS.glob("*_*.md")}
"""Pages that come first for none of them: the history and the decisions."""
PROGRAM = "from cleanset.cli import app; import typer; print(*typer.main.get_command(app).commands)"


@pytest.fixture(scope="module")
def site(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; without MkDocs skips, saying so; fails if CLEANSET_NO_SKIP is set."""
    if importlib.util.find_spec("mkdocs") is None:
        reason = "no MkDocs: install the extra docs, as requirements.txt does"
        if os.environ.get("CLEANSET_NO_SKIP"):
            pytest.fail(reason)
        pytest.skip(reason)

    def make(folder: Path) -> None:
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder / "site")]
        variables = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
        done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False, env=variables)
        assert done.returncode == 0, done.stderr

    return once(tmp_path_factory, "site", make) / "site"


def test_make_docs_builds_it_as_strictly(repository: Path) -> None:
    command = ["make", "--dry-run", "--no-print-directory", "--old-file=.venv/.ready", "docs"]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True)
    assert "mkdocs build --strict" in done.stdout


def test_the_reference_is_that_of_the_code(repository: Path) -> None:
    """Every part of a page that is made from the code or a table is up to date."""
    command = [sys.executable, "docs/reference.py", "--check"]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def words(site: Path, page: str) -> str:
    """The text of a page, without navigation."""
    text = (site / f"{page}.html").read_text(encoding="utf-8").partition("<article")[2].partition("</article>")[0]
    return " ".join(unescape(re.sub("<[^>]+>", " ", re.sub("</?span[^>]*>", "", text))).split())


def test_every_page_is_in_it(site: Path, repository: Path) -> None:
    expected = {
        path.relative_to(repository / "docs").with_suffix("").as_posix() for path in repository.glob("docs/**/*.md")
    }
    expected |= {"index", "CONTRIBUTING", "CHANGELOG", "report_a_hole", "404"}
    assert {path.relative_to(site).with_suffix("").as_posix() for path in site.rglob("*.html")} == expected
    assert not list(site.rglob("*.py"))
    assert (site / "LICENSE").read_bytes() == (repository / "LICENSE").read_bytes()


def test_it_is_ordered_by_what_people_want_to_do(repository: Path) -> None:
    nav = yaml.safe_load((repository / "mkdocs.yml").read_text())["nav"]
    assert [name for entry in nav for name in entry] == [
        "Overview", "Install", "Tutorial", "Get a set", "Measure a model", "A set of your own images",
        "An edition of ImageNet", "Studies", "Why", "Reference", "Contributing",
    ]  # fmt: skip
    (contributing,) = (entry["Contributing"] for entry in nav if "Contributing" in entry)
    assert {"Where do I change …?": "where.md"} in contributing


def test_every_command_is_there(site: Path) -> None:
    """With the whole of its summary, and the options of one."""
    text = words(site, "reference/commands")
    names = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout.split()
    assert len(names) > 20
    for name in names:
        assert f"$ cleanset {name} [OPTIONS]" in text
    assert "review bind : Write the SHA-256" in text
    assert "review import" not in text
    assert "diff : Compare two releases of a set; exit code 1 if they differ." in text
    assert "--precision" in text
    assert "..." not in text.split("Commands :")[1].split("$ cleanset published")[0]


def test_every_key_and_column_is_there(site: Path) -> None:
    text = words(site, "reference/params")
    for section, field in Params.model_fields.items():
        assert section in text
        for key in getattr(field.annotation, "model_fields", {}):
            assert f" {section}.{key} " in text
    assert "score.batch_size whole number from 1 to 65,536 256" in text
    for section, keys in PROTOCOLS["as_published"].items():
        for key in keys:
            assert f"{section}.{key}: " in text
    assert "models.<role>.source timm , torchvision , robustbench , module , lists , scores , random (needed)" in text
    text = words(site, "reference/tables")
    for name, table in vars(tables).items():
        if isinstance(table, Table):
            for column, kind in table.columns.items():
                assert f"{column} {kind.type} {kind.expected(imagenet())}" in text, name


def keys_of(content: object, path: str = "") -> Iterator[str]:
    """The paths of all keys in what a params file holds, but for names that are free."""
    for key, value in content.items() if isinstance(content, dict) else ():
        yield f"{path}{key}"
        yield from keys_of(value, f"{path}{key}.")


def check_documented(text: str, content: object, lines: Sequence[str]) -> None:
    """Each key of what a params file holds is in the text, and each of the lines."""
    for key in keys_of(content):
        assert f" {key} " in text, key
    for line in lines:
        assert line in text, line


def test_every_key_of_the_studies_is_there(site: Path, repository: Path) -> None:
    text = words(site, "reference/study_params")
    studied = yaml.safe_load((repository / "studies" / "robustness" / "params.yaml").read_text("utf-8"))
    del studied["further_models"], studied["masks"], studied["measures"]["corruptions"]["trained_on"]
    lines: tuple[str, ...] = (
        "jpeg whole number from 1 to 100 or nothing 85",
        "corruptions.severities list of whole number from 1 to 5 [1, 2, 3, 4, 5]",
        "measures.corruptions.trained_on list of text, by role {}",
        "masks[].origin person , generator , model (needed)",
        "measures.scenarios.baselines.class_index whole number from 0 or nothing null",
        "scenarios.object_weight number above 0 to 1 1.0",
        "further_models.<role>.name text (needed)",
    )
    check_documented(text, studied, lines)
    text = words(site, "reference/attacks")
    attacked = yaml.safe_load((repository / "studies" / "attacks" / "params.yaml").read_text("utf-8"))
    del attacked["wrapped"]
    lines = (
        "attacks.pgd.eps number above 0 4/255",
        "attacks.boundary.after a section random_spatial or nothing with its defaults",
        "wrapped.<name>.images whole number from 1 or nothing null",
    )
    check_documented(text, attacked, lines)
    text = words(site, "reference/contest_rules")
    ruled = yaml.safe_load((repository / "sample" / "contest" / "contest.yaml").read_text("utf-8"))
    del ruled["classes"], ruled["board"], ruled["teams"]
    lines = (
        "classes list of text, by group (needed)",
        "limits.images_a_day whole number from 1 to 1,000 10",
    )
    check_documented(text, ruled, lines)


def test_every_entry_of_a_registry_is_there(site: Path) -> None:
    """Attacks, corruptions, hints and columns of the manifest, each with what it says of itself."""
    entries = {
        "reference/attacks": [f"{kind} {attack.effect.partition('[')[0].strip()}" for kind, attack in ATTACKS.items()],
        "reference/robustness_measures": [entry.effect for entry in CORRUPTION_ENTRIES.values()],
        "hints": [f"{hint.kind.replace('_', ' ')} {hint.docs}" for hint in HINTS.values()],
        "reference/tables": [column.description for column in COLUMNS.values()],
    }
    for page, texts in entries.items():
        shown = words(site, page)
        assert [text for text in texts if text not in shown] == [], page


def test_every_column_of_a_study_is_there(site: Path) -> None:
    text = words(site, "reference/study_tables")
    found = {"data/images.parquet": STUDY_IMAGES, "data/masks.parquet": MASKS}
    found |= {f"data/{family}/<model>.parquet": table for family, table in ANSWER_TABLES.items()}
    found["data/attacks/<attack>/<model>/attacked.parquet"] = ATTACKED
    for name, table in found.items():
        section = text.partition(f"{name} ")[2].partition(" data/")[0]
        assert section.startswith(f"¶ Sorted by {table.key[0]}"), name
        for column, kind in table.columns.items():
            assert f"{column} {kind.type} {kind.expected(imagenet())}" in section, (name, column)
    for name, columns in [*MEASURE_FILES.items(), ("attack_measures.csv", ATTACK_COLUMNS)]:
        section = text.partition(f"data/{name} ")[2].partition(" data/")[0]
        for column in columns:
            assert f" {column} " in section, (name, column)


def test_the_python_reference_is_that_of_the_code(site: Path) -> None:
    text = words(site, "reference/python")
    assert "The finished set of a model as a sequence of (image, class index, record)" in text
    for name in ("load", "table"):
        assert f'{name}( model: str | Path = "", edition: str | Path = ".", *,' in text
    for name in cleanset.__all__:
        assert f" {name} ¶ " in text
    assert "names a callable without arguments that returns a tuple of" in words(site, "own_model")


def test_the_tutorial_shows_what_its_cells_print(site: Path) -> None:
    """The contact sheet and the table of results, too, and no line of the notebook's own."""
    text = words(site, "tutorial")
    assert "mine: 320 images of 8 classes (balloon, banana, clock," in text
    assert "10.0% (1.4% to 18.8%), p = 0.039" in text
    assert "images: 80 images of 8 classes, 0 cropped." in text
    assert "81.25% 71.34% to 88.29%" in text
    assert "%%bash" not in text
    assert 'src="data:image/jpeg;base64,' in (site / "tutorial.html").read_text(encoding="utf-8")


@pytest.fixture
def page(browser: Browser) -> Iterator[tuple[Page, list[str]]]:
    """A page without a network, and the addresses of requests that failed or went elsewhere, and the errors."""
    context = browser.new_context(offline=True)
    page = context.new_page()
    problems: list[str] = []

    def requested(asked: Request) -> None:
        if not asked.url.startswith(("file:", "data:", "blob:", "about:")):
            problems.append(asked.url)

    def failed(asked: Request) -> None:
        if asked.failure != "net::ERR_ABORTED":  # given up where the next page was opened
            problems.append(f"failed: {asked.url}: {asked.failure}")

    page.on("request", requested)
    page.on("requestfailed", failed)
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on("console", lambda message: problems.append(f"console: {message.text}") if message.type == "error" else None)
    yield page, problems
    context.close()


def fits(shown: Page, width: int) -> bool:
    """Whether the page becomes no wider than its window, once that has the width."""
    try:
        shown.wait_for_function(f"innerWidth === {width} && document.documentElement.scrollWidth <= {width}")
    except PlaywrightTimeout:
        return False
    return True


@pytest.mark.long
def test_it_is_read_from_the_disk(site: Path, page: tuple[Page, list[str]]) -> None:
    """No page asks for anything but files of the site, lacks an image, or is too wide; every sixth page,
    in `make test LONG=1` or `ALL=1` every second.

    A phone shows a row of a table as lines, each with the header of its column.
    """
    shown, problems = page
    step = 6 if settings.get_current_profile_name() == FAST else 2
    widths = WIDTHS
    for path in sorted(site.rglob("*.html"))[::step]:
        if path.name == "404.html":  # a server's page: its addresses begin with /
            continue
        shown.goto(path.as_uri())
        shown.wait_for_load_state("load")
        widths = widths[::-1]  # begins with the one that the window has
        for width in widths:
            shown.set_viewport_size({"width": width, "height": 900})
            assert fits(shown, width), (path, width)
            if width == PHONE:
                assert shown.evaluate(TOO_WIDE) == [], path
                assert shown.evaluate(UNLABELLED) == [], path
        images = "[...document.images].filter(each => !(each.complete && each.naturalWidth)).map(each => each.src)"
        assert shown.evaluate(images) == [], path
    assert problems == []


@pytest.mark.long
@pytest.mark.parametrize("width", WIDTHS)
def test_what_people_search_for_is_found_from_the_disk(site: Path, page: tuple[Page, list[str]], width: int) -> None:
    """Among the first three answers; the index is read once for all questions."""
    shown, problems = page
    shown.set_viewport_size({"width": width, "height": 900})
    shown.goto((site / "index.html").as_uri())
    shown.evaluate("document.getElementById('__search').click()")  # what all its labels do
    field = shown.locator("input.md-search__input")
    told = shown.locator(".md-search-result__meta")
    for asked, most, answers in SEARCHED:
        told.and_(shown.get_by_text("Type to start searching")).wait_for()
        field.fill(asked[:-1])
        field.press(asked[-1])  # searches once
        told.and_(shown.get_by_text("matching")).wait_for()
        links = shown.locator(".md-search-result__item > a").all()
        found = [str(each.get_attribute("href")).split("/")[-1].partition("?")[0] for each in links]
        assert answers.intersection(found[:most]), (asked, found)
        assert not LISTED_LAST.intersection(found[:1]), (asked, found)
        field.fill("")
        field.press("Backspace")
    assert problems == []
