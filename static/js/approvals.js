// Approval cards: buttons that take no press by accident, and say what becomes of one.
//
// A card takes no answer in its first moments, right after the window got the focus,
// while it is offline, twice, or (Approve) before all of its lines were shown.

const FRESH_MS = 300;
const FOCUS_MS = 400;

let focusedAt = -Infinity;

const cards = () => document.querySelectorAll(".approval");

function isUnread(card) {
  return card.querySelector("details[data-must-open]:not([data-opened])") !== null;
}

function refresh(card) {
  const now = performance.now();
  const isEarly = now < Number(card.dataset.shownAt) + FRESH_MS || now < focusedAt + FOCUS_MS;
  const isBusy = Boolean(card.dataset.sending || card.dataset.answered);
  const isOff = isEarly || isBusy || document.body.dataset.offline !== undefined;
  for (const button of card.querySelectorAll("[data-decide]")) {
    const isBlocked = isOff || (button.dataset.decide === "allow" && isUnread(card));
    if (isBlocked) button.setAttribute("aria-disabled", "true");
    else button.removeAttribute("aria-disabled");
  }
}

function refreshAll() {
  for (const card of cards()) refresh(card);
}

function welcome(card) {
  card.dataset.shownAt = performance.now();
  refresh(card);
  setTimeout(() => refresh(card), FRESH_MS + 10);
}

for (const card of cards()) welcome(card);

document.addEventListener("htmx:load", (event) => {
  const { elt } = event.detail;
  if (elt.matches(".approval")) welcome(elt);
  for (const card of elt.querySelectorAll(".approval")) welcome(card);
});

window.addEventListener("focus", () => {
  focusedAt = performance.now();
  refreshAll();
  setTimeout(refreshAll, FOCUS_MS + 10);
});

document.addEventListener("connection", () => queueMicrotask(refreshAll));

document.addEventListener("toggle", (event) => {
  if (!event.target.matches("details[data-must-open]") || !event.target.open) return;
  event.target.dataset.opened = "";
  const card = event.target.closest(".approval");
  if (card) refresh(card);
}, true);

// Before htmx and before the browser: a press that does not count ends here.
document.addEventListener("submit", (event) => {
  const card = event.target.closest(".approval");
  if (!card) return;
  refresh(card);
  const button = event.target.querySelector("[data-decide]");
  if (button.getAttribute("aria-disabled") === "true") {
    event.preventDefault();
    event.stopImmediatePropagation();
    return;
  }
  const via = event.target.elements.via;
  if (via.value === "form") via.value = "button";
}, true);

function label(form, text) {
  const slot = form.querySelector("[data-label]");
  slot.dataset.name ??= slot.textContent;
  slot.textContent = text ?? slot.dataset.name;
}

document.addEventListener("htmx:beforeRequest", (event) => {
  const card = event.target.closest(".approval");
  if (!card) return;
  card.dataset.sending = "yes";
  label(event.target, "Sending…");
  refresh(card);
});

document.addEventListener("htmx:afterRequest", (event) => {
  const card = event.target.closest(".approval");
  if (!card) return;
  delete card.dataset.sending;
  if (event.detail.successful) card.dataset.answered = "yes";
  event.target.elements.via.value = "form";
  label(event.target);
  refresh(card);
});
