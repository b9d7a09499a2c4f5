// The study's page: asks one person for the ratings of one list. Opened from the disk or an ordinary web server, it
// saves the answers as a CSV file at the end; `cleanset study serve` saves each answer when it is given.
"use strict";
(() => {
  const VIEW_COLUMNS = ["shown_width", "shown_height", "pixel_ratio", "window_width", "window_height", "pixels_per_mm"];
  const COLUMNS = ["person", "list", "position", "stimulus", "answer", "milliseconds", ...VIEW_COLUMNS];
  const SIDES = ["left", "right"];
  // at first the speed is guessed: so many trials count as if answered, each in so many seconds
  const GUESSED_TRIALS = 5;
  const GUESSED_SECONDS = 6;
  const MAX_SECONDS = 60; // a longer one was a break
  const LENGTHS = STUDY.lengths;
  const TEXTS = STUDY.texts;
  const main = document.querySelector("main");
  const parameters = new URLSearchParams(location.search);

  const BUTTONS = "#jspsych-html-button-response-btngroup button";

  const text = (value) => {
    const element = document.createElement("span");
    element.textContent = value;
    return element.innerHTML.replaceAll('"', "&quot;");
  };
  const fill = (template, values) => template.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  function random(size) {
    const bytes = crypto.getRandomValues(new Uint8Array(size));
    return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }
  const person = () => {
    const named = parameters.get("person");
    return named !== null && /^[A-Za-z0-9._-]{1,64}$/.test(named) ? named : random(8);
  };
  const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
  function notice(id, message) {
    if (!document.querySelector(`#${id}`))
      main.insertAdjacentHTML("afterbegin", `<p id="${id}" class="error" role="alert">${text(message)}</p>`);
  }
  const image = (file, alt, kind) =>
    `<span class="frame ${kind}"><img src="images/${encodeURIComponent(file)}" alt="${alt}"></span>`;
  const button = (label, index) => `<button type="button"><span>${text(label)}</span><kbd>${index + 1}</kbd></button>`;

  // What had the keyboard's focus is gone with the page before.
  function focusHeading() {
    const heading = main.querySelector("h1");
    heading.tabIndex = -1;
    heading.focus();
  }

  function askForList() {
    main.innerHTML = `<h1>${text(TEXTS.title)}</h1><form><p><label>${text(TEXTS.list)}
      <input name="list" type="number" min="1" max="${STUDY.lists.length}" required></label></p>
      <p><button>${text(TEXTS.continue)}</button></p></form>`;
    const list = parameters.get("list");
    if (list !== null) {
      const message = fill(TEXTS.no_list, { list, all: STUDY.lists.length });
      main.insertAdjacentHTML("beforeend", `<p class="error" role="alert">${text(message)}</p>`);
    }
    main.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      parameters.set("list", new FormData(event.target).get("list"));
      begin();
    });
    main.querySelector("input").focus();
  }

  // jsPsych's buttons have no keys of their own: the digits press them
  function onDigit(event) {
    if (event.repeat || event.ctrlKey || event.altKey || event.metaKey) return;
    const buttons = main.querySelectorAll(BUTTONS);
    // by its place on the keyboard, since some layouts have other signs there
    const chosen = buttons[(/^(?:Digit|Numpad)([1-9])$/.exec(event.code)?.[1] ?? event.key) - 1];
    if (chosen && !chosen.disabled) chosen.click();
  }

  const INSTRUCTIONS = `${TEXTS.instructions}<p>${text(STUDY.lists ? TEXTS.saved_at_the_end : TEXTS.saved_at_once)}</p>`;
  // A piece of HTML as a page, which has a heading.
  function piece(html) {
    const page = document.createElement("div");
    page.className = "left";
    page.innerHTML = html;
    if (!page.querySelector("h1")) page.insertAdjacentHTML("afterbegin", `<h1>${text(TEXTS.title)}</h1>`);
    return page.outerHTML;
  }

  // What is on the screen: its images, how many have to fit side by side, and whether they were seen long enough.
  let current = { images: [], needed: 0, seen: false, view: {} };
  const NEEDED = { pair: 2, image: 1, attention: 0 };
  // Device pixels in a millimetre of this screen, where images have a fixed width in millimetres; else 0.
  let pixelsPerMm = 0;
  const isFixed = () => STUDY.width_mm !== null;
  // The room for so many images side by side, in CSS pixels.
  const room = (images) => ({
    width: innerWidth - LENGTHS.beside - LENGTHS.gap * (images - 1),
    height: innerHeight - LENGTHS.below,
  });
  // Device pixels for each pixel of an image: a whole number, or what makes it as wide as it has to be.
  const factor = (images) =>
    isFixed()
      ? Math.round(STUDY.width_mm * pixelsPerMm) / STUDY.size[0]
      : Math.max(1, pixelFactor(STUDY.size, images, room(images), LENGTHS.preferred_width));
  const isLargeEnough = () =>
    current.needed === 0 ||
    (isFixed()
      ? fitsAt(STUDY.size, current.needed, room(current.needed), factor(current.needed))
      : pixelFactor(STUDY.size, current.needed, room(current.needed), LENGTHS.preferred_width) >= 1);
  // Gives the images their size, and takes answers only in a window that is large enough for them; else says which is.
  function layOut() {
    const images = current.needed;
    if (isLargeEnough()) document.querySelector("#window")?.remove();
    else {
      const scale = (isFixed() ? factor(images) : 1) / devicePixelRatio;
      const [width, height] = STUDY.size.map((pixels) => pixels * scale);
      const message = fill(TEXTS.window, {
        width: innerWidth,
        height: innerHeight,
        least_width: Math.ceil(images * width + LENGTHS.beside + LENGTHS.gap * (images - 1)),
        least_height: Math.ceil(height + LENGTHS.below),
      });
      notice("window", message);
      document.querySelector("#window").textContent = message;
    }
    for (const each of current.images) showAtPixels(each.parentElement, STUDY.size, factor(images));
    for (const each of main.querySelectorAll(BUTTONS)) each.disabled = !(current.seen && isLargeEnough());
    current.view = view();
  }
  // What stands on the screen: measured, not what was asked for.
  function view() {
    const { width, height } = current.images[0]?.getBoundingClientRect() ?? { width: 0, height: 0 };
    return {
      shown_width: Math.round(width * devicePixelRatio),
      shown_height: Math.round(height * devicePixelRatio),
      pixel_ratio: Math.round(1e4 * devicePixelRatio) / 1e4,
      window_width: innerWidth,
      window_height: innerHeight,
      pixels_per_mm: Math.round(1e4 * pixelsPerMm) / 1e4,
    };
  }
  function bringUp(needed, { seen }) {
    current = { images: [...main.querySelectorAll("#study img")], needed, seen, view: {} };
    layOut();
  }

  function shown(trial) {
    const question = (asked) => `<h1>${text(asked)}</h1>`;
    const [left, right] = TEXTS.pair_images.map(text);
    if (trial.kind === "pair")
      return `${question(TEXTS.pair)}<div class="pair">${image(trial.left, left, "")}${image(trial.right, right, "")}</div>`;
    if (trial.kind === "attention")
      return `${question(TEXTS.question)}<div class="check"><p>${text(TEXTS.check)}
        <strong>${text(TEXTS.scale[trial.choose])}</strong></p></div>`;
    return question(TEXTS.question) + image(trial.file, text(TEXTS.image), "shown");
  }

  // Resolves when the image is decoded. One that fails, or does not come, is fetched again, and the page says so.
  async function arrived(element) {
    const decoded = () => element.decode().then(() => true, () => false);
    for (let tries = 1; !(await Promise.race([decoded(), wait(20000 * tries)])); tries++) {
      notice("no-image", TEXTS.not_arrived);
      await wait(1000 * Math.min(tries, 10));
      element.src = element.src.split("?")[0] + `?try=${tries}`;
    }
  }

  // Takes an answer once all images of the trial were in sight for the set time. Resolves to the time since when.
  async function seen(trial) {
    bringUp(NEEDED[trial.kind], { seen: false });
    const { images } = current;
    await Promise.all(images.map(arrived));
    document.querySelector("#no-image")?.remove();
    layOut();
    for (const each of images) each.style.visibility = "visible"; // a pair at once
    await new Promise(requestAnimationFrame);
    // in a window that is too small an image is seen in parts: the time begins anew
    const milliseconds = () => 1000 * secondsSeen(isLargeEnough() ? trial : {}, images);
    while (milliseconds() < STUDY.shown_milliseconds) await wait(20);
    current.seen = true;
    layOut();
    return performance.now() - milliseconds();
  }

  // `save` is called with each answer, and the next trial waits for it
  function asked(trials, answered, save) {
    let since;
    let seconds = GUESSED_TRIALS * GUESSED_SECONDS;
    let began;
    function progress(index) {
      const left = Math.ceil(((seconds / (GUESSED_TRIALS + index - answered)) * (trials.length - index)) / 60);
      const values = { position: index + 1, all: trials.length, minutes: left };
      return `${fill(TEXTS.progress, values)} · ${fill(TEXTS.time_left, values)}`;
    }
    return trials.slice(answered).map((trial, place) => [trial, answered + place]).map(([trial, index]) => ({
      type: jsPsychHtmlButtonResponse,
      stimulus: shown(trial),
      choices: trial.kind === "pair" ? TEXTS.pair_answers : TEXTS.scale,
      button_html: button,
      button_layout: "flex",
      prompt: () => `<p class="progress">${text(progress(index))}</p>`,
      on_load: async () => {
        began = performance.now();
        focusHeading();
        document.querySelector("#told").textContent = progress(index);
        const next = trials[index + 1];
        for (const file of next ? [next.file, next.left, next.right] : [])
          if (file) new Image().src = `images/${encodeURIComponent(file)}`;
        since = await seen(trial);
      },
      on_finish: (data) => {
        const answer = trial.kind === "pair" ? SIDES[data.response] : STUDY.scale[data.response];
        seconds += Math.min(MAX_SECONDS, (performance.now() - began) / 1000);
        return save(index + 1, trial.stimulus, answer, Math.round(performance.now() - since), current.view);
      },
    }));
  }

  function giveFile(name, csv) {
    const address = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
    say(TEXTS.done[0], fill(TEXTS.file, { file: name }));
    main.insertAdjacentHTML("beforeend", `<p><a class="button">${text(TEXTS.save)}</a></p>`);
    const link = main.querySelector("a");
    link.href = address;
    link.download = name;
    link.click();
  }

  function onLeaving(event) {
    event.preventDefault();
  }

  // The screen is measured before the first trial, again if the two measurements differ.
  function cardTrials() {
    let measured = [];
    let differ = false;
    const trial = {
      type: jsPsychHtmlButtonResponse,
      stimulus: () => (differ ? `<p class="error" role="alert">${text(TEXTS.card_again)}</p>` : "") + cardPiece(TEXTS.card, text),
      choices: [TEXTS.card_button],
      button_layout: "flex",
      on_load: () => {
        focusHeading();
        bringUp(0, { seen: true });
        startCard(measured.length);
        // jsPsych removes the outline with the click
        main.querySelector(BUTTONS).addEventListener("click", () => measured.push(cardPixelsPerMm()), { capture: true });
      },
    };
    const isAgain = () => {
      if (measured.length < CARD_TIMES) return true;
      differ = !cardsAgree(measured);
      pixelsPerMm = measured.reduce((sum, each) => sum + each) / measured.length;
      measured = [];
      return differ;
    };
    return [{ timeline: [trial], loop_function: isAgain }];
  }

  function run(first, label, trials, answered, save, finish) {
    main.innerHTML = '<div id="study"></div>';
    const study = initJsPsych({
      display_element: "study",
      override_safe_mode: true, // which only concerns sound and video
      on_finish: finish,
    });
    addEventListener("keydown", onDigit);
    // a zoom, and another screen, change the pixel ratio; a line more or less moves the images
    addEventListener("resize", layOut);
    new ResizeObserver(layOut).observe(main);
    const start = { type: jsPsychHtmlButtonResponse, stimulus: piece(first), choices: [label], button_layout: "flex",
      on_load: () => {
        focusHeading();
        // before the study begins: what its largest trial needs
        bringUp(Math.max(...trials.map((trial) => NEEDED[trial.kind])), { seen: true });
      },
    };
    return study.run([...(isFixed() ? cardTrials() : []), start, ...asked(trials, answered, save)]);
  }

  function begin() {
    const list = Number(parameters.get("list"));
    if (!Number.isInteger(list) || list < 1 || list > STUDY.lists.length) return askForList();
    const who = person();
    const answers = [COLUMNS];
    addEventListener("beforeunload", onLeaving);
    const save = (position, stimulus, answer, milliseconds, seenAs) =>
      answers.push([who, list, position, stimulus, answer, milliseconds, ...VIEW_COLUMNS.map((name) => seenAs[name])]);
    return run(INSTRUCTIONS, TEXTS.begin, STUDY.lists[list - 1], 0, save, () => {
      removeEventListener("beforeunload", onLeaving);
      giveFile(`answers-${list}-${who}.csv`, answers.map((row) => row.join(",") + "\n").join(""));
    });
  }

  const say = (title, message) => {
    main.innerHTML = `<h1>${text(title)}</h1><p>${text(message)}</p>`;
    focusHeading();
  };

  // Resolves to the server's reply. Asks again while there is none: without a network, or while the server restarts.
  async function ask(path, body) {
    for (let seconds = 1; ; seconds = Math.min(2 * seconds, 10)) {
      const options = { method: "POST", body: JSON.stringify(body), keepalive: true, signal: AbortSignal.timeout(20000) };
      const reply = await fetch(path, options)
        .then(async (response) => ({ status: response.status, text: await response.text() }))
        .catch(() => null);
      if (reply && reply.status < 500) {
        document.querySelector("#waiting")?.remove();
        if (reply.status === 200) return JSON.parse(reply.text);
        say(TEXTS.not_saved, reply.text);
        main.insertAdjacentHTML("beforeend", `<p><button>${text(TEXTS.load)}</button></p>`);
        main.querySelector("button").addEventListener("click", () => location.reload());
        return new Promise(() => {});
      }
      notice("waiting", TEXTS.no_connection);
      await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
    }
  }

  // The key by which this browser comes back: kept beside the recruiter's id, or without one in the address.
  const id = parameters.get(STUDY.parameter) ?? "";
  function keptKey() {
    try {
      return (id && localStorage.getItem(`study ${id}`)) || parameters.get("key") || "";
    } catch {
      return parameters.get("key") ?? ""; // a browser that keeps nothing
    }
  }
  function keepKey(key) {
    parameters.set("key", key);
    try {
      if (id) return localStorage.setItem(`study ${id}`, key);
    } catch {
      // the address remains
    }
    return history.replaceState(null, "", `?${parameters}`);
  }

  async function visit(begins) {
    if (begins && !keptKey()) keepKey(random(16));
    const found = await ask("visit", { id, key: keptKey(), begins });
    if (found.state in TEXTS) {
      say(...TEXTS[found.state]);
      if (found.completion) {
        main.querySelector("p").textContent = TEXTS.completion[0];
        main.insertAdjacentHTML("beforeend", `<p><a class="button">${text(TEXTS.completion[1])}</a></p>`);
        main.querySelector("a").href = found.completion;
      }
      return undefined;
    }
    if (found.state === "open") {
      keepKey(found.key);
      const save = (position, stimulus, answer, milliseconds, seenAs) =>
        ask("answer", { key: found.key, position, stimulus, answer, milliseconds, view: seenAs });
      const label = found.answered ? TEXTS.continue : TEXTS.begin;
      return run(found.instructions ?? INSTRUCTIONS, label, found.trials, found.answered, save, () => visit(false));
    }
    if (!found.consent) return visit(true);
    main.innerHTML = `${piece(found.consent)}<p><button>${text(TEXTS.agree)}</button>
      <button>${text(TEXTS.disagree)}</button></p>`;
    const [agree, disagree] = main.querySelectorAll("p:last-child button");
    agree.addEventListener("click", () => visit(true), { once: true });
    disagree.addEventListener("click", () => say(...TEXTS.declined));
    return undefined;
  }

  document.title = TEXTS.title;
  Object.assign(document.documentElement, { lang: TEXTS.language, dir: TEXTS.direction });
  if (STUDY.lists) begin();
  else visit(false);
})();
