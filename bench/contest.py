"""`standing` of a large random contest: from memory, and as the command that reads its files."""

import datetime
import hashlib
import json
import random
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import yaml

from cleanset.studies.contest.files import (
    Board,
    BoardDecision,
    ContestFiles,
    Defence,
    DefenceRun,
    Stake,
    Submission,
    SubmissionManifest,
    WeekOfAnswers,
)
from cleanset.studies.contest.judge_page.session import as_yaml
from cleanset.studies.contest.judging import JudgeAnswer
from cleanset.studies.contest.reading import defence_digest
from cleanset.studies.contest.rules import ContestRules
from cleanset.studies.contest.standing import standing
from cleanset.validation import Section
from measuring import BIN, print_machine, print_measures, run

DEFENCES, IMAGES, JUDGES, TEAMS = 100, 10_000, 5, 25
START = datetime.date(2026, 11, 2)
DAYS = 80
ROUNDS = 3
MAX_SECONDS = 5


def main() -> None:
    files = drawn(random.Random(0))
    on = START + datetime.timedelta(100)
    seconds, processor = [], []
    for _ in range(ROUNDS):
        before, used = perf_counter(), process_time()
        found = standing(files, on)
        seconds.append(perf_counter() - before)
        processor.append(process_time() - used)
    median, median_processor = (sorted(each)[ROUNDS // 2] for each in (seconds, processor))
    with tempfile.TemporaryDirectory() as folder:
        size = write(files, Path(folder))
        command = run(BIN / "cleanset", "contest", "standing", "--contest", folder, "--on", str(on), cwd=Path(folder))
        before = perf_counter()
        read_only(Path(folder))
        only_read = perf_counter() - before
    statuses = [each.status for each in found.defences]
    valid = sum(state.valid_group is not None for state in found.images.values())
    print_machine()
    print_measures(
        f"{DEFENCES} defences, {IMAGES:,} images, {JUDGES} judges each, median of {ROUNDS} rounds",
        [
            ("standing, s", median, ".2f", MAX_SECONDS),
            ("standing, processor s", median_processor, ".2f", None),
            (f"the command, which reads {size / 1e6:.0f} MB, s", command.seconds, ".2f", None),
            ("json and libyaml alone on these files, s", only_read, ".2f", None),
            ("valid images", valid, ",", None),
            *((f"{status} defences", statuses.count(status), "d", None) for status in sorted(set(statuses))),
        ],
    )


def write(files: ContestFiles, folder: Path) -> int:
    """Write the files of a contest and return their size in bytes."""
    for name, each in files.defences.items():
        path = folder / "defences" / name / "defence.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_of(plain(each), path.name))
    digests = {name: defence_digest(folder / "defences" / name, each) for name, each in files.defences.items()}
    contents: dict[str, object] = {
        "contest.yaml": files.rules,
        "judges/roster.yaml": {"judges": {judge: {"joined": str(START)} for judge in sorted(files.roster)}},
        "board/stakes.yaml": [plain(each.model_copy(update={"digests": digests})) for each in files.board.stakes],
        "board/decisions.yaml": [plain(each) for each in files.board.decisions],
    }
    contents |= {f"{each}/manifest.yaml": each.manifest for each in files.submissions}
    contents |= {str(each): as_yaml(each.answers) for each in files.answers}
    contents |= {
        f"results/runs/{each.defence}/{each.date}.json": each.model_copy(update={"digest": digests[each.defence]})
        for each in files.runs
    }
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        value = plain(content) if isinstance(content, Section) else content
        (folder / name).write_text(value if isinstance(value, str) else text_of(value, name))
    return sum((folder / name).stat().st_size for name in contents)


def text_of(value: object, name: str) -> str:
    if name.endswith(".json"):
        return json.dumps(value)
    return yaml.dump(value, Dumper=yaml.CSafeDumper, default_flow_style=None)


def plain(section: Section) -> object:
    return section.model_dump(mode="json", exclude_none=True)


def read_only(folder: Path) -> None:
    """Parse the files with nothing else done: the lower bound of any reader in Python."""
    for path in folder.rglob("*.json"):
        json.loads(path.read_text())
    for path in folder.rglob("*.yaml"):
        for _ in yaml.parse(path.read_text(), Loader=yaml.CSafeLoader):
            pass


def sha(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def drawn(pick: random.Random) -> ContestFiles:
    """Teams submit ten images a day; a fifth of the images has an unsure judge; half of the defences are ever wrong."""
    teams = [f"team{number}" for number in range(TEAMS)]
    classes = {"bicycle": ["n02835271"], "bird": ["n01514668"]}
    rules = ContestRules.model_validate({"classes": classes, "teams": teams, "board": {"ada": {}}})
    names = [f"{teams[number % TEAMS]}/defence{number}" for number in range(DEFENCES)]
    defence = {"submitted": str(START), "open": True}
    model = {"role": "standard", "confidence": "softmax", "threshold": 0.5}
    stake = {"batch": "first", "date": str(START), "by": "board", "defences": names, "digests": digests_of(names)}
    submissions = drawn_submissions(names, teams)
    return ContestFiles(
        rules,
        {name: Defence.model_validate(defence | {"model": model}) for name in names},
        submissions,
        frozenset(f"{judge:08x}" for judge in range(JUDGES)),
        {},
        drawn_answers(pick, submissions),
        Board(stakes=[Stake.model_validate(stake)], decisions=drawn_decisions(submissions)),
        [run for number, name in enumerate(names) for run in drawn_runs(pick, name, number % 2 == 0, submissions)],
        digests_of(names),
    )


def digests_of(names: list[str]) -> dict[str, str]:
    """The digest that is given for each defence; in a folder `write` enters those of the files."""
    return {name: sha(name) for name in names}


def drawn_submissions(names: list[str], teams: list[str]) -> list[Submission]:
    found = []
    for number in range(IMAGES // 10):
        day, team = START + datetime.timedelta(number // TEAMS % DAYS), teams[number % TEAMS]
        entries = [
            {
                "file": f"{place}.png",
                "sha256": sha(f"{number} {place}"),
                "pixels_sha256": sha(f"pixels {number} {place}"),
            }
            | {"width": 224, "height": 224}
            for place in range(10)
        ]
        content = {"submitted": f"{day}T12:00:00Z", "target": names[number % len(names)], "images": entries}
        found.append(Submission(team, 1, SubmissionManifest.model_validate(content)))
    return found


def drawn_answers(pick: random.Random, submissions: list[Submission]) -> list[WeekOfAnswers]:
    sure = {
        "contains": {"bird": "definitely_yes", "bicycle": "definitely_no"},
        "outline": [[10, 10], [120, 4], [210, 20], [215, 110], [200, 210], [110, 220], [12, 205], [5, 110]],
        "complete": True, "not_occluded": True, "real": True,
    }  # fmt: skip
    unsure = {"contains": {"bird": "rather_yes", "bicycle": "rather_no"}}
    by_week: dict[tuple[int, datetime.date], dict[str, JudgeAnswer]] = {}
    for each in submissions:
        date = str(each.week + datetime.timedelta(1))
        for image in each.manifest.images:
            doubtful = pick.random() < 0.2
            for judge in range(JUDGES):
                content = unsure if doubtful and judge == 0 else sure
                answer = JudgeAnswer.model_validate({"date": date, **content})
                by_week.setdefault((judge, each.week), {})[image.sha256] = answer
    return [WeekOfAnswers(f"{judge:08x}", week, answers) for (judge, week), answers in by_week.items()]


def drawn_decisions(submissions: list[Submission]) -> list[BoardDecision]:
    content = {"reason": "looked at it", "members": ["ada"], "verdict": "invalid"}
    return [
        BoardDecision.model_validate(
            {"image": each.manifest.images[0].sha256, "date": str(each.week + datetime.timedelta(3)), **content}
        )
        for each in submissions[::10]
    ]


def drawn_runs(pick: random.Random, name: str, is_perfect: bool, submissions: list[Submission]) -> list[DefenceRun]:
    figures = {"images": 1000, "correct": 950, "mistakes": 10, "mistakes_at_80": 0}
    content = {"defence": name, "images_per_minute": 60.0, "eligibility": figures, "digest": sha(name)}
    shas = [image.sha256 for each in submissions for image in each.manifest.images]
    wrong = frozenset() if is_perfect else frozenset(pick.sample(shas, 5))
    answers = {each: "bicycle" if each in wrong else "bird" for each in shas}
    first = DefenceRun.model_validate(content | {"date": str(START), "answers": {}})
    last = DefenceRun.model_validate(content | {"date": str(START + datetime.timedelta(91)), "answers": answers})
    return [first, last]


if __name__ == "__main__":
    main()
