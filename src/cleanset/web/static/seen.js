// What a person has had in sight, unchanged, and for how long: what is pressed answers that, and too short a time is no
// answer. One click is one answer: a second one at once, at the same place, is the same click.
// A plain script, since the study's page is also opened from the disk, where browsers load no modules.
"use strict";
{
  const SAME_CLICK_MILLISECONDS = 300;
  const SAME_PLACE_PIXELS = 8;

  const isVisible = () => document.visibilityState === "visible";

  let asked = {};
  // Seconds since all of these images have been there, in a window that is in sight; another `subject` begins anew.
  globalThis.secondsSeen = (subject, images) => {
    if (asked.subject !== subject) asked = { subject, since: null };
    if (!isVisible()) asked.since = null;
    else if (images.every((image) => image.complete)) asked.since ??= performance.now();
    return asked.since === null ? 0 : (performance.now() - asked.since) / 1000;
  };

  // By name: what is in sight, since when (null in a window that is not), and its value before, if that was settled.
  let things = new Map();
  const secondsOf = (thing) => (thing === undefined || thing.since === null ? 0 : (performance.now() - thing.since) / 1000);
  const settledOf = (thing, needed) => (thing !== undefined && secondsOf(thing) >= needed ? thing.value : thing?.settled);

  // Note what is in sight now, as values by name; what is left out, or null, is gone. `needed`: seconds until a value is
  // settled.
  globalThis.noteInSight = (values, needed) => {
    const next = new Map();
    for (const [name, value] of Object.entries(values)) {
      if (value === null) continue;
      const before = things.get(name);
      const isSame = before?.value === value;
      const since = isVisible() ? (isSame ? before.since : null) ?? performance.now() : null;
      next.set(name, { value, since, settled: isSame ? before.settled : settledOf(before, needed) });
    }
    things = next;
  };
  // Seconds for which what has this name has been in sight as it is now; 0 if nothing has.
  globalThis.secondsInSight = (name) => secondsOf(things.get(name));
  // Its value that had been in sight, unchanged, for `needed` seconds: that before, if it changed since; undefined if none.
  globalThis.settledInSight = (name, needed) => settledOf(things.get(name), needed);

  let last = { at: -Infinity, x: 0, y: 0 };
  addEventListener(
    "click",
    (event) => {
      // a key presses a button as often as it is pressed; text is selected by a double click
      if (!event.isTrusted || event.detail === 0 || event.target.closest?.("input, textarea, label")) return;
      const isNear = Math.hypot(event.clientX - last.x, event.clientY - last.y) <= SAME_PLACE_PIXELS;
      if (isNear && event.timeStamp - last.at < SAME_CLICK_MILLISECONDS) {
        event.stopImmediatePropagation();
        event.preventDefault();
        return;
      }
      last = { at: event.timeStamp, x: event.clientX, y: event.clientY };
    },
    true,
  );
}
