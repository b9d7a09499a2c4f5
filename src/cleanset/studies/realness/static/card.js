// How many device pixels a millimetre of this screen has: a person holds a bank card (ISO/IEC 7810, ID-1) to it, twice,
// and makes an outline as large. A plain script, as study.js.
"use strict";
{
  // CSS pixels: a first outline that is too small for any screen in use, then one that is too large
  const STARTS = [160, 640];
  const MOST = 1000;
  const BESIDE = 44;
  const NARROW = 500; // a window in which a card is upright
  const LONG_MM = 85.6;
  const SHORT_MM = 53.98;
  const MAX_DIFFERENCE = 0.03; // of the two widths

  // The piece of HTML on which the card is held to the screen.
  globalThis.cardPiece = ([title, instructions, label], escaped) => `<h1>${escaped(title)}</h1><p>${escaped(instructions)}</p>
    <div id="card"></div><p><label>${escaped(label)} <input id="card-width" type="range" min="100" step="0.5"></label></p>`;

  // Starts with one of the outlines.
  globalThis.startCard = (number) => {
    const slider = document.querySelector("#card-width");
    const card = document.querySelector("#card");
    const [across, down] = innerWidth < NARROW ? [SHORT_MM, LONG_MM] : [LONG_MM, SHORT_MM];
    card.dataset.mm = across;
    const draw = () => {
      card.style.width = `${slider.value}px`;
      card.style.height = `${(slider.value * down) / across}px`;
    };
    slider.max = Math.min(MOST, innerWidth - BESIDE);
    slider.addEventListener("input", draw);
    slider.value = STARTS[number];
    draw();
  };

  // Device pixels in a millimetre, by the width of the outline.
  globalThis.cardPixelsPerMm = () => {
    const card = document.querySelector("#card");
    return (card.getBoundingClientRect().width * devicePixelRatio) / card.dataset.mm;
  };

  // Whether two measurements are of one screen.
  globalThis.cardsAgree = ([one, other]) => Math.abs(one - other) <= MAX_DIFFERENCE * Math.max(one, other);
  globalThis.CARD_TIMES = STARTS.length;
}
