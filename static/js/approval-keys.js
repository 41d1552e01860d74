// Deciding by keyboard in two steps: a chord from anywhere to the oldest card, then y or n.
//
// The letters count only while a card has the focus, and never right after the card
// appeared, the window got the focus, or somebody typed.

const FRESH_MS = 600;
const FOCUS_MS = 400;
const TYPING_MS = 1000;
const FIELDS = "input, textarea, select, [contenteditable]";

let focusedAt = -Infinity;
let typedAt = -Infinity;
let cameFrom = null;

window.addEventListener("focus", () => {
  focusedAt = performance.now();
});

document.addEventListener("input", () => {
  typedAt = performance.now();
}, true);

function oldestCard() {
  const name = document.querySelector("#card-names [data-position='1']");
  const card = name && document.getElementById(name.id.replace(/-name$/, ""));
  return card ?? document.querySelector(".approval");
}

function jump() {
  const card = oldestCard();
  if (!card) return false;
  if (!document.activeElement?.closest(".approval")) cameFrom = document.activeElement;
  card.focus({ preventScroll: true });
  card.scrollIntoView({ block: "center" });
  return true;
}

function isTooEarly(card) {
  const now = performance.now();
  const isFresh = now < Number(card.dataset.shownAt) + FRESH_MS;
  return isFresh || now < focusedAt + FOCUS_MS || now < typedAt + TYPING_MS;
}

function decide(card, decision) {
  if (isTooEarly(card) || card.dataset.keys !== "on") return;
  const button = card.querySelector(`[data-decide=${decision}]`);
  if (button.getAttribute("aria-disabled") === "true") return;
  button.form.elements.via.value = "key";
  button.form.requestSubmit(button);
}

function isChord(event) {
  const isPeriod = event.code === "Period" || event.key === ".";
  return isPeriod && event.shiftKey && !event.altKey && (event.ctrlKey || event.metaKey);
}

document.addEventListener("keydown", (event) => {
  if (event.isComposing || event.repeat) return;
  if (isChord(event)) {
    if (jump()) event.preventDefault();
    return;
  }
  const focused = document.activeElement;
  const isTyping = focused?.matches(FIELDS);
  if (isTyping && event.key.length === 1) typedAt = performance.now();
  const card = focused?.closest(".approval");
  if (!card || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "y") decide(card, "allow");
  if (event.key === "n") decide(card, "deny");
});

document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-jump]")) return;
  if (jump()) event.preventDefault();
});

// The card had the focus when it went away: back to where the person came from.
document.addEventListener("card-gone", (event) => {
  const call = event.detail.call?.querySelector("summary");
  const back = cameFrom?.isConnected ? cameFrom : (call ?? document.getElementById("message"));
  cameFrom = null;
  back?.focus({ preventScroll: true });
});
