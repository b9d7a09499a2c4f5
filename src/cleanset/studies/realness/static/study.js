// The study's page: asks one person for the ratings of one list. Opened from the disk or an ordinary web server, it
// saves the answers as a CSV file at the end; `cleanset study serve` saves each answer when it is given.
"use strict";
(() => {
  const VIEW_COLUMNS = ["shown_width", "shown_height", "pixel_ratio", "window_width", "window_height", "pixels_per_mm", "darkened"];
  const COLUMNS = ["person", "list", "position", "stimulus", "answer", "milliseconds", ...VIEW_COLUMNS];
  const SIDES = ["left", "right"];
  // the initial guess of the speed: a number of trials, each answered in a number of seconds
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
  const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
  function notice(id, message) {
    if (!document.querySelector(`#${id}`))
      main.insertAdjacentHTML("afterbegin", `<p id="${id}" class="error" role="alert"></p>`);
    const line = document.querySelector(`#${id}`);
    if (line.textContent !== message) line.textContent = message;
  }
  const addressOf = (file) => `images/${encodeURIComponent(file)}`;
  const image = (file, alt, kind) => frameOf(addressOf(file), alt, kind);
  const numbered = (label, index) => `<button type="button"><span>${text(label)}</span><kbd>${index + 1}</kbd></button>`;

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
    const chosen = buttons[(digitAtPlace(event) ?? event.key) - 1];
    if (chosen && !chosen.disabled) chosen.click();
  }

  // From the disk, nobody is screened: the page does not know what is right.
  const { plates, pairs, min_correct_pairs: needed } = STUDY.protocol;
  const told = (isTold, name) => (isTold && !STUDY.lists ? `<p>${text(fill(TEXTS[name], { plates, pairs, needed }))}</p>` : "");
  const SCREENING = told(plates, "plates") + told(needed, "screening");
  const example = (file, place) => `<figure>${image(file, "", "example")}<figcaption>${text(TEXTS.example_images[place])}</figcaption></figure>`;
  const EXAMPLES = STUDY.examples.length === 0 ? "" : `<p>${text(TEXTS.examples)}</p><div class="examples">${STUDY.examples.map(example).join("")}</div>`;
  const INSTRUCTIONS = `${TEXTS.instructions}${EXAMPLES}${SCREENING}<p>${text(STUDY.lists ? TEXTS.saved_at_the_end : TEXTS.saved_at_once)}</p>`;
  // `instructions`: the organizers' own, which have neither the examples nor the screening.
  const firstPage = (instructions) => (instructions === null ? INSTRUCTIONS : instructions + EXAMPLES + SCREENING);
  // A piece of HTML as a page, which has a heading.
  function piece(html) {
    const page = document.createElement("div");
    page.className = "left";
    page.innerHTML = html;
    if (!page.querySelector("h1")) page.insertAdjacentHTML("afterbegin", `<h1>${text(TEXTS.title)}</h1>`);
    return page.outerHTML;
  }

  // What is on the screen: its images, how many have to fit side by side, and whether they were seen long enough.
  const NOTHING = { images: [], needed: 0, seen: false, view: {} };
  let current = NOTHING;
  const EXAMPLE_WIDTH = 240; // to which examples are enlarged, in CSS pixels
  const NEEDED = { pair: 2, image: 1, plate: 1, attention: 0 };
  // Device pixels in a millimetre of this screen, where images have a fixed width in millimetres; else 0.
  let pixelsPerMm = 0;
  const isFixed = () => STUDY.width_mm !== null;
  // The room for a number of images side by side, in CSS pixels.
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
    const exampleFactor = isFixed() ? factor(1) : Math.max(1, pixelFactor(STUDY.size, 1, room(1), EXAMPLE_WIDTH));
    for (const each of main.querySelectorAll(".example")) showExample(each, STUDY.size, exampleFactor, room(1), TEXTS.part);
    for (const each of main.querySelectorAll(BUTTONS)) each.disabled = !(current.seen && isLargeEnough() && !isZoomed());
    current.view = view();
  }
  // What is on the screen: measured, not what was asked for.
  function view() {
    const [width, height] = (current.images.length > 0 ? sizeOnScreen(current.images[0]) : [0, 0]).map(Math.round);
    return {
      shown_width: width,
      shown_height: height,
      pixel_ratio: Math.round(1e4 * devicePixelRatio) / 1e4,
      window_width: innerWidth,
      window_height: innerHeight,
      pixels_per_mm: Math.round(1e4 * pixelsPerMm) / 1e4,
      darkened: isDarkened(),
    };
  }
  function bringUp(needed, { seen }) {
    current = { images: [...main.querySelectorAll("#study .frame:not(.example) img")], needed, seen, view: {} };
    askToUndoZoom(current.images.length > 0 ? TEXTS.zoom : null); // words may be enlarged
    layOut();
  }

  function shown(trial) {
    const question = (asked) => `<h1>${text(asked)}</h1>`;
    const [left, right] = TEXTS.pair_images.map(text);
    if (trial.kind === "pair")
      return `${question(TEXTS.pair)}<div class="pair">${image(trial.left, left, "")}${image(trial.right, right, "")}</div>`;
    if (trial.kind === "attention")
      return `${question(TEXTS.question)}<div class="check"><p>${text(TEXTS.check)}
        <strong>${text(TEXTS[STUDY.protocol.scale][trial.choose])}</strong></p></div>`;
    if (trial.kind === "plate") return question(TEXTS.plate) + image(trial.file, text(TEXTS.plate_image), "shown plate");
    return question(TEXTS.question) + image(trial.file, text(TEXTS.image), "shown");
  }

  // From the disk, if nothing can be fetched, as elements.
  const loader = frameLoader(
    location.protocol === "file:" ? loadElement : loadBytes,
    (percent) => fill(TEXTS.loading, { percent }),
    (url) => main.querySelector(`[data-file="${url}"]`) && notice("no-image", TEXTS.not_arrived),
  );
  const filesOf = (trial) => [trial?.file, trial?.left, trial?.right].filter(Boolean).map(addressOf);

  // Resolves to whether the page is still there once all of its images are, which are shown at once.
  async function arrived(files, next) {
    const mine = current;
    const frames = [...main.querySelectorAll("#study .frame")];
    loader.want(files, next);
    await Promise.all(frames.map(loader.fill));
    if (current !== mine) return false;
    document.querySelector("#no-image")?.remove();
    layOut();
    frames.forEach(reveal);
    return true;
  }

  // Takes an answer once all images of the trial were in sight for the set time. Resolves to the time since when; to
  // nothing if another page has come meanwhile, which alone may then be answered.
  async function seen(trial, next) {
    bringUp(NEEDED[trial.kind], { seen: false });
    const mine = current;
    const { images } = mine;
    if (!(await arrived(filesOf(trial), filesOf(next)))) return undefined;
    await new Promise(requestAnimationFrame);
    // of what is seen in parts, the time begins again
    function milliseconds() {
      noteInSight({ trial: isLargeEnough() && images.every(isWholeInSight) ? mine : null }, 0);
      return 1000 * secondsInSight("trial");
    }
    while (current === mine && milliseconds() < STUDY.shown_milliseconds) await wait(20);
    if (current !== mine) return undefined;
    mine.seen = true;
    layOut();
    return performance.now() - milliseconds();
  }

  // Takes the answer of a page without images after the same time: whoever presses a key twice has not seen it.
  async function seenAlone() {
    bringUp(0, { seen: false });
    const mine = current;
    await wait(STUDY.shown_milliseconds);
    mine.seen = true;
    if (current === mine) layOut();
  }

  const named = (label) => `<button type="button">${text(label)}</button>`;
  const SCALE_LABELS = TEXTS[STUDY.protocol.scale];
  const DIGITS = [..."123456789"];
  const CHOICES = { pair: TEXTS.pair_answers, plate: [...DIGITS, TEXTS.plate_none] };
  const VALUES = { pair: SIDES, plate: [...DIGITS, "none"] };
  const choicesOf = (trial) => CHOICES[trial.kind] ?? SCALE_LABELS;
  const valuesOf = (trial) => VALUES[trial.kind] ?? STUDY.scale.map(String);
  // Buttons next to the answers, for those who may change them.
  const step = (name, isThere) => (isThere ? `<button type="button" class="${name}">${text(TEXTS[name])}</button>` : "");

  // The trials, one after another, from the first that has no answer in `given`. `save` is called with each answer, and
  // the next trial waits for it; where it returns the end of a participant, that is the last. If answers may be
  // changed, people can go back to all but pairs and plates.
  function asked(study, trials, given, save) {
    const isRevisable = (place) => STUDY.protocol.revision && place >= 0 && place < given.length && !(trials[place].kind in VALUES);
    let place = given.length;
    let since;
    let began;
    let isEnded = false;
    let seconds = GUESSED_TRIALS * GUESSED_SECONDS;
    let timed = 0;
    function progress() {
      const left = Math.ceil(((seconds / (GUESSED_TRIALS + timed)) * (trials.length - given.length)) / 60);
      const values = { position: place + 1, all: trials.length, minutes: left };
      return `${fill(TEXTS.progress, values)} · ${fill(TEXTS.time_left, values)}`;
    }
    const isFinishing = () => place >= trials.length;
    function steps() {
      const buttons = step("back", isRevisable(place - 1)) + step("next", isRevisable(place));
      return buttons && `<p class="steps">${buttons}</p>`;
    }
    function go(to) {
      place = to;
      study().finishTrial({ moved: true });
    }
    function connectSteps() {
      main.querySelector(".back")?.addEventListener("click", () => go(place - 1), { once: true });
      main.querySelector(".next")?.addEventListener("click", () => go(place + 1), { once: true });
    }
    async function shownTrial() {
      since = undefined;
      began = performance.now();
      focusHeading();
      connectSteps();
      document.querySelector("#told").textContent = progress();
      const chosen = valuesOf(trials[place]).indexOf(given[place]);
      main.querySelectorAll(BUTTONS)[chosen]?.setAttribute("aria-pressed", "true");
      since = (await seen(trials[place], trials[place + 1])) ?? since;
    }
    async function answered({ response }) {
      const trial = trials[place];
      const value = valuesOf(trial)[response];
      const answer = trial.kind in VALUES ? value : Number(value);
      const revises = place < given.length;
      if (!revises) {
        seconds += Math.min(MAX_SECONDS, (performance.now() - began) / 1000);
        timed++;
      }
      const reply = await save(place + 1, trial.stimulus, answer, Math.round(performance.now() - since), current.view, revises);
      given[place] = value;
      isEnded = Boolean(reply);
      place++;
    }
    const finish = () => `<h1>${text(TEXTS.finish[0])}</h1><p>${text(TEXTS.finish[1])}</p>`;
    return {
      timeline: [{
        type: jsPsychHtmlButtonResponse,
        stimulus: () => (isFinishing() ? finish() : shown(trials[place])),
        choices: () => (isFinishing() ? [TEXTS.finish[2]] : choicesOf(trials[place])),
        button_html: (label, index) => (isFinishing() || trials[place].kind === "plate" ? named(label) : numbered(label, index)),
        button_layout: "flex",
        prompt: () => (isFinishing() ? steps() : `${steps()}<p class="progress">${text(progress())}</p>`),
        on_load: () => {
          if (!isFinishing()) return shownTrial();
          focusHeading();
          connectSteps();
          return seenAlone();
        },
        on_finish: (data) => {
          if (data.moved) return undefined;
          if (!isFinishing()) return answered(data);
          isEnded = true;
          return undefined;
        },
      }],
      loop_function: () => !isEnded && (place < trials.length || STUDY.protocol.revision),
    };
  }

  // As csv_files.py writes a cell: behind an apostrophe if a spreadsheet would run it as a formula.
  const FORMULA = /^'*[=+\-@\t\r]/;
  const SIGNED_NUMBER = /^[+-](([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|inf|nan)$/i;
  const cell = (value) => (FORMULA.test(value) && !SIGNED_NUMBER.test(value) ? `'${value}` : value);

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
      button_html: named,
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

  // Resolves when all is shown.
  function show(made) {
    main.innerHTML = '<div id="study"></div>';
    return new Promise((resolve) => {
      const study = initJsPsych({
        display_element: "study",
        override_safe_mode: true, // which only concerns sound and video
        on_finish: () => {
          current = NOTHING;
          askToUndoZoom(null);
          resolve();
        },
      });
      study.run(made(() => study));
    });
  }
  // The page before the first trial. `kinds`: the kinds of trials; before the study begins, the window has to fit the
  // largest.
  const introduce = (first, label, kinds) =>
    show(() => {
      const page = { type: jsPsychHtmlButtonResponse, stimulus: piece(first), choices: [label], button_html: named, button_layout: "flex",
        on_load: async () => {
          focusHeading();
          bringUp(Math.max(...kinds.map((kind) => NEEDED[kind])), { seen: false });
          const mine = current;
          if (await arrived(STUDY.examples.map(addressOf), [])) mine.seen = true;
          layOut();
        },
      };
      return isFixed() && pixelsPerMm === 0 ? [...cardTrials(), page] : [page];
    });
  const rate = (trials, given, save) => show((study) => [asked(study, trials, given, save)]);

  function refuse(name, values) {
    const [title, message] = TEXTS[name];
    say(title, fill(message, values));
  }

  // Who answers a list from the disk: their id becomes part of the name of their file.
  const FILE_NAME_PART = /^[\p{L}\p{M}\p{N} ._@+-]{1,64}$/u;

  async function begin() {
    const list = Number(parameters.get("list"));
    if (!Number.isInteger(list) || list < 1 || list > STUDY.lists.length) return askForList();
    const id = (parameters.get("person") ?? "").normalize("NFC").replace(/\s+/g, " ").trim();
    if (/[{}[\]<>$%]/.test(id)) return refuse("unfilled_id", { id });
    if (id && !FILE_NAME_PART.test(id)) return refuse("unusable_id", { id });
    const who = id || random(8);
    const trials = STUDY.lists[list - 1];
    const answers = [COLUMNS];
    addEventListener("beforeunload", onLeaving);
    const save = (position, stimulus, answer, milliseconds, seenAs) => {
      answers.push([who, list, position, stimulus, answer, milliseconds, ...VIEW_COLUMNS.map((name) => Number(seenAs[name]))]);
    };
    await introduce(INSTRUCTIONS, TEXTS.begin, trials.map((trial) => trial.kind));
    await rate(trials, [], save);
    removeEventListener("beforeunload", onLeaving);
    return giveFile(`answers-${list}-${who}.csv`, answers.map((row) => row.map(cell).join(",") + "\n").join(""));
  }

  const say = (title, message) => {
    main.innerHTML = `<h1>${text(title)}</h1><p>${text(message)}</p>`;
    focusHeading();
  };

  // Statuses of a proxy that limits requests, or of a server that cannot save; and of all after which the page asks again.
  const isBusy = (status) => status === 429 || status === 503;
  const isPassing = (status) => status === 408 || status === 429 || status >= 500;

  async function send(path, body) {
    const options = { method: "POST", body: JSON.stringify(body), keepalive: true, signal: AbortSignal.timeout(20000) };
    try {
      const reply = await fetch(path, options);
      const isText = reply.headers.get("content-type")?.startsWith("text/plain");
      if (reply.ok) return { status: reply.status, content: await reply.json() };
      return { status: reply.status, message: isText ? await reply.text() : `HTTP ${reply.status}` }; // a proxy sends pages
    } catch {
      return { status: null };
    }
  }

  // Resolves to the server's reply. Asks again while there is none: without a network, or while the server restarts.
  // `lost`: the text without a connection; `failed`: the heading where the server says no.
  async function ask(path, body, lost, failed) {
    for (let seconds = 1; ; seconds = Math.min(2 * seconds, 10)) {
      const reply = await send(path, body);
      if (reply.status !== null && !isPassing(reply.status)) {
        document.querySelector("#waiting")?.remove();
        if (reply.message === undefined) return reply.content;
        say(failed, reply.message);
        main.insertAdjacentHTML("beforeend", `<p><button>${text(TEXTS.load)}</button></p>`);
        main.querySelector("button").addEventListener("click", () => location.reload());
        return new Promise(() => {});
      }
      notice("waiting", isBusy(reply.status) ? TEXTS.busy : lost);
      await wait(1000 * seconds);
    }
  }

  // The key by which this browser comes back, to this study alone: kept in its storage; where that keeps nothing, in the
  // state of the tab's history. In the address it is only in a link from the organizers, until it is opened.
  const id = (parameters.get(STUDY.parameter) ?? "").slice(0, 200);
  const place = `study ${STUDY.study} ${id}`;
  function stored() {
    try {
      return localStorage.getItem(place);
    } catch {
      return null;
    }
  }
  const ownKey = () => stored() || (history.state?.place === place && history.state.key) || "";
  const keptKey = () => parameters.get("key") || ownKey();
  function keepKey(key) {
    try {
      if (key) localStorage.setItem(place, key);
      else localStorage.removeItem(place);
    } catch {
      // the tab remains
    }
    parameters.delete("key");
    history.replaceState({ place, key }, "", `?${parameters}`);
  }

  // Several people at one computer are distinguished by their links' ids; without them, they identify themselves.
  function offerAnother() {
    if (id) return;
    main.insertAdjacentHTML("beforeend", `<p><button type="button" class="another">${text(TEXTS.another)}</button></p>`);
    main.querySelector(".another").addEventListener("click", () => {
      keepKey("");
      location.reload();
    });
  }

  function end({ text: name, address, ...values }) {
    refuse(name, values);
    if (address) {
      const isDone = name === "done";
      if (isDone) main.querySelector("p").textContent = TEXTS.completion[0];
      const label = isDone ? TEXTS.completion[1] : TEXTS.leave;
      main.insertAdjacentHTML("beforeend", `<p><a class="button">${text(label)}</a></p>`);
      main.querySelector("a").href = address;
    }
    if (["done", "expired"].includes(name)) offerAnother();
  }

  const visit = (event) => ask("visit", { id, key: keptKey(), event }, TEXTS.no_connection, TEXTS.not_opened);

  function agrees(consent) {
    main.innerHTML = `${piece(consent)}<p><button>${text(TEXTS.agree)}</button>
      <button>${text(TEXTS.disagree)}</button></p>`;
    const [agree, disagree] = main.querySelectorAll("p:last-child button");
    return new Promise((resolve) => {
      agree.addEventListener("click", () => resolve(true), { once: true });
      disagree.addEventListener("click", () => resolve(false), { once: true });
    });
  }

  // Who looks has no place yet: it is taken when they begin.
  async function look({ consent, instructions, kinds }) {
    if (consent && !(await agrees(consent))) return open("declines");
    await introduce(firstPage(instructions), TEXTS.begin, kinds);
    // not that of the address, which the server does not know: several people may have it
    keepKey(ownKey() || random(16));
    const found = await visit("begins");
    return "trials" in found ? answer(found) : end(found);
  }

  async function goOn(found) {
    const introduced = introduce(firstPage(found.instructions), TEXTS.continue, found.kinds);
    offerAnother();
    await introduced;
    return answer(found);
  }

  async function answer({ key, trials, answered, given }) {
    keepKey(key);
    const save = (position, stimulus, chosen, milliseconds, seenAs, revises) =>
      ask("answer", { key, position, stimulus, answer: chosen, milliseconds, view: seenAs, revises }, TEXTS.not_sent, TEXTS.not_saved);
    // where answers cannot be changed, only their number is known
    await rate(trials, Array.from({ length: answered }, (_, place) => given[place] ?? ""), save);
    return open("finishes"); // unless an answer has found out another end
  }

  // The page of a participant's state, after an event: participants.py has the table of both.
  const PAGES = { looking: look, begun: goOn, answered: goOn, complete: end, expired: end, refused: end };
  async function open(event) {
    const found = await visit(event);
    return PAGES[found.state](found);
  }

  addEventListener("keydown", onDigit);
  // a zoom, and another screen, change the pixel ratio; a line more or less moves the images
  addEventListener("resize", layOut);
  visualViewport.addEventListener("resize", layOut);
  new ResizeObserver(layOut).observe(main);
  document.title = TEXTS.title;
  Object.assign(document.documentElement, { lang: TEXTS.language, dir: TEXTS.direction });
  if (STUDY.lists) begin();
  else open("opens");
})();
