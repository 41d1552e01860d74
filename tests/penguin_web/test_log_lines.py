"""A log record is one line, whatever it holds, and never a secret."""

import logging
import sys

from penguin_web.log_lines import LineFormatter


def line(message, *arguments, secrets=(), error=None):
    record = logging.LogRecord(
        "penguin", logging.WARNING, "file", 1, message, arguments, error
    )
    return LineFormatter(secrets).format(record)


def test_line_holds_pairs():
    text = line("started")

    assert text.startswith("time=20")
    assert text.endswith("level=warning logger=penguin message=started")


def test_line_ends_and_quotes_stay_within_the_message():
    text = line('one\ntwo "three" level=error')

    assert "\n" not in text
    assert r'message="one\ntwo \"three\" level=error"' in text


def test_secrets_are_taken_out_of_message_and_traceback():
    try:
        raise ValueError("sk-a-very-secret-key")
    except ValueError:
        error = sys.exc_info()

    text = line("used %s", "sk-a-very-secret-key", secrets=["sk-a-very-secret-key"])
    both = line("failed", secrets=["sk-a-very-secret-key"], error=error)

    assert 'message="used [secret]"' in text
    assert "sk-a-very" not in both
    assert "Traceback" in both


def test_short_texts_are_no_secrets():
    assert "message=abc" in line("abc", secrets=["b"])
