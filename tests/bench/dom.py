"""From a write in a command to text in the browser's page."""

import asyncio
import shutil
import time
from collections.abc import Iterator
from typing import Any

from playwright.sync_api import Page, sync_playwright

from tests.bench import clock
from tests.bench.measure import line
from tests.bench.visitor import Visitor
from tests.conftest import CHROMIUM_FLAGS, CHROMIUM_NAMES
from tests.site import Site

# Text comes as new nodes or as more of the last one; each line counts once.
WATCH = """() => {
  window.delays = [];
  const seen = new Set();
  new MutationObserver((changes) => {
    const now = (performance.timeOrigin + performance.now()) / 1000;
    for (const change of changes) {
      const nodes = change.type === "characterData" ? [change.target] : change.addedNodes;
      for (const node of nodes) {
        if (!node.parentElement?.closest("[data-tool-output]")) continue;
        for (const found of node.textContent.match(/\\d{10}\\.\\d{6}/g) || []) {
          if (seen.has(found)) continue;
          seen.add(found);
          window.delays.push((now - Number(found)) * 1000);
        }
      }
    }
  }).observe(document.body, {childList: true, subtree: true, characterData: true});
}"""
SEEN_S = 30


def lines(site: Site) -> Iterator[dict[str, Any]]:
    """Yield one line per number of sessions, or nothing where no browser is."""
    executable = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if executable is None:
        return
    for count in clock.SESSIONS:
        yield _with_sessions(site, executable, count)


def _with_sessions(site: Site, executable: str, count: int) -> dict[str, Any]:
    """One page watches one session while `count` sessions print a line per 50 ms."""
    session_ids = asyncio.run(_make(site, count))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, args=CHROMIUM_FLAGS
        )
        page = browser.new_page(base_url=site.base_url)
        _log_in(page, site)
        page.goto(f"/p/default/s/{session_ids[0]}/")
        page.evaluate(WATCH)
        page.wait_for_timeout(500)
        api = page.request
        headers = {"Authorization": f"Bearer {site.token()}"}
        for session_id in session_ids:
            api.post(
                f"/api/v1/sessions/{session_id}/tasks",
                headers=headers,
                data={"text": f"$ {clock.command(count)}"},
            )
        samples = _until_enough(page)
        browser.close()
    return line("delta_latency_ms", "ms", samples, at="page", sessions=count)


def _until_enough(page: Page) -> list[float]:
    """Ask from outside: waiting inside the page would need eval, which it forbids."""
    deadline = time.monotonic() + SEEN_S
    while len(samples := page.evaluate("window.delays")) < clock.ENOUGH:
        assert time.monotonic() < deadline, f"{len(samples)} lines in {SEEN_S} s"
        page.wait_for_timeout(200)
    return samples


async def _make(site: Site, count: int) -> list[str]:
    async with Visitor(site) as visitor:
        return [await visitor.session() for _ in range(count)]


def _log_in(page: Page, site: Site) -> None:
    page.goto("/login/")
    page.get_by_role("textbox", name="Username", exact=True).fill(site.username)
    page.get_by_role("textbox", name="Password", exact=True).fill(site.password)
    page.get_by_role("button", name="Log in", exact=True).click()
    page.wait_for_url(lambda url: "/login/" not in url)
