"""Small real inputs that many tests share."""

import gc
import importlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import settings
from playwright.sync_api import Browser, Playwright, sync_playwright

from cleanset.edition.paths import Edition
from cleanset.review.hints.background import NO_TEXT
from tests import own_edition
from tests.browser_tab import WINDOW, Pages, chromium_path, started
from tests.checkouts import Checkout, copy_checkout, holds_data
from tests.forked_commands import SHARED, forked_commands
from tests.forked_workers import forked_worker
from tests.once import once
from tests.properties import FAST
from tests.small_edition import small_checkout
from tests.ten_images import FORK_SERVER, PRELOADED, PRELOADED_WITH_TORCH, Made

# pages read text in every image that they show, which takes longer than the tests; those of text unset it
os.environ[NO_TEXT] = "1"
# the same examples in each run, so that chance does not decide whether a commit passes
settings.register_profile(FAST, deadline=None, derandomize=True)
REPOSITORY = Path(__file__).resolve().parents[1]
TESTS = Path(__file__).resolve().parent

NEEDS = {
    "browser": {"browser", "chromium", "firefox"},
    "built": {"built", "published", "rebuilt", "reviewable", "studied"},
    "exhaustive": {"both_published", "firefox"},
    "gpu": {"gpu"},
    "long": {"published_edition", "reproduced"},
    "real": {"real"},
    "server": {"serving", "start", "web"},
    "slow": {"pristine", "real_list", "small"},
}
"""By marker: the fixtures that bring what it stands for."""
WAITED_FOR = {*NEEDS["built"], "small"}
"""The fixtures that one process makes, over a minute long, while the others wait."""
STUDIED = {"shown", "studied"}
"""The fixtures that compute the sample's study, which takes minutes, or take it from the checkout's cache."""
COSTLY = (*NEEDS, "hostile")
"""The markers of all tests that `make test-fast` leaves out."""
FIRST = (
    "project/test_guard.py", "studies/robustness/test_evaluation.py", "real/test_real.py",
    "studies/robustness/test_pipeline.py", "sets/published/test_published_edition.py", "hostile/test_hostile.py",
    "scoring/test_hostile_weights.py",
)  # fmt: skip
"""The first two build what others wait for, the next have the most to compute, the last need nothing that is built."""


def real_folder() -> Path | None:
    """The folder of real photographs: CLEANSET_REAL, else `shared/real` next to the checkout; None without."""
    named = os.environ.get("CLEANSET_REAL")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "real"
    if named and not (folder / "contents.json").is_file():
        raise pytest.UsageError(f"CLEANSET_REAL: no contents.json in {folder}; expected the folder of real photographs")
    return folder if folder.is_dir() else None


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """An empty folder for an edition of ten images."""
    return Made(tmp_path)


@pytest.fixture(scope="session")
def _own(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    return Edition(once(tmp_path_factory, "own", own_edition.finished) / "own")


@pytest.fixture
def own(_own: Edition) -> Edition:
    """A finished edition of drawn images of three classes that are not ImageNet's; not to be changed."""
    return _own


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout's root."""
    return REPOSITORY


@pytest.fixture(scope="session")
def real() -> Path:
    """The folder of real photographs; if there is none, skips, saying so; fails if CLEANSET_NO_SKIP is set."""
    folder = real_folder()
    return folder or without("no real photographs: set CLEANSET_REAL to their folder")


@pytest.fixture(scope="session")
def _playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:  # a process can have only one
        yield started


@pytest.fixture(scope="session")
def chromium(_playwright: Playwright) -> Iterator[Browser]:
    """The browser of `browser`, for what several tests share."""
    if chromium_path() is None:
        without("no Chromium: install the package chromium")
    with started(_playwright.chromium) as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """Chromium; without one skips, saying so; fails if CLEANSET_NO_SKIP is set.

    Closes what a test leaves open: a forgotten page continues looking for its server.
    """
    before = chromium.contexts
    yield chromium
    for context in chromium.contexts:
        if context not in before:
            context.close()


@pytest.fixture(scope="module")
def _file_pages(chromium: Browser) -> Iterator[Pages]:
    context = chromium.new_context(viewport=WINDOW)
    yield Pages(context)
    context.close()


@pytest.fixture
def file_pages(_file_pages: Pages, browser: Browser) -> Iterator[Pages]:
    """The pages of all tests of a file, without cookies; an error in a page's scripts fails the test."""
    yield _file_pages
    assert _file_pages.end_test() == []


@pytest.fixture(scope="session")
def firefox(_playwright: Playwright) -> Iterator[Browser]:
    """Firefox; without one skips, saying so; fails if CLEANSET_NO_SKIP is set, as in the hosted workflow."""
    if not Path(_playwright.firefox.executable_path).is_file():
        without("no Firefox: playwright install firefox")
    browser = _playwright.firefox.launch()
    yield browser
    browser.close()


def without(reason: str) -> NoReturn:
    """Skip a test whose program or photographs are missing; fail if CLEANSET_NO_SKIP is set."""
    if os.environ.get("CLEANSET_NO_SKIP"):
        pytest.fail(reason)
    pytest.skip(reason)


def pytest_configure(config: pytest.Config) -> None:
    """Leave out what is costly, if so asked; search for garbage among what the tests make, not what is imported.

    The workers of a run are forked, and share one server of commands.
    """
    gc.disable()
    if moved := [name for name in FIRST if not (TESTS / name).is_file()]:
        raise pytest.UsageError(f"tests/conftest.py: FIRST names files that are not there: {', '.join(moved)}")
    if config.option.fast:
        config.option.markexpr = " and ".join(f"not {name}" for name in COSTLY)
        settings.load_profile(FAST)
        # the processes that tests start load it, too
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(TESTS / "fast"), os.environ.get("PYTHONPATH")]))
        importlib.import_module("tests.fast.sitecustomize")
    elif config.getoption("numprocesses", None):
        os.environ[SHARED] = str(forked_commands())
        worker = forked_worker(config.invocation_params.args)
        config.option.tx = [f"{spec}//python={worker}" for spec in config.option.tx]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file of costly tests only is not even imported then: torch alone takes three seconds."""
    if not config.option.fast or collection_path.suffix != ".py":
        return None
    marked = re.search(r"^pytestmark = pytest\.mark\.(\w+)$", collection_path.read_text(), re.MULTILINE)
    return True if marked and marked[1] in COSTLY else None


def pytest_collection_finish(session: pytest.Session) -> None:
    """If a test may run a model, give the processes that it forks what this needs."""
    gc.freeze()
    gc.enable()
    if any(item.get_closest_marker("slow") for item in session.items):
        FORK_SERVER.set_forkserver_preload([*PRELOADED, *PRELOADED_WITH_TORCH])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by what its fixtures bring or compute, and begin with the files that take longest.

    Those that wait for a built edition come when it is built, those that cost nothing at the end.
    """
    cache, studies = REPOSITORY / ".dvc" / "cache", REPOSITORY / "studies"
    costly, waiting = set(), set()
    is_studied = all(holds_data(cache, studies / name) for name in ("robustness", "attacks"))
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        check_parameters(item)
        for name, having in NEEDS.items():
            if fixtures & having:
                item.add_marker(name)
        if fixtures & STUDIED and not is_studied:
            item.add_marker("exhaustive")
        if any(item.get_closest_marker(name) for name in COSTLY):
            costly.add(item.path)
        if fixtures & WAITED_FOR:
            waiting.add(item.path)

    def turn(item: pytest.Item) -> tuple[int, bool, bool]:
        name = item.path.relative_to(TESTS).as_posix()
        return (FIRST.index(name) if name in FIRST else len(FIRST)), item.path not in costly, item.path in waiting

    items.sort(key=turn)


def check_parameters(item: pytest.Item) -> None:
    """Refuse a parameter called like a fixture that marks its tests, which would leave the test out of some runs."""
    parameters = item.callspec.params.keys() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
    if taken := sorted(set(parameters) & set().union(*NEEDS.values())):
        raise pytest.UsageError(
            f"{item.nodeid}: parameter {taken[0]}, also the name of a fixture; expected another name"
        )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="only the tests of `make test-fast`")
    parser.addoption("--real-precision", default="float32", help="precision of the run over real photographs")


@pytest.fixture(scope="session", autouse=True)
def _state_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A test depends neither on the contests that a machine has seen, nor on another process that runs tests."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="session", autouse=True)
def _one_worker() -> None:
    """Tests run in parallel on all cores: an attack starts no further processes, unless these are tested."""
    os.environ.setdefault("CLEANSET_WORKERS", "1")


@pytest.fixture(scope="session")
def pristine(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A copy in which nothing has run."""
    folder = once(tmp_path_factory, "pristine", lambda folder: copy_checkout(repository, folder / "cleanset"))
    return Checkout(folder / "cleanset")


@pytest.fixture(scope="session")
def rebuilt(pristine: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A clone in which `dvc repro` has made the sample from nothing; not to be changed."""

    def make(folder: Path) -> None:
        pristine.clone(folder / "cleanset").run("dvc", "repro")

    return Checkout(once(tmp_path_factory, "rebuilt", make) / "cleanset")


@pytest.fixture(scope="session")
def built(repository: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A clone in which `dvc repro` has run; not to be changed.

    What the checkout's own cache holds comes from there (tests/project/test_guard.py makes it from nothing and
    compares); without a cache, as in a fresh clone, this is `rebuilt`.
    """
    cache = repository / ".dvc" / "cache"
    if not (cache / "files").is_dir():
        checkout: Checkout = request.getfixturevalue("rebuilt")
        return checkout

    def make(folder: Path) -> None:
        pristine: Checkout = request.getfixturevalue("pristine")
        clone = pristine.clone(folder / "cleanset")
        clone.pull_what_is_in(cache)
        clone.run("dvc", "repro")

    return Checkout(once(tmp_path_factory, "built", make) / "cleanset")


@pytest.fixture(scope="session")
def published(built: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A clone of `built` whose committed remote is the folder `remote` next to it, pushed to; not to be changed."""

    def make(folder: Path) -> None:
        checkout = built.clone_with_data(folder / "cleanset")
        checkout.run("dvc", "remote", "modify", "origin", "url", str(folder / "remote"))
        checkout.commit("Change the remote")
        checkout.run("dvc", "push", "--quiet")

    return Checkout(once(tmp_path_factory, "published", make) / "cleanset")


@pytest.fixture(scope="session")
def small(pristine: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A copy of the project with the edition of ten images, in which `dvc repro` has run; not to be changed."""

    def make(folder: Path) -> None:
        checkout = small_checkout(pristine, folder / "cleanset")
        checkout.run("dvc", "repro")
        checkout.commit("Run the stages")

    return Checkout(once(tmp_path_factory, "small", make) / "cleanset")
