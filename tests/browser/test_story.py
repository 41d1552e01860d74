"""The whole story in a browser: ask, approve, watch, deny, switch, stop, reload, verify.

Played with the built-in model and against servers that speak the two wires.
"""

import json
import re
import time
from contextlib import ExitStack

import pytest
from playwright.sync_api import Page, expect

from tests.fakes import Answer, Call, Request, Say, ScriptedServer

pytestmark = pytest.mark.browser

LINES = "for i in 1 2 3; do echo $i; sleep 0.2; done"
ARMED_MS = 450  # a card takes clicks after 300 ms, after window focus 400 ms


def call(cmd: str) -> Call:
    return Call("exec_command", {"cmd": cmd})


def play(request: Request):
    """Answer like the built-in model: one call per `$ ` line, then a word."""
    typed = str(request.body["messages"][-1])
    commands = [part.split("\\n")[0] for part in _texts(request)[-1].split("$ ")[1:]]
    if "tool_result" in typed or '"tool"' in json.dumps(request.body["messages"][-1]):
        return Answer(Say("That was all."))
    return Answer(*[call(cmd.strip()) for cmd in commands])


def _texts(request: Request) -> list[str]:
    texts = []
    for message in request.body["messages"]:
        content = message["content"]
        if message["role"] != "user":
            continue
        if isinstance(content, str):
            texts.append(content)
            continue
        texts += [part["text"] for part in content if part.get("type") == "text"]
    return texts


MODELS = {"demo": "demo/demo", "openai": "local/model", "anthropic": "claudish/model"}


@pytest.fixture
def model(request, served) -> str:
    """The model of a wire; its scripted server runs for the time of the test."""
    wire = request.param
    if wire == "demo":
        yield MODELS[wire]
        return
    with ExitStack() as stack:
        provider = stack.enter_context(ScriptedServer(play))
        url = provider.openai_url if wire == "openai" else provider.anthropic_url
        name, _, model_id = MODELS[wire].partition("/")
        with served.api() as api:
            config = api.get("projects/default/config").json()
            yaml = config["yaml"].replace(
                "models:",
                f"models:\n  - {{provider: {name}, model_id: {model_id}, "
                f"protocol: {wire}, base_url: '{url}', vision: false, "
                "context_window: 100000}",
                1,
            )
            saved = api.put(
                "projects/default/config",
                json={
                    "yaml": yaml,
                    "base_version": config["version"],
                    "reason": "a scripted model",
                },
            )
            assert saved.status_code == 200, saved.text
            yield MODELS[wire]
            config["base_version"] = saved.json()["version"]
            api.put(
                "projects/default/config",
                json={
                    "yaml": config["yaml"],
                    "base_version": saved.json()["version"],
                    "reason": "back",
                },
            )


def button(scope, name: str):
    return scope.get_by_role("button", name=name, exact=True)


def card(page: Page, index: int, total: int):
    name = f"Pending approval: exec_command, {index} of {total}"
    return page.get_by_role("region", name=name, exact=True)


def send(page: Page, text: str) -> None:
    box = page.get_by_role("textbox", name="Message", exact=True)
    box.fill(text)
    button(page, "Send").click()
    expect(box).to_have_value("")


def status_is(page: Page, status: str) -> None:
    expect(page.locator("body")).to_have_attribute("data-session-status", status)


def begin(page: Page, model: str) -> None:
    page.get_by_role("link", name="New session", exact=True).first.click()
    page.get_by_role("combobox", name="Model", exact=True).select_option(model)
    mode = page.get_by_role("combobox", name="Approval mode", exact=True)
    mode.select_option("always-ask")
    button(page, "Create session").click()
    page.wait_for_url("**/s/session-*/")


def lines_as_they_come(page: Page, until: str, within_s: float = 10) -> list[str]:
    """Return each text the output showed on its way to `until`."""
    output = page.locator("[data-tool-output]").last
    shown: list[str] = []
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        text = output.text_content() or ""
        if not shown or text != shown[-1]:
            shown.append(text)
        if until in text:
            return shown
        page.wait_for_timeout(10)
    raise AssertionError(f"{until!r} never came; shown: {shown}")


@pytest.mark.parametrize("model", list(MODELS), indirect=True)
def test_the_whole_story(page: Page, model: str):
    begin(page, model)

    approve_and_watch_lines_come_one_by_one(page)
    deny_with_a_reason(page)
    switch_the_mode_while_a_call_waits(page)
    reload_in_the_middle_then_stop(page)
    a_fresh_page_shows_the_same(page)
    the_trace_has_it_all_and_verifies(page)


def conversation(page: Page):
    return page.get_by_role("log", name="Conversation", exact=True)


def approve_and_watch_lines_come_one_by_one(page: Page) -> None:
    send(page, f"$ {LINES}")
    status_is(page, "waiting")
    expect(page).to_have_title(re.compile(r"^\(1\) "))
    page.wait_for_timeout(ARMED_MS)
    button(card(page, 1, 1), "Approve").click()
    shown = lines_as_they_come(page, "3\n")
    # A busy machine may draw two lines at once, but never all three.
    steps = [text for text in shown if text]
    assert set(steps) <= {"1\n", "1\n2\n", "1\n2\n3\n"} and len(steps) >= 2
    status_is(page, "idle")


def deny_with_a_reason(page: Page) -> None:
    send(page, "$ echo dangerous")
    waiting = card(page, 1, 1)
    waiting.get_by_role("textbox", name="Reason", exact=True).fill("not on a Friday")
    page.wait_for_timeout(ARMED_MS)
    button(waiting, "Deny").click()
    expect(conversation(page)).to_contain_text("Tool call denied by user.")
    expect(conversation(page)).to_contain_text("Reason: not on a Friday")
    status_is(page, "idle")


def switch_the_mode_while_a_call_waits(page: Page) -> None:
    send(page, "$ echo third")
    expect(card(page, 1, 1)).to_be_visible()
    mode = page.get_by_role("combobox", name="Approval mode", exact=True)
    mode.select_option("allow-all")
    expect(conversation(page)).to_contain_text("third\n")
    status_is(page, "idle")


def reload_in_the_middle_then_stop(page: Page) -> None:
    send(page, "$ echo begun; sleep 60; echo never")
    lines_as_they_come(page, "begun\n")
    page.reload()
    status_is(page, "running")
    lines_as_they_come(page, "begun\n")
    button(page, "Stop").click()
    status_is(page, "idle")
    expect(conversation(page)).to_contain_text("[interrupted: tool aborted by user]")
    shown = page.locator("[data-tool-output]").last.text_content() or ""
    assert "never" not in shown


def a_fresh_page_shows_the_same(page: Page) -> None:
    before = conversation(page).inner_text()
    page.reload()
    assert squeezed(conversation(page).inner_text()) == squeezed(before)


def the_trace_has_it_all_and_verifies(page: Page) -> None:
    page.get_by_role("link", name="Trace", exact=True).first.click()
    page.wait_for_url("**/trace/**")
    button(page, "Verify").click()
    expect(page.get_by_text("intact").first).to_be_visible()
    expect(page.get_by_text("complete").first).to_be_visible()
    kinds = page.locator("[data-seq]").all_text_contents()
    assert sum("approval_decision" in kind for kind in kinds) == 4


def squeezed(text: str) -> str:
    """Return the words alone: times are written while they pass."""
    return " ".join(text.split())


def test_two_tabs_decide_and_the_second_is_told(make_page):
    one = make_page()
    begin(one, "demo/demo")
    send(one, "$ echo once")
    expect(card(one, 1, 1)).to_be_visible()
    two = one.context.new_page()
    two.goto(one.url)
    expect(card(two, 1, 1)).to_be_visible()
    one.wait_for_timeout(ARMED_MS)

    button(card(one, 1, 1), "Approve").click()

    expect(card(two, 1, 1)).to_have_count(0)
    expect(conversation(two)).to_contain_text("once\n")


def test_a_phone_can_decide(make_page):
    page = make_page(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    begin(page, "demo/demo")
    send(page, "$ echo small")
    page.wait_for_timeout(ARMED_MS)

    button(card(page, 1, 1), "Approve").tap()

    expect(conversation(page)).to_contain_text("small\n")
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390


def test_without_javascript_one_can_send_decide_and_read(make_page):
    page = make_page(java_script_enabled=False)
    begin(page, "demo/demo")
    page.get_by_role("textbox", name="Message", exact=True).fill("$ echo plain")
    button(page, "Send").click()
    until(page, lambda: card(page, 1, 1).count())

    button(card(page, 1, 1), "Approve").click()

    until(page, lambda: "plain\n" in (page.locator("main").inner_text()))


def until(page: Page, is_true, within_s: float = 15) -> None:
    """Reload until it is true, as a person without scripts does."""
    deadline = time.monotonic() + within_s
    while not is_true():
        assert time.monotonic() < deadline, page.content()
        page.wait_for_timeout(200)
        page.reload()
