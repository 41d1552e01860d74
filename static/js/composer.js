// The composer: Enter sends, and the box is emptied when the server has the message.

const form = document.getElementById("composer");
const field = document.getElementById("message");

let sent = "";
let suggestion = ""; // a message of a button, which leaves the box alone

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

const isEmpty = () =>
  !field.value.trim() && !document.querySelector("#attachments > li");

// One message at a time; an empty one is not sent at all.
function onSubmit(event) {
  if (event.target !== form) return;
  suggestion = event.submitter?.name === "suggestion" ? event.submitter.value : "";
  if (form.dataset.sending || (!suggestion && isEmpty())) {
    event.preventDefault();
    event.stopImmediatePropagation();
  }
}

// Such buttons stand outside of the form, where htmx does not see them pressed.
function onConfig(event) {
  if (event.target === form && suggestion) event.detail.formData.set("suggestion", suggestion);
}

function onBefore(event) {
  if (event.target !== form) return;
  form.dataset.sending = "yes";
  sent = field.value;
  form.querySelector("[data-kind=primary]").setAttribute("aria-disabled", "true");
}

// What was typed while the message was on its way: one run of it, anywhere in the text.
function typedMeanwhile() {
  const { value } = field;
  let start = 0;
  while (start < sent.length && value[start] === sent[start]) start += 1;
  const rest = sent.slice(start);
  return value.endsWith(rest) ? value.slice(start, value.length - rest.length) : value;
}

function onAfter(event) {
  if (event.target !== form) return;
  delete form.dataset.sending;
  form.querySelector("[data-kind=primary]").removeAttribute("aria-disabled");
  if (!suggestion && event.detail.successful) put(typedMeanwhile());
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
  document.addEventListener("htmx:configRequest", onConfig);
  document.addEventListener("htmx:beforeRequest", onBefore);
  document.addEventListener("htmx:afterRequest", onAfter);
  document.addEventListener("htmx:afterSwap", onSwap);
}
