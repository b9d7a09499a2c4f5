"""The lines for people who wait: after a while, again and again, and none for what is quick."""

import sys
from threading import Event

import pytest

from cleanset.plumbing.progress import tracked
from cleanset.plumbing.waiting import announced, repeated_lines


class Heard:
    """A stream that wakes whoever waits for a number of lines."""

    def __init__(self, lines: int) -> None:
        self.text = ""
        self._wanted = lines
        self._there = Event()

    def write(self, text: str) -> None:
        self.text += text
        if self.text.count("\n") >= self._wanted:
            self._there.set()

    def flush(self) -> None: ...

    def wait(self) -> None:
        assert self._there.wait(60)


def test_slow_work_is_announced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard(1)
    monkeypatch.setattr(sys, "stderr", heard)
    with announced("reading verdicts", quiet_seconds=0.01):
        heard.wait()
    assert heard.text == "reading verdicts …\n"


def test_quick_work_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with announced("reading verdicts", quiet_seconds=3600):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_line_comes_again_and_again_with_what_is_done_by_then(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard(3)
    numbers = iter(range(10**6))
    monkeypatch.setattr(sys, "stderr", heard)
    with repeated_lines(lambda: f"{next(numbers)} of many", line_seconds=0.01):
        heard.wait()
    assert heard.text.startswith("0 of many\n1 of many\n2 of many\n")


def test_without_a_terminal_the_work_of_a_bar_is_reported_in_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard(1)
    monkeypatch.setattr(sys, "stderr", heard)
    monkeypatch.setattr("cleanset.plumbing.waiting.LINE_SECONDS", 0.01)
    for number in tracked(range(3), 3, "preprocess"):
        if number == 2:
            heard.wait()
    assert heard.text.startswith("preprocess: ")
    assert heard.text.splitlines()[0].endswith(" of 3")


def test_no_line_comes_after_an_error() -> None:
    with pytest.raises(ValueError, match="two"), announced("reading", quiet_seconds=3600):
        raise ValueError("two")
