"""The server as an operator meets it: start, second start, stop."""

import contextlib
import re
import signal
import socket
import time
from pathlib import Path

import httpx
import pytest

pytestmark = pytest.mark.slow

ONE_SENTENCE = re.compile(r"[^\n]+\n\Z")


def get(site, path):
    return httpx.get(f"{site.base_url}{path}", trust_env=False, follow_redirects=True)


def test_it_serves_the_login_page_with_its_static_files(served):
    page = get(served, "/login/")

    links = re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text)
    assert page.status_code == 200
    assert links
    for link in links:
        assert get(served, link).status_code == 200, link
        assert re.search(r"\.[0-9a-f]{12}\.", link), "the name changes with the file"


def test_data_folder_and_keys_belong_to_the_server_alone(served):
    keys = served.data_dir / "keys"

    assert {"secret_key", "secrets_key", "signing_key.pem"} <= {
        path.name for path in keys.iterdir()
    }
    for path in keys.iterdir():
        assert path.stat().st_mode & 0o077 == 0 or path.name == "one_time_password"


def test_second_server_of_the_same_data_refuses_and_names_the_first(served):
    done = served.manage("serve", "--port", "0")

    assert done.returncode == 1
    assert served.base_url in done.stderr
    assert ONE_SENTENCE.match(done.stderr)
    assert get(served, "/login/").status_code == 200


def test_port_in_use_is_told_in_one_sentence(make_site):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = make_site().manage("serve", "--port", str(port))

    assert done.returncode == 1
    assert f"port {port}" in done.stderr
    assert ONE_SENTENCE.match(done.stderr)


@pytest.mark.parametrize(
    ("name", "value"),
    [("PORT", "eighty"), ("DEBUG", "perhaps"), ("DATABASE_URL", "nothing")],
)
def test_wrong_setting_stops_the_start_with_one_sentence(make_site, name, value):
    done = make_site(**{name: value}).manage("serve")

    assert done.returncode == 1
    assert name in done.stderr
    assert ONE_SENTENCE.match(done.stderr)


def test_workspaces_inside_the_data_folder_are_refused(make_site):
    site = make_site()
    site.variables["PENGUIN_WORKSPACES_DIR"] = str(site.data_dir / "workspaces")

    done = site.manage("serve")

    assert done.returncode == 1
    assert "inside the data folder" in done.stderr


def test_it_ends_by_itself_within_seconds_and_leaves_the_data_to_the_next(make_site):
    site = make_site()
    site.start()
    started = time.monotonic()

    code = site.stop()

    assert code == 0, site.log.read_text()
    assert time.monotonic() - started < 10
    site.start()
    assert get(site, "/login/").status_code == 200


def test_killed_server_does_not_keep_the_next_from_starting(make_site):
    site = make_site()
    site.start()
    site.kill()

    site.start()

    assert get(site, "/login/").status_code == 200


def test_log_holds_no_traceback_after_an_ordinary_life(make_site):
    site = make_site()
    site.start()
    get(site, "/login/")
    get(site, "/nothing/here/")
    site.stop()

    assert "Traceback" not in site.log.read_text()


def test_unknown_host_and_foreign_origin_are_refused(served):
    def status(**headers):
        return httpx.post(
            f"{served.base_url}/login/", headers=headers, trust_env=False
        ).status_code

    assert status(host="evil.example") == 400
    assert status(origin="http://127.0.0.1:1") == 403


def processes_of(site) -> list[str]:
    """Return the command lines of everything that belongs to the installation."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(site.folder).encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().decode())
    return found


def start_commands(site, *commands: str) -> str:
    """Send commands that run on, and return the session when they do."""
    with site.api() as api:
        made = api.post(
            "projects/default/sessions", json={"approval_mode": "allow-all"}
        )
        session_id = made.json()["id"]
        text = "\n".join(f"$ {command}" for command in commands)
        sent = api.post(f"sessions/{session_id}/tasks", json={"text": text})
        assert sent.status_code == 202, sent.text
        deadline = time.monotonic() + 60
        while len(api.get(f"sessions/{session_id}/processes").json()) < len(commands):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    return session_id


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_ends_the_server_and_every_command_it_started(make_site, number):
    site = make_site()
    site.start()
    start_commands(
        site,
        "sleep 601",
        "trap '' TERM HUP INT; while true; do sleep 0.2; done",
        "setsid sleep 602 & sleep 603",
    )
    assert len(processes_of(site)) > 4
    started = time.monotonic()

    site.process.send_signal(number)
    code = site.process.wait(timeout=30)

    assert code == 0, site.log.read_text()
    assert time.monotonic() - started < 60
    assert processes_of(site) == []


def test_next_start_ends_what_a_killed_server_left(make_site):
    site = make_site()
    site.start()
    session_id = start_commands(site, "sleep 604", "setsid sleep 605 & sleep 606")
    site.kill()
    assert any("sleep" in line for line in processes_of(site))

    site.start()

    assert not any("sleep" in line for line in processes_of(site))
    with site.api() as api:
        assert api.get(f"sessions/{session_id}").json()["status"] == "idle"


def test_open_stream_does_not_hold_the_server_back(make_site):
    site = make_site()
    site.start()
    session_id = start_commands(site, "sleep 607")
    started = time.monotonic()

    with site.api() as api, api.stream("GET", f"sessions/{session_id}/stream"):
        code = site.stop()

    assert code == 0, site.log.read_text()
    assert time.monotonic() - started < 60


def test_every_address_without_names_is_warned_of(make_site):
    site = make_site(HOST="0.0.0.0")
    site.start()

    site.stop()

    assert "set ALLOWED_HOSTS" in site.log.read_text()
