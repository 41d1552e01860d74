"""What a command finds in its environment variables."""

import subprocess
import sys
import textwrap

import pytest

from sessions_app.environment.command_env import command_env
from tests.sessions_app.environment.calls import run

SECRETS = {
    "SECRET_KEY": "s3cret",
    "OPENAI_API_KEY": "sk-live",
    "DATABASE_URL": "postgres://",
    "DJANGO_SETTINGS_MODULE": "penguin_web.settings",
    "PORT": "7364",
    "HOST": "0.0.0.0",
    "FORCE_COLOR": "3",
    "HTTPS_PROXY": "http://proxy",
}


def variables_of(called) -> dict[str, str]:
    return dict(line.partition("=")[::2] for line in called.output.splitlines())


async def test_nothing_of_the_host_but_the_allowed_gets_in(
    make_environment, monkeypatch, home
):
    for name, value in {**SECRETS, "LC_TIME": "C", "TZ": "UTC"}.items():
        monkeypatch.setenv(name, value)
    environment = make_environment()

    found = variables_of(await run(environment, "env"))

    assert not SECRETS.keys() & found.keys()
    assert found["HOME"] == str(home)
    assert found["LC_TIME"] == "C"
    assert found["TZ"] == "UTC"


async def test_hardening_wins_over_the_agents_variables(make_environment):
    environment = make_environment(
        env={"MYKEY": "mine", "PAGER": "less", "TERM": "xterm"}
    )

    found = variables_of(await run(environment, "env"))

    assert found["MYKEY"] == "mine"
    assert found["PAGER"] == found["GIT_PAGER"] == "cat"
    assert found["TERM"] == "dumb"
    assert found["NO_COLOR"] == "1"
    assert found["GIT_EDITOR"] == "true"
    assert found["GIT_TERMINAL_PROMPT"] == "0"


async def test_named_variables_are_let_through(make_environment, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    environment = make_environment(passthrough=["HTTPS_PROXY"])

    found = variables_of(await run(environment, "env"))

    assert found["HTTPS_PROXY"] == "http://proxy"


async def test_commands_carry_the_tags_of_owner_and_environment(make_environment):
    environment = make_environment(owner_tag="owner-1", env={"PENGUIN_OWNER": "forged"})

    found = variables_of(await run(environment, "env"))

    assert found["PENGUIN_OWNER"] == "owner-1"
    assert len(found["PENGUIN_ENVIRONMENT"]) == 32


def test_agents_variables_win_over_the_hosts():
    found = command_env({"LANG": "C", "PATH": "/bin"}, {"LANG": "de"})

    assert found["LANG"] == "de"
    assert found["PATH"] == "/bin"


async def test_commit_without_a_message_does_not_wait_for_an_editor(environment):
    called = await run(
        environment,
        "git init -q . && touch f && git add f && "
        "git -c user.name=a -c user.email=a@b commit",
        yield_time_ms=20_000,
    )

    assert called.details["running"] is False


@pytest.mark.parametrize(("name", "code"), [("INT", 130), ("QUIT", 131)])
def test_ignored_signals_of_the_server_are_not_inherited(tmp_path, name, code):
    script = textwrap.dedent(
        f"""
        import asyncio, json, signal
        signal.signal(signal.SIG{name}, signal.SIG_IGN)
        from sessions_app.environment import Environment, default_tool_definitions
        from traces_app.omnimessage import tool_call

        async def main():
            environment = Environment({str(tmp_path)!r}, default_tool_definitions())
            cmd = "sh -c 'kill -{name} $$'; exit $?"
            call = tool_call("exec_command", json.dumps({{"cmd": cmd}}), "c")
            async for message in environment.execute_tool(call):
                last = message
            print(last.payload.details.get("exit_code"))
            await environment.aclose()

        asyncio.run(main())
        """
    )

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )

    assert done.stdout.strip() == str(code), done.stderr
