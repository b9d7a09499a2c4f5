// What a key types, and the digit at its place on the keyboard.
// A plain script, since the study's page is also opened from the disk, where browsers load no modules.
"use strict";
{
  // Keys that type nothing by themselves, and whose place shows what is meant: an accent to come, an input method.
  const UNKNOWN = new Set(["", "Dead", "Process", "Unidentified"]);
  globalThis.isUnknownKey = (key) => UNKNOWN.has(key);

  // Whether a key types something; on some layouts two characters, or a mark that joins the letter before.
  globalThis.isTextKey = (key) => [...key].length === 1 || /[^\x00-\x7f]/.test(key);

  // The digit that a key has at its place, whatever the layout types there; undefined if it has none. Without Num
  // Lock, the numbers are arrows.
  globalThis.digitAtPlace = ({ key, code = "" }) =>
    isTextKey(key) || isUnknownKey(key) ? /^(?:Digit|Numpad)([0-9])$/.exec(code)?.[1] : undefined;
}
