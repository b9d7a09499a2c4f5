"""What keys of other layouts stand for, on every page."""

from base64 import b64encode
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser_tab import SOURCE

STATIC: Path = SOURCE / "cleanset" / "web" / "static"
LATIN = ("a", "KeyA")
CYRILLIC = ("\N{CYRILLIC SMALL LETTER A}", "KeyF")
ARABIC = ("\N{ARABIC LETTER BEH}", "KeyF")
THAI = ("\N{THAI CHARACTER KO KAI}", "KeyD")
"""A letter of a layout, which identifies it."""

KEYS: list[tuple[tuple[str, str], str, str, bool, str, str | None]] = [
    (LATIN, "z", "KeyY", False, "z", None),  # QWERTZ: a Latin letter counts, wherever it is
    (LATIN, "A", "KeyQ", True, "a", None),  # AZERTY
    (LATIN, "\N{LATIN SMALL LETTER E WITH ACUTE}", "Digit2", False, "\N{LATIN SMALL LETTER E WITH ACUTE}", "2"),
    (LATIN, "-", "Digit6", False, "-", "6"),
    (LATIN, "/", "Digit7", True, "/", "7"),  # German
    (LATIN, "2", "Digit2", True, "2", "2"),  # AZERTY
    (LATIN, "ArrowUp", "Numpad8", False, "ArrowUp", None),  # without Num Lock
    (LATIN, "Enter", "Enter", False, "Enter", None),
    (CYRILLIC, "\N{CYRILLIC SMALL LETTER YA}", "KeyZ", False, "z", None),
    (CYRILLIC, ",", "KeyW", False, "w", None),
    (CYRILLIC, "?", "Digit7", True, "?", "7"),
    (ARABIC, "\N{ARABIC LETTER LAM}\N{ARABIC LETTER ALEF}", "KeyB", False, "b", None),
    (ARABIC, "\N{ARABIC-INDIC DIGIT FOUR}", "Digit4", False, "4", "4"),
    (ARABIC, "\N{ARABIC-INDIC DIGIT FOUR}", "", False, "4", "4"),  # a keyboard on the screen
    (THAI, "\N{THAI CHARACTER MAI HAN-AKAT}", "KeyY", False, "y", None),
    (THAI, "/", "Digit2", False, "2", "2"),
    (("\N{DEVANAGARI LETTER KA}", "KeyK"), "\N{DEVANAGARI VOWEL SIGN AA}", "KeyE", False, "e", None),
    (("\N{DEVANAGARI LETTER KA}", "KeyK"), "\N{DEVANAGARI DIGIT SEVEN}", "", False, "7", "7"),
    (LATIN, "Dead", "KeyX", False, "x", None),
    (LATIN, "Process", "Digit3", False, "3", "3"),  # an input method
]
"""A letter pressed before; key, code and Shift; the name and the digit that they stand for."""


@pytest.mark.browser
def test_keys_of_other_layouts(browser: Browser) -> None:
    page = browser.new_page()
    page.add_script_tag(path=STATIC / "digits.js")
    module = (STATIC / "keyboard.js").read_text()
    # a module at such an address has no folder to import from
    code = b64encode(module.replace('import "./digits.js";', "").encode()).decode()
    found = page.evaluate(
        """async ([code, keys]) => {
            const { isTaken, meaningOf } = await import(`data:text/javascript;base64,${code}`);
            return keys.map(([[before, at], key, place, shiftKey]) => {
                meaningOf({ key: before, code: at });
                const { name, digit } = meaningOf({ key, code: place, shiftKey });
                return [name, digit, isTaken({ key, code: place }, new Set(["Enter"]))];
            });
        }""",
        [code, KEYS],
    )
    page.close()
    expected = [[name, digit, key != "ArrowUp"] for _, key, _, _, name, digit in KEYS]
    assert found == expected
