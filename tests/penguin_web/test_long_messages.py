"""A socket carries every event a session can hold, however long its text."""

import json
import re

import httpx
import pytest
from websockets.sync.client import connect

pytestmark = pytest.mark.slow


def cookie(site) -> str:
    """Log the admin in and return the cookies as a header."""
    with httpx.Client(base_url=site.base_url, trust_env=False) as browser:
        page = browser.get("/login/").text
        token = re.search('name="csrfmiddlewaretoken" value="([^"]+)"', page)[1]
        person = {"username": site.username, "password": site.password}
        browser.post("/login/", data={**person, "csrfmiddlewaretoken": token})
        return "; ".join(f"{name}={value}" for name, value in browser.cookies.items())


def test_longest_message_reaches_the_page(served):
    text = "say hi\n" + "<" * 1_000_000
    with served.api() as api:
        session = api.post("projects/default/sessions", json={}).json()["id"]
        sent = api.post(f"sessions/{session}/tasks", json={"text": text})
        assert sent.status_code == 202, sent.text

    address = f"{served.base_url}/ws/sessions/{session}/".replace("http", "ws", 1)
    headers = {"Cookie": cookie(served)}
    with connect(
        address, additional_headers=headers, max_size=None, proxy=None
    ) as page:
        page.send(json.dumps({"have": {}, "seq": 0}))
        while len(page.recv(timeout=30)) < 4_000_000:
            pass  # every "<" is four characters in a fragment
