// The composer: Enter sends, and the box is emptied when the server has the message.

const form = document.getElementById("composer");
const field = document.getElementById("message");

let sent = "";
let isSuggestion = false;

function put(text) {
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

function isComposing(event) {
  return event.isComposing || event.keyCode === 229;
}

function onKeydown(event) {
  if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return;
  event.preventDefault();
  form.requestSubmit(form.querySelector("[data-kind=primary]"));
}

// One message at a time; an empty one is not sent at all.
function onSubmit(event) {
  if (event.target !== form) return;
  isSuggestion = event.submitter?.name === "suggestion";
  if (form.dataset.sending || (!isSuggestion && !field.value.trim())) {
    event.preventDefault();
    event.stopImmediatePropagation();
  }
}

function onBefore(event) {
  if (event.target !== form) return;
  form.dataset.sending = "yes";
  sent = field.value;
  form.querySelector("[data-kind=primary]").setAttribute("aria-disabled", "true");
}

function onAfter(event) {
  if (event.target !== form) return;
  delete form.dataset.sending;
  form.querySelector("[data-kind=primary]").removeAttribute("aria-disabled");
  // Whatever was typed while the message was on its way stays.
  const isKept = isSuggestion || !event.detail.successful;
  if (!isKept && field.value.startsWith(sent)) put(field.value.slice(sent.length).trimStart());
}

function onSwap(event) {
  const text = document.querySelector("#recalled [data-text]")?.dataset.text;
  if (event.detail.target?.id !== "recalled" || text === undefined) return;
  document.getElementById("recalled").replaceChildren();
  put([text, field.value].filter(Boolean).join("\n\n"));
  field.focus();
}

if (form) {
  field.addEventListener("keydown", onKeydown);
  document.addEventListener("submit", onSubmit, true);
  document.addEventListener("htmx:beforeRequest", onBefore);
  document.addEventListener("htmx:afterRequest", onAfter);
  document.addEventListener("htmx:afterSwap", onSwap);
}
