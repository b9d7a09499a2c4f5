"""The command `cite`: what to cite, as BibTeX or as text."""

import re

from cleanset.errors import CleansetError
from cleanset.exports.description import SCOOTER, citation

_ENTRY = re.compile(r"@\w+\{(\w+),\n(.*?)\n\}", re.DOTALL)
_FIELD = re.compile(r"^  (\w+)\s*= \{(.*)\},?$", re.MULTILINE)
_ACCENTS = {"{\\'e}": "é", '{\\"u}': "ü", '{\\"a}': "ä", "--": "–"}


def render(form: str) -> str:
    """The citations of cleanset, its images and labels, and SCOOTER. Raises CleansetError for an unknown format."""
    bibtex = citation([SCOOTER])
    if form == "bibtex":
        return bibtex
    if form != "text":
        raise CleansetError(f"format {form!r}; expected bibtex or text")
    return "\n".join(_sentence(dict(_FIELD.findall(fields))) for _, fields in _ENTRY.findall(bibtex))


def _sentence(fields: dict[str, str]) -> str:
    """An entry as a line: authors, title, where it appeared, year."""
    fields = {name: _plain(text) for name, text in fields.items()}
    people = [_first_name_first(each) for each in fields["author"].split(" and ")]
    authors = people[0] if len(people) == 1 else f"{', '.join(people[:-1])} and {people[-1]}"
    title = fields["title"] if fields["title"].endswith("?") else f"{fields['title']}."
    where = (
        [fields["journal"], f"{fields['volume']}({fields['number']}):{fields['pages']}"] if "journal" in fields else []
    )
    where += [f"arXiv:{fields['eprint']}"] if "eprint" in fields else []
    where += [fields["year"]] if "year" in fields else []
    where += [f"doi:{fields['doi']}"] if "doi" in fields else []
    return f"{authors}. {title}{' ' + ', '.join(where) + '.' if where else ''}"


def _plain(text: str) -> str:
    for code, character in _ACCENTS.items():
        text = text.replace(code, character)
    return text.strip("{}")


def _first_name_first(author: str) -> str:
    last, _, first = author.partition(", ")
    return f"{first} {last}" if first else last
