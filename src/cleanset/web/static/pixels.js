// Every image that is judged, or explains: at its own pixels; each covers a whole number of device
// pixels, whatever the zoom and the pixel ratio. A browser that scales by another factor smooths, and may smooth an attack away. A plain script, as seen.js.
"use strict";
{
  // the screen's pixels may be a little more than a fraction of a CSS pixel says
  const times = (available, pixels) => (available * devicePixelRatio) / pixels + 1e-6;

  // The largest whole factor at which `count` images of a size in pixels fit side by side into a room in CSS pixels.
  // `preferred`: the width in CSS pixels that is not exceeded by enlarging. 0: not even 1 : 1 fits.
  globalThis.pixelFactor = ([width, height], count, room, preferred) => {
    const fits = (available, pixels) => Math.floor(times(available, pixels));
    const most = Math.min(fits(room.width / count, width), fits(room.height, height));
    return Math.min(most, Math.max(1, fits(preferred, width)));
  };

  // Whether `count` images of a size in pixels fit side by side into a room in CSS pixels, each pixel on `factor` device
  // pixels.
  globalThis.fitsAt = ([width, height], count, room, factor) =>
    Math.min(times(room.width / count, width), times(room.height, height)) >= factor;

  // The nearest place, in CSS pixels, that is a whole number of device pixels.
  globalThis.wholePixels = (at) => Math.round(at * devicePixelRatio) / devicePixelRatio;

  // CSS pixels in a unit of the grid to which the browser rounds what it paints: a device pixel, but a CSS pixel where the
  // ratio is emulated by developer tools. Lengths have the same grid, in parts of 64.
  const PROBE = 0.3;
  const CSS_PROBE = Math.floor(64 * PROBE) / 64;
  const units = new Map(); // by pixel ratio
  function paintedUnit() {
    if (!units.has(devicePixelRatio)) {
      const probe = document.body.appendChild(document.createElement("i"));
      probe.style.cssText = `position: absolute; width: ${PROBE}px`;
      const isCss = Math.abs(probe.getBoundingClientRect().width - CSS_PROBE) < 1e-4; // or the ratio is whole
      probe.remove();
      units.set(devicePixelRatio, isCss ? 1 : 1 / devicePixelRatio);
    }
    return units.get(devicePixelRatio);
  }

  // Shows the image with `factor` device pixels for each of its own, `left` and `top` in CSS pixels from the element in
  // which it is positioned. The browser smooths only if the factor is not a whole number. The scale of its own lengths.
  globalThis.placeAtPixels = (image, [width, height], factor, left, top) => {
    const unit = paintedUnit();
    const scale = 1 / (devicePixelRatio * unit);
    Object.assign(image.style, {
      position: "absolute", left: "0", top: "0", width: `${factor * width * unit}px`, height: `${factor * height * unit}px`,
      imageRendering: Number.isInteger(factor) ? "pixelated" : "auto", transformOrigin: "0 0",
      transform: `translate(${left}px, ${top}px) scale(${scale})`,
    });
    return scale;
  };

  // --- a frame: an image at its own pixels, with what is drawn on it; it shows how much has arrived ----

  const sheet = new CSSStyleSheet();
  // browsers that darken pages would change what is around exact images
  sheet.replaceSync(`
    .frame { display: grid; place-items: center; flex: none; position: relative; color-scheme: only light; }
    .frame[tabindex] { overflow: auto; }
    .frame img { display: block; max-width: none; }
    .frame svg, .frame .seen { position: absolute; inset: auto; max-width: none; }
    .frame .loading { color: #595959; font-size: .9em; }
    .frame:has(.loading) { background: #e9e9e6; }
    .frame:has(.loading) > :not(.loading) { visibility: hidden; }
    .part { display: block; }`);
  document.adoptedStyleSheets.push(sheet);

  globalThis.frameOf = (file, alt, kind = "") => `<span class="frame ${kind}"><img data-file="${file}" alt="${alt}"></span>`;

  // Where the frame is in what it scrolls with, in CSS pixels of the window.
  function placeOfFrame(frame) {
    const { left, top } = frame.getBoundingClientRect();
    const place = [left + scrollX, top + scrollY];
    for (let around = frame.parentElement; around !== document.documentElement; around = around.parentElement) {
      place[0] += around.scrollLeft;
      place[1] += around.scrollTop;
    }
    return place;
  }

  // By frame: how its image is shown, and where the frame was then.
  const placed = new Map();
  // Whatever comes late and moves a frame (another image, a line, a font) would leave its image between device pixels.
  function followFrames() {
    for (const [frame, { shown, place }] of placed) {
      if (!frame.isConnected) placed.delete(frame);
      else if (placeOfFrame(frame).some((at, axis) => at !== place[axis])) showAtPixels(frame, ...shown);
    }
    if (placed.size > 0) requestAnimationFrame(followFrames);
  }

  // Shows the image in its frame, which gets its size; where the room in CSS pixels is smaller, that of the room, and the
  // image is scrolled. Whether it is.
  globalThis.showAtPixels = (frame, [width, height], factor, room = { width: Infinity, height: Infinity }) => {
    const [across, down] = [width, height].map((each) => (factor * each) / devicePixelRatio);
    const isCut = across > room.width || down > room.height;
    Object.assign(frame.style, { left: "0", top: "0", width: `${Math.min(across, room.width)}px`, height: `${Math.min(down, room.height)}px` });
    if (isCut) frame.tabIndex = 0; // to be scrolled by keys, too
    else frame.removeAttribute("tabindex");
    // browsers paint what is transformed from a whole unit: the frame is moved there, and the image by the rest
    const unit = paintedUnit();
    const [near, rest] = [[], []];
    placeOfFrame(frame).forEach((at, axis) => {
      const whole = Math.round(at / unit) * unit;
      near[axis] = whole - at;
      rest[axis] = wholePixels(whole) - whole;
    });
    Object.assign(frame.style, { left: `${near[0]}px`, top: `${near[1]}px` });
    placeAtPixels(frame.querySelector("img"), [width, height], factor, ...rest);
    for (const above of frame.querySelectorAll("svg, .seen")) {
      const inset = Number(above.dataset.inset ?? 0);
      Object.assign(above.style, {
        left: `${rest[0] + inset * across}px`, top: `${rest[1] + inset * down}px`,
        width: `${(1 - 2 * inset) * across}px`, height: `${(1 - 2 * inset) * down}px`,
      });
    }
    if (placed.size === 0) requestAnimationFrame(followFrames);
    placed.set(frame, { shown: [[width, height], factor, room], place: placeOfFrame(frame) });
    return isCut;
  };

  // Shows an example as large as it is whole in its room, but at its own pixels at least; `words`: the notice if only a part fits.
  globalThis.showExample = (frame, size, factor, room, words) => {
    const isCut = showAtPixels(frame, size, factor, room);
    const line = frame.parentElement.querySelector(".part");
    if (!isCut) line?.remove();
    else if (!line) frame.after(Object.assign(document.createElement("small"), { className: "part" }));
    if (isCut) frame.nextElementSibling.textContent = words;
  };

  function tell(frame, text, percent) {
    const told = frame.querySelector(".loading");
    if (told?.textContent !== text) Object.assign(told ?? {}, { textContent: text, ariaValueNow: percent });
  }
  globalThis.reveal = (frame) => frame.querySelector(".loading")?.remove();

  // A loader of a page with frames (see loader.js), which also fills a frame: resolves when its image is decoded, to
  // whether it is on the page still, and wanted there. Until the frame is revealed, `inWords` gives the text for the percentage that has loaded.
  globalThis.frameLoader = (load, inWords, troubled) => {
    const tellLoaded = (frame, percent) => tell(frame, inWords(percent), percent);
    const progressed = (url, share) =>
      document.querySelectorAll(`.frame:has([data-file="${url}"]):has(.loading)`).forEach((frame) => tellLoaded(frame, Math.floor(100 * share)));
    const loader = imageLoader(load, { troubled, progressed });
    async function fill(frame) {
      const image = frame.querySelector("img");
      reveal(frame);
      frame.append(Object.assign(document.createElement("span"), {
        className: "loading", role: "progressbar", ariaValueMin: "0", ariaValueMax: "100",
      }));
      frame.querySelector(".loading").ariaLabel = image.alt;
      tellLoaded(frame, 0);
      const { file } = image.dataset;
      const address = await loader.arrived(file);
      if (address === null || !image.isConnected || image.dataset.file !== file) return false; // another page, or image
      image.src = address;
      await image.decode();
      return image.isConnected;
    }
    return { ...loader, fill };
  };
}
