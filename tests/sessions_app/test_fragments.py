"""Frames for the socket: parts of the page by id, never what a person holds."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import AnonymousUser

from sessions_app import fragments, runtime
from sessions_app.models import ApprovalRequest, QueuedMessage
from sessions_app.runtime import sessions
from traces_app import writer
from traces_app.call_view import call_key
from traces_app.omnimessage import (
    StopReason,
    assistant_text,
    event,
    thinking,
    tool_call,
    tool_call_output,
    user_text,
)
from traces_app.omnimessage import payloads as p

pytestmark = pytest.mark.django_db
DIGEST = "9f3c41ab" + "0" * 56
CALL = tool_call("exec_command", '{"cmd": "make"}', "call_1")


@pytest.fixture
def session(project, operator):
    return sessions.create(project, operator, sessions.Wish(title="Chat"))


@pytest.fixture
def record(session):
    """Record messages; return the frame of the last one."""

    def store(*messages, item=None) -> str:
        stored = writer.append(session.trace_id, list(messages))
        return fragments.event_html(session, stored[-1], item=item)

    return store


@pytest.fixture
def ask(session):
    """Make a pending request for a call."""

    def make(call_id="call_1", **more) -> ApprovalRequest:
        fields = {
            "session": session,
            "name": "exec_command",
            "arguments": '{"cmd": "make"}',
        }
        return ApprovalRequest.objects.create(
            tool_call_id=call_id,
            workdir="/srv",
            permission="rw",
            arguments_sha256=DIGEST,
            asked_because="mode always-ask",
            **(fields | more),
        )

    return make


def requested():
    return event(
        p.ApprovalRequested(
            tool_call_id="call_1",
            arguments_sha256=DIGEST,
            workdir="/srv",
            asked_because="mode always-ask",
        )
    )


def decided(decision="allow"):
    return event(
        p.ApprovalDecision(
            decision=decision,
            tool_call_id="call_1",
            source="user",
            via="button",
            decided_by="oskar",
            arguments_sha256=DIGEST,
        )
    )


def mark(html: str) -> str:
    """Return the word that changes with the list."""
    return re.search(r'data-mark="(\w+)"', html)[1]


def roots(html: str) -> list[str]:
    """Return the ids of all elements of a frame."""
    return re.findall(r'<[a-z-]+[^>]*? id="([^"]+)"', html)


def test_message_of_a_person_opens_a_turn_and_an_entry_of_the_outline(record):
    html = record(user_text("<b>go</b>"))

    assert 'hx-swap-oob="beforeend:#conversation"' in html
    assert 'hx-swap-oob="beforeend:#outline"' in html
    assert "&lt;b&gt;go&lt;/b&gt;" in html
    assert "<b>go" not in html


def test_answer_is_added_to_the_last_turn(record):
    html = record(assistant_text("**hi**"))

    assert 'hx-swap-oob="beforeend:#conversation > .turn:last-child"' in html
    assert "<strong>hi</strong>" in html


@pytest.mark.parametrize("message", [assistant_text("hi"), thinking("hm")])
def test_text_that_streamed_takes_the_place_of_its_element(record, message):
    html = record(message, item="text-3-0")

    assert 'hx-swap-oob="outerHTML:#item-text-3-0"' in html
    assert "beforeend" not in html


@pytest.mark.parametrize("kind", ["text", "thinking"])
def test_element_of_a_streaming_text_is_empty(session, kind):
    html = fragments.item_html(session, "text-3-0", kind)

    assert 'id="item-text-3-0"' in html
    assert 'data-item="text-3-0"' in html
    assert "></tool-output>" in html


@pytest.mark.parametrize(
    "payload",
    [
        p.ToolListReady(tools=()),
        p.ConfigInForce(version={"project": 1, "agent": 1}),
        p.RequestEnd(status=StopReason.COMPLETED),
    ],
)
def test_what_nobody_sees_is_an_empty_frame_or_an_empty_notice(record, payload):
    html = record(event(payload))

    assert "conversation" not in html


def test_new_call_is_added_with_its_arguments(record):
    html = record(user_text("go"), CALL)

    assert 'data-tool-call-id="call_1"' in html
    assert 'data-tool-output="call_1"' in html
    assert '<section class="approval"' not in html


def test_pending_call_gets_its_card_in_place(record, ask):
    ask()

    html = record(CALL, requested())

    assert '<section class="approval"' in html
    assert html.count('aria-disabled="true"') == 2
    assert 'id="call-call_1-card"' in html
    assert 'id="call-call_1-output"' not in html
    assert "csrfmiddlewaretoken" not in html


def test_decision_empties_the_card_and_is_told(record):
    html = record(CALL, requested(), decided("deny"))

    assert '<div class="call-card" id="call-call_1-card"></div>' in html
    assert "Denied by" in html
    assert 'data-person="oskar"' in html


def test_output_is_handed_to_its_element_not_swapped_with_it(record):
    html = record(
        CALL,
        decided(),
        event(p.ToolStarted(tool_call_id="call_1")),
        tool_call_output(
            "call_1", "a < b\n", StopReason.COMPLETED, details={"exit_code": 0}
        ),
    )

    assert '<tool-output id="call-call_1-output">' in html
    assert "a &lt; b" in html
    assert "exit 0" in html
    assert "<details" not in html


def test_frame_of_a_call_shows_it_as_it_was_at_that_event(record, session):
    stored = writer.append(
        session.trace_id,
        [CALL, decided(), tool_call_output("call_1", "x", StopReason.COMPLETED)],
    )

    html = fragments.event_html(session, stored[1], item=None)

    assert "tool-output" not in html
    assert "Allowed by" in html


def test_failed_request_is_noted_and_its_retry_counted_down(record):
    html = record(
        event(
            p.RequestEnd(
                status=StopReason.TIMEOUT,
                attempt=2,
                retry_in_ms=4000,
                error_message="x",
            )
        )
    )

    assert 'id="provider-notice"' in html
    assert "Attempt 2 failed" in html
    assert "data-until=" in html


def test_next_request_takes_the_notice_away(record):
    html = record(event(p.RequestBegin(attempt=2)))

    assert html.strip() == '<div id="provider-notice"></div>'


def test_usage_is_shown_as_a_share_of_the_window(record):
    used = p.Usage(cache_write=100_000, total=100_000)

    html = record(event(p.TokenUsage(session=used, request=used)))

    assert "100 k" in html
    assert 'value="50"' in html


def test_status_carries_everything_outside_of_the_conversation(session, ask):
    pending = [ask("call_1"), ask("call_2")]
    session.status = "waiting"
    QueuedMessage.objects.create(session=session, text="later <b>")

    html = fragments.status_html(session, pending)

    for name in (
        "session-title",
        "session-status",
        "session-mode",
        "calls-wait",
        "stop-place",
        "queue",
        "returned",
        "processes",
        "session-trouble",
        "rail-waiting",
        "rail-now",
        "topbar-waiting",
        "card-names",
    ):
        assert name in roots(html)
    assert 'data-state="waiting"' in html
    assert "2 calls wait" in html
    assert "later &lt;b&gt;" in html
    assert ">Stop</span>" in html
    assert 'id="message"' not in html


def test_same_status_is_the_same_frame(session, ask):
    pending = [ask()]

    assert fragments.status_html(session, pending) == fragments.status_html(
        session, pending
    )


def test_idle_session_has_no_stop_button(session):
    assert "Stop" not in fragments.status_html(session, [])


def test_names_of_the_cards_say_their_place(session, ask):
    pending = [ask("call_1"), ask("call_2", name="run_subagent")]

    html = fragments.status_html(session, pending)

    assert ">Pending approval: exec_command, 1 of 2</span>" in html
    assert ">Pending approval: run_subagent, 2 of 2</span>" in html


def test_hostile_id_of_a_call_makes_no_hostile_element(record):
    hostile = 'x" onclick="alert(1)'

    html = record(tool_call("t", "{}", hostile))

    assert f'id="call-{call_key(hostile)}"' in html
    assert ' onclick="' not in html


def test_head_tells_the_last_event(session):
    assert fragments.head_html(7) == '<div id="trace-head" data-seq="7" hidden></div>'


def test_project_frame_counts_what_waits(project, session, ask):
    ask()

    html = fragments.project_html(AnonymousUser(), project)

    assert "rail-waiting" in html
    assert ">1<" in html


def test_further_call_of_a_waiting_session_is_news_for_open_lists(
    project, session, ask
):
    session.status = "waiting"
    session.save()
    ask()
    before = fragments.project_html(AnonymousUser(), project)
    ask("call_2")
    after = fragments.project_html(AnonymousUser(), project)

    assert mark(before) != mark(after)


def test_project_frame_lists_what_is_active_now(project, session):
    assert "hidden>" in fragments.project_html(AnonymousUser(), project)
    session.status = "waiting"
    session.save()

    html = fragments.project_html(AnonymousUser(), project)

    assert "rail-now" in roots(html)
    assert f"/s/{session.pk}/" in html


def test_call_of_a_subagent_is_a_card_below_the_conversation_of_its_parent(
    session, project, operator, ask
):
    child = sessions.create(project, operator, sessions.Wish(title="Part"))
    child.parent = session
    child.save()
    own = ask("call_1")
    its = ask("call_1", session=child, origin=[child.pk])

    html = fragments.status_html(session, [own, its])

    cards = html[html.index('id="child-cards"') : html.index('id="rail-waiting"')]
    cards = cards.split("</section>")
    assert len(cards) == 2
    assert "root › default_agent #1" in cards[0]
    assert f"/s/{child.pk}/decide/" in cards[0]
    assert "Pending approval: exec_command, 2 of 2" in html
    assert f"/s/{child.pk}/" in html[html.index('id="children"') :]
    ids = roots(html)
    assert len(ids) == len(set(ids))


def test_trouble_of_a_task_is_said(session):
    assert runtime.trouble(session.pk) == ""
    assert 'id="session-trouble"></div>' in fragments.status_html(session, [])
