// What the socket may not disturb: an element that would not change is not swapped, an
// output takes its final text itself, and whoever holds the focus of a card that goes
// away is told.

// Running clocks and form tokens are no difference.
function bare(element) {
  const copy = element.cloneNode(true);
  for (const time of copy.querySelectorAll("time")) time.replaceWith("");
  for (const token of copy.querySelectorAll("[name=csrfmiddlewaretoken]")) token.remove();
  copy.normalize();
  return copy;
}

function isSame(target, fragment) {
  if (fragment.childElementCount !== 1) return false;
  return bare(target).isEqualNode(bare(fragment.firstElementChild));
}

function tellFocus(place) {
  if (!place.contains(document.activeElement)) return;
  const detail = { call: place.closest(".call") };
  queueMicrotask(() => document.dispatchEvent(new CustomEvent("card-gone", { detail })));
}

// A list of cards: those that are new come in, those that are gone leave, none is redrawn.
function merge(list, fresh) {
  const ids = new Set([...fresh.children].map((card) => card.id));
  for (const card of [...list.children]) {
    if (ids.has(card.id)) continue;
    tellFocus(card);
    card.remove();
  }
  for (const card of [...fresh.children]) {
    if (document.getElementById(card.id)) continue;
    list.append(card);
    htmx.process(card);
    htmx.trigger(card, "htmx:load", { elt: card });
  }
}

document.addEventListener("htmx:oobBeforeSwap", (event) => {
  const { target, fragment } = event.detail;
  if (target.matches("tool-output")) {
    event.detail.shouldSwap = false;
    target.finish(fragment.firstElementChild);
    return;
  }
  if (target.matches("[data-keyed]")) {
    event.detail.shouldSwap = false;
    merge(target, fragment.firstElementChild);
    return;
  }
  if (isSame(target, fragment)) {
    event.detail.shouldSwap = false;
    return;
  }
  if (target.matches(".call-card")) tellFocus(target);
});
