"""The check of words finds each form where people read it, and nothing in code or in idiomatic sentences."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import words

PHRASES = [
    "foo is no model", "they are no\n  labels", "a name that is none", "None where there is nothing",
    "a precision that there is not", "the first so many images", "the difference of each two models",
    "float64 (as a rule)", "images, of which a model is measured", "the problem is told in one line",
    "the edition is as it was.", "what it is held against", "hold this\n  against that", "it is had at the site",
    "each who opens it",
]  # fmt: skip
"""One or more for each of FORMS."""
IDIOMATIC = [
    "There is no GPU.", "It is no longer read.", "there is no such file", "as it was written",
    "one file for each model", "told apart", "each of the two", "Whose is none of them", "a rule",
]  # fmt: skip


def found(path: str, content: str) -> list[tuple[int, str]]:
    """Line and phrase of each finding."""
    return [(finding.line, finding.phrase) for finding in words.findings(path, content, {})]


@pytest.mark.parametrize("phrase", PHRASES)
def test_it_finds_each_form(phrase: str) -> None:
    """In a message, a docstring, the text below a constant, a part of an f-string, and a page."""
    one_line = " ".join(phrase.split())
    for content in (
        f'"""The models.\n\n{phrase}"""\n',
        f'LIMIT = 3\n"""{phrase}"""\n',
        f"def f(name):\n    raise ValueError({one_line!r})\n",
        f"def f(name):\n    print(f'{{name:>{{len(name)}}}}, {one_line}, {{name}}')\n",
        f"def f(name):\n    print(f'a {{g(\"{one_line}\")}}')\n",
    ):
        assert len(found("a.py", content)) == 1, content
    assert len(found("a.md", f"# Models\n\nText:\n{phrase}\n")) == 1
    assert len(found("a.html", f"<p>{phrase}</p>\n")) == 1


def test_every_form_has_a_phrase() -> None:
    hit = {advice for phrase in PHRASES for _, _, advice in words.phrases(words.Passage(words.numbered(phrase, 1)))}
    assert hit == set(words.FORMS.values())


@pytest.mark.parametrize("sentence", IDIOMATIC)
def test_it_leaves_idiomatic_sentences_alone(sentence: str) -> None:
    assert found("a.md", f"{sentence}\n") == []


def test_it_names_the_line_of_the_phrase() -> None:
    content = '"""Models.\n\nOne of them\nis no\nmodel.\n"""\n\n\nx = "so many"\n'
    assert found("a.py", content) == [(4, "is no model"), (9, "so many")]
    assert found("a.md", "# So many\n\none\nis no\nlabel\n") == [(1, "So many"), (4, "is no label")]


def test_it_reads_no_code() -> None:
    assert found("a.md", "Run `so many`.\n\n```sh\necho so many\n```\n") == []
    assert found("a.py", "so_many = 1  # so many\n") == []


@pytest.mark.parametrize("first", ["What", "How", "Of", "The same of"])
def test_a_docstring_does_not_begin_as_a_fragment(first: str) -> None:
    text = f"{first} each model."
    assert found("a.py", f'SEEDS = 3\n"""{text}"""\n') == [(2, first)]
    assert found("a.py", f'def f():\n    """{text}"""\n') == [(2, first)]
    assert found("a.py", f"print({text!r})\n") == []
    assert found("a.py", '"""Whatever it takes."""\n') == []


def test_an_exception_allows_its_phrase_alone() -> None:
    content = "A tie is no win.\n\nA tie is no loss.\n"
    allowed = {("a.md", "tie is no win"): "a title", ("b.md", "tie is no loss"): "another page"}
    first, second = words.findings("a.md", content, allowed)
    assert list(first.allowed_by) == [("a.md", "tie is no win")]
    assert not second.allowed_by


def test_an_exception_that_allows_nothing_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A tie is no win. There are so many.\n")
    (tmp_path / "b.md").write_text("Nothing.\n")
    exceptions = {("a.md", "is no win"): "x", ("a.md", "win. There"): "x", ("b.md", "so many"): "x"}
    assert words.check(tmp_path, ["a.md", "b.md"], exceptions) == [
        "a.md:1: so many: write name the number: the first N …",
        "a.md: no phrase in 'win. There': remove the exception",
        "b.md: no phrase in 'so many': remove the exception",
    ]
    assert words.check(tmp_path, ["a.md"], exceptions)[-1].startswith("a.md: ")


def test_every_exception_has_a_reason() -> None:
    assert [key for key, reason in words.EXCEPTIONS.items() if len(reason.split()) < 3] == []
    path, piece = next(iter(words.EXCEPTIONS))
    assert (path, piece) == ("sample/contest_controls.py", "a background alone is no object")


def test_it_reads_what_people_read(repository: Path) -> None:
    """Sources, templates and pages, but no tests, which quote messages, and no file of a set that DVC put there."""
    read = set(words.texts(repository))
    assert {"README.md", "CHANGELOG.md", "docs/use.md", "docs/hooks.py", "src/cleanset/errors.py", "sample/draw.py",
            "bench/README.md", "bench/score.py", "data/README.md", "imagenet/reviews/README.md",
            "studies/contest/README.md"} <= read  # fmt: skip
    assert any(path.endswith(".html") for path in read)
    assert not any(path.startswith(("tests/", "data/export/", "build/", ".venv")) for path in read)


def test_the_command(repository: Path) -> None:
    """One file that is clean, and one with the phrases themselves."""
    command = [sys.executable, "tests/project/words.py"]
    done = subprocess.run([*command, "README.md"], cwd=repository, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = subprocess.run([*command, __file__], cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "tests/project/test_words.py:" in done.stdout


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("a.py", '"""The error minus that of the line."""\n', [(1, "that of")]),
        (
            "a.py",
            'LIMIT = 3\n"""None if there is none; in which case."""\n',
            [(2, "in which"), (2, "none"), (2, "there is")],
        ),
        ("a.py", 'def _f():\n    """What it does."""\n', []),
        ("a.py", 'def f():\n    raise ValueError("expected what f writes")\n', [(2, "what")]),
        ("a.py", '"""The names in `what`; None without any."""\n', []),
        ("a.md", "What is it?\n\nWrite what it is.\n", [(3, "what")]),
        (
            "a.html",
            "<style>a { fill: none; }</style>\n<p title='what it is'>{{ none }} of which</p>\n",
            [(2, "of which")],
        ),
    ],
)
def test_it_counts_words_that_avoid_a_term(path: str, content: str, expected: list[tuple[int, str]]) -> None:
    """In public docstrings, strings and pages; not in private docstrings, code or questions."""
    assert words.counted(path, content) == expected


def test_more_of_them_than_there_were_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of all public texts; `make lint` reads those of this repository."""
    (tmp_path / "README.md").write_text("See what it prints, and what that means.\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "use.md").write_text("A part of what it prints.\n")
    (tmp_path / "docs" / "drawing.py").write_text('"""Draw what is asked for."""\n')
    monkeypatch.setattr(words, "ROOT", tmp_path)
    monkeypatch.setattr(words, "EXCEPTIONS", {})
    monkeypatch.setattr(words, "MAX_COUNTED", 3)
    assert words.main([]) == 0
    monkeypatch.setattr(words, "MAX_COUNTED", 2)
    assert words.main([]) == 1
    assert capsys.readouterr().out == (
        "3 of the words in COUNTED; expected at most 2: see words.py --counted, name the thing\n"
    )
