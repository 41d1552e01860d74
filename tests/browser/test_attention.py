"""What a page must not do while somebody works in it: decide, jump, or lose anything."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

ANY_CARD = re.compile("^Pending approval: ")
# Clicks the first "Approve" in the moment it appears, and notes how it stood.
CLICK_AT_ONCE = """() => {
  window.seen = [];
  new MutationObserver(() => {
    const button = document.querySelector("button[data-decide=allow]");
    if (!button || window.seen.length) return;
    window.seen.push(button.getAttribute("aria-disabled"));
    button.click();
  }).observe(document.body, { subtree: true, childList: true });
}"""


class Chat:
    """A session of the API, open in a page."""

    def __init__(self, api, page: Page, mode: str) -> None:
        wish = {"approval_mode": mode}
        made = api.post("projects/default/sessions", json=wish).json()
        self.api, self.page, self.id = api, page, made["id"]
        page.goto(f"/p/default/s/{self.id}/")

    def send(self, text: str) -> None:
        sent = self.api.post(f"sessions/{self.id}/tasks", json={"text": text})
        assert sent.status_code == 202, sent.text

    def pending(self) -> list[dict]:
        asked = {"status": "pending"}
        return self.api.get(f"sessions/{self.id}/approvals", params=asked).json()

    def cards(self, count: int):
        cards = self.page.get_by_role("region", name=ANY_CARD)
        expect(cards).to_have_count(count)
        return cards

    def status(self, status: str) -> None:
        body = self.page.locator("body")
        expect(body).to_have_attribute("data-session-status", status)

    def ended(self) -> None:
        """Wait until the server has ended the task, whatever the page shows yet."""
        deadline = time.monotonic() + 20
        while self.api.get(f"sessions/{self.id}").json()["status"] != "idle":
            assert time.monotonic() < deadline
            self.page.wait_for_timeout(50)


@pytest.fixture(scope="module")
def api(served):
    with served.api() as api:
        yield api


@pytest.fixture
def open_chat(api, page):
    """Open a session in the given mode; what still waits at the end is stopped."""
    made = []

    def make(mode: str) -> Chat:
        made.append(Chat(api, page, mode))
        return made[-1]

    yield make
    for chat in made:
        api.post(f"sessions/{chat.id}/interrupt")


def approve(scope):
    return scope.get_by_role("button", name="Approve", exact=True)


def test_typing_decides_nothing_and_loses_nothing_while_cards_arrive(open_chat):
    chat = open_chat("always-ask")
    box = chat.page.get_by_role("textbox", name="Message", exact=True)
    box.click()
    typed = "yes no any day now y n " * 4

    chat.send("sleep 0.4\n$ echo 1\nsleep 0.3\n$ echo 2\nsleep 0.3\n$ echo 3")
    box.press_sequentially(typed, delay=15)
    chat.cards(3)
    box.press("Shift+Enter")

    assert len(chat.pending()) == 3
    expect(box).to_have_value(f"{typed}\n")
    expect(box).to_be_focused()


def test_click_that_was_meant_for_something_else_decides_nothing(open_chat):
    chat = open_chat("always-ask")
    chat.page.evaluate(CLICK_AT_ONCE)

    chat.send("$ echo hi")
    card = chat.cards(1).first

    assert chat.page.evaluate("window.seen") == ["true"]
    expect(approve(card)).not_to_have_attribute("aria-disabled", "true")
    assert len(chat.pending()) == 1
    # The click that brings the window forward comes with its focus.
    chat.page.evaluate("window.dispatchEvent(new Event('focus'))")
    approve(card).evaluate("button => button.click()")
    expect(approve(card)).not_to_have_attribute("aria-disabled", "true")
    assert len(chat.pending()) == 1
    approve(card).click()
    chat.cards(0)


def test_card_is_there_again_after_a_reload(open_chat):
    chat = open_chat("always-ask")
    chat.send("$ echo 1\n$ echo 2")
    chat.cards(2)

    chat.page.reload()

    chat.cards(2)
    chat.status("waiting")


def test_page_stays_where_it_was_scrolled_to(open_chat):
    chat = open_chat("allow-all")
    chat.send("\n".join(f"say filler {i} " + "lorem " * 60 for i in range(20)))
    chat.ended()
    chat.send("$ for i in $(seq 1 25); do echo line$i; sleep 0.1; done")
    log = chat.page.get_by_role("log", name="Conversation", exact=True)
    expect(log).to_contain_text("line3\n")

    log.hover()
    chat.page.mouse.wheel(0, -400)
    expect(chat.page.get_by_role("button", name="Latest")).to_be_visible()
    place = log.evaluate("log => log.firstElementChild.getBoundingClientRect().top")
    expect(log).to_contain_text("line25\n")

    now = log.evaluate("log => log.firstElementChild.getBoundingClientRect().top")
    assert abs(now - place) < 3


def test_lost_connection_leaves_no_gap_and_no_repeat(open_chat):
    chat = open_chat("allow-all")
    chat.send("$ for i in $(seq 1 30); do echo line$i; sleep 0.1; done\nthen\nsay end")
    output = chat.page.locator("[data-tool-output]")
    expect(output).to_contain_text("line3\n")

    chat.page.context.set_offline(True)
    chat.page.wait_for_timeout(1200)
    chat.page.context.set_offline(False)

    chat.status("idle")
    lines = "".join(f"line{i}\n" for i in range(1, 31))
    expect(output).to_have_text(lines.strip(), use_inner_text=True, timeout=20_000)
    log = chat.page.get_by_role("log", name="Conversation", exact=True)
    expect(log.get_by_text("end", exact=True)).to_have_count(1)
