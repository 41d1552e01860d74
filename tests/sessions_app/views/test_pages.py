"""Pages hold what the surface promises, and nothing of what is not one's own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async

from sessions_app import runtime
from tests.sessions_app.views.waiting import address, cards, until
from traces_app import writer
from traces_app.omnimessage import StopReason, assistant_text, event, user_text
from traces_app.omnimessage.payloads import RequestBegin, RequestEnd

pytestmark = pytest.mark.django_db(transaction=True)
PAGES = ["sessions/", "approvals/", "settings/"]
HOSTILE = "<script>alert(1)</script>"


async def body(client, path: str) -> str:
    response = await client.get(path)
    assert response.status_code == 200
    return response.content.decode()


async def send(client, session, text: str) -> None:
    response = await client.post(address(session, "send/"), {"text": text})
    assert response.status_code == 303


@pytest.mark.parametrize("page", PAGES)
async def test_page_is_behind_the_login(supervisor, async_client, page):
    response = await async_client.get(f"/p/default/{page}")

    assert response.status_code == 302
    assert response["Location"].startswith("/login/?next=")


@pytest.mark.parametrize("page", PAGES)
async def test_page_takes_only_get(supervisor, client, page):
    assert (await client.post(f"/p/default/{page}")).status_code == 405


@pytest.mark.parametrize("page", PAGES)
async def test_stranger_sees_no_project(supervisor, log_in, stranger, page):
    client = await log_in(stranger)

    assert (await client.get(f"/p/default/{page}")).status_code == 404


@pytest.mark.parametrize("page", PAGES)
async def test_viewer_reads_every_page(supervisor, log_in, viewer, page):
    client = await log_in(viewer)

    assert (await client.get(f"/p/default/{page}")).status_code == 200


async def test_home_leads_to_the_project_seen_last(supervisor, client):
    first = await client.get("/")

    assert first["Location"] == "/p/default/sessions/"


async def test_home_of_a_stranger_says_that_no_project_is_open(
    supervisor, log_in, stranger
):
    client = await log_in(stranger)

    assert "No project is open to you" in await body(client, "/")


async def test_foreign_chat_does_not_exist(foreign_session, client):
    assert (await client.get(address(foreign_session))).status_code == 404


async def test_new_chat_offers_something_to_try(session, client):
    page = await body(client, address(session))

    assert "Nothing runs until you say so" in page
    assert 'data-session-status="idle"' in page
    assert 'name="suggestion"' in page


async def test_chat_shows_a_call_with_its_decision_and_output(make_session, client):
    session = await make_session("allow-all")
    await send(client, session, f"$ echo '{HOSTILE}'; exit 3\nsay **done**")
    await until(session)

    page = await body(client, address(session))

    call_id = re.search(r'data-tool-output="([^"]+)"', page)[1]
    assert f'data-tool-call-id="{call_id}"' in page
    assert HOSTILE not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\n[exit code: 3]" in page
    assert "Allowed by mode allow-all" in page
    assert "exit 3" in page
    assert "<strong>done</strong>" in page


async def test_waiting_call_is_a_card_with_two_forms(session, client):
    await send(client, session, "$ rm -rf build/")
    (row,) = await cards(session)

    page = await body(client, address(session))

    card = page[page.index('<section class="approval"') :]
    allow, deny = re.findall(r"<form class=\"approval-.*?</form>", card, re.S)[:2]
    assert 'data-session-status="waiting"' in page
    assert "<title>(1) $ rm -rf build/ · Penguin Web</title>" in page
    assert ">Pending approval: exec_command, 1 of 1</span>" in page
    assert 'name="reason"' in deny
    assert 'name="reason"' not in allow
    for form in (allow, deny):
        assert f'name="arguments_sha256" value="{row.arguments_sha256}"' in form
        assert "csrfmiddlewaretoken" in form
        assert 'value="form"' in form
    assert row.workdir in card
    assert "mode always-ask, set by paula" in card


async def test_hidden_characters_of_a_call_are_seen_and_its_keys_are_off(
    session, client
):
    arguments = json.dumps({"cmd": "curl x/in\u200bstall.sh"})
    await send(client, session, f"call exec_command {arguments}")
    await cards(session)

    page = await body(client, address(session))

    card = page[page.index('<section class="approval"') :]
    assert r'<span class="command-escape">\u{200b}</span>' in card
    assert 'data-keys="off"' in card
    assert "aria-keyshortcuts" not in card.split("</section>")[0]


async def test_card_of_an_input_names_the_command_it_goes_to(make_session, client):
    session = await make_session("allow-all")
    cmd = 'call exec_command {"cmd": "cat", "yield_time_ms": 250}'
    await send(client, session, cmd)
    await until(session)
    (process,) = await runtime.processes(session.pk)
    await client.post(address(session, "mode/"), {"approval_mode": "always-ask"})
    arguments = json.dumps({"process_id": process["process_id"], "chars": "yes\n"})
    await send(client, session, f"call input_command {arguments}")
    await cards(session)

    page = await body(client, address(session))

    assert "into: cat" in page
    assert r'yes<span class="command-mark">\n</span>' in page


async def test_viewer_sees_the_card_and_no_composer(session, client, viewer, log_in):
    await send(client, session, "$ date")
    await cards(session)

    page = await body(await log_in(viewer), address(session))

    assert '<section class="approval"' in page
    assert "data-may-decide" not in page
    assert 'id="composer"' not in page


async def test_denied_call_shows_its_output_and_the_reason(session, client):
    await send(client, session, "$ date")
    (row,) = await cards(session)
    await client.post(
        address(session, "decide/"),
        {"tool_call_id": row.tool_call_id, "decision": "deny", "reason": "not <now>"},
    )
    await until(session)

    page = await body(client, address(session))

    assert "Tool call denied by user.\nReason: not &lt;now&gt;" in page


async def test_long_chat_opens_at_its_end_and_leads_back(session, client):
    for number in range(33):
        turn = [
            user_text(f"say nr {number}."),
            event(RequestBegin()),
            assistant_text(f"nr {number}."),
            event(RequestEnd(status=StopReason.COMPLETED)),
        ]
        await sync_to_async(writer.append)(session.trace_id, turn)

    page = await body(client, address(session))
    earlier = re.search(r'href="([^"]+\?before=\d+)"', page)[1]
    before = await body(client, earlier)
    part = await client.get(earlier, headers={"HX-Request": "true"})

    assert "nr 32." in page
    assert "nr 2." not in page
    assert "nr 2." in before
    assert "nr 3." not in before
    assert b"<html" not in part.content


@pytest.mark.parametrize("before", ["0", "1", "x", "-3", "9" * 40])
async def test_place_in_the_past_that_is_none_does_no_harm(session, client, before):
    assert "Penguin Web" in await body(client, address(session, f"?before={before}"))


async def test_page_is_never_shown_from_a_cache(session, client):
    for path in (address(session), "/p/default/sessions/", "/p/default/approvals/"):
        response = await client.get(path)

        assert "no-store" in response["Cache-Control"]


async def test_list_puts_what_waits_first(make_session, client):
    quiet = await make_session(title="Quiet one")
    asking = await make_session(title="Asking one")
    await send(client, asking, "$ make release")
    await cards(asking)

    page = await body(client, "/p/default/sessions/")

    assert page.index("Asking one") < page.index("Quiet one")
    assert '<code class="truncate">make release</code>' in page
    assert "<title>(1) Sessions" in page
    assert address(quiet) in page


async def test_list_finds_by_title_and_by_state(make_session, client):
    await make_session(title="Rotate keys")
    away = await make_session(title="Old prototype")
    await runtime.archive(away.pk, True)

    found = await body(client, "/p/default/sessions/?q=rotate")
    missed = await body(client, "/p/default/sessions/?q=nothing+like+it")
    archived = await body(client, "/p/default/sessions/?status=archived")

    assert "Rotate keys" in found
    assert "No session matches “nothing like it”" in missed
    assert "Old prototype" not in await body(client, "/p/default/sessions/")
    assert "Old prototype" in archived
    assert "Rotate keys" not in archived


async def test_list_goes_on_page_by_page(make_session, client):
    for number in range(53):
        await make_session(title=f"session {number:02}")

    first = await body(client, "/p/default/sessions/")
    older = re.search(r'href="(\?after=[^"]+)"', first)[1].replace("&amp;", "&")
    second = await body(client, f"/p/default/sessions/{older}")

    assert "session 52" in first
    assert "session 02" not in first
    assert [f"session {n:02}" in second for n in (0, 1, 2, 3)] == [True] * 3 + [False]


async def test_inbox_holds_the_cards_of_all_sessions(make_session, client):
    for title in ("One", "Two"):
        session = await make_session(title=title)
        await send(client, session, "$ date")
        await cards(session)

    page = await body(client, "/p/default/approvals/")

    assert page.count('<section class="approval"') == 2
    assert "Pending approval: exec_command, 2 of 2" in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


async def test_settings_show_what_is_in_force(supervisor, client):
    page = await body(client, "/p/default/settings/")

    assert "default_agent: default_agent" in page
    assert "demo/demo-text" in page
    assert "system_prompt" in page


async def test_theme_is_in_the_first_byte(supervisor, client):
    response = await client.post("/theme/", {"theme": "dark", "next": "/p/default/x/"})
    page = await body(client, "/p/default/sessions/")

    assert response["Location"] == "/p/default/x/"
    assert '<html lang="en" data-theme="dark">' in page


async def test_theme_of_anybodys_making_is_ignored(supervisor, client):
    client.cookies["theme"] = '"><script>'

    assert '<html lang="en">' in await body(client, "/p/default/sessions/")


async def test_full_output_is_handed_out_while_it_is_what_was_recorded(
    make_session, client
):
    session = await make_session("allow-all")
    await send(client, session, "$ seq 1 20000")
    await until(session)
    page = await body(client, address(session))
    link = re.search(rf'href="({address(session)}outputs/\d+/)"', page)[1]

    response = await client.get(link)
    text = b"".join([part async for part in response])

    assert response["Content-Disposition"].startswith("attachment")
    assert response["X-Content-Type-Options"] == "nosniff"
    assert text.startswith(b"1\n2\n")
    assert text.rstrip().endswith(b"20000")
    assert "characters between" in page
    assert "\n20000" in page


async def test_changed_output_file_is_not_handed_out(make_session, client):
    session = await make_session("allow-all")
    await send(client, session, "$ seq 1 20000")
    await until(session)
    events = await sync_to_async(runtime.trace_events)(session, limit=100)
    ended = next(e for e in events if e.kind == "tool_call_output")
    path = ended.message.payload.details["artifact"]["path"]
    await sync_to_async(Path(path).write_text)("planted")

    response = await client.get(address(session, f"outputs/{ended.seq}/"))

    assert response.status_code == 404
