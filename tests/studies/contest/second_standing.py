"""A second standing: the contest lived through day by day, from the rules in docs/contest.md and none of the code.

It knows the answers that `test_second_standing.py` draws: sure of one group, or unsure, with outlines large enough.
"""

import datetime
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from cleanset.studies.contest.files import ContestFiles

DAY = datetime.timedelta(1)


class RefusedError(Exception):
    """The files contradict the rules."""


def friday(day: datetime.date) -> datetime.date:
    while day.weekday() != 4:
        day += DAY
    return day


@dataclass
class Image:
    """A published image as the days go by."""

    attacker: str
    target: str
    day: datetime.date
    week: datetime.date
    side: int
    said: list[str | None] = field(default_factory=list)
    said_late: list[str | None] = field(default_factory=list)
    enough_on: datetime.date | None = None
    needed: int = 3
    last_appeal: datetime.date | None = None
    is_appealed: bool = False
    had_more: bool = False
    is_final: bool = False
    group: str | None = None
    is_confirmed: bool = False

    def judged(self) -> str | None:
        return self.said[0] if len(set(self.said)) == 1 else None

    def stage(self) -> str:
        if self.is_final:
            return "final"
        return "appealed" if self.is_appealed else "open" if self.last_appeal is None else "judged"


class Days:
    """All that is known at the end of each day, from the first to `on`."""

    def __init__(self, files: ContestFiles, on: datetime.date) -> None:
        self.files, self.rules = files, files.rules
        self.images: dict[str, Image] = {}
        self.frozen: dict[str, dict[str, Any]] = {}
        self.stakes = {name: each for each in files.stakes for name in each.defences}
        self.today = min(each.submitted for each in files.defences.values())
        while True:
            self.live()
            if self.today == on:
                break
            self.today += DAY

    def live(self) -> None:
        for each in self.files.submissions:
            if each.week == self.today:
                for one in each.manifest.images:
                    self.images[one.sha256] = Image(each.team, each.manifest.target, each.day, each.week, one.width)
        for sha256, image in self.images.items():
            self.live_image(sha256, image)
        self.table = {name: self.look_at(name) for name in self.files.defences}
        for name, found in self.table.items():
            if found["settled"]:
                self.frozen.setdefault(name, found)

    def live_image(self, sha256: str, image: Image) -> None:
        for each in sorted(self.files.answers, key=lambda one: one.judge):
            answer = each.answers.get(sha256)
            if answer is None or answer.date != self.today or image.is_final or not self.is_good(each.judge):
                continue
            yes = [name for name, said in answer.contains.items() if said == "definitely_yes"]
            no = [name for name, said in answer.contains.items() if said == "definitely_no"]
            is_late = image.enough_on is not None and image.enough_on < self.today
            (image.said_late if is_late else image.said).append(yes[0] if len(yes) == len(no) == 1 else None)
            if image.last_appeal is None and len(image.said) >= image.needed:
                image.last_appeal = image.enough_on = self.today
                if not image.had_more:
                    image.last_appeal += self.rules.limits.appeal_days * DAY
        self.live_appeals(sha256, image)
        for one in self.files.decisions:
            if one.image == sha256 and one.date == self.today:
                self.decide(sha256, image, one)
        if not image.is_final and image.last_appeal == self.today and not image.is_appealed:
            image.is_final, image.group = True, image.judged()

    def live_appeals(self, sha256: str, image: Image) -> None:
        for team in sorted(one.team for one in self.files.appeals if one.image == sha256 and one.date == self.today):
            if image.is_final or image.last_appeal is None or image.had_more:
                raise RefusedError
            group = image.judged()
            may = {image.attacker} if group is None else {image.target.split("/")[0], *self.broken_by(sha256, group)}
            if team not in may:
                raise RefusedError
            image.is_appealed = True

    def decide(self, sha256: str, image: Image, one: Any) -> None:
        against = {image.attacker, image.target.split("/")[0]}
        against |= {each.team for each in self.files.appeals if each.image == sha256 and each.date <= self.today}
        seen = {
            name
            for each in self.files.answers
            if sha256 in each.answers and each.answers[sha256].date <= self.today
            for name, said in each.answers[sha256].contains.items()
            if said != "definitely_no" and "definitely_no" in each.answers[sha256].contains.values()
        }
        seen |= {one.verdict} & {"bird", "bicycle"}
        for group in seen or {"bird", "bicycle"}:
            against |= self.broken_by(sha256, group)
        for name, defence in self.files.defences.items():
            if defence.submitted <= self.today and not any(sha256 in each.answers for each in self.runs(name)):
                against.add(name.split("/")[0])
        for member in one.members:
            entry = self.rules.board[member]
            if against & {*entry.teams, *entry.conflicts}:
                raise RefusedError
        if len(one.members) < self.rules.quorum:
            raise RefusedError
        if one.judges is not None:
            if image.is_final or one.judges <= len(image.said) + len(image.said_late) or one.judges < 3:
                raise RefusedError
            image.said, image.said_late, image.enough_on = image.said + image.said_late, [], None
            image.needed, image.is_appealed, image.had_more, image.last_appeal = one.judges, False, True, None
            return
        ruled = None if one.verdict == "invalid" else one.verdict
        if image.is_final and image.group is not None and image.group != ruled:
            raise RefusedError
        image.is_final, image.group, image.is_confirmed = True, ruled, ruled is None

    def runs(self, name: str) -> list[Any]:
        found = [each for each in self.files.runs if each.defence == name and each.date <= self.today]
        return sorted(found, key=lambda each: each.date)

    def broken_by(self, sha256: str, group: str) -> set[str]:
        """The teams with a defence that gives an image the other group by today."""
        return {
            name.split("/")[0]
            for name in self.files.defences
            if any(each.answers.get(sha256, "abstain") not in (group, "abstain") for each in self.runs(name))
        }

    def is_good(self, judge: str) -> bool:
        correct = []
        for each in self.files.answers:
            for sha256, answer in each.answers.items():
                if each.judge == judge and sha256 in self.files.controls and answer.date <= self.today:
                    wanted = self.files.controls[sha256].contains
                    given = {name: said == "definitely_yes" for name, said in answer.contains.items()}
                    sure = all(said.startswith("definitely") for said in answer.contains.values())
                    correct.append(sure and given == wanted)
        least = Fraction(str(self.rules.judges.min_accuracy))
        return len(correct) < self.rules.judges.min_controls or Fraction(sum(correct), len(correct)) >= least

    def sees(self, name: str) -> int:
        """The pixels of a side that a defence sees."""
        model = self.files.defences[name].model
        return 299 if model is None else model.pixels

    def counts(self, run: Any) -> Any:
        if self.rules.unpublished is None:
            return run.eligibility
        found = run.unpublished
        return found.figures if found and found.list_sha256 == self.rules.unpublished else None

    def against(self, run: Any) -> list[str]:
        found, figures = [], self.counts(run)
        if 5 * (figures.images - figures.correct - figures.mistakes) > figures.images:
            found.append("abstains")
        elif 5 * figures.correct < 4 * figures.images:
            found.append("accuracy")
        return found + ["too_slow"] * (run.images_per_minute < self.rules.limits.images_per_minute)

    def look_at(self, name: str) -> dict[str, Any]:
        if name in self.frozen:
            return self.frozen[name]
        team, stake, runs = name.split("/")[0], self.stakes.get(name), self.runs(name)
        if stake is not None and stake.date > self.today:
            stake = None
        end = None if stake is None else stake.date + self.rules.limits.unbroken_days * DAY
        early = [each for each in runs if self.counts(each) and (end is None or each.date < end)]
        reasons = [] if self.files.defences[name].open else ["closed"]
        reasons += self.against(early[0]) if early else ["not_run"]
        wrong = [
            image
            for sha256, image in self.images.items()
            if image.is_final and image.group and image.side <= self.sees(name) and any(
                each.answers.get(sha256, "abstain") not in (image.group, "abstain") for each in runs
            )
        ]  # fmt: skip
        found: dict[str, Any] = {"broken_in": None, "broken_by": (), "shares": {}, "settled": False, "waits_for": ()}
        if stake is None or end is None:
            reasons += ["mistake_before"] * bool(wrong)
            return found | {"status": "ineligible" if reasons else "eligible", "reasons": tuple(reasons)}
        before = [each for each in wrong if each.day < stake.date]
        inside = [each for each in wrong if stake.date <= each.day < end]
        # eligible on some day of the stake: without a mistake on earlier images on the first day of both
        if not reasons and not before:
            self.ever = getattr(self, "ever", set()) | {name}
        if inside:
            week = min(each.week for each in inside)
            teams = {each.attacker for each in inside if each.week == week}
            nobodies = {
                team,
                *self.rules.organizers,
                *(one for each in self.rules.board.values() for one in each.teams),
            }
            sharing = teams - nobodies if name in getattr(self, "ever", set()) and not reasons else set()
            still_open = [
                e for e in self.images.values() if stake.date <= e.day < end and e.week <= week and not e.is_final
            ]
            of_week = {key for key, each in self.images.items() if each.week <= week}
            settled = not still_open and any(each.date >= week and of_week <= set(each.answers) for each in runs)
            reasons += ["mistake_before"] * bool(before)
            return found | {
                "status": "broken", "reasons": tuple(reasons), "broken_in": week, "broken_by": tuple(sorted(teams)),
                "shares": {each: Fraction(1, len(sharing)) for each in sharing}, "settled": settled,
            }  # fmt: skip
        all_before = {i.sha256 for e in self.files.submissions if e.day < end for i in e.manifest.images}
        last = [e for e in runs if self.counts(e) and e.date >= end and all_before <= set(e.answers)]
        if self.today >= end and last and not reasons:
            reasons += self.against(last[0])
        reasons += ["mistake_before"] * bool(before)
        if reasons:
            return found | {"status": "ineligible", "reasons": tuple(reasons)}
        if self.today < end:
            return found | {"status": "staked", "reasons": ()}
        mine = [each for each in self.images.values() if each.day < end]
        waits = ["publication"] * (len(mine) < len(all_before))
        waits += ["verdicts"] * any(not each.is_final for each in mine)
        unconfirmed = [e for e in mine if e.target == name and e.is_final and e.group is None and not e.is_confirmed]
        waits += ["confirmations"] * bool(unconfirmed) + ["last_run"] * (not last)
        status = "awaiting" if waits else "won"
        return found | {"status": status, "reasons": (), "waits_for": tuple(waits), "settled": not waits}

    def attackers(self) -> dict[str, Fraction]:
        return summed(
            [each["shares"] for each in self.table.values() if each["status"] == "broken" and each["settled"]]
        )

    def defenders(self) -> dict[str, Fraction]:
        shares = []
        for stake in self.files.stakes:
            states = {name: self.table[name]["status"] for name in stake.defences}
            if stake.date > self.today or {"staked", "awaiting"} & set(states.values()):
                continue
            nobodies = {*self.rules.organizers, *(one for each in self.rules.board.values() for one in each.teams)}
            won = [name.split("/")[0] for name, status in states.items() if status == "won"]
            won = [team for team in won if team not in nobodies]
            shares += [{team: Fraction(1, len(won))} for team in won]
        return summed(shares)


def summed(shares: list[dict[str, Fraction]]) -> dict[str, Fraction]:
    total: dict[str, Fraction] = {}
    for each in shares:
        for team, share in each.items():
            total[team] = total.get(team, Fraction(0)) + share
    return total
