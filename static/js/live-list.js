// Lists that are open follow the project: they are asked for anew when something changed,
// but never under the hands of whoever is using them.

const WAIT_MS = 2000;

let shown = null; // the mark of what the list shows
let timer = 0;

const mark = () => document.getElementById("project-news")?.dataset.mark;

// A card that has its answer is not in use any more, though its button has the focus.
function isInUse(list) {
  const focused = document.activeElement;
  const isFocused = list.contains(focused) && !focused.closest("[data-answered]");
  const isOpen = list.querySelector("details.menu[open], details[data-must-open][open]");
  const isTyped = [...list.querySelectorAll("input:not([type=hidden])")].some(
    (field) => field.value !== field.defaultValue,
  );
  return isFocused || isOpen || isTyped || list.querySelector("[data-sending]");
}

function follow() {
  clearTimeout(timer);
  const list = document.querySelector("[data-live]");
  if (mark() === shown) return;
  if (isInUse(list)) {
    timer = setTimeout(follow, WAIT_MS);
    return;
  }
  shown = mark();
  if (list.contains(document.activeElement)) document.getElementById("main").focus();
  htmx.ajax("GET", location.href, { target: "#live", select: "#live", swap: "outerHTML" });
}

document.addEventListener("htmx:wsAfterMessage", () => {
  if (shown === null) shown = mark();
  else follow();
});
