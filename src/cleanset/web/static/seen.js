// What a person has in sight, how large, and for how long, unchanged: all pages ask here. A key or click answers what
// is shown; one that comes too soon does not count. One click is one answer: a second one at once, at the same place,
// is the same click. A plain script, since the study's page is also opened from the disk, where browsers load no
// modules.
"use strict";
{
  const SAME_CLICK_MILLISECONDS = 300;
  const SAME_PLACE_PIXELS = 8;
  const ROUNDING_PIXELS = 1;

  // --- what is on the screen now: a pinch (touchpad, touch screen) shows a part of the window, which no element knows

  // Times by which a pinch enlarges the page; the browser's own zoom is in devicePixelRatio.
  const pinched = () => visualViewport.scale;
  let askedToUndo = null;
  // Whether a page that shows exact images is enlarged by a pinch: nothing on it counts as seen.
  globalThis.isZoomed = () => askedToUndo !== null && Math.abs(pinched() - 1) > 0.01;
  const isVisible = () => document.visibilityState === "visible" && !isZoomed();

  // Where an image's pixels are, in CSS pixels of the window; its element may be larger.
  globalThis.placeOf = (image) => {
    const frame = image.getBoundingClientRect();
    const scale = Math.min(frame.width / image.naturalWidth, frame.height / image.naturalHeight);
    if (!Number.isFinite(scale)) return frame;
    const [width, height] = [image.naturalWidth * scale, image.naturalHeight * scale];
    return new DOMRect(frame.left + (frame.width - width) / 2, frame.top + (frame.height - height) / 2, width, height);
  };

  // The part of the window in which an element can be seen, on the screen and in all that scrolls around it; `width`
  // and `height`: those of the smallest of these.
  function partAround(element) {
    const { offsetLeft, offsetTop, width, height } = visualViewport;
    const part = { left: offsetLeft, top: offsetTop, right: offsetLeft + width, bottom: offsetTop + height, width, height };
    let { position } = getComputedStyle(element);
    // nothing scrolls what is fixed
    for (let around = element.parentElement; position !== "fixed" && around && around !== document.body; around = around.parentElement) {
      const style = getComputedStyle(around);
      position = style.position;
      if (style.overflow === "visible") continue;
      const { left, top, right, bottom, width, height } = around.getBoundingClientRect();
      part.width = Math.min(part.width, width);
      part.height = Math.min(part.height, height);
      part.left = Math.max(part.left, left);
      part.top = Math.max(part.top, top);
      part.right = Math.min(part.right, right);
      part.bottom = Math.min(part.bottom, bottom);
    }
    return part;
  }

  // Whether half of an image is in sight, or it fills half of the screen, or of what scrolls around it.
  globalThis.isInSight = (image) => {
    const [place, part] = [image.getBoundingClientRect(), partAround(image)];
    const isHalf = (low, high, size) =>
      2 * (Math.min(place[high], part[high]) - Math.max(place[low], part[low])) >= Math.min(place[size], part[size]);
    return isHalf("left", "right", "width") && isHalf("top", "bottom", "height");
  };

  // Whether all of an image is in sight, and nothing is over it but what is drawn on it.
  globalThis.isWholeInSight = (image) => {
    if (!isVisible() || !image.complete || !image.naturalWidth) return false;
    const [{ left, top, right, bottom }, part] = [placeOf(image), partAround(image)];
    const near = ROUNDING_PIXELS;
    if (left < part.left - near || top < part.top - near || right > part.right + near || bottom > part.bottom + near) return false;
    const [across, down] = [[left + near, right - near], [top + near, bottom - near]];
    const points = [...across.flatMap((x) => down.map((y) => [x, y])), [(left + right) / 2, (top + bottom) / 2]];
    // whatever covers a corner (a notice, a dialog), the point is not the image's
    const frame = image.closest(".photo, .frame") ?? image;
    return points.every(([x, y]) => frame.contains(document.elementFromPoint(x, y)));
  };

  // Width and height of an image on the screen, in device pixels.
  globalThis.sizeOnScreen = (image) => {
    const { width, height } = placeOf(image);
    return [width, height].map((each) => each * devicePixelRatio * pinched());
  };

  // Whether the browser replaces the page's colours: an automatic dark mode, or high contrast. By what it makes of a
  // ground that is white in every light page.
  globalThis.isDarkened = () => {
    const white = document.body.appendChild(document.createElement("i"));
    white.style.cssText = "display: none; background: canvas; color-scheme: only light";
    const isWhite = getComputedStyle(white).backgroundColor === "rgb(255, 255, 255)";
    white.remove();
    return !isWhite || matchMedia("(forced-colors: active)").matches;
  };

  // A line of words over the page, on the screen also where it is enlarged; null: none. `css`: where, and how it looks.
  const ABOVE = "inset: 0 0 auto; background: #a3211a; font-weight: 600; text-align: center";
  globalThis.tellOver = (id, words, { css = ABOVE, role = "alert" } = {}) => {
    let line = document.querySelector(`#${id}`);
    if (words === null) return line?.remove();
    if (line === null) {
      line = document.body.appendChild(Object.assign(document.createElement("p"), { id, role }));
      line.style.cssText = `position: fixed; z-index: 30; margin: 0; padding: 8px 12px; max-width: none; color: #fff; font: 16px/1.4 system-ui, sans-serif; transform-origin: 0 0; ${css}`;
    }
    if (line.textContent !== words) line.textContent = words;
    const { offsetLeft, offsetTop, scale } = visualViewport;
    if (css === ABOVE) line.style.transform = `translate(${offsetLeft}px, ${offsetTop}px) scale(${1 / scale})`;
  };
  const tellZoom = () => tellOver("zoomed", isZoomed() ? askedToUndo : null);
  // Ask whoever enlarges the page by a pinch to undo it, in these words; null: they may.
  globalThis.askToUndoZoom = (words) => {
    askedToUndo = words;
    tellZoom();
  };
  for (const event of ["resize", "scroll"]) visualViewport.addEventListener(event, tellZoom);

  // --- since when -------------------------------------------------------------------------------------

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
  // Seconds for which what has this name has been in sight unchanged; 0 if nothing has.
  globalThis.secondsInSight = (name) => (isVisible() ? secondsOf(things.get(name)) : 0);
  // Its value that had been in sight, unchanged, for `needed` seconds: that before, if it changed since; undefined if none.
  globalThis.settledInSight = (name, needed) => settledOf(things.get(name), needed);

  // --- one click ----------------------------------------------------------------------------------------

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
