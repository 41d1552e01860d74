"""Subagents in a browser: two at once ask in the page of their parent, and in their own."""

import json
import re

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

ARMED_MS = 450  # a card takes clicks after 300 ms, after window focus 400 ms


def button(scope, name: str):
    return scope.get_by_role("button", name=name, exact=True)


def delegate(prompt: str, **more) -> str:
    return f"call run_subagent {json.dumps({'prompt': prompt, **more})}"


def begin(page: Page, mode: str) -> None:
    page.get_by_role("link", name="New session", exact=True).first.click()
    choice = page.get_by_role("combobox", name="Approval mode", exact=True)
    choice.select_option(mode)
    button(page, "Create session").click()
    page.wait_for_url("**/s/session-*/")


def send(page: Page, text: str) -> None:
    box = page.get_by_role("textbox", name="Message", exact=True)
    box.fill(text)
    button(page, "Send").click()
    expect(box).to_have_value("")


def status_is(page: Page, status: str) -> None:
    expect(page.locator("body")).to_have_attribute("data-session-status", status)


def card(page: Page, index: int, total: int):
    name = f"Pending approval: exec_command, {index} of {total}"
    return page.get_by_role("region", name=name, exact=True)


def child(page: Page, name: str):
    """The card of a subagent in its parent's conversation."""
    return page.locator("details.child").filter(
        has=page.locator(".tool-name", has_text=re.compile(f"^{re.escape(name)}$"))
    )


def ask_twice(page: Page) -> None:
    """Have two subagents wait for a person at the same time."""
    begin(page, "always-ask")
    prompts = [
        f"say looking {name}\n$ echo {name}\nthen\nsay {name}"
        for name in ("alpha", "beta")
    ]
    send(page, "\n".join(map(delegate, prompts)))
    for total in ("2", "[12]"):
        name = re.compile(f"^Pending approval: run_subagent, 1 of {total}$")
        waiting = page.get_by_role("region", name=name)
        expect(waiting).to_be_visible()
        page.wait_for_timeout(ARMED_MS)
        button(waiting, "Approve").click()
    expect(page.locator("details.child")).to_have_count(2)
    expect(card(page, 2, 2)).to_be_visible()


def test_two_subagents_ask_in_the_page_of_their_parent(page: Page):
    ask_twice(page)

    status_is(page, "waiting")
    expect(page).to_have_title(re.compile(r"^\(2\) "))
    agents = [card(page, at, 2).locator("dd").first.inner_text() for at in (1, 2)]
    assert sorted(agents) == ["root › default_agent #1", "root › default_agent #2"]
    for number in (1, 2):
        expect(child(page, f"default_agent #{number}")).to_contain_text("1 call waits")
    expect(child(page, "default_agent #1")).to_contain_text("looking alpha")

    page.wait_for_timeout(ARMED_MS)
    button(card(page, 2, 2), "Approve").click()
    expect(card(page, 1, 1)).to_be_visible()
    button(card(page, 1, 1), "Deny").click()

    status_is(page, "idle")
    conversation = page.get_by_role("log", name="Conversation", exact=True)
    outputs = conversation.locator("[data-tool-output]").all_text_contents()
    assert sorted("".join(o.split()) for o in outputs) == ["alpha", "beta"]
    expect(page.locator("#child-cards")).to_be_empty()


def test_a_page_opened_meanwhile_shows_the_same(page: Page):
    ask_twice(page)
    other = page.context.new_page()
    other.goto(page.url)

    expect(card(other, 1, 2)).to_be_visible()
    expect(child(other, "default_agent #2")).to_contain_text("1 call waits")
    other.wait_for_timeout(ARMED_MS)
    button(card(other, 1, 2), "Approve").click()

    expect(card(page, 1, 1)).to_be_visible()
    page.wait_for_timeout(ARMED_MS)
    button(card(page, 1, 1), "Approve").click()
    status_is(page, "idle")
    status_is(other, "idle")


def test_a_subagent_has_a_page_of_its_own(page: Page):
    ask_twice(page)
    aside = page.get_by_role("complementary", name="Session")
    aside.get_by_role("link", name="default_agent #1", exact=True).click()
    page.wait_for_url("**/s/session-*/")

    expect(page.get_by_role("textbox", name="Message", exact=True)).to_have_count(0)
    expect(page.get_by_text("takes its tasks from")).to_be_visible()
    expect(card(page, 1, 1)).to_be_visible()
    page.wait_for_timeout(ARMED_MS)
    button(card(page, 1, 1), "Approve").click()

    status_is(page, "idle")
    conversation = page.get_by_role("log", name="Conversation", exact=True)
    expect(conversation).to_contain_text("alpha")


def test_stopping_the_parent_ends_what_both_ask(page: Page):
    ask_twice(page)

    button(page, "Stop").click()

    status_is(page, "idle")
    expect(page.locator("#child-cards")).to_be_empty()
    for number in (1, 2):
        expect(child(page, f"default_agent #{number}")).to_contain_text("idle")


def test_without_javascript_a_call_of_a_subagent_can_be_decided(make_page, page):
    ask_twice(page)
    plain = make_page(java_script_enabled=False)
    plain.goto(page.url)

    button(card(plain, 1, 2), "Approve").click()

    expect(card(page, 1, 1)).to_be_visible()
    expect(child(plain, "default_agent #1")).to_have_count(1)


def test_a_reason_being_written_survives_news_of_another_subagent(page: Page):
    ask_twice(page)
    reason = card(page, 1, 2).get_by_role("textbox", name="Reason", exact=True)
    reason.fill("not this")
    reason.focus()
    page.wait_for_timeout(ARMED_MS)

    button(card(page, 2, 2), "Approve").click()

    expect(card(page, 1, 1)).to_be_visible()
    left = card(page, 1, 1).get_by_role("textbox", name="Reason", exact=True)
    expect(left).to_have_value("not this")
