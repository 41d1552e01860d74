// Two live regions: polite news at most once in five seconds, urgent news at once.

const PAUSE_MS = 5000;
const KEPT = 3; // of what came in the pause, the newest
const polite = document.getElementById("polite");
const assertive = document.getElementById("assertive");
let waiting = [];
let timer = 0;

function speak() {
  timer = 0;
  if (!waiting.length) return;
  polite.textContent = waiting.join(". ");
  waiting = [];
  timer = setTimeout(speak, PAUSE_MS);
}

function tell(text) {
  waiting = [...waiting, text].slice(-KEPT);
  if (!timer) speak();
}

function shout(text) {
  assertive.textContent = text;
}

function lineOf(call) {
  const name = call.querySelector(".tool-name").textContent;
  const line = call.querySelector(".tool-line").textContent;
  return line ? `${name}: ${line.slice(0, 80)}` : name;
}

function aboutFacts(facts) {
  const call = facts.closest(".call");
  const running = facts.querySelector("[data-state=running]");
  const words = [...facts.children].map((fact) => fact.textContent).join(", ");
  if (running) tell(`running ${lineOf(call)}`);
  else if (words) tell(`finished ${lineOf(call)}, ${words}`);
}

document.addEventListener("htmx:load", (event) => {
  const element = event.detail.elt;
  const card = element.querySelector?.(".approval");
  if (card) {
    shout(`${card.querySelector("h3").textContent} waits for approval`);
  } else if (element.matches(".tool-facts")) {
    aboutFacts(element);
  } else if (element.matches(".note[data-tone=krill]")) {
    shout(element.textContent.trim().replace(/\s+/g, " "));
  } else if (element.matches(".message[data-role=assistant]:not([data-streaming])")) {
    tell("the agent has answered");
  }
});

document.addEventListener("announce", (event) => {
  if (event.detail.urgent) shout(event.detail.text);
  else tell(event.detail.text);
});
