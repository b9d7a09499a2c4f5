"""Run docs/tutorial.md, and write what its cells print and show into docs/tutorial.ipynb.

Run `python docs/tutorial.py` in the root. The page is a notebook in jupytext's Markdown format; its cells run in
build/tutorial, which is made again as `cleanset tutorial` does. The site shows the page with the outputs that the
notebook has (hooks.py).
"""

import ast
import contextlib
import io
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cleanset.tutorial import write_tutorial

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "tutorial.md"
NOTEBOOK = DOCS / "tutorial.ipynb"
WORK = DOCS.parent / "build" / "tutorial"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
CELL = re.compile(r"(?ms)^```(python|bash)\n(.*?)\n```$")
WIDTH = {"COLUMNS": "80"}
"""As wide as the page."""
OFFLINE = {"HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": str(WORK / "cache")}
"""The library `datasets` uses no network; only Python cells import it."""


class Cell(NamedTuple):
    """A cell of the tutorial: its kind, `markdown`, `python` or `bash`, and its text."""

    kind: str
    text: str


def cells(page: str) -> Iterator[Cell]:
    """The cells of a page, without the head between lines of dashes; as jupytext divides it."""
    end = 0
    page = page.split("---\n", 2)[2]
    for found in CELL.finditer(page):
        if text := page[end : found.start()].strip("\n"):
            yield Cell("markdown", text)
        yield Cell(found[1], found[2])
        end = found.end()
    if text := page[end:].strip("\n"):
        yield Cell("markdown", text)


def notebook(page: str, outputs: Iterator[list[dict[str, Any]]]) -> dict[str, Any]:
    """The notebook of a page, with the outputs of each of its code cells."""
    found: list[dict[str, Any]] = []
    for number, cell in enumerate(cells(page), start=1):
        text = f"%%bash\n{cell.text}" if cell.kind == "bash" else cell.text
        entry: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
        if cell.kind == "markdown":
            found.append({"cell_type": "markdown", **entry})
        else:
            found.append({"cell_type": "code", "execution_count": None, **entry, "outputs": next(outputs)})
    return {"cells": found, "metadata": {"kernelspec": KERNEL}, "nbformat": 4, "nbformat_minor": 5}


def run(page: str) -> Iterator[list[dict[str, Any]]]:
    """Run the code cells of a page one after another, in the folder of the tutorial; the outputs of each."""
    os.chdir(WORK)
    environment = os.environ | WIDTH
    os.environ |= WIDTH | OFFLINE
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells(page):
        if cell.kind == "bash":
            done = subprocess.run(
                ["bash", "-e"], input=cell.text, capture_output=True, text=True, check=False, env=environment
            )
            if done.returncode:
                raise SystemExit(f"{cell.text}\n{done.stdout}{done.stderr}")
            yield printed(done.stdout)
        elif cell.kind == "python":
            yield ran(cell.text, names)


def ran(program: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """The outputs of a program: what it prints, and the value of its last line, if that is an expression."""
    parsed = ast.parse(program)
    *before, last = parsed.body
    if isinstance(last, ast.Expr):
        parsed.body = before
    stdout = io.StringIO()
    with contextlib.redirect_stdout(stdout):
        exec(compile(parsed, "tutorial", "exec"), names)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "tutorial", "eval"), names)
    if value is None:
        return printed(stdout.getvalue())
    data = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_().splitlines(keepends=True)
    result = {"output_type": "execute_result", "execution_count": None, "data": data, "metadata": {}}
    return [*printed(stdout.getvalue()), result]


def printed(text: str) -> list[dict[str, Any]]:
    """The output of what was printed; none where that is nothing."""
    lines = [line.rstrip() for line in text.splitlines()]
    text = "".join(f"{line}\n" for line in lines).strip("\n")
    return [{"output_type": "stream", "name": "stdout", "text": f"{text}\n".splitlines(keepends=True)}] if text else []


def main() -> None:
    """Run the tutorial and write the notebook."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.parent.mkdir(exist_ok=True)
    write_tutorial(WORK)
    page = PAGE.read_text("utf-8")
    found = notebook(page, run(page))
    NOTEBOOK.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
