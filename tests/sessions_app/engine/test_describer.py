"""Descriptions by a vision model, over both wires, and what they cost the session."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from sessions_app.engine import History
from sessions_app.engine.describer import Describer
from sessions_app.environment import ToolError
from sessions_app.environment.describe import ModelUse
from sessions_app.llm.providers import ModelSpec, make_client
from tests.fakes import Answer, Call, Say, ScriptedServer, Status, Think
from tests.sessions_app.engine.scripted import call, say, usage
from tests.sessions_app.engine.story import Story, kinds, only
from traces_app.omnimessage import StopReason, event, tool_call_output
from traces_app.omnimessage import payloads as p
from traces_app.omnimessage.payloads import Usage

IMAGE = "data:image/png;base64,AAAA"
WIRES = ("openai", "anthropic")


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def describer(server) -> Callable[[str], Describer]:
    """Make the describer of a model behind the scripted server."""

    def make(wire: str) -> Describer:
        url = server.openai_url if wire == "openai" else server.anthropic_url
        spec = ModelSpec(
            provider=wire,
            model_id="eyes",
            is_vision=True,
            context_window=1000,
            base_url=url,
            protocol=wire,
        )
        return Describer(partial(make_client, spec, api_key="key-1"))

    return make


async def parts_of(describer: Describer) -> list[str | ModelUse]:
    return [part async for part in describer(IMAGE, "Which colour?")]


@pytest.mark.parametrize("wire", WIRES)
async def test_one_request_holds_question_and_image_and_no_tools(
    server, describer, wire
):
    server.add(Answer(Say("A red square.")))

    await parts_of(describer(wire))

    (request,) = server.requests
    (message,) = request.body["messages"]
    assert message["role"] == "user"
    sent = {part["type"]: part for part in message["content"]}
    assert sent["text"]["text"] == "Which colour?"
    if wire == "openai":
        assert sent["image_url"]["image_url"] == {"url": IMAGE}
    else:
        source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
        assert sent["image"]["source"] == source
    assert "tools" not in request.body
    assert "system" not in json.dumps(request.body["messages"])


@pytest.mark.parametrize("wire", WIRES)
async def test_answer_comes_in_parts_and_its_use_at_the_end(server, describer, wire):
    server.add(Answer(Think("Hm."), Say("A red square."), tokens=(100, 60, 20)))

    *words, use = await parts_of(describer(wire))

    assert len(words) == 3
    assert "".join(words) == "A red square."
    assert use == ModelUse(
        model=f"{wire}/eyes",
        usage=Usage(cache_read=60, cache_write=40, output=20, total=120),
    )


@pytest.mark.parametrize("wire", WIRES)
async def test_refusal_gives_status_and_detail(server, describer, wire):
    server.add(Status(401, {"error": {"message": "the key is wrong"}}))

    with pytest.raises(ToolError, match=f"{wire}/eyes .*401.*the key is wrong"):
        await parts_of(describer(wire))


@pytest.mark.parametrize("wire", WIRES)
async def test_failed_request_is_not_repeated(server, describer, wire):
    server.add(Status(500, {"error": {"message": "out of order"}}))

    with pytest.raises(ToolError, match="500"):
        await parts_of(describer(wire))

    assert len(server.requests) == 1


async def test_calls_of_the_vision_model_are_nobodys_business(server, describer):
    server.add(Answer(Call("exec_command", {"cmd": "rm"}), Say("A square.")))

    *words, _ = await parts_of(describer("openai"))

    assert "".join(words) == "A square."


async def test_model_that_does_not_stream_is_heard_too():
    class Whole:
        provider, model_id, is_vision, context_window = "lab", "whole", True, 1000

        async def stream(self, request):
            for message in say("A square."):
                if not message.is_partial:
                    yield message

        async def aclose(self):
            self.is_closed = True

    whole = Whole()

    assert await parts_of(Describer(lambda: whole)) == ["A square."]
    assert whole.is_closed


USE = {"model": "lab/eyes", "cache_read": 5, "cache_write": 900, "output": 20}


def describing(use, wire_id="c1") -> Callable:
    """Return tools whose every call has used a model."""

    async def execute_tool(tool_call, signal=None, approve=None):
        yield tool_call_output(
            tool_call.payload.tool_call_id,
            "a square",
            StopReason.COMPLETED,
            details={"model_use": use},
        )

    return execute_tool


async def test_use_of_a_tool_is_counted_in_the_session():
    story = Story([*call("describe_image"), usage(cache_write=100, output=10)])
    story.model.scripts.append([*say("done"), usage(cache_write=200, output=1)])
    story.tools.execute_tool = describing(USE)

    await story.run("look")

    first, described, last = only(story.recorded, "token_usage")
    assert (first.tool_call_id, first.model) == (None, None)
    assert (described.tool_call_id, described.model) == ("c1", "lab/eyes")
    assert described.request == usage(cache_read=5, cache_write=900, output=20)
    assert [u.session.total for u in (first, described, last)] == [110, 1035, 1236]
    assert story.loop.history.usage.total == 1236
    assert History.from_messages(story.recorded) == story.loop.history


async def test_use_is_on_record_together_with_its_output():
    story = Story(call("describe_image"))
    story.tools.execute_tool = describing(USE)

    await story.run("look")

    assert ["token_usage", "tool_call_output"] in [
        kinds(transaction) for transaction in story.record.transactions
    ]


async def test_parallel_uses_are_all_in_the_total():
    scripts = [
        *call("describe_image", wire_id="c1"),
        *call("describe_image", wire_id="c2"),
        *call("describe_image", wire_id="c3"),
    ]
    story = Story(scripts)
    story.tools.execute_tool = describing(USE)

    await story.run("look")

    totals = [u.session.total for u in only(story.recorded, "token_usage")]
    assert totals == sorted(totals)
    assert totals[-1] == 3 * 925


def test_use_of_a_tool_says_nothing_about_the_size_of_the_context():
    history = History()
    used = usage(cache_write=900)

    for payload in (
        p.RequestBegin(),
        p.RequestEnd(status=StopReason.MALFORMED),  # it told no usage of its own
        p.TokenUsage(session=used, request=used, tool_call_id="c1"),
    ):
        history.feed(event(payload))

    assert history.context_tokens == 0
    assert history.usage == used


@pytest.mark.parametrize(
    "use", [None, 7, "much", [], {"output": -5, "cache_write": True, "model": 3}]
)
async def test_nonsense_in_the_details_breaks_nothing(use):
    story = Story(call("describe_image"), say("done"))
    story.tools.execute_tool = describing(use)

    await story.run("look")

    assert story.loop.history.usage.total == 0
    assert "abort" not in kinds(story.seen)
