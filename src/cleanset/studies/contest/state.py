"""A contest after some lines of its log, from one day to the next; `line_rules` says what each line does."""

import datetime
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from cleanset.errors import CleansetError
from cleanset.studies.contest.defence_course import DefenceCourse, DefenceStanding
from cleanset.studies.contest.entries import JudgeExample, short, team_of
from cleanset.studies.contest.image_course import ImageCourse, SubmittedImages
from cleanset.studies.contest.judges import Draw, JudgeRecord, drawn_controls
from cleanset.studies.contest.judging import ControlImage
from cleanset.studies.contest.rules import ABSTAIN, ContestRules, after


class Contest:
    """Everything that follows from the lines so far."""

    def __init__(self, rules: ContestRules) -> None:
        self.rules = rules
        self.on = datetime.date.min
        """The day that it is."""
        self.teams = set(rules.teams)
        self.roster: set[str] = set()
        self.controls: dict[str, ControlImage] = {}
        self.examples: dict[str, JudgeExample] = {}
        self.judges: dict[str, JudgeRecord] = {}
        self.draws: list[Draw] = []
        """What each week's controls are drawn from."""
        self.defences: dict[str, DefenceCourse] = {}
        self.known: dict[str, str] = {}
        """The digests of file and pixels of all submitted images, with their place."""
        self.a_day: Counter[tuple[str, datetime.date]] = Counter()
        """Images of a team on a day."""
        self.submitted = SubmittedImages()
        self.images = self.submitted.published
        self.closing: dict[datetime.date, set[str]] = {}
        """By the last day for appeals, the images that may become final at its end."""
        self._given: dict[str, dict[str, set[str]]] = {}
        self._drawn: dict[str, dict[datetime.date, list[str]]] = {}

    def begin_day(self, day: datetime.date) -> None:
        """Go on to a day, and end all days before it."""
        if self.on == datetime.date.min:
            self.on = day
        while self.on < day:
            self._end_day()
            self.on = after(self.on, 1)

    def _end_day(self) -> None:
        for sha256 in sorted(self.closing.pop(self.on, ())):
            self.images[sha256].end_day(self.on)
            self.note_final(sha256)
        for course in self.defences.values():
            if course.stake is not None and course.settled is None:
                found = course.standing(self.on)
                if found.settled:
                    course.settled = self._without_copies(course, found)

    def _without_copies(self, course: DefenceCourse, found: DefenceStanding) -> DefenceStanding:
        """A settled standing, without shares if they were given for a defence with the same answers already."""
        for other in self.defences.values():
            if found.shares and other.settled is not None and other.settled.shares and course.answers_as(other):
                return replace(found, shares={}, copy_of=other.defence.name)
        return found

    def note_final(self, sha256: str) -> None:
        """Note which defences an image breaks, once its verdict is final."""
        if self.images[sha256].final_on is not None:
            self.submitted.open.pop(sha256, None)
            for name, answers in self._given.get(sha256, {}).items():
                self._note_mistake(name, sha256, answers)

    def note_answers(self, name: str, answers: Mapping[str, str]) -> None:
        """Note the answers of a defence's run, and its mistakes on images that are valid already."""
        for sha256, answer in answers.items():
            self._given.setdefault(sha256, {}).setdefault(name, set()).add(answer)
            self._note_mistake(name, sha256, {answer})

    def _note_mistake(self, name: str, sha256: str, answers: set[str]) -> None:
        image = self.images[sha256]
        if image.valid_group is not None and answers - {image.valid_group, ABSTAIN}:
            self.defences[name].mistakes.setdefault(sha256, (image, self.on))

    def breaking(self, sha256: str, group: str | None) -> set[str]:
        """The teams with a defence that gives an image of `group` the other one."""
        given = self._given.get(sha256, {})
        return {team_of(name) for name, answers in given.items() if answers - {group, ABSTAIN}}

    def final(self) -> dict[str, object]:
        """All that is final, by what it is of: no line may change it."""
        images = {sha: (each.valid_group, each.final_on) for sha, each in self.images.items() if each.final_on}
        return images | {name: each.settled for name, each in self.defences.items() if each.settled}

    def drawn(self, judge: str) -> dict[datetime.date, list[str]]:
        """By week, the controls that are drawn for a judge."""
        # a draw never changes: those of later weeks are added
        if len(self._drawn.get(judge, ())) < len(self.draws):
            self._drawn[judge] = drawn_controls(self.draws, judge, self.rules.judges.seed)
        return self._drawn.get(judge, {})

    def course(self, name: str) -> DefenceCourse:
        """A defence by its name. Raises CleansetError for an unknown one."""
        if name not in self.defences:
            raise CleansetError(f"unknown defence {name}; expected one that was entered before")
        return self.defences[name]

    def image(self, sha256: str) -> ImageCourse:
        """A published image. Raises CleansetError for another one."""
        if sha256 not in self.images:
            raise CleansetError(f"{short(sha256)}: no published image; expected one whose week has ended")
        return self.images[sha256]
