"""A whole story in a terminal: subagents that ask, an image, a compaction."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

from sessions_app.models import Session
from sessions_app.runtime import configs
from tests.pictures import picture
from traces_app.verify import verify_trace

pytestmark = pytest.mark.django_db(transaction=True)

AGENT = "system_prompt: Work.\ncompaction: {max_session_turns: 2}\n"
MESSAGE = """\
call run_subagent {"prompt": "$ echo from one"}
call run_subagent {"prompt": "$ echo from two"}
then
call read_image {"source": "picture.png"}
"""


async def test_two_subagents_ask_at_once_then_an_image_then_a_compaction(
    run, project, tmp_path
):
    agent = await project.agents.aget()
    await sync_to_async(configs.save)(agent, AGENT, base_version=1)
    (tmp_path / "picture.png").write_bytes(picture())

    done = await run(
        MESSAGE, approval_mode="always-ask", answers="y\n" * 5, is_json=True
    )

    assert done.code == 0, done.err
    assert done.err.count("Only y or yes allows") == 5
    assert done.err.count("of subagent session-") == 2
    own = [m for m in done.messages if not m.get("origin")]
    outputs = [
        m["payload"] for m in own if m["payload"].get("type") == "tool_call_output"
    ]
    assert [bool(output.get("images")) for output in outputs] == [False, False, True]
    of_children = [
        m["payload"]["output"]
        for m in done.messages
        if m.get("origin") and m["payload"].get("type") == "tool_call_output"
    ]
    assert sorted(of_children) == ["from one\n", "from two\n"]
    (end,) = done.payloads("compaction_end")
    assert end["status"] == "completed"
    async for session in Session.objects.all():
        verdict = await sync_to_async(verify_trace)(session.pk)
        assert verdict.is_intact and verdict.is_complete
        assert session.status == "idle"
