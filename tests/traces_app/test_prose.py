"""Model text becomes HTML that loads nothing, runs nothing and hides no address."""

import pytest

from traces_app.prose import to_html


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "![x](https://elsewhere.example/p.png)",
        '<a href="https://x.example" onclick="alert(1)">x</a>',
        "```\n</code></pre><script>alert(1)</script>\n```",
        "<svg><style>@import url(//x.example)</style></svg>",
        "&lt;script&gt;",
    ],
)
def test_hostile_text_makes_no_element_that_acts(hostile):
    html = to_html(hostile)

    for tag in ("<script", "<img", "<svg", "<style", "<iframe", "<object"):
        assert tag not in html
    assert 'href="javascript' not in html
    assert 'href="data' not in html
    assert "<a onclick" not in html


def test_link_shows_where_it_leads():
    html = to_html("[the bank](https://evil.example/login)")

    assert 'href="https://evil.example/login"' in html
    assert 'rel="noopener noreferrer nofollow"' in html
    assert ">https://evil.example/login</span>" in html


def test_link_that_is_its_own_text_is_not_told_twice():
    html = to_html("see <https://docs.example/>")

    assert html.count("https://docs.example/") == 2  # the address and the text


def test_image_is_named_and_not_loaded():
    html = to_html("![a chart](https://elsewhere.example/p.png)")

    assert "<img" not in html
    assert "image: a chart" in html
    assert "https://elsewhere.example/p.png" in html


def test_headings_stand_below_those_of_the_page():
    html = to_html("# One\n\n## Two")

    assert html.count("<h4>") == 2
    assert "<h1" not in html


def test_code_block_keeps_its_language_and_its_text():
    html = to_html("```python\nif a < b:\n    pass\n```")

    assert '<pre data-language="python">' in html
    assert "if a &lt; b:\n    pass\n" in html


def test_plain_text_becomes_paragraphs():
    assert to_html("one & two\n\nthree") == "<p>one &amp; two</p><p>three</p>"


def test_very_long_text_is_not_parsed_as_markdown():
    html = to_html("**x** " * 40_000)

    assert "<strong>" not in html
    assert html.startswith("<p>**x** ")
