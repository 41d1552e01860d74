// The session's state in the places no fragment reaches: body, title, mode field.

const SUFFIX = "Penguin Web";

// The names of all cards come in one piece; the cards themselves stay as they are.
function showPositions() {
  for (const name of document.querySelectorAll("#card-names > span")) {
    const card = document.getElementById(name.id.replace(/-name$/, ""));
    const { position, total } = name.dataset;
    if (card) card.querySelector(".approval-from").textContent = `${position} of ${total}`;
  }
}

function show() {
  const status = document.getElementById("session-status");
  const { state, mode, title, waiting } = status.dataset;
  document.body.dataset.sessionStatus = state;
  const count = Number(waiting) ? `(${waiting}) ` : "";
  document.title = `${count}${title} · ${SUFFIX}`;
  const crumb = document.getElementById("crumb");
  if (crumb) crumb.textContent = title;
  const field = document.querySelector("select[name=approval_mode]");
  if (field && !field.dataset.sending) field.value = mode;
  showPositions();
}

document.addEventListener("htmx:wsAfterMessage", show);

// A mode is shown as chosen while it is on its way, and as it is once there is an answer.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target.matches("select[name=approval_mode]")) event.target.dataset.sending = "yes";
});
document.addEventListener("htmx:afterRequest", (event) => {
  const field = event.target;
  if (!field.matches("select[name=approval_mode]")) return;
  delete field.dataset.sending;
  if (event.detail.successful) {
    document.getElementById("session-status").dataset.mode = field.value;
  } else {
    field.value = document.getElementById("session-status").dataset.mode;
  }
});
