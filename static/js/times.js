// Times in the reader's zone, clocks that count, and "you" instead of the own name.

const FORMS = {
  minute: { hour: "2-digit", minute: "2-digit" },
  second: { hour: "2-digit", minute: "2-digit", second: "2-digit" },
  milli: { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 },
  date: { year: "numeric", month: "short", day: "numeric" },
};
const formats = new Map();

function told(moment, form) {
  if (form === "day") {
    const isToday = moment.toDateString() === new Date().toDateString();
    return told(moment, isToday ? "minute" : "date");
  }
  if (!formats.has(form)) {
    const options = { hourCycle: form === "date" ? undefined : "h23", ...FORMS[form] };
    formats.set(form, new Intl.DateTimeFormat(document.documentElement.lang, options));
  }
  return formats.get(form).format(moment);
}

function clockFace(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const two = (number) => String(number).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  if (hours) return `${hours}:${two(minutes)}:${two(whole % 60)}`;
  return `${minutes}:${two(whole % 60)}`;
}

function each(scope, selector, act) {
  if (scope.matches?.(selector)) act(scope);
  for (const element of scope.querySelectorAll(selector)) act(element);
}

function localise(scope) {
  each(scope, "time[data-clock]", (time) => {
    time.textContent = told(new Date(time.dateTime), time.dataset.clock);
  });
  const user = document.body.dataset.user;
  each(scope, "[data-person]", (element) => {
    if (element.dataset.person !== user) return;
    element.textContent = element.matches("h2") ? "You" : "you";
  });
}

function tick() {
  for (const time of document.querySelectorAll("time[data-since], time[data-until]")) {
    const { since, until } = time.dataset;
    const span = since ? Date.now() - Date.parse(since) : Date.parse(until) - Date.now();
    const text = clockFace(span / 1000);
    if (time.textContent !== text) time.textContent = text;
  }
}

localise(document);
tick();
setInterval(tick, 1000);
document.addEventListener("htmx:load", (event) => {
  localise(event.detail.elt);
  tick();
});
