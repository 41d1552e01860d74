// Copying: messages, code blocks and commands; also over plain HTTP.

const SHOWN_MS = 1500;

function sourceOf(button) {
  if (button.dataset.copy === "code") return button.parentElement.querySelector("code");
  return button.closest("article").querySelector(".prose");
}

async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // No clipboard API outside a secure context: select the text and let the browser copy.
  const field = document.createElement("textarea");
  field.value = text;
  field.setAttribute("aria-hidden", "true");
  field.className = "visually-hidden";
  const focused = document.activeElement;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
  focused?.focus();
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await copyText(sourceOf(button).textContent);
  const name = button.getAttribute("aria-label");
  button.setAttribute("aria-label", "Copied");
  button.dataset.done = "";
  setTimeout(() => {
    button.setAttribute("aria-label", name);
    delete button.dataset.done;
  }, SHOWN_MS);
});

function addButtons(scope) {
  const model = document.getElementById("copy-code");
  if (!model) return;
  for (const code of scope.querySelectorAll(".prose pre > code")) {
    if (code.parentElement.querySelector("[data-copy]")) continue;
    code.after(model.content.cloneNode(true));
  }
}

addButtons(document);
document.addEventListener("htmx:load", (event) => addButtons(event.detail.elt));
