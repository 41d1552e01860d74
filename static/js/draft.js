// The draft: what is typed is kept on the server, across reload, crash and device.

const PAUSE_MS = 800;

const form = document.getElementById("composer");
const field = document.getElementById("message");

let kept = field?.value ?? "";
let before = kept; // what was saved before that
let timer = 0;

function save() {
  clearTimeout(timer);
  if (field.value === kept || form.dataset.sending) return;
  before = kept;
  kept = field.value;
  const { "X-CSRFToken": token } = JSON.parse(document.body.getAttribute("hx-headers"));
  const body = new URLSearchParams({ text: kept, csrfmiddlewaretoken: token });
  fetch(form.dataset.draft, {
    method: "POST",
    body,
    headers: { "HX-Request": "true" },
    keepalive: kept.length < 60000,
  }).catch(() => {
    kept = null; // not saved: the next pause tries again
  });
}

if (form) {
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(save, PAUSE_MS);
  });
  window.addEventListener("pagehide", save);
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "hidden") save();
  });
  // Sending clears the draft on the server.
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.target === form && event.detail.successful) kept = "";
  });
  // A stop puts queued messages back: they come with the state of the session.
  document.addEventListener("htmx:load", (event) => {
    const { elt } = event.detail;
    const text = elt.dataset?.returned;
    if (!text || field.value || text === kept || text === before) return;
    kept = text;
    field.value = text;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
}
