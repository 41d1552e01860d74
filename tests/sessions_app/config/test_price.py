"""Tokens become money in one place: every counter once, each at its own price."""

from __future__ import annotations

import pytest

from sessions_app.config.price import cost_usd
from traces_app.omnimessage.money import add_usd
from traces_app.omnimessage.payloads import Usage

PRICE = {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75}


def test_every_counter_has_its_own_price():
    usage = Usage(cache_read=100_000, cache_write=1_003, output=80, input=3)

    expected = (3 * 3 + 1_000 * 3.75 + 100_000 * 0.3 + 80 * 15) / 1_000_000
    assert cost_usd(usage, PRICE) == pytest.approx(expected, abs=1e-10)


def test_cache_without_a_price_costs_what_input_costs():
    usage = Usage(cache_read=10, cache_write=20, output=0)

    assert cost_usd(usage, {"input": 1_000_000.0, "output": 0}) == 30


def test_model_without_a_price_has_no_cost():
    assert cost_usd(Usage(output=5), {}) is None


def test_free_model_costs_nothing_which_is_not_the_same():
    assert cost_usd(Usage(output=5), {"input": 0, "output": 0}) == 0


@pytest.mark.parametrize(
    ("one", "other", "total"),
    [(None, None, None), (None, 0.5, 0.5), (0.5, None, 0.5), (0.1, 0.2, 0.3)],
)
def test_unknown_costs_do_not_hide_known_ones(one, other, total):
    assert add_usd(one, other) == total
