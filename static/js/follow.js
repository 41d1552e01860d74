// Following: the page scrolls along while its reader is at the end, and never otherwise.

const NEAR_END = 96; // pixels

const conversation = document.getElementById("conversation");
const button = document.getElementById("to-latest");
const root = document.scrollingElement;

let follows = false;
let count = 0;
let place = 0; // where the last scrolling led

const fromEnd = () => root.scrollHeight - root.clientHeight - root.scrollTop;

function isHeld() {
  const selection = document.getSelection();
  const selects = selection && !selection.isCollapsed && conversation.contains(selection.anchorNode);
  return selects || Boolean(document.activeElement?.closest(".approval"));
}

function showButton() {
  const isShown = !follows && fromEnd() > NEAR_END && conversation.childElementCount > 1;
  button.hidden = !isShown;
  if (!isShown) count = 0;
  button.querySelector("[data-label]").textContent = count ? `${count} new` : "Latest";
}

function toEnd() {
  root.scrollTop = root.scrollHeight;
}

addEventListener("scroll", () => {
  // Only the way up leads away: what is tall may have come since the last way down.
  const isUp = root.scrollTop < place;
  place = root.scrollTop;
  if (fromEnd() < NEAR_END || conversation.childElementCount < 2) follows = true;
  else if (isUp) follows = false;
  showButton();
}, { passive: true });

new ResizeObserver(() => {
  const isEmpty = conversation.childElementCount < 2;
  if (follows && !isEmpty && !isHeld()) toEnd();
  else showButton();
}).observe(conversation);

document.addEventListener("htmx:load", (event) => {
  if (!follows && event.detail.elt.matches(".turn:last-child, .turn:last-child > *")) count += 1;
});

button.addEventListener("click", () => {
  toEnd();
  document.getElementById("message")?.focus({ preventScroll: true });
});

const [entry] = performance.getEntriesByType("navigation");
const isFirst = !location.hash && entry?.type !== "reload" && entry?.type !== "back_forward";
const isEmpty = conversation.childElementCount < 2; // before the first message
if (isFirst && !isEmpty) toEnd();
follows = isEmpty || fromEnd() < NEAR_END;
showButton();
