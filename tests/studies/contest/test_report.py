"""The standing as a table in 80 columns."""

import io

from rich.console import Console

from cleanset.studies.contest.report import as_text
from cleanset.studies.contest.standing import standing
from tests.studies.contest.made import FINAL, UNSURE, WON, contest, day, decision, judged, run, submission


def printed(files: object, date: str) -> list[str]:
    """The lines of a standing, without the spaces at their ends."""
    console = Console(file=io.StringIO(), width=80)
    console.print(as_text(standing(files, day(date))))  # type: ignore[arg-type]
    return [line.rstrip() for line in console.file.getvalue().splitlines() if line.strip()]  # type: ignore[attr-defined]


def test_broken() -> None:
    files = contest([submission("red", ["x"])], judged(["x"]))
    assert printed(files, FINAL)[1:] == [
        "  defence     status   dates               shares",
        " ─────────────────────────────────────────────────",
        "  gold/wall   broken   staked 2026-11-02   red 1",
        "                       broken 2026-11-06",
        "No unpublished list decides who is eligible: a defence that knows the published",
        "images by heart is, too.",
    ]


def test_waiting_and_winning() -> None:
    """Nobody has broken it: what is waited for, then its team's share."""
    submitted, answers = [submission("red", ["x"])], judged({"x": UNSURE})
    again, decided = [run({"x": "bicycle"}), run({"x": "bicycle"}, date=WON)], [decision("x", "invalid", "2027-01-20")]
    waiting = " ".join(printed(contest(submitted, answers, again[:1]), WON))
    assert "gold/wall waits for confirmations, last run. No unpublished" in " ".join(waiting.split())
    won = printed(contest(submitted, answers, again, decisions=decided), WON)
    place = won.index("  gold/wall   won      staked 2026-11-02")
    assert won[place + 1] == "Defenders' shares: gold 1."
