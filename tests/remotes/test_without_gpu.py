"""With pulled scores a set is changed and rebuilt if no model can run; two machines end with the same bytes."""

import os
import re
import shutil
import site
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.checkouts import Checkout, files
from tests.documents import block, shell
from tests.remotes.conftest import Cloning, lead
from tests.remotes.exports import ROLES, give_archives, manifest_holds, reject
from tests.remotes.servers import Remote

WATCH = """
import os, sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            with open(os.environ["WATCHED"], "a") as file:
                print(*sys.argv, file=file)
sys.meta_path.insert(0, Watch())
"""
"""As sitecustomize.py: writes down which program imports torch."""
SCRIPT = "#!{python}\nimport sys\nfrom {module} import main\nsys.exit(main())\n"
CHANGED = ("standard", "corruption_robust")
"""The models in whose sets the rejected image was."""

Machine = Callable[[str], Checkout]


@pytest.fixture
def machine(web: Remote, clone: Cloning, tmp_path: Path) -> Machine:
    """Make a clone with a virtual environment of its own, without weights, in which an import of torch is noted."""
    watch = tmp_path / "watch"
    watch.mkdir()
    (watch / "sitecustomize.py").write_text(WATCH)

    def make(name: str) -> Checkout:
        environment = tmp_path / name / "cleanset" / ".venv"
        checkout = clone(
            web, name, PATH=f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}",
            PYTHONPATH=str(watch), WATCHED=str(tmp_path / "imports of torch"),
        )  # fmt: skip
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
        (packages,) = environment.glob("lib/python*/site-packages")
        others = f"import site; site.addsitedir({site.getsitepackages()[0]!r})"
        (packages / "_first.pth").write_text(f"{checkout.folder / 'src'}\n{others}\n")
        for command, module in (("cleanset", "cleanset.cli"), ("dvc", "dvc.cli")):
            script = environment / "bin" / command
            script.write_text(SCRIPT.format(python=environment / "bin" / "python", module=module))
            script.chmod(0o755)
        (environment / ".ready").touch()
        shutil.rmtree(checkout.folder / "sample" / "weights")
        return checkout

    return make


def stages(output: str) -> list[str]:
    """The stages that ran."""
    return re.findall(r"^Running stage '(.*)'", output, re.MULTILINE)


def no_torch(tmp_path: Path) -> bool:
    """Whether nothing has imported torch, and it would have been noted."""
    noted = tmp_path / "imports of torch"
    nothing = not noted.exists()
    program = "import importlib.util; importlib.util.find_spec('torch')"
    variables = {"PYTHONPATH": str(tmp_path / "watch"), "WATCHED": str(noted)}
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ | variables)
    return nothing and noted.read_text() == "-c\n"


@pytest.mark.exhaustive
def test_a_changed_review(repository: Path, machine: Machine, built: Checkout, tmp_path: Path) -> None:
    """Only what depends on it runs: up to the first export, and once the archives are there, the rest.

    Then the curator's lines commit and publish it.
    """
    checkout = machine("one")
    reject(checkout, "n02782093", "ILSVRC2012_val_00000101")
    command = block(repository, "dvc repro --pull --allow-missing")
    stopped = shell(checkout, command)
    assert stopped.returncode != 0
    assert "error: data/raw/ILSVRC2012_img_val.tar: missing; expected the validation images" in stopped.stderr
    *before_exports, first_export = (stage for stage in stages(stopped.stdout) if stage != "crops")
    assert sorted(before_exports) == sorted(f"review_apply@{role}" for role in ROLES)
    assert first_export.startswith("export@")
    pulled = shell(checkout, block(repository, "dvc pull sample/dvc.yaml"))
    assert pulled.returncode == 0, pulled.stderr
    done = shell(checkout, command)
    assert done.returncode == 0, done.stderr
    assert sorted(stages(done.stdout)) == sorted([*(f"export@{role}" for role in CHANGED), "count", "report"])
    before, after = (folder / "data" / "export" for folder in (built.folder, checkout.folder))
    assert [path.name for path in sorted(after.iterdir())] == sorted(CHANGED)
    for role in CHANGED:
        assert manifest_holds(after / role)
        assert not list((after / role).rglob("*00000101*"))
        assert rest(after / role) == rest(before / role)
    checkout.run("dvc", "pull")
    assert files(after / "norm_robust") == files(before / "norm_robust")
    lead(checkout, str(tmp_path / "remote"))
    published = shell(checkout, block(repository, "dvc repro"))
    assert published.returncode == 0, published.stderr
    assert stages(published.stdout) == []
    assert "metrics/totals/rejected_conflict.json" in published.stdout
    assert files(tmp_path / "remote") != {}
    assert no_torch(tmp_path)


def rest(folder: Path) -> dict[str, str]:
    """The images of the other classes."""
    return {name: sum_ for name, sum_ in files(folder).items() if "/" in name and not name.startswith("n02782093")}


@pytest.mark.long
def test_nothing_is_scored_if_nothing_can_be_pulled(
    repository: Path, machine: Machine, built: Checkout, tmp_path: Path
) -> None:
    checkout = machine("one")
    lead(checkout, str(tmp_path / "nothing"))
    give_archives(built, checkout)
    reject(checkout, "n02782093", "ILSVRC2012_val_00000101")
    for command in (block(repository, "dvc repro --pull --allow-missing"), block(repository, "make from-scores")):
        done = shell(checkout, command)
        assert done.returncode != 0
        assert "Checkout failed for following targets" in done.stderr
        assert stages(done.stdout) == []
    assert no_torch(tmp_path)


@pytest.mark.exhaustive
def test_two_machines(repository: Path, machine: Machine, built: Checkout, tmp_path: Path) -> None:
    """One pulls the sets, the other rebuilds them from its own archives and the scores."""
    one, other = machine("one"), machine("other")
    for each in (one, other):
        module = each.run("python", "-c", "import cleanset; print(cleanset.__file__)").stdout
        assert module == f"{each.folder}/src/cleanset/__init__.py\n"
    one.run("dvc", "pull")
    give_archives(built, other)
    done = shell(other, block(repository, "make from-scores"))
    assert done.returncode == 0, done.stderr
    ran = stages(done.stdout)
    assert not [stage for stage in ran if stage.startswith("score")]
    assert {"preprocess", "intersect", "count"} < set(ran)
    assert {stage.split("@")[0] for stage in ran} >= {"select", "review_apply", "export"}
    assert files(other.folder / "data") == files(one.folder / "data") == files(built.folder / "data")
    assert other.run("git", "status", "--porcelain", "--", ":!sample/weights").stdout == ""
    assert no_torch(tmp_path)
    params = other.folder / "params.yaml"
    params.write_text(params.read_text().replace("precision: float64", "precision: float32"))
    stopped = shell(other, block(repository, "make from-scores"))
    assert stopped.returncode != 0
    assert "error: the pulled scores are of other images, params or source code" in stopped.stderr
    assert stages(stopped.stdout) == []
