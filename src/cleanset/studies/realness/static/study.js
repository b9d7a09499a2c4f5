// The study's page: asks one person for the ratings of one list. Opened from the disk or an ordinary web server, it
// saves the answers as a CSV file at the end; `cleanset study serve` saves each answer when it is given.
"use strict";
(() => {
  const COLUMNS = ["person", "list", "position", "stimulus", "answer", "milliseconds"];
  const SIDES = ["left", "right"];
  const main = document.querySelector("main");
  const parameters = new URLSearchParams(location.search);
  const numbers = STUDY.scale.map((step) => step.rating);

  const BUTTONS = "#jspsych-html-button-response-btngroup button";

  const text = (value) => {
    const element = document.createElement("span");
    element.textContent = value;
    return element.innerHTML;
  };
  const person = () => {
    const named = parameters.get("person");
    if (named !== null && /^[A-Za-z0-9._-]{1,64}$/.test(named)) return named;
    const bytes = crypto.getRandomValues(new Uint8Array(8));
    return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  };
  const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
  function notice(id, message) {
    if (!document.querySelector(`#${id}`))
      main.insertAdjacentHTML("afterbegin", `<p id="${id}" class="error" role="alert">${text(message)}</p>`);
  }
  const image = (file, alt, kind) => `<img class="${kind}" src="images/${encodeURIComponent(file)}" alt="${alt}">`;
  const button = (label, index) => `<button type="button"><span>${text(label)}</span><kbd>${index + 1}</kbd></button>`;

  function askForList() {
    main.innerHTML = `<h1>Which images are real?</h1><form><p><label>The number of your list:
      <input name="list" type="number" min="1" max="${STUDY.lists.length}" required></label></p>
      <p><button>Continue</button></p></form>`;
    const given = parameters.get("list");
    if (given !== null)
      main.insertAdjacentHTML("beforeend", `<p class="error" role="alert">There is no list ${text(given)}:
        expected a number from 1 to ${STUDY.lists.length}.</p>`);
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
    const chosen = buttons[Number(event.key) - 1];
    if (chosen && !chosen.disabled) chosen.click();
  }

  const INSTRUCTIONS = `<h1>Which images are real?</h1><div class="left">
    <p>You will see images one after the other. Some are photographs as they were taken. Others were modified by a
    computer afterwards. For each image, choose how sure you are, from surely modified to surely real.</p>
    <p>A change may be small, and may be anywhere in the image. Low resolution, blur or an odd scene alone do not mean
    that an image was modified. There is no time limit. Please do not search for the images elsewhere.</p>
    <p>First you see a few images in two versions, and say which one was modified. Now and then an attention check
    asks for a certain answer. ${STUDY.lists ? `At the end your browser saves a file with your answers: please send it
    to the organizers. Closing this page before the end discards your answers.` : `Each answer is saved at once. If you
    close this page, open it by the same link, and you continue where you were.`}</p></div>`;

  function shown(trial) {
    if (trial.kind === "pair")
      return `<h1>Which of the two was modified?</h1><div class="pair">
        ${image(trial.left, "the left image", "")}${image(trial.right, "the right image", "")}</div>`;
    if (trial.kind === "attention")
      return `<h1>Was this image modified?</h1>
        <div class="check"><p>This is an attention check, not an image.
        Please choose <strong>${text(trial.choose)}</strong>.</p></div>`;
    return `<h1>Was this image modified?</h1>${image(trial.file, "the image to be rated", "shown")}`;
  }

  // Resolves when the image is decoded. One that fails, or does not come, is fetched again, and the page says so.
  async function arrived(element) {
    const decoded = () => element.decode().then(() => true, () => false);
    for (let tries = 1; !(await Promise.race([decoded(), wait(20000 * tries)])); tries++) {
      notice("no-image", "An image has not arrived. It is fetched again: please keep this page open.");
      await wait(1000 * Math.min(tries, 10));
      element.src = element.src.split("?")[0] + `?try=${tries}`;
    }
  }

  // Takes an answer once all images of the trial were in sight for the set time. Resolves to the time since when.
  async function seen(trial) {
    const buttons = [...main.querySelectorAll(BUTTONS)];
    for (const each of buttons) each.disabled = true;
    const images = [...main.querySelectorAll("#study img")];
    await Promise.all(images.map(arrived));
    document.querySelector("#no-image")?.remove();
    for (const each of images) each.style.visibility = "visible"; // a pair at once
    await new Promise(requestAnimationFrame);
    while (1000 * secondsSeen(trial, images) < STUDY.shown_milliseconds) await wait(20);
    for (const each of buttons) each.disabled = false;
    return performance.now() - 1000 * secondsSeen(trial, images);
  }

  // `save` is called with each answer, and the next trial waits for it
  function asked(trials, answered, save) {
    let since;
    return trials.slice(answered).map((trial, place) => [trial, answered + place]).map(([trial, index]) => ({
      type: jsPsychHtmlButtonResponse,
      stimulus: shown(trial),
      choices: trial.kind === "pair" ? ["the left one", "the right one"] : STUDY.scale.map((step) => step.label),
      button_html: button,
      button_layout: "flex",
      prompt: `<p class="progress">${index + 1} of ${trials.length}</p>`,
      on_load: async () => {
        const next = trials[index + 1];
        for (const file of next ? [next.file, next.left, next.right] : [])
          if (file) new Image().src = `images/${encodeURIComponent(file)}`;
        since = await seen(trial);
      },
      on_finish: (data) => {
        const answer = trial.kind === "pair" ? SIDES[data.response] : numbers[data.response];
        return save(index + 1, trial.stimulus, answer, Math.round(performance.now() - since));
      },
    }));
  }

  function giveFile(name, csv) {
    const address = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
    main.innerHTML = `<h1>Thank you</h1><p>Your browser has just saved your answers in the file <strong id="file"></strong>.
      If it has not, save it here:</p><p><a class="button">Save my answers</a></p>`;
    const link = main.querySelector("a");
    main.querySelector("#file").textContent = name;
    link.href = address;
    link.download = name;
    link.click();
  }

  function onLeaving(event) {
    event.preventDefault();
  }

  function run(first, label, trials, answered, save, finish) {
    main.innerHTML = '<div id="study"></div>';
    const study = initJsPsych({
      display_element: "study",
      override_safe_mode: true, // which only concerns sound and video
      on_finish: finish,
    });
    addEventListener("keydown", onDigit);
    const start = { type: jsPsychHtmlButtonResponse, stimulus: first, choices: [label], button_layout: "flex" };
    return study.run([start, ...asked(trials, answered, save)]);
  }

  function begin() {
    const list = Number(parameters.get("list"));
    if (!Number.isInteger(list) || list < 1 || list > STUDY.lists.length) return askForList();
    const who = person();
    const answers = [COLUMNS];
    addEventListener("beforeunload", onLeaving);
    return run(INSTRUCTIONS, "Begin", STUDY.lists[list - 1], 0, (...answer) => answers.push([who, list, ...answer]), () => {
      removeEventListener("beforeunload", onLeaving);
      giveFile(`answers-${list}-${who}.csv`, answers.map((row) => row.join(",") + "\n").join(""));
    });
  }

  const say = (title, message) => {
    main.innerHTML = `<h1>${text(title)}</h1><p>${text(message)}</p>`;
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
        say("This answer was not saved", reply.text);
        main.insertAdjacentHTML("beforeend", "<p><button>Load the page again</button></p>");
        main.querySelector("button").addEventListener("click", () => location.reload());
        return new Promise(() => {});
      }
      notice("waiting", "No connection. Your answer is sent again as soon as there is one: please keep this page open.");
      await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
    }
  }

  async function visit(begins) {
    const key = parameters.get("key") ?? "";
    const found = await ask("visit", { id: parameters.get(STUDY.parameter) ?? "", key, begins });
    if (found.state === "message") return say(found.title, found.text);
    if (found.state === "done") {
      say("Thank you", "All your answers are saved. You may close this page.");
      if (found.completion) {
        main.querySelector("p").textContent = "All your answers are saved. One step is left:";
        main.insertAdjacentHTML("beforeend", '<p><a class="button">Return and complete the study</a></p>');
        main.querySelector("a").href = found.completion;
      }
      return undefined;
    }
    const instructions = found.instructions ? `<div class="left">${found.instructions}</div>` : INSTRUCTIONS;
    if (found.state === "open") {
      parameters.set("key", found.key); // by which this browser comes back
      history.replaceState(null, "", `?${parameters}`);
      const save = (position, stimulus, answer, milliseconds) =>
        ask("answer", { key: found.key, position, stimulus, answer, milliseconds });
      const label = found.answered ? "Continue" : "Begin";
      return run(instructions, label, found.trials, found.answered, save, () => visit(false));
    }
    if (!found.consent) return visit(true);
    main.innerHTML = `<div class="left">${found.consent}</div><p><button>I agree</button></p>`;
    main.querySelector("p:last-child button").addEventListener("click", () => visit(true), { once: true });
    return undefined;
  }

  if (STUDY.lists) begin();
  else visit(false);
})();
