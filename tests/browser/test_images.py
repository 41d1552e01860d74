"""Images in a browser: attached, sent, seen as thumbnails, thrown away, refused."""

import base64
import re

import pytest
from playwright.sync_api import Page, expect

from tests.pictures import padded, picture

pytestmark = pytest.mark.browser

PNG = picture("PNG", (640, 480), color=(40, 120, 200))
PNG_BASE64 = base64.b64encode(PNG).decode()
SENDS_PASTED = """
async ([bytes, kind]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([new Uint8Array(bytes)], "pasted.png", { type: "image/png" }));
  const target = document.getElementById("message");
  const more = { bubbles: true, cancelable: true };
  if (kind === "paste") {
    target.dispatchEvent(new ClipboardEvent("paste", { ...more, clipboardData: transfer }));
  } else {
    target.dispatchEvent(new DragEvent("dragover", { ...more, dataTransfer: transfer }));
    target.dispatchEvent(new DragEvent("drop", { ...more, dataTransfer: transfer }));
  }
}
"""


def button(scope, name: str):
    return scope.get_by_role("button", name=name, exact=True)


def begin(page: Page, model: str = "demo/demo", mode: str = "allow-all") -> None:
    page.get_by_role("link", name="New session", exact=True).first.click()
    page.get_by_role("combobox", name="Model", exact=True).select_option(model)
    choice = page.get_by_role("combobox", name="Approval mode", exact=True)
    choice.select_option(mode)
    button(page, "Create session").click()
    page.wait_for_url("**/s/session-*/")


def file(data: bytes = PNG, name: str = "chart.png") -> dict:
    return {"name": name, "mimeType": "image/png", "buffer": data}


def chooser(page: Page):
    return page.get_by_label("Attach images", exact=True)


def attached(page: Page):
    return page.get_by_role("list", name="Attached images").get_by_role("img")


def conversation(page: Page):
    return page.get_by_role("log", name="Conversation", exact=True)


def is_drawn(image) -> None:
    """Wait until the browser has the image and shows it with its true measures."""
    expect(image).to_be_visible()
    expect(image).to_have_js_property("naturalWidth", 640)
    expect(image).to_have_js_property("naturalHeight", 480)


def test_attached_image_is_sent_and_shown_as_a_thumbnail(page: Page):
    begin(page)

    chooser(page).set_input_files([file()])
    is_drawn(attached(page))
    expect(attached(page)).to_have_attribute("alt", "chart.png, 640 × 480")
    page.get_by_role("textbox", name="Message", exact=True).fill("say I saw it")
    button(page, "Send").click()

    expect(attached(page)).to_have_count(0)
    shown = conversation(page).get_by_role("img", name=re.compile("PNG, 640 × 480"))
    is_drawn(shown)
    expect(conversation(page).get_by_text("I saw it", exact=True)).to_be_in_viewport()
    assert "base64" not in page.content()
    height = shown.bounding_box()["height"]
    page.reload()
    is_drawn(shown)
    assert shown.bounding_box()["height"] == height <= 400

    page.get_by_role("link", name="Trace", exact=True).first.click()
    page.get_by_text("PNG, 640 × 480").first.wait_for()
    row = page.locator("[data-seq]", has_text="image_url")
    row.get_by_role("link").click()
    is_drawn(page.get_by_role("complementary").get_by_role("img").first)


def test_image_a_tool_has_read_is_shown_in_its_card(page: Page):
    begin(page)
    page.get_by_role("textbox", name="Message", exact=True).fill(
        "$ printf '%s' '" + PNG_BASE64 + "' | base64 -d > a.png\nthen\n"
        'call read_image {"source": "a.png"}'
    )
    button(page, "Send").click()

    shown = page.get_by_role("img", name="Image from read_image: PNG, 640 × 480")
    is_drawn(shown)
    expect(conversation(page)).to_contain_text("PNG image, 640 × 480 pixels")


def test_pasted_and_dropped_images_are_attached(page: Page):
    begin(page)

    page.evaluate(SENDS_PASTED, [list(PNG), "paste"])
    expect(attached(page)).to_have_count(1)
    page.evaluate(SENDS_PASTED, [list(PNG), "drop"])
    expect(attached(page)).to_have_count(2)

    is_drawn(attached(page).last)
    expect(page.get_by_role("textbox", name="Message", exact=True)).to_have_value("")


def test_attached_image_survives_a_reload_and_can_be_removed(page: Page):
    begin(page)
    chooser(page).set_input_files([file()])
    is_drawn(attached(page))

    page.reload()
    is_drawn(attached(page))
    button(page, "Remove chart.png").click()

    expect(attached(page)).to_have_count(0)
    page.reload()
    expect(attached(page)).to_have_count(0)


def test_limit_is_named_and_nothing_is_uploaded(page: Page):
    begin(page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    chooser(page).set_input_files([file(padded(PNG, 5 * 2**20 + 1), "large.png")])

    alert = page.get_by_role("alert").filter(has_text="large.png")
    expect(alert).to_contain_text("an image may have up to 5.0 MB")
    chooser(page).set_input_files([file()] * 21)
    alert = page.get_by_role("alert").filter(has_text="21 images")
    expect(alert).to_contain_text("a message may have up to 20")
    assert not [url for url in asked if url.endswith("/attach/")]
    expect(attached(page)).to_have_count(0)


def test_what_only_looks_like_an_image_is_refused_with_words(page: Page):
    begin(page)

    chooser(page).set_input_files([file(b"no image", "fake.png")])

    expect(
        page.get_by_text("Fake.png is not an image that can be used")
    ).to_be_visible()


def test_image_alone_is_a_message(page: Page):
    begin(page)
    chooser(page).set_input_files([file()])
    is_drawn(attached(page))

    button(page, "Send").click()

    is_drawn(conversation(page).get_by_role("img", name=re.compile("640 × 480")))


def test_model_that_cannot_see_is_offered_no_images(page: Page):
    begin(page, "demo/demo-text")

    expect(chooser(page)).to_have_count(0)


def test_without_javascript_images_go_by_a_plain_form(make_page):
    page = make_page(java_script_enabled=False)
    begin(page)

    chooser(page).set_input_files([file()])
    button(page, "Attach").click()
    expect(attached(page)).to_have_count(1)
    page.get_by_role("textbox", name="Message", exact=True).fill("say plain")
    button(page, "Send").click()
    page.wait_for_timeout(300)
    page.reload()

    expect(attached(page)).to_have_count(0)
    shown = conversation(page).get_by_role("img", name=re.compile("640 × 480"))
    expect(shown).to_have_count(1)
