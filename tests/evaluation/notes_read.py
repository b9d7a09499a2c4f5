"""Reads the notes back from a printed table or a page, as its readers' programs do."""

import csv
import re
from html import unescape
from io import StringIO

from cleanset.evaluation.notes import NOTE_NAMES

FORMS = ("latex", "markdown", "csv")
_LATEX = {r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^", "$<$": "<", "$>$": ">"}


def notes_read(text: str, form: str) -> dict[str, str]:
    """The notes of a table in one of FORMS, by name."""
    if form == "csv":
        rows = list(csv.DictReader(StringIO(text)))
        found = [{name: row[name] for name in NOTE_NAMES if name in row} for row in rows]
        assert found
        assert all(each == found[0] for each in found)
        return found[0]
    if form == "markdown":
        lines = re.findall(r"^- (.*)$", text, re.M)
    else:
        (small,) = re.findall(r"\\footnotesize\\raggedright\n(.*)\n}\n", text, re.S)
        lines = [_from_latex(line.removesuffix(r"\par")) for line in small.split("\n")]
    pairs = [line.split(": ", 1) for line in lines]
    notes = {name[0].lower() + name[1:]: value for name, value in pairs}
    return {name: notes[name] for name in NOTE_NAMES if name in notes}


def notes_on_page(page: str) -> dict[str, str]:
    """The notes on a page, by name; the first of several lists."""
    (names, *_) = re.findall(r"<dl class=\"small\">(.*?)</dl>", page, re.S)
    found = re.findall(r"<dt><b>(.*?)</b></dt><dd>(.*?)</dd>", names)
    return {unescape(name): unescape(text) for name, text in found}


def _from_latex(text: str) -> str:
    for written, character in _LATEX.items():
        text = text.replace(written, character)
    return re.sub(r"\\([&%$#_{}])", r"\1", text)
