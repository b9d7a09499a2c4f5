"""The two dialogs with a field to type in: finding a class, writing a note.

The field is created each time a dialog opens: NiceGUI would set the text of an existing field after the dialog is
shown, and overwrite what was typed meanwhile. Enter and Escape arrive as keys do, with the text.
"""

from collections.abc import Awaitable, Callable, Sequence

from nicegui import ui

from cleanset.dataset.class_names import ClassName, search_classes
from cleanset.review.store import MAX_NOTE


class Search:
    """Find a class by name or wnid. `leave` gets the class index that is clicked, or None for a click outside.

    `state`: the state of a class in words, by class index.
    """

    _text: ui.input
    _hits: ui.list

    def __init__(
        self,
        names: Sequence[ClassName],
        leave: Callable[[int | None], Awaitable[None]],
        state: Callable[[int], str],
    ) -> None:
        self._names, self._leave, self._state, self._row = names, leave, state, 0
        self._dialog = ui.dialog().props('position=top transition-duration=0 aria-label="Search a class"')
        self._dialog.on("hide", lambda: leave(None))

    def show(self, wanted: bool) -> None:
        """Open or close it."""
        if wanted == self._dialog.value:
            return
        if wanted:
            self._fill()
            self._list_first()
        self._dialog.value = wanted

    def chosen(self, text: str) -> int | None:
        """The class index of the selected row among the hits of `text`; None without a hit."""
        hits = search_classes(self._names, text)
        return hits[min(self._row, len(hits) - 1)].class_index if hits else None

    def _fill(self) -> None:
        self._dialog.clear()
        with self._dialog, ui.card().classes("search"):
            self._text = ui.input(placeholder="name or wnid of a class", on_change=self._list_first)
            self._text.props('autofocus outlined dense aria-label="Name or wnid of a class"').classes("w-full")
            self._hits = ui.list().props("dense").classes("hits")
        self._text.on("keydown.down.prevent", lambda: self._move(1))
        self._text.on("keydown.up.prevent", lambda: self._move(-1))

    def _list_first(self) -> None:
        self._row = 0
        self._list()

    def _found(self) -> list[ClassName]:
        return search_classes(self._names, self._text.value or "")

    def _list(self) -> None:
        self._hits.clear()
        with self._hits:
            for row, name in enumerate(self._found()):
                # bound by a default: the loop has moved on when somebody clicks
                with ui.item(on_click=lambda index=name.class_index: self._leave(index)) as item:
                    with ui.item_section():
                        ui.item_label(name.name + (f", {name.others}" if name.others else ""))
                        ui.item_label(f"{name.wnid} · {name.gloss}").props("caption lines=1")
                    with ui.item_section().props("side"):
                        ui.item_label(self._state(name.class_index)).props("caption")
                if row == self._row:
                    item.props("active")

    def _move(self, by: int) -> None:
        self._row = max(0, min(len(self._found()) - 1, self._row + by))
        self._list()


class Note:
    """Write a note. `leave` gets None for a click outside."""

    def __init__(self, leave: Callable[[str | None], Awaitable[None]]) -> None:
        self._dialog = ui.dialog().props('transition-duration=0 aria-label="Note"')
        self._dialog.on("hide", lambda: leave(None))

    def show(self, wanted: tuple[str, str] | None) -> None:
        """Open it with a title and a text, or close it."""
        if (wanted is not None) == self._dialog.value:
            return
        if wanted is not None:
            self._fill(*wanted)
        self._dialog.value = wanted is not None

    def _fill(self, title: str, text: str) -> None:
        self._dialog.clear()
        with self._dialog, ui.card().classes("note"):
            ui.label(title).classes("title")
            field = ui.textarea(value=text).props('autofocus outlined autogrow aria-label="Note"').classes("w-full")
            field.props(f"maxlength={MAX_NOTE}")
            ui.label(
                f"Enter saves, Shift+Enter begins a line, Esc leaves it. At most {MAX_NOTE:,} characters."
            ).classes("hint")
