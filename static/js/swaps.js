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

document.addEventListener("htmx:oobBeforeSwap", (event) => {
  const { target, fragment } = event.detail;
  if (target.matches("tool-output")) {
    event.detail.shouldSwap = !target.finish(fragment);
    return;
  }
  if (isSame(target, fragment)) {
    event.detail.shouldSwap = false;
    return;
  }
  if (target.matches(".call-card") && target.contains(document.activeElement)) {
    const detail = { call: target.closest(".call") };
    queueMicrotask(() => document.dispatchEvent(new CustomEvent("card-gone", { detail })));
  }
});
