"""Compaction by hand in a browser: from the menu, also after all else there is."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.pictures import picture

pytestmark = pytest.mark.browser

ARMED_MS = 450  # a card takes clicks after 300 ms, after window focus 400 ms
STORY = """\
call run_subagent {"prompt": "$ echo from one"}
call run_subagent {"prompt": "$ echo from two"}
then
call read_image {"source": "picture.png"}
then
say all seen"""


@pytest.fixture
def chat(page: Page) -> Page:
    """The chat of a new session."""
    page.get_by_role("link", name="New session", exact=True).first.click()
    page.get_by_role("button", name="Create session", exact=True).click()
    page.wait_for_url("**/s/**")
    return page


def send(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Message", exact=True).fill(text)
    page.get_by_role("button", name="Send", exact=True).click()


def compact(page: Page) -> None:
    page.get_by_label("Session actions").first.click()
    page.get_by_role("button", name="Compact context", exact=True).click()


def test_conversation_is_summarised_from_the_menu(chat):
    log = chat.get_by_role("log", name="Conversation", exact=True)
    send(chat, "say hello there")
    expect(log).to_contain_text("hello there")
    expect(chat.locator("body")).to_have_attribute("data-session-status", "idle")

    compact(chat)

    expect(log).to_contain_text("Compaction completed")
    expect(log).to_contain_text("Summary of the conversation so far")
    expect(chat.locator("body")).to_have_attribute("data-session-status", "idle")
    send(chat, "say and on")
    expect(log).to_contain_text("and on")


def test_nothing_to_summarise_is_said_in_the_page(chat):
    compact(chat)

    expect(
        chat.get_by_text("There is no conversation to summarise yet.")
    ).to_be_visible()


def approve_all(page: Page, count: int) -> None:
    """Approve what waits, the oldest first, until so many calls were approved."""
    for _ in range(count):
        card = page.get_by_role("region", name=re.compile("^Pending approval: ")).first
        expect(card).to_be_visible()
        key = card.get_attribute("id")
        page.wait_for_timeout(ARMED_MS)
        card.get_by_role("button", name="Approve", exact=True).click()
        expect(page.locator(f"[id='{key}']")).to_have_count(0)


def test_subagents_an_image_and_a_compaction_in_one_session(chat, served):
    session_id = re.search(r"session-[\w-]+", chat.url)[0]
    workspace = served.workspaces_dir / "default" / session_id
    (workspace / "picture.png").write_bytes(picture(size=(20, 10)))
    log = chat.get_by_role("log", name="Conversation", exact=True)

    send(chat, STORY)
    approve_all(chat, 5)
    expect(log).to_contain_text("all seen")
    expect(log.locator("img").first).to_be_visible()
    compact(chat)
    expect(log).to_contain_text("Compaction completed")

    chat.get_by_role("link", name="Trace", exact=True).first.click()
    chat.get_by_role("button", name="Verify", exact=True).click()
    for verdict in ("intact", "complete"):
        expect(chat.get_by_text(verdict, exact=True)).to_be_visible()
