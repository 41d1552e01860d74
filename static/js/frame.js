// The frame: theme and rail at once instead of after a reload, menus that close, Ctrl K,
// and in the title how many calls of the project wait.

const YEAR_S = 31536000;
const THEMES = ["", "light", "dark"];
const root = document.documentElement;

function keep(name, value) {
  const age = value ? YEAR_S : 0;
  document.cookie = `${name}=${value}; path=/; max-age=${age}; samesite=lax`;
}

function showTheme(theme) {
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
  const button = document.querySelector("[data-theme-form] button");
  button.setAttribute("aria-label", `Theme: ${theme || "follow the system"}`);
}

document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-theme-form]")) return;
  event.preventDefault();
  const next = (THEMES.indexOf(root.dataset.theme ?? "") + 1) % THEMES.length;
  keep("theme", THEMES[next]);
  showTheme(THEMES[next]);
});

const collapse = document.querySelector("[data-collapse]");

function showRail() {
  const isNarrow = document.body.dataset.rail === "narrow";
  collapse.setAttribute("aria-pressed", String(isNarrow));
}

if (collapse) {
  collapse.hidden = false;
  showRail();
  collapse.addEventListener("click", () => {
    const isNarrow = document.body.dataset.rail !== "narrow";
    if (isNarrow) document.body.dataset.rail = "narrow";
    else delete document.body.dataset.rail;
    keep("rail", isNarrow ? "narrow" : "");
    showRail();
  });
}

function closeMenus(except) {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(except)) menu.open = false;
  }
}

document.addEventListener("click", (event) => closeMenus(event.target));

document.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  if (event.key === "Escape") {
    const menu = document.activeElement?.closest("details.menu[open]");
    closeMenus(null);
    menu?.querySelector("summary").focus();
  }
  const isChord = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
  if (isChord && event.key.toLowerCase() === "k") {
    const field = document.querySelector("[data-shortcut=k]");
    if (!field) return;
    event.preventDefault();
    field.focus();
    field.select();
  }
});

document.addEventListener("htmx:wsAfterMessage", () => {
  if (document.getElementById("session-status")) return; // a chat counts its own
  const count = document.querySelector("#rail-waiting .count")?.firstChild.textContent;
  const title = document.title.replace(/^\(\d+\) /, "");
  document.title = count ? `(${count}) ${title}` : title;
});
