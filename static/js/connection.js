// Says whether the page is live, and what a lost connection means, in words.

const TRIES_SHOWN_MS = 1500; // a reconnect quicker than this is nobody's concern
const CAUGHT_UP_MS = 4000;

const indicator = document.getElementById("connection");
const place = document.getElementById("connection-notice");
let timer = 0;
let wasLost = false;

function lastEvent() {
  return document.getElementById("trace-head").dataset.seq;
}

function notice(kind, ...words) {
  const model = document.getElementById(`connection-${kind}`);
  const shown = model.content.cloneNode(true);
  for (const slot of shown.querySelectorAll("[data-seq]")) slot.textContent = `#${words[0]}`;
  place.replaceChildren(shown);
}

function say(word) {
  indicator.hidden = false;
  const label = indicator.querySelector("span");
  if (label.textContent !== word) label.textContent = word;
}

function open() {
  clearTimeout(timer);
  say("Live");
  delete document.body.dataset.offline;
  if (wasLost && place.firstElementChild) {
    notice("caught-up", lastEvent());
    timer = setTimeout(() => place.replaceChildren(), CAUGHT_UP_MS);
  }
  wasLost = false;
}

function lost() {
  if (wasLost) return;
  wasLost = true;
  say("Reconnecting");
  document.body.dataset.offline = "";
  clearTimeout(timer);
  timer = setTimeout(() => notice("lost", lastEvent()), TRIES_SHOWN_MS);
}

document.addEventListener("connection", (event) => {
  const { name } = event.detail;
  if (name === "open") open();
  if (name === "lost") lost();
  if (name === "refused") {
    say("Not live");
    notice("refused");
  }
});

window.addEventListener("offline", () => document.dispatchEvent(
  new CustomEvent("connection", { detail: { name: "lost" } }),
));
