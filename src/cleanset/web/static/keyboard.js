// Keys of any keyboard layout, as the pages take them: Latin letters, digits, signs and named keys. If a layout has
// other letters or digits, the place of the key counts, as on a Latin keyboard.
import "./digits.js";

export const isText = isTextKey;

const letterAt = (code) => /^Key([A-Z])$/.exec(code)?.[1].toLowerCase();

// Whether the page takes a key: another one is left to the browser. `named`: the page's keys with a name, such as Enter.
export const isTaken = ({ key, code }, named) => isText(key) || named.has(key) || (isUnknownKey(key) && Boolean(letterAt(code) ?? digitAtPlace({ key, code })));

// The value of a digit of another script: their blocks have ten each.
function digitOf(key) {
  const isDigit = (point) => /^\p{Nd}$/u.test(String.fromCodePoint(point));
  const point = key.codePointAt(0);
  if ([...key].length !== 1 || !isDigit(point)) return undefined;
  let zero = point;
  while (isDigit(zero - 1)) zero--;
  return String((point - zero) % 10);
}

let isForeign = false; // whether the letters of the layout are of another alphabet: its other keys at their places, too
// What a key stands for: `name`, a Latin letter in small, a sign, or the name of a key; and `digit`, which the key has at
// its place, whatever the layout types there: null if it has none.
export function meaningOf({ key, code = "", shiftKey = false }) {
  const letter = letterAt(code);
  if (letter && isText(key) && /[\p{L}\p{M}]/u.test(key)) isForeign = !/^[a-z]$/i.test(key);
  const digit = digitAtPlace({ key, code }) ?? digitOf(key) ?? null;
  if (/^[a-z]$/i.test(key)) return { name: key.toLowerCase(), digit }; // Caps Lock
  if (letter && (isUnknownKey(key) || (isForeign && isText(key)))) return { name: letter, digit };
  if (isForeign && !shiftKey && /^Digit/.test(code)) return { name: digit, digit }; // a Thai keyboard has signs there
  return { name: digitOf(key) ?? (isUnknownKey(key) ? digit ?? key : key), digit };
}
