"""Where things stand on the page: nothing cut off, nothing that moves by itself."""

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

NARROW = {"width": 390, "height": 844}
IS_CUT = """element => [...element.querySelectorAll("*")].some(
    part => part.checkVisibility() && part.getBoundingClientRect().right > innerWidth
)"""


def scroll(page: Page) -> int:
    return page.evaluate("Math.round(scrollY)")


@pytest.fixture
def chat(page: Page) -> Page:
    """The chat of a new session, below the notice of the one-time password."""
    page.get_by_role("link", name="New session", exact=True).first.click()
    page.get_by_role("button", name="Create session", exact=True).click()
    page.wait_for_url("**/s/**")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    return page


def send(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Message", exact=True).fill(text)
    page.get_by_role("button", name="Send", exact=True).click()


def long_talk(page: Page) -> None:
    """Say much more than a screen holds."""
    lines = "\n\n".join(f"line {number}" for number in range(80))
    send(page, f"say {lines}")
    log = page.get_by_role("log", name="Conversation", exact=True)
    expect(log.get_by_text("line 79").last).to_be_visible()
    expect(page.locator("body")).to_have_attribute("data-session-status", "idle")


@pytest.mark.parametrize("size", [{"width": 1366, "height": 768}, NARROW])
def test_chat_before_the_first_message_begins_at_its_top(chat, size):
    chat.set_viewport_size(size)
    chat.reload()
    expect(chat.get_by_text("Nothing runs until you say so")).to_be_in_viewport()

    chat.wait_for_timeout(300)  # the page would follow its end once it has its size

    assert scroll(chat) == 0


def test_nothing_beside_the_conversation_is_cut_off(chat):
    send(chat, "say " + "a-very-long-title-without-any-space" * 3)
    expect(chat.locator("#outline a")).to_have_count(1)

    assert not chat.locator(".chat-aside").evaluate(IS_CUT)


@pytest.mark.parametrize("size", [{"width": 1366, "height": 768}, NARROW])
def test_sheet_ends_where_the_page_ends(chat, size):
    chat.set_viewport_size(size)
    for path in (chat.url, f"{chat.url}trace/", "/p/default/sessions/"):
        chat.goto(path)

        gap = chat.evaluate(
            "document.documentElement.scrollHeight - scrollY"
            " - document.querySelector('.sheet').getBoundingClientRect().bottom"
        )

        assert abs(gap) < 1


def test_typing_while_reading_further_up_does_not_move_the_page(chat):
    long_talk(chat)
    chat.evaluate("scrollTo(0, 600)")
    box = chat.get_by_role("textbox", name="Message", exact=True)
    bounds = box.bounding_box()

    chat.mouse.click(bounds["x"] + 20, bounds["y"] + 20)
    chat.keyboard.type("hello", delay=30)

    expect(box).to_have_value("hello")
    assert scroll(chat) == 600


def test_focus_of_a_bar_does_not_move_the_page(chat):
    long_talk(chat)
    chat.evaluate("scrollTo(0, 600)")

    for part in (".chat-head a", ".topbar-search input", ".rail a", "#message"):
        chat.evaluate("part => document.querySelector(part).focus()", part)

        assert scroll(chat) == 600, part


def test_details_of_an_event_are_in_sight_on_a_narrow_screen(chat):
    send(chat, "say hello")
    log = chat.get_by_role("log", name="Conversation", exact=True)
    expect(log.get_by_text("hello", exact=True)).to_be_visible()
    expect(chat.locator("body")).to_have_attribute("data-session-status", "idle")
    chat.set_viewport_size(NARROW)
    chat.goto(f"{chat.url}trace/")
    chat.locator("#e5 a").click()

    expect(chat.locator(".detail h2, .detail h3").first).to_be_in_viewport()
