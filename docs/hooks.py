"""Hooks of MkDocs: add the pages outside docs/ to the site, and the outputs of the tutorial."""

import json
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
    # some disks take SECURITY.md for docs/security.md
    "SECURITY.md": "report_a_hole.md",
}
"""Pages of the repository's root, and their names in the site."""
FOUND_LAST = ("reference/", "decisions/", "CHANGELOG.md")
"""Beginnings of the pages that a search lists after others."""
OTHER_FILES = ("CITATION.cff", "LICENSE")
"""Files of the root that these pages link to."""


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the files of the repository's root, with their links as seen from docs/."""
    for name, in_site in PAGES.items():
        files.append(File.generated(config, in_site, content=seen_from_docs((ROOT / name).read_text("utf-8"))))
    for name in OTHER_FILES:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to the root's pages to their copies, and show the outputs of the tutorial."""
    if page.file.src_uri.startswith(FOUND_LAST):
        page.meta["search"] = {"boost": 0.3}  # pages that explain come first
    if page.file.src_uri == "tutorial.md":
        markdown = with_outputs((ROOT / "docs" / "tutorial.ipynb").read_text("utf-8"))
    up = "../" * page.file.src_uri.count("/")
    for name, in_site in PAGES.items():
        markdown = markdown.replace(f"](../{up}{name}", f"]({up}{in_site}")
    return markdown


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Give each cell of a table the header of its column, which a phone shows in front of it (site.css)."""
    return re.sub(r"(?s)<table>.*?</table>", lambda table: labelled(table[0]), html)


def labelled(table: str) -> str:
    """A table whose cells have the headers of their columns."""
    found = re.findall(r"(?s)<th.*?>(.*?)</th>", table)
    headers = [re.sub("<[^>]+>", "", header).replace('"', "&quot;") for header in found]
    rows = []
    for row in re.split(r"(?=<tr)", table):
        before, *cells = row.split("<td")
        rows.append(before + "".join(f'<td data-label="{of}"{cell}' for of, cell in zip(headers, cells, strict=False)))
    return "".join(rows)


def with_outputs(notebook: str) -> str:
    """The Markdown of a notebook, with the outputs of its cells."""
    parts = list[str]()
    for cell in json.loads(notebook)["cells"]:
        text = "".join(cell["source"])
        shell = text.startswith("%%bash\n")
        code = f"```{'bash' if shell else 'python'}\n{text.removeprefix('%%bash' + chr(10))}\n```"
        parts.append(text if cell["cell_type"] == "markdown" else code)
        for output in cell.get("outputs", ()):
            found = output.get("data", {"text/plain": output.get("text", ())})
            if "text/html" in found:
                parts.append(f'<div class="output">{"".join(found["text/html"])}</div>')
            else:
                parts.append(f"```{{.text .output}}\n{''.join(found['text/plain']).rstrip()}\n```")
    return "\n\n".join(parts)


def seen_from_docs(text: str) -> str:
    """A page of the root with its links as seen from docs/."""
    for name, in_site in PAGES.items():
        text = text.replace(f"]({name}", f"]({in_site}")
    return text.replace("](docs/", "](").replace('"docs/', '"')
