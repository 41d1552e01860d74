// The viewer: a permalink leads to its event also when another page of rows is open.

const BEFORE = 50; // rows shown before the event that was asked for

function follow() {
  const seq = /^#e(\d+)$/.exec(location.hash)?.[1];
  if (!seq || document.getElementById(`e${seq}`)) return;
  const address = new URL(location.href);
  if (address.searchParams.get("event") === seq) return;
  address.searchParams.set("after", String(Math.max(0, Number(seq) - BEFORE)));
  address.searchParams.set("event", seq);
  location.replace(address);
}

follow();
addEventListener("hashchange", follow);
