// The one socket of the page: tells what the page has, takes text past htmx, acknowledges.
//
// Frames that begin with "{" are text for <tool-output> elements; all others are
// fragments for htmx. After each connect the server sends what is missing, no more.

const ACK_EVERY = 65536; // code points
const RETRIED = [1006, 1011, 1012, 1013]; // close codes the extension reconnects after
const REFUSED = [4401, 4403, 4404];
const RETRY_MS = 1000;
const SILENCE_MS = 9000;

let socket = null;
let current = null; // the WebSocket behind it
let replaced = null; // one that is closed to make room: its end is no loss
let received = 0;
let acknowledged = 0;
let asked = new Map();
let watchdog = 0;

htmx.config.wsReconnectDelay = (tries) => Math.min(500 * 2 ** tries, 5000) * (0.7 + Math.random() / 2);

const outputs = () => [...document.querySelectorAll("tool-output")];
const showing = (item) => outputs().filter((output) => output.item === item && !output.isFinal);

function state(name, detail = {}) {
  document.dispatchEvent(new CustomEvent("connection", { detail: { name, ...detail } }));
}

function sendHave() {
  const have = {};
  for (const { item, offset, isFinal } of outputs()) if (item && !isFinal) have[item] = offset;
  const seq = Number(document.getElementById("trace-head").dataset.seq);
  socket.sendImmediately(JSON.stringify({ have, seq }));
}

function acknowledge(text) {
  received += text.length;
  if (received - acknowledged < ACK_EVERY) return;
  acknowledged = received;
  socket.send(JSON.stringify({ ack: received }));
}

const frames = {
  delta({ item, start, text }) {
    acknowledge(text);
    for (const output of showing(item)) {
      if (output.take(start, text)) asked.delete(item);
      else if (asked.get(item) !== output.offset) {
        asked.set(item, output.offset);
        socket.send(JSON.stringify({ again: { [item]: output.offset } }));
      }
    }
  },
  reset({ item, start }) {
    for (const output of showing(item)) {
      const streaming = output.closest("[data-streaming]");
      if (streaming && start === 0) streaming.remove();
      else output.reset(start);
    }
  },
  line({ item, at, text }) {
    for (const output of showing(item)) output.showLine(at, text);
  },
  bind({ call, item, start }) {
    for (const output of outputs()) {
      if (output.dataset.toolOutput === call) output.bind(item, start);
    }
  },
  // Sent now and then; once seen, its absence means a connection that only looks open.
  beat() {
    watch(true);
  },
};

function watch(isBeating) {
  if (!watchdog && !isBeating) return;
  clearTimeout(watchdog);
  watchdog = setTimeout(reconnect, SILENCE_MS);
}

function reconnect() {
  state("lost");
  replaced = current;
  socket?.reconnect();
}

document.addEventListener("htmx:wsOpen", (event) => {
  socket = event.detail.socketWrapper;
  current = event.detail.event.target;
  received = acknowledged = 0;
  asked = new Map();
  sendHave();
  state("open");
});

document.addEventListener("htmx:wsBeforeMessage", (event) => {
  const { message } = event.detail;
  watch(false);
  if (!message.startsWith("{")) return;
  event.preventDefault();
  const frame = JSON.parse(message);
  frames[frame.type]?.(frame);
});

document.addEventListener("htmx:wsClose", (event) => {
  const { code, target } = event.detail.event;
  if (target === replaced) return;
  clearTimeout(watchdog);
  watchdog = 0;
  if (REFUSED.includes(code)) {
    state("refused");
    return;
  }
  state("lost");
  if (!RETRIED.includes(code)) setTimeout(reconnect, RETRY_MS);
});

window.addEventListener("online", reconnect);
