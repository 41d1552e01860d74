"""What requests cost stands in the record, per request and for the session."""

from __future__ import annotations

from sessions_app.engine import AgentSession, History, LoopOptions
from sessions_app.environment import Environment
from sessions_app.llm.providers import ModelSpec, make_client
from tests.fake_wires import anthropic_block, anthropic_end, anthropic_event
from tests.fakes import Bytes, ScriptedServer
from tests.sessions_app.engine.scripted import call, say, usage
from tests.sessions_app.engine.story import Story, only
from traces_app.omnimessage import OmniMessage, user_text
from traces_app.omnimessage import payloads as p

MILLION = 1_000_000
PRICES = {"scripted/scripted": {"input": 2.0, "output": 10.0, "cache_read": 0.5}}


def used(seen) -> list[tuple[float | None, float | None]]:
    return [(u.request_usd, u.session_usd) for u in only(seen, "token_usage")]


async def test_costs_add_up_over_the_requests_of_a_session():
    story = Story(
        [*call("a"), usage(cache_read=MILLION, cache_write=MILLION)],
        [*say("done"), usage(output=MILLION)],
        prices=PRICES,
        context_window=10 * MILLION,
    )

    seen = await story.run("go")

    assert used(seen) == [(2.5, 2.5), (10.0, 12.5)]


async def test_without_a_price_there_is_no_cost():
    story = Story([*say("done"), usage(output=5)])

    assert used(await story.run("go")) == [(None, None)]


async def test_compaction_is_paid_for_too():
    story = Story(
        [*say("hello"), usage(output=MILLION)],
        [*say("short"), usage(output=MILLION)],
        prices=PRICES,
        context_window=10 * MILLION,
    )
    await story.run("one")

    seen = [message async for message in story.loop.compact()]

    assert used(seen) == [(10.0, 20.0)]


async def test_session_that_is_resumed_counts_on():
    story = Story([*say("hello"), usage(output=MILLION)], prices=PRICES)
    await story.run("one")
    record = [OmniMessage.from_json(message.to_json()) for message in story.recorded]
    later = Story(
        [*say("hi"), usage(output=MILLION)],
        prices=PRICES,
        context_window=10 * MILLION,
        history=History.from_messages(record),
    )

    assert used(await later.run("two")) == [(10.0, 20.0)]


async def test_cached_tokens_of_the_wire_are_counted_once(tmp_path):
    counts = {
        "input_tokens": 3,
        "cache_read_input_tokens": 100_000,
        "cache_creation_input_tokens": 1_000,
        "output_tokens": 80,
    }
    price = {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75}
    message = {"type": "message", "role": "assistant", "content": [], "usage": counts}
    answer = [
        anthropic_event("message_start", message=message),
        *anthropic_block(0, {"type": "text", "text": "Done."}),
        *anthropic_end("end_turn", 80),
    ]
    with ScriptedServer([Bytes(*answer)]) as server:
        spec = ModelSpec(
            provider="anthropic",
            model_id="some-model",
            is_vision=False,
            context_window=200_000,
            base_url=server.anthropic_url,
            protocol="anthropic",
        )
        client = make_client(spec, api_key="key")
        environment = Environment(tmp_path, [])
        options = LoopOptions(prices={"anthropic/some-model": price})
        session = AgentSession(
            llm=client, environment=environment, system_prompt="x", options=options
        )
        seen = [m async for m in session.run([user_text("hi")])]
        await environment.aclose()
        await client.aclose()

    (counted,) = only(seen, "token_usage")
    assert counted.request == p.Usage(
        cache_read=100_000, cache_write=1_003, output=80, total=101_083
    )
    assert counted.input_tokens == 3
    assert counted.request_usd == counted.session_usd == 0.034959


def test_usage_in_json_has_the_protocol_s_four_counters():
    payload = p.TokenUsage(
        session=p.Usage(input=3), request=p.Usage(input=3), input_tokens=3
    )

    told = OmniMessage(payload=payload).to_dict()["payload"]

    names = ["cache_read", "cache_write", "output", "total"]
    assert list(told["request"]) == list(told["session"]) == names
    assert told["input_tokens"] == 3
