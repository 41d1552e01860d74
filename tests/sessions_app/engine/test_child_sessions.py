"""Child agents of a Python program: real environments, the built-in model, no server."""

import json

import pytest

from sessions_app.config.tool_definition import default_tool_definitions
from sessions_app.engine import AgentSession, ChildAgent, ChildSessions
from sessions_app.environment import AbortSignal, Environment
from sessions_app.llm.demo import DemoClient
from sessions_app.llm.model_spec import ModelSpec
from traces_app.omnimessage import StopReason, user_text

TOOLS = default_tool_definitions()


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A clean HOME: the profile of a login shell costs nothing."""
    monkeypatch.setenv("HOME", str(tmp_path))


def demo(model_id: str = "demo") -> DemoClient:
    spec = ModelSpec(
        provider="demo",
        model_id=model_id,
        is_vision=model_id == "demo",
        context_window=100_000,
        protocol="demo",
    )
    return DemoClient(spec, word_delay_s=0)


class Family:
    """A parent, the records of it and of each child, and what its callback saw."""

    def __init__(self, workspace) -> None:
        self.llm = demo()
        self.records: dict[str, list] = {"parent": []}
        self.asked: list = []
        agent = ChildAgent(system_prompt="You help.", tools=TOOLS)
        self.environment = Environment(
            workspace,
            TOOLS,
            spawn_child=ChildSessions(
                llm=self.llm,
                workspace_dir=workspace,
                agent=agent,
                agents={"reviewer": agent},
                make_llm=lambda provider, model_id: (
                    demo(model_id) if provider == "demo" else None
                ),
                record=self.recorder,
            ),
        )
        self.session = AgentSession(
            llm=self.llm,
            environment=self.environment,
            system_prompt="You lead.",
            record=self.recorder("parent"),
        )

    def recorder(self, name: str):
        kept = self.records.setdefault(name, [])

        async def record(message) -> None:
            kept.append(message)

        return record

    async def approve(self, call):
        self.asked.append(call)
        return "allow"

    async def run(self, prompt: str, *, approve=None, signal=None, **more) -> list:
        arguments = json.dumps({"prompt": prompt, **more})
        text = user_text(f"call run_subagent {arguments}")
        return [
            message
            async for message in self.session.run(
                [text], approve=approve or self.approve, signal=signal
            )
        ]

    def output(self):
        outputs = [
            m.payload for m in self.records["parent"] if m.kind == "tool_call_output"
        ]
        return outputs[-1]

    @property
    def child_record(self) -> list:
        (name,) = set(self.records) - {"parent"}
        return self.records[name]


@pytest.fixture
async def family(tmp_path):
    made = Family(tmp_path)
    yield made
    await made.environment.aclose()


async def test_the_answer_comes_back_and_the_child_has_a_record_of_its_own(family):
    stream = await family.run("say Hello World")

    assert family.output().output == "Hello World"
    meta = family.child_record[0].payload
    assert meta.source == "subagent" and meta.model_id == "demo"
    carried = [message for message in stream if message.origin]
    assert {message.origin for message in carried} == {(meta.session_id,)}
    assert carried[0].kind == "session_meta"


async def test_the_record_of_the_parent_only_points_to_the_child(family):
    await family.run("$ true\nthen\nsay done")

    parent = family.records["parent"]
    pointers = [m.payload for m in parent if m.kind == "subagent"]
    (call,) = [m.payload for m in parent if m.kind == "tool_call"]
    assert [pointer.tool_call_id for pointer in pointers] == [call.tool_call_id]
    assert pointers[0].session_id == family.child_record[0].payload.session_id
    assert not any(message.origin for message in parent)


async def test_calls_of_the_child_are_put_before_the_callback_of_the_parent(family):
    await family.run("$ echo hi\nthen\nsay done")

    own, childs = family.asked
    assert own.payload.name == "run_subagent" and own.origin == ()
    assert childs.payload.name == "exec_command"
    assert childs.origin == (family.child_record[0].payload.session_id,)
    kinds = [message.kind for message in family.child_record]
    assert "approval_decision" in kinds and "tool_started" in kinds


async def test_a_child_whose_calls_are_denied_reacts(family):
    async def only_the_child_itself(call):
        return "allow" if call.payload.name == "run_subagent" else "deny"

    await family.run("$ echo hi", approve=only_the_child_itself)

    assert family.output().output == "exec_command → aborted"


async def test_the_model_sees_the_output_and_nothing_of_the_child(family):
    await family.run("think secret thought\nsay answer")

    sent = [message.payload for message in family.session.history.messages]
    assert [payload.KIND for payload in sent] == [
        "text",
        "tool_call",
        "tool_call_output",
        "text",
    ]
    assert sent[2].output == "answer"


async def test_a_child_starts_no_child(family):
    await family.run('call run_subagent {"prompt": "say deep"}')

    outputs = [m.payload for m in family.child_record if m.kind == "tool_call_output"]
    assert outputs[0].stop_reason is StopReason.FAILED
    assert len(family.records) == 2
    offered = next(m for m in family.child_record if m.kind == "tool_list_ready")
    names = {tool["name"] for tool in offered.payload.tools}
    assert names == {"exec_command", "input_command", "read_image"}


async def test_another_agent_and_model_can_be_asked_for(family):
    await family.run(
        "say hi", agent_id="reviewer", provider="demo", model_id="demo-text"
    )

    assert family.output().output == "hi"
    assert family.child_record[0].payload.model_id == "demo-text"


@pytest.mark.parametrize(
    ("wish", "named"),
    [
        ({"agent_id": "nobody"}, "nobody"),
        ({"provider": "none", "model_id": "such"}, "none/such"),
    ],
)
async def test_an_unknown_agent_or_model_is_named(family, wish, named):
    await family.run("say hi", **wish)

    assert family.output().stop_reason is StopReason.FAILED
    assert named in family.output().output
    assert set(family.records) == {"parent"}


async def test_a_child_that_fails_is_reported(family):
    await family.run("say before\nfail auth")

    assert family.output().stop_reason is StopReason.FAILED
    assert family.output().output.startswith("before\n[subagent did not complete: ")
    assert "told to fail" in family.output().output


async def test_stopping_the_parent_stops_a_child_in_the_background(family):
    await family.run("sleep 60", yield_time_ms=250)
    assert [child["running"] for child in family.environment.subagents()] == [True]
    signal = AbortSignal()
    signal.abort()

    async for _ in family.session.run([user_text("say x")], signal=signal):
        pass

    await family.environment.aclose()
    assert family.child_record[-1].kind == "abort"
