"""Stages and DVC read the same values from params.yaml, or none."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

import cleanset
from cleanset.errors import CleansetError
from cleanset.plumbing.yaml_files import is_plain_text, parse_document, parse_yaml, read_study_yaml, read_yaml
from tests.properties import examples


def as_dvc(text: str) -> Any:
    """What DVC reads: dvc.utils.serialize."""
    return YAML(typ="safe").load(text)


@pytest.mark.parametrize("file", ["params.yaml", "dvc.yaml", "imagenet/params.yaml", "sample/dvc.yaml"])
def test_the_editions_files(file: str, repository: Path) -> None:
    content = read_yaml(repository / file, "")
    assert isinstance(content, dict)
    assert content == as_dvc((repository / file).read_text())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5), ("-5", -5), ("+5", 5), ("0", 0), ("1.50", 1.5), (".5", 0.5), ("-1.5", -1.5),
        ("true", True), ("False", False), ("null", None), ("~", None), ("", None), ("[1, a]", [1, "a"]),
        ("[1, a, '1', 1, a, true, true]", [1, "a", "1", 1, "a", True, True]),
        ("'012'", "012"), ('"yes"', "yes"), ("resnet50.a1_in1k", "resnet50.a1_in1k"), ("../x", "../x"),
        ("1.0.9", "1.0.9"), ("{b: {c: d}}", {"b": {"c": "d"}}), ("|\n  012\n", "012\n"), ("timm", "timm"), ("y", "y"),
    ],
)  # fmt: skip
def test_values(text: str, value: Any) -> None:
    content = parse_yaml(f"a: {text}", "x")
    assert repr(content) == repr({"a": value}) == repr(as_dvc(f"a: {text}"))


@pytest.mark.parametrize(
    "text",
    ["012", "0o14", "1:30", "190:20:30", "yes", "No", "on", "OFF", "1_0", "0x1F", "0b1", "1e5", "1.5e3", ".inf", ".nan",
     "2001-01-01", "2001-99-99", "<<", "=", "9" * 19, "09", "1.", "-.5", "-_1"],
)  # fmt: skip
def test_scalars_that_the_versions_of_yaml_read_differently(text: str) -> None:
    with pytest.raises(CleansetError, match="without quotes, which YAML readers read differently") as error:
        parse_yaml(f"b: 1\na: {text}", "params.yaml")
    assert str(error.value).startswith(f"params.yaml, line 2: '{text}' without quotes")
    assert parse_yaml(f"a: '{text}'", "x") == {"a": text}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: !!int x", "line 1: a tag, '!!int'; expected text, numbers, lists and tables"),
        ("a: !!bool maybe", "line 1: a tag, '!!bool'"),
        ("!!bool a: 1", "line 1: a tag, '!!bool'"),
        ("a: ! x", "line 1: a tag, '!'"),
        ("a: !x [1]", "line 1: a tag, '!x'"),
        ("a: &b 1", "line 1: an anchor or alias; expected the values themselves"),
        ("a: *b", "line 1: an anchor or alias"),
        ("a: 1\nb: 2\na: 3", "line 3: the key 'a' a second time, first in line 1; a key comes once: remove one"),
        ("1: a", "line 1: the key 1; expected text: put it in quotes"),
        ("[a]: b", "line 1: the key ['a']; expected text"),
        ("a: 1\n---\nb: 2", "line 2: a second document; a file holds one"),
        ("a: " + "[" * 100_000, "line 1: lists or tables more than 20 deep"),
        ("{a: " * 50_000, "line 1: lists or tables more than 20 deep"),
        ("a: [", "line 2: not YAML: did not find expected node content"),
        ("a: \x00", "not YAML: unacceptable character"),
        ('a: "x\x85y"', r"the character '\\x85': write it escaped, in double quotes"),
        ("a: x\u2028y", r"the character '\\u2028'"),
        ("a: %x", "line 1: not YAML: found character that cannot start any token"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(CleansetError, match=f"^params.yaml(, |: ){message.replace('[', chr(92) + '[')}") as error:
        parse_yaml(text, "params.yaml")
    assert len(str(error.value)) <= 300
    assert str(error.value).isprintable()


def test_a_long_value_is_cut_in_the_middle() -> None:
    with pytest.raises(CleansetError) as error:
        parse_yaml(f"{'x' * 998}: 1\n{'x' * 998}: 2", "params.yaml")
    key = "'" + "x" * 29 + "…" + "x" * 29 + "' (1,000 characters)"
    assert (
        str(error.value)
        == f"params.yaml, line 2: the key {key} a second time, first in line 1; a key comes once: remove one"
    )


ELSEWHERE = {
    "edition/dvc_files.py",  # dvc.lock and dvc.yaml, as DVC wrote them
}


def test_no_other_reader_of_yaml() -> None:
    source = Path(cleanset.__file__).parent
    reading = re.compile(r"yaml\.(safe_load|load|full_load|compose|parse|scan|CSafeLoader|SafeLoader)|YAML\(typ")
    found = {
        path.relative_to(source).as_posix() for path in source.rglob("*.py") if reading.search(path.read_text("utf-8"))
    }
    assert found - {"plumbing/yaml_files.py"} == ELSEWHERE


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [("blur", True), ("a note of words", True), ("0f3c9d", True), ("yes", False), ("1e9", False), ("012", False),
     ("30", False), ("true", False), ("", False), ("2012-07-01", False), ("1:30", False)],
)  # fmt: skip
def test_what_is_text_without_quotes(text: str, is_plain: bool) -> None:
    assert is_plain_text(text) == is_plain


@pytest.mark.parametrize(
    "text",
    [
        "- &x {a: 1, b: {c: 2}}\n- {<<: *x, a: 3}",
        "- &x {a: 1}\n- &y {a: 2, b: 3}\n- {d: 4, <<: [*x, *y]}",
        "- &x {a: 1}\n- &y {<<: *x, b: 2}\n- c: {<<: *y}",
        # as `dvc exp run -S` writes what was merged
        "{a: {<<: [&x {b: 1}, c: 2], d: 3}, e: {<<: *x, b: 1}}",
    ],
)
def test_merge_keys_where_they_are_allowed(text: str) -> None:
    assert parse_document(text, "x", merges=True)[0] == as_dvc(text)
    with pytest.raises(CleansetError, match=r"^x, line [123]: "):
        parse_yaml(text, "x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {<<: *x}", "line 1: a merge key (<<); expected the alias of a table above it, or a list of them"),
        ("a: &x {<<: *x}", "line 1: a merge key (<<); expected the alias"),
        ("a: {<<: 1}", "line 1: a merge key (<<); expected the alias"),
        ("- &x {b: 1}\n- {<<: [[*x]]}", "line 2: a merge key (<<); expected the alias"),
        ("- &x {b: 1}\n- {c: *x}", "line 2: an anchor or alias; expected the values themselves"),
        ("- &x 1", "line 1: an anchor or alias; expected the values themselves"),
    ],
)
def test_merge_keys_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(CleansetError, match=re.escape(f"x, {message}")):
        parse_document(text, "x", merges=True)


def test_the_lines_of_keys() -> None:
    text = "a:\n  b: 1\n  c:\n  - d: 2\n  - {e: 3}\n\nf: {g: 4,\n  h: 5}\n"
    assert parse_document(text, "x")[:2] == (
        {"a": {"b": 1, "c": [{"d": 2}, {"e": 3}]}, "f": {"g": 4, "h": 5}},
        {("a",): 1, ("a", "b"): 2, ("a", "c"): 3, ("f",): 7, ("f", "g"): 7, ("f", "h"): 8},
    )


scalars = st.text("0123456789_.:eExXobBaAfFinN+-~yY=<", max_size=8) | st.sampled_from(
    ["true", "NO", "off", "null", "Null", "1.0"]
)


@pytest.mark.slow
@examples(800)
@given(scalars, st.sampled_from(["a: {}", "- {}", "{{a: {}}}", "[{}, 1]", "{}: 1", "? {}\n: 2"]))
def test_what_is_accepted_is_what_dvc_reads(scalar: str, form: str) -> None:
    text = form.format(scalar)
    try:
        content = parse_yaml(text, "x")
    except CleansetError:
        return
    assert repr(content) == repr(as_dvc(text))


def test_a_byte_order_mark_is_left_out(tmp_path: Path) -> None:
    """At the beginning, as some editors write it; DVC reads such a file, too."""
    path = tmp_path / "params.yaml"
    path.write_bytes("\ufeffseed: 7\n".encode())
    assert read_yaml(path, "") == as_dvc(path.read_text()) == {"seed": 7}
    path.write_bytes("seed: \ufeff7\n".encode())
    with pytest.raises(CleansetError, match=r"the character '.ufeff': write it escaped"):
        read_yaml(path, "")


def test_a_missing_file_of_params_may_be_one_that_a_command_was_given(tmp_path: Path) -> None:
    expected = "missing; expected the params of a study of attacks: correct the path, or put the file back"
    with pytest.raises(CleansetError, match=expected):
        read_study_yaml(tmp_path / "params.yaml", "a study of attacks")
