// Images of a message: chosen, pasted or dropped, held against the limits before they
// are sent, and kept by the server until the message takes them.

const form = document.getElementById("attach");
const composer = document.getElementById("composer");
const input = form?.elements.images;

let waiting = []; // files that came while others were on their way
let submitter = null; // the button of a message that waits for its images

const isBusy = () => form.dataset.busy !== undefined;
const megabytes = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MB`;

function complain(text) {
  const notice = document.getElementById("trouble").content.cloneNode(true);
  notice.querySelector("p").textContent = text;
  document.getElementById("composer-answer").replaceChildren(notice);
}

function problemOf(files) {
  const { bytes, total, count } = form.dataset;
  const there = [...document.querySelectorAll("#attachments > li")];
  const large = files.find((file) => file.size > bytes);
  if (large) return `${large.name} is too large: an image may have up to ${megabytes(bytes)}.`;
  if (there.length + files.length > count) {
    return `${there.length + files.length} images; a message may have up to ${count}.`;
  }
  const sizes = [...files.map((file) => file.size), ...there.map((item) => Number(item.dataset.size))];
  const sum = sizes.reduce((one, other) => one + other, 0);
  if (sum > total) return `The images have ${megabytes(sum)} together; a message may have up to ${megabytes(total)} of them.`;
  return "";
}

function offer(files) {
  if (isBusy()) {
    waiting.push(...files);
    return;
  }
  const problem = problemOf(files);
  if (problem) {
    input.value = "";
    complain(problem);
    return;
  }
  const transfer = new DataTransfer();
  for (const file of files) transfer.items.add(file);
  input.files = transfer.files;
  form.requestSubmit();
}

function imagesOf(transfer) {
  return [...(transfer?.files ?? [])].filter((file) => file.type.startsWith("image/"));
}

function onPaste(event) {
  // What comes with words, as from a text processor, is pasted as words.
  if (event.clipboardData.types.includes("text/plain")) return;
  const files = imagesOf(event.clipboardData);
  if (!files.length) return;
  event.preventDefault();
  offer(files);
}

function onDrag(event) {
  if (!event.dataTransfer.types.includes("Files")) return;
  event.preventDefault(); // else the browser would leave the page for the file
  composer.toggleAttribute("data-dropping", event.type === "dragover");
  if (event.type !== "drop") return;
  const files = imagesOf(event.dataTransfer);
  if (files.length) offer(files);
  else complain("Only images can be attached: PNG, JPEG, GIF or WebP.");
}

// A message waits for its images.
function onSubmit(event) {
  if (event.target !== composer || !isBusy()) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  submitter = event.submitter;
}

function onAfter(event) {
  if (event.target !== form) return;
  delete form.dataset.busy;
  input.value = "";
  const [files, button] = [waiting, submitter];
  waiting = [];
  submitter = null;
  if (files.length) offer(files);
  if (!button) return;
  if (isBusy()) submitter = button;
  else if (event.detail.successful) composer.requestSubmit(button);
}

if (form && input) {
  input.addEventListener("change", () => offer([...input.files]));
  composer.addEventListener("paste", onPaste);
  for (const name of ["dragover", "dragleave", "drop"]) document.addEventListener(name, onDrag);
  document.addEventListener("submit", onSubmit, true);
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target === form) form.dataset.busy = "";
  });
  document.addEventListener("htmx:afterRequest", onAfter);
}
