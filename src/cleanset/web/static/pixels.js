// Images at their own pixels: each pixel of a file covers a whole number of device pixels, whatever the zoom and the
// pixel ratio. A browser that scales by another factor smooths, and may smooth an attack away. A plain script, as seen.js.
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

  // Shows the image with `factor` device pixels for each of its own, `left` and `top` in CSS pixels from the element in
  // which it is positioned. Only where the factor is no whole number does the browser smooth.
  // By a transform, since browsers round layout to 1/64 of a CSS pixel, and would smooth the edges.
  globalThis.placeAtPixels = (image, [width, height], factor, left, top) => {
    Object.assign(image.style, {
      position: "absolute", left: "0", top: "0", width: `${factor * width}px`, height: `${factor * height}px`,
      imageRendering: Number.isInteger(factor) ? "pixelated" : "auto", transformOrigin: "0 0",
      transform: `translate(${wholePixels(left)}px, ${wholePixels(top)}px) scale(${1 / devicePixelRatio})`,
    });
  };

  // Shows the image in a frame, which gets its size. No element around the frame may be positioned.
  globalThis.showAtPixels = (frame, [width, height], factor) => {
    const ratio = devicePixelRatio;
    Object.assign(frame.style, { width: `${(factor * width) / ratio}px`, height: `${(factor * height) / ratio}px` });
    const { left, top } = frame.getBoundingClientRect();
    placeAtPixels(frame.querySelector("img"), [width, height], factor, left + scrollX, top + scrollY);
  };
}
