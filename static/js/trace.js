// The viewer: a permalink leads to its event also when another page of rows is open.

function follow() {
  const seq = /^#e(\d+)$/.exec(location.hash)?.[1];
  if (!seq || document.getElementById(`e${seq}`)) return;
  const address = new URL(location.href);
  if (address.searchParams.get("event") === seq) return;
  address.searchParams.delete("after");
  address.searchParams.set("event", seq);
  location.replace(address);
}

follow();
if (!location.hash) {
  document.querySelector("tr[aria-selected=true]")?.scrollIntoView({ block: "center" });
}
addEventListener("hashchange", follow);

// On narrow screens the details stand above the list, out of sight of the row.
addEventListener("load", () => {
  const detail = document.querySelector(".detail");
  if (detail && getComputedStyle(detail).order === "-1") detail.scrollIntoView();
});

// A filter counts when it is set; the button is for pages without a script.
document.querySelector(".facets").addEventListener("change", (event) => {
  event.target.form.requestSubmit();
});
