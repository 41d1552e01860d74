from __future__ import annotations

import pytest

from sessions_app.llm.client import (
    CredentialsError,
    LLMError,
    MalformedStreamError,
    ModelRequest,
    RequestTimeoutError,
)
from sessions_app.llm.demo import GREETING, SUGGESTIONS, DemoClient
from sessions_app.llm.demo_turn import NOTHING_LEFT, SUMMARY, TITLE, steps_to_play
from sessions_app.llm.model_spec import ModelSpec
from traces_app.omnimessage import (
    StopReason,
    assistant_text,
    image_url,
    tool_call,
    tool_call_output,
    user_text,
)
from traces_app.omnimessage import payloads as p

SPEC = ModelSpec(
    provider="demo",
    model_id="demo",
    is_vision=True,
    context_window=200_000,
    protocol="demo",
)


async def play(*messages, **fields):
    request = ModelRequest(system_prompt="", messages=messages, **fields)
    client = DemoClient(SPEC, word_delay_s=0)
    return [item async for item in client.stream(request)]


async def said(*messages, **fields):
    pieces = await play(*messages, **fields)
    return [m.payload.text for m in pieces if getattr(m, "kind", "") == "text"]


async def called(*messages, **fields):
    pieces = await play(*messages, **fields)
    calls = [m.payload for m in pieces if getattr(m, "kind", "") == "tool_call"]
    return [(call.name, call.arguments) for call in calls]


def turn(*names, prefix="c", reason=StopReason.COMPLETED):
    """Return one completed tool turn: calls, then their outputs."""
    ids = [f"{prefix}{index}" for index in range(len(names))]
    calls = [tool_call(n, "{}", i) for n, i in zip(names, ids, strict=True)]
    return [*calls, *(tool_call_output(i, "out", reason) for i in ids)]


async def test_call_line_keeps_the_arguments_exactly_as_typed():
    typed = 'call read_image   {"source":"a.png",  "n": 1e2}  '

    assert await called(user_text(typed)) == [
        ("read_image", '{"source":"a.png",  "n": 1e2}')
    ]


async def test_call_may_be_broken_as_a_model_may_break_it():
    typed = user_text('call exec_command {"cmd": ')

    assert await called(typed) == [("exec_command", '{"cmd":')]


async def test_dollar_line_runs_a_shell_command():
    typed = user_text('$ echo "größe" | wc')

    assert await called(typed) == [("exec_command", '{"cmd": "echo \\"größe\\" | wc"}')]


async def test_several_lines_are_parallel_calls_in_order():
    typed = user_text("$ a\ncall nowhere []\n$ b")

    assert await called(typed) == [
        ("exec_command", '{"cmd": "a"}'),
        ("nowhere", "[]"),
        ("exec_command", '{"cmd": "b"}'),
    ]


async def test_call_streams_start_delta_stop_and_then_the_complete_call():
    pieces = await play(user_text("$ ls"))

    shapes = [(m.kind, getattr(m.payload, "event_type", None)) for m in pieces[:-1]]
    assert shapes == [
        ("partial_tool_call", "start"),
        ("partial_tool_call", "delta"),
        ("partial_tool_call", "stop"),
        ("tool_call", None),
    ]
    assert len({m.payload.tool_call_id for m in pieces[:-1]}) == 1


async def test_say_streams_word_by_word_and_adds_up_to_the_text():
    pieces = await play(user_text("say one  two three"))

    deltas = [
        m.payload.text
        for m in pieces[:-1]
        if m.is_partial and m.payload.event_type == "delta"
    ]
    assert len(deltas) == 3
    assert "".join(deltas) == "one  two three" == pieces[-2].payload.text


async def test_think_is_a_thought():
    pieces = await play(user_text("think hard"))

    assert pieces[-2].payload.thinking == "hard"
    assert pieces[0].kind == "partial_thinking"


async def test_say_without_words_leaves_no_text():
    assert await said(user_text("say")) == []


async def test_part_behind_then_waits_for_the_results():
    typed = user_text("$ a\nthen\nsay done\n$ b\nthen\nsay end")
    first, second = turn("exec_command"), turn("exec_command", prefix="d")

    assert await called(typed) == [("exec_command", '{"cmd": "a"}')]
    assert await said(typed, *first) == ["done"]
    assert await called(typed, *first) == [("exec_command", '{"cmd": "b"}')]
    assert await said(typed, *first, assistant_text("done"), *second) == ["end"]


async def test_parallel_calls_count_as_one_turn():
    typed = user_text("$ a\n$ b\nthen\nsay done")

    assert await said(typed, *turn("exec_command", "exec_command")) == ["done"]


async def test_then_without_a_call_before_it_waits_for_nothing():
    assert await said(user_text("say a\nthen\nsay b")) == ["a", "b"]


async def test_after_the_results_one_line_per_call_tells_how_it_ended():
    typed = user_text("$ a\n$ b")
    calls = turn("exec_command", "read_image", reason=StopReason.ABORTED)

    assert await said(typed, *calls) == ["exec_command → aborted\nread_image → aborted"]


async def test_only_a_typed_message_is_played():
    typed = user_text("say typed")
    blocks = [
        user_text("say no", synthetic="carry_over"),
        user_text("say no", synthetic="recovery"),
    ]

    assert await said(user_text("say old"), typed, *blocks) == ["typed"]
    assert await said(user_text("say no", synthetic="summary")) == [GREETING]


async def test_message_of_a_running_task_replaces_the_script():
    history = [user_text("$ a\nthen\nsay old"), *turn("exec_command")]

    assert await said(*history, user_text("say new")) == ["new"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("call", "name is missing"),
        ("call exec_command", "no arguments"),
        ("call exec_command ls -l", "are not JSON"),
        ("$ ", "command is missing"),
        ("sleep long", "number of seconds"),
        ("sleep -1", "number of seconds"),
        ("sleep inf", "number of seconds"),
        ("fail loudly", "auth, timeout, malformed, failed"),
    ],
)
async def test_wrong_line_says_what_is_wrong(line, words):
    [text] = await said(user_text(line))

    assert words in text


@pytest.mark.parametrize("typed", ["hello", "  \n", "Call me\nmaybe"])
async def test_anything_else_is_greeted_once_with_suggestions(typed):
    pieces = await play(user_text(typed))

    [text] = [m.payload for m in pieces if getattr(m, "kind", "") == "text"]
    assert text.text == GREETING
    assert text.extra == {"suggestions": list(SUGGESTIONS)}
    assert "no AI" in text.text


async def test_image_without_words_is_greeted():
    assert await said(image_url("data:image/png;base64,AA==")) == [GREETING]


@pytest.mark.parametrize("typed", SUGGESTIONS)
def test_every_suggestion_can_be_played(typed):
    request = ModelRequest(system_prompt="", messages=[user_text(typed)])

    kinds = {step.kind for step in steps_to_play(request)}

    assert kinds
    assert "greet" not in kinds


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("auth", CredentialsError),
        ("timeout", RequestTimeoutError),
        ("malformed", MalformedStreamError),
        ("failed", LLMError),
    ],
)
async def test_fail_lets_the_first_attempt_fail(status, error):
    typed = user_text(f"fail {status}\nsay fine")

    with pytest.raises(error) as caught:
        await play(typed)

    assert caught.value.status == status
    assert await said(typed, attempt=2) == ["fine"]


async def test_what_came_before_the_failure_is_streamed():
    client = DemoClient(SPEC, word_delay_s=0)
    request = ModelRequest(
        system_prompt="", messages=[user_text("say a\n$ b\nfail timeout")]
    )
    stream = client.stream(request)

    kinds = [(await anext(stream)).kind for _ in range(8)]
    with pytest.raises(RequestTimeoutError):
        await anext(stream)

    assert [k for k in kinds if "partial" not in k] == ["text", "tool_call"]


async def test_call_that_ran_before_the_failure_is_not_made_again():
    typed = user_text("say a\n$ b\nfail timeout\nsay c\nthen\nsay d\n$ e\nthen\nsay f")
    block = user_text("exec_command: out", synthetic="retry")
    history = [typed, block]

    assert await said(*history, attempt=2) == ["c", "d"]
    assert await called(*history, attempt=2) == [("exec_command", '{"cmd": "e"}')]
    assert await said(*history, *turn("exec_command")) == ["f"]


async def test_call_that_was_not_run_before_the_failure_is_made_again():
    typed = user_text("$ b\nfail timeout\nsay c")
    block = user_text("[not run: the stream broke off]", synthetic="retry")

    assert await called(typed, block, attempt=2) == [("exec_command", '{"cmd": "b"}')]


async def test_retry_with_nothing_left_says_so():
    assert await said(user_text("say a\nfail failed"), attempt=2) == [NOTHING_LEFT]


async def test_later_part_fails_on_its_own_first_attempt():
    typed = user_text("$ a\nthen\nfail failed\nsay b")

    with pytest.raises(LLMError):
        await play(typed, *turn("exec_command"))

    assert await said(typed, *turn("exec_command"), attempt=2) == ["b"]


async def test_summary_and_title_are_fixed_sentences():
    assert await said(user_text("$ ls"), purpose="summary") == [SUMMARY]
    assert await said(user_text("$ ls"), purpose="title") == [TITLE]


async def test_same_request_is_played_the_same_and_ids_differ_between_requests():
    def ids(pieces):
        return [m.payload.tool_call_id for m in pieces if m.kind == "tool_call"]

    typed = user_text("$ a\n$ a")
    again = [typed, *turn("exec_command", "exec_command"), typed]

    first, repeated = [(await play(typed))[:-1] for _ in range(2)]
    later = (await play(*again))[:-1]

    assert ids(first) == ids(repeated)
    assert len({*ids(first), *ids(later)}) == 4


async def test_usage_is_an_estimate_that_adds_up():
    usage = (await play(user_text("say \ud800" + "word " * 40)))[-1]

    assert isinstance(usage, p.Usage)
    assert usage.cache_write > 40
    assert usage.total == usage.cache_read + usage.cache_write + usage.output
