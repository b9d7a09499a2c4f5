"""Running defences: commands that fail in every way, a real model of the sample, the record of a run."""

import json
import os
import shutil
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import yaml

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.exports.manifest import file_name, manifest_csv
from cleanset.scoring.groups import Groups
from cleanset.studies.contest.command_defence import answers_of, parse_answers, without_network
from cleanset.studies.contest.defending import defend, run_defence
from cleanset.studies.contest.entries import ModelOfEdition
from cleanset.studies.contest.files import until
from cleanset.studies.contest.model_defence import GroupReader, ModelDefence
from cleanset.studies.contest.reading import read_contest
from cleanset.studies.contest.standing import standing
from tests.studies.contest.made import day
from tests.studies.contest.on_disk import FIRST, OnDisk, digest, png
from tests.studies.robustness.entries import entry
from tests.time_limits import at_most

GROUPS = ("bicycle", "bird")
ANSWERS = {"a.png": "bird", "b.png": "abstain"}


def test_the_lines_of_an_answer() -> None:
    text = "b.png, abstain\n\na.png,bird\r\n"
    assert parse_answers(text, ["a.png", "b.png"], GROUPS, "gold/wall") == ANSWERS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.png, bird\n", "gold/wall: its command did not answer 1 images, b.png among them"),
        ("", "did not answer 2 images, a.png among them"),
        ("a.png, cat\nb.png, bird\n", "line 1 of its output: answers 'cat'; expected one of bicycle, bird, abstain"),
        ("a.png, bird\na.png, bird\n", "line 2 of its output: a.png a second time"),
        ("a.png, bird\nc.png, bird\n", "line 2 of its output: 'c.png, bird'; expected a file that it was given"),
        ("a.png bird\n", "line 1 of its output: 'a.png bird'; expected a file"),
    ],
)
def test_refused_output(text: str, message: str) -> None:
    with pytest.raises(CleansetError, match=message):
        parse_answers(text, ["a.png", "b.png"], GROUPS, "gold/wall")


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    for name in ANSWERS:
        (folder / name).write_bytes(png((0, 0, 0)))
    return folder


def script(tmp_path: Path, code: str) -> tuple[list[str], Path]:
    """A command in a folder of its own."""
    folder = tmp_path / "defence"
    folder.mkdir()
    (folder / "run.py").write_text("import os, sys, time\n" + textwrap.dedent(code))
    return [sys.executable, "run.py"], folder


def test_a_command_is_given_the_folder_of_images(tmp_path: Path, images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing of this process's environment but its path and language; its home is empty."""
    command, folder = script(
        tmp_path,
        """
        assert "PYTHONPATH" not in os.environ and not os.listdir(os.environ["HOME"])
        for name in os.listdir(sys.argv[1]):
            print(f"{name}, {'bird' if name == 'a.png' else 'abstain'}")
        """,
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert answers_of(command, folder, images, GROUPS, 60, "gold/wall") == ANSWERS


@pytest.mark.parametrize(
    ("code", "seconds", "message"),
    [
        ("sys.exit(3)", 60, "gold/wall: its command failed with exit code 3"),
        ("raise ValueError('no weights')", 60, r"failed with exit code 1 \('ValueError: no weights'\)"),
        ("time.sleep(60)", 0.5, "its command took more than 0.5 s; expected it to end within that time"),
        ("print('a.png, bird')", 60, "did not answer 1 images, b.png among them"),
    ],
)
def test_a_command_that_fails(code: str, seconds: float, message: str, tmp_path: Path, images: Path) -> None:
    command, folder = script(tmp_path, code)
    with pytest.raises(CleansetError, match=message):
        answers_of(command, folder, images, GROUPS, seconds, "gold/wall")


def test_a_program_that_is_not_there(tmp_path: Path, images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cleanset.studies.contest.command_defence.without_network", tuple)
    with pytest.raises(CleansetError, match="gold/wall: its command did not start"):
        answers_of(["./no-such-program"], tmp_path, images, GROUPS, 60, "gold/wall")


@pytest.mark.slow
def test_a_command_leaves_nothing_running(tmp_path: Path, images: Path) -> None:
    """Not what it started itself either: a child that outlives it would write the file."""
    late = tmp_path / "late"
    command, folder = script(
        tmp_path,
        f"""
        import subprocess
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1); open({str(late)!r}, 'w')"])
        print("a.png, bird"), print("b.png, abstain")
        """,
    )
    assert answers_of(command, folder, images, GROUPS, 60, "gold/wall") == ANSWERS
    import time

    time.sleep(1.5)
    assert not late.exists()


def test_a_command_has_no_network(tmp_path: Path, images: Path) -> None:
    if not without_network():
        pytest.skip("this machine does not let a user make a network of its own")
    command, folder = script(
        tmp_path,
        """
        import socket
        names = [name for _, name in socket.if_nameindex()]
        assert names == ["lo"], names
        print("a.png, bird"), print("b.png, abstain")
        """,
    )
    assert answers_of(command, folder, images, GROUPS, 60, "gold/wall") == ANSWERS


def test_what_is_read_of_logits() -> None:
    logits = np.zeros((1, 1000))
    logits[0, 444], logits[0, 671], logits[0, 7] = 2, 2, 3
    groups = Groups.of({"bicycle": ["n02835271", "n03792782"], "bird": ["n01514668"]})
    found = GroupReader(groups)(logits)
    two = 2 + np.log(2)
    assert found["group"].tolist() == [1]
    assert [found["largest_logit"][0], found["second_logit"][0]] == pytest.approx([3, two])
    assert found["log_odds"][0] == pytest.approx(3 - two)


COMMAND = """
for name in sorted(os.listdir(sys.argv[1])):
    print(name + ", " + ("bird" if os.path.getsize(os.path.join(sys.argv[1], name)) % 2 else "abstain"))
"""


def ready(made: OnDisk) -> None:
    """Three images of class tench in the finished set; the groups are tench and goldfish."""
    folder, entries = made.edition / "data" / "export" / "standard", []
    for number in (1, 2, 3):
        data = png((10 * number, 200, 100), (40, 30), "JPEG")
        entries.append(entry(number, digest=digest(data)).model_copy(update={"rank": number}))
        path = folder / file_name(entries[-1].wnid, entries[-1].image_id, None)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    made.text(folder / "manifest.csv", manifest_csv(entries))
    others = next(wnid for wnid in ("n01443537", "n01484850") if wnid != entries[0].wnid)
    made.changed("contest.yaml", classes={"bicycle": [others], "bird": [entries[0].wnid]})


def use_command(made: OnDisk, code: str = COMMAND) -> None:
    text = "import os, sys\n" + code
    made.text(made.path("defences/gold/wall/run.py"), text)
    made.changed(
        "defences/gold/wall/defence.yaml", model=None, command=[sys.executable, "run.py"], open=False,
        files=[{"path": "run.py", "sha256": digest(text.encode())}],
    )  # fmt: skip
    made.yaml("board/accepted.yaml", [{"defence": "gold/wall", "date": "2026-11-01"}])


def test_a_run_of_a_command(tmp_path: Path) -> None:
    made = OnDisk(tmp_path)
    ready(made)
    use_command(made)
    (path,) = defend(made.folder, until(read_contest(made.folder), day("2026-11-09")), ["gold/wall"], day("2026-11-09"))
    assert path == made.path("results/runs/gold/wall/2026-11-09.json")
    content = json.loads(path.read_text())
    size = made.path(f"{FIRST}/images/x.png").stat().st_size
    assert content["answers"] == {made.sha256: "bird" if size % 2 else "abstain"}
    sizes = [each.stat().st_size for each in (tmp_path / "data" / "export" / "standard").glob("*/*.JPEG")]
    correct = sum(each % 2 for each in sizes)
    expected = {"images": 3, "correct": correct, "mistakes": 0, "mistakes_at_80": 0}
    assert content["eligibility"] == expected
    assert content["images_per_minute"] > 0
    assert standing(read_contest(made.folder), day("2026-11-14"))


def test_a_second_list_that_is_not_published(tmp_path: Path) -> None:
    """Only how many are correct is written, never which images they are."""
    made, hidden = OnDisk(tmp_path), tmp_path / "hidden"
    ready(made)
    use_command(made)
    files = until(read_contest(made.folder), day("2026-11-09"))
    data = {name: png((number, 9, 9), (20 + number, 30)) for number, name in enumerate("abcd")}
    for name, group in zip(data, ("bird", "bird", "bird", "bicycle"), strict=True):
        (hidden / group).mkdir(parents=True, exist_ok=True)
        (hidden / group / f"{name}.png").write_bytes(data[name])
    found = run_defence(made.folder, files, "gold/wall", day("2026-11-09"), hidden)
    odd = {name: len(each) % 2 == 1 for name, each in data.items()}  # the command calls these birds
    assert found.unpublished is not None
    counts = (found.unpublished.images, found.unpublished.correct, found.unpublished.mistakes)
    assert counts == (4, sum(odd[name] for name in "abc"), int(odd["d"]))
    assert list(found.answers) == [made.sha256]
    (hidden / "bicycle" / "d.png").write_bytes(data["a"])
    with pytest.raises(CleansetError, match=r"the same image as .*; expected each image in one group"):
        run_defence(made.folder, files, "gold/wall", day("2026-11-09"), hidden)
    (hidden / "bicycle" / "d.png").unlink()
    os.mkfifo(hidden / "bicycle" / "d.png")
    with at_most(5), pytest.raises(CleansetError, match=r"d\.png: a named pipe; expected a regular file"):
        run_defence(made.folder, files, "gold/wall", day("2026-11-09"), hidden)
    shutil.rmtree(hidden / "bicycle")
    with pytest.raises(CleansetError, match="bicycle: no image; expected a folder of images for each"):
        run_defence(made.folder, files, "gold/wall", day("2026-11-09"), hidden)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda made: made.path("board/accepted.yaml").unlink(), "a command that the board has not accepted by"),
        (lambda made: made.path("defences/gold/wall/run.py").write_text(""), "run.py: SHA-256 .* the file has changed"),
        (lambda made: use_command(made, "sys.exit(1)"), "gold/wall: its command failed with exit code 1"),
        (lambda made: made.path(f"{FIRST}/images/x.png").unlink(), "x.png: missing or changed; expected SHA-256"),
    ],
)  # fmt: skip
def test_what_does_not_run(change: object, message: str, tmp_path: Path) -> None:
    made = OnDisk(tmp_path)
    ready(made)
    use_command(made)
    change(made)  # type: ignore[operator]
    made.path("results/runs/gold/wall/2026-11-01.json").unlink()
    made.path("results/runs/gold/wall/2026-11-07.json").unlink()
    with pytest.raises(CleansetError, match=message):
        run_defence(made.folder, read_contest(made.folder), "gold/wall", day("2026-11-09"))


def test_an_unknown_defence(tmp_path: Path) -> None:
    made = OnDisk(tmp_path)
    with pytest.raises(CleansetError, match="gold/moat: unknown defence; expected one of gold/wall"):
        defend(made.folder, read_contest(made.folder), ["gold/moat"], day("2026-11-09"))


def test_an_edition_without_the_classes(tmp_path: Path) -> None:
    made = OnDisk(tmp_path)
    with pytest.raises(CleansetError, match="no image of a class of the contest; expected some in the finished sets"):
        run_defence(made.folder, read_contest(made.folder), "gold/wall", day("2026-11-09"))


@pytest.mark.slow
def test_a_threshold_that_abstains_on_everything(tmp_path: Path, repository: Path) -> None:
    """And what a wrapper makes of the same model: answers that are random, one-hot and without a gradient."""
    made = OnDisk(tmp_path)
    ready(made)
    shutil.copyfile(repository / "params.yaml", tmp_path / "params.yaml")
    (tmp_path / "sample").symlink_to(repository / "sample")
    model = {"role": "standard", "confidence": "softmax", "threshold": 1.1}
    made.changed("defences/gold/wall/defence.yaml", model=model)
    with pytest.raises(
        CleansetError, match=r"gold/wall: threshold 1\.1 abstains on everything, all 3 images of the elig"
    ):
        run_defence(made.folder, read_contest(made.folder), "gold/wall", day("2026-11-09"))
    made.changed("defences/gold/wall/defence.yaml", model=model | {"threshold": 0.0})
    honest = run_defence(made.folder, read_contest(made.folder), "gold/wall", day("2026-11-09"))
    assert honest.signs == []
    made.changed("defences/gold/wall/defence.yaml", model=model | {"threshold": 0.0, "wrapper": "uninteresting"})
    wrapped = run_defence(made.folder, read_contest(made.folder), "gold/wall", day("2026-11-09"))
    assert {"saturated_answers", "no_gradient"} <= {each.sign for each in wrapped.signs or []}


@pytest.mark.slow
def test_a_model_of_the_sample(tmp_path: Path, repository: Path) -> None:
    """Below its threshold it abstains; without one it gives what its logits, added up by hand, are for."""
    from cleanset.edition.params import read_params
    from cleanset.images.codec import decode
    from cleanset.scoring.engine import score_few, settings_for
    from cleanset.scoring.models import load_model

    made = OnDisk(tmp_path)
    ready(made)
    shutil.copyfile(repository / "params.yaml", tmp_path / "params.yaml")
    (tmp_path / "sample").symlink_to(repository / "sample")
    params = read_params(tmp_path)
    found = score_few(
        load_model(params.model("standard"), tmp_path),
        lambda _: decode(made.path(f"{FIRST}/images/x.png").read_bytes(), ("PNG",)),
        settings_for(params.score), ["x"], read_off=lambda logits: {f"logit {n}": logits[:, n] for n in range(1000)},
    )  # fmt: skip
    rules = yaml.safe_load(made.path("contest.yaml").read_text())["classes"]
    groups = Groups.of(rules)
    first, second = (float(found[f"logit {members[0]}"].iloc[0]) for members in groups.classes)
    expected = groups.names[int(second > first)]
    sure = 1 / (1 + np.exp(-abs(second - first)))
    for threshold, answer in ((sure - 1e-6, expected), (sure + 1e-6, "abstain")):
        model = {"role": "standard", "confidence": "softmax", "threshold": float(threshold)}
        defence = ModelDefence(Edition(tmp_path), ModelOfEdition.model_validate(model), groups)
        assert defence({made.sha256: made.path(f"{FIRST}/images/x.png")})[0] == {made.sha256: answer}
    made.changed("defences/gold/wall/defence.yaml", model=model | {"threshold": 0.0})
    run = run_defence(made.folder, read_contest(made.folder), "gold/wall", day("2026-11-09"))
    assert run.answers == {made.sha256: expected}
    assert run.eligibility.images == 3
