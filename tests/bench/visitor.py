"""A person with a browser's cookie and a program with a token, for measurements."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import websockets

from tests.site import Site

ACK_EACH = 64 * 1024  # characters of output, as the page does


class Visitor:
    """Speaks the JSON API and opens WebSockets as the admin of a served site."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.token = site.token()
        self.api = httpx.AsyncClient(
            base_url=f"{site.base_url}/api/v1/",
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=60,
            trust_env=False,
        )
        self.pages = httpx.AsyncClient(
            base_url=site.base_url, timeout=60, trust_env=False
        )

    async def __aenter__(self) -> "Visitor":
        form = await self.pages.get("/login/")
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form.text)
        answer = await self.pages.post(
            "/login/",
            data={
                "csrfmiddlewaretoken": token[1],
                "username": self.site.username,
                "password": self.site.password,
            },
        )
        assert answer.status_code == 302, answer.text
        return self

    async def __aexit__(self, *_) -> None:
        await self.api.aclose()
        await self.pages.aclose()

    async def session(self, mode: str = "allow-all") -> str:
        """Make a session and return its id."""
        answer = await self.api.post(
            "projects/default/sessions", json={"approval_mode": mode}
        )
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    async def send(self, session_id: str, text: str) -> None:
        """Start a task."""
        answer = await self.api.post(
            f"sessions/{session_id}/tasks", json={"text": text}
        )
        assert answer.status_code == 202, answer.text

    async def until_idle(self, session_id: str, seconds: float = 120) -> None:
        """Wait for the task's end."""
        async with asyncio.timeout(seconds):
            while True:
                answer = await self.api.get(f"sessions/{session_id}")
                if answer.json()["status"] == "idle":
                    return
                await asyncio.sleep(0.05)

    async def pending(self, session_id: str) -> dict:
        """Wait for a call that waits for a decision."""
        async with asyncio.timeout(30):
            while True:
                answer = await self.api.get(
                    f"sessions/{session_id}/approvals", params={"status": "pending"}
                )
                if found := answer.json():
                    return found[0]
                await asyncio.sleep(0.01)

    @asynccontextmanager
    async def socket(self, session_id: str) -> AsyncIterator["Socket"]:
        """Open the session's WebSocket as its page does."""
        cookies = "; ".join(f"{c.name}={c.value}" for c in self.pages.cookies.jar)
        address = self.site.base_url.replace("http", "ws", 1)
        async with websockets.connect(
            f"{address}/ws/sessions/{session_id}/",
            additional_headers={"Cookie": cookies, "Origin": self.site.base_url},
            max_size=None,
            proxy=None,
        ) as connection:
            await connection.send(json.dumps({"have": {}, "seq": 0}))
            yield Socket(connection)

    def stream(self, session_id: str):
        """Open the session's stream of server-sent events."""
        return self.api.stream("GET", f"sessions/{session_id}/stream")


class Socket:
    """Takes frames, acknowledges them, and notes when each came."""

    def __init__(self, connection: websockets.ClientConnection) -> None:
        self._connection = connection
        self._taken = 0
        self._told = 0

    async def frames(self) -> AsyncIterator[tuple[float, str]]:
        """Yield the time of arrival and the text of each frame."""
        async for text in self._connection:
            now = time.time()
            if text.startswith("{") and (frame := json.loads(text))["type"] == "delta":
                self._taken += len(frame["text"])
                if self._taken - self._told >= ACK_EACH:
                    self._told = self._taken
                    await self._connection.send(json.dumps({"ack": self._taken}))
            yield now, text
