"""What templates of pages and socket frames share: icons, times, figures."""

from __future__ import annotations

from datetime import UTC, datetime

from django import template
from django.template import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString

from traces_app import figures

register = template.Library()

register.filter("duration", figures.duration)
register.filter("size", figures.size)
register.filter("figure", figures.number)
register.filter("usd", figures.usd)


@register.simple_tag
def icon(name: str, kind: str = "") -> SafeString:
    """Draw an icon beside words; `kind` is `spin`, `chevron` or `push chevron`."""
    if kind == "spin":
        shape = (
            '<svg class="icon" data-spin aria-hidden="true"><use href="#i-{}"/></svg>'
        )
        return format_html(shape, name)
    shape = '<svg class="icon{}" aria-hidden="true"><use href="#i-{}"/></svg>'
    return format_html(shape, f" {kind}" if kind else "", name)


@register.simple_tag
def icon_named(name: str, label: str) -> SafeString:
    """Draw an icon that stands alone and says what it means."""
    return format_html(
        '<svg class="icon" role="img" aria-label="{}"><use href="#i-{}"/></svg>',
        label,
        name,
    )


@register.simple_tag
def clock(value: str | datetime, form: str = "minute") -> SafeString:
    """Show a time; the script puts it into the reader's zone, UTC stays in the title.

    `form` is `minute`, `second`, `milli` or `day` (a day unless it is today).
    """
    when = figures.moment(value)
    return format_html(
        '<time datetime="{}" title="{} UTC" data-clock="{}">{}</time>',
        when.isoformat().replace("+00:00", "Z"),
        when.strftime("%Y-%m-%d %H:%M:%S"),
        form,
        _told(when, form),
    )


def _told(when: datetime, form: str) -> str:
    if form == "milli":
        return when.strftime("%H:%M:%S.") + f"{when.microsecond // 1000:03d}"
    if form == "second":
        return when.strftime("%H:%M:%S")
    if form == "day" and when.date() != datetime.now(UTC).date():
        return when.strftime("%d %b %Y")
    return when.strftime("%H:%M")


@register.simple_tag(takes_context=True)
def since(context: Context, value: str | datetime) -> SafeString:
    """Show how long ago a time was, counting on while the page is open.

    A frame leaves the figure to the page's script: two frames that tell the same
    must be the same.
    """
    when = figures.moment(value)
    elapsed = (datetime.now(UTC) - when).total_seconds()
    return _counting("since", when, None if context.get("is_frame") else elapsed)


@register.simple_tag(takes_context=True)
def until(context: Context, value: str | datetime) -> SafeString:
    """Show how long it is until a time, counting down while the page is open."""
    when = figures.moment(value)
    left = (when - datetime.now(UTC)).total_seconds()
    return _counting("until", when, None if context.get("is_frame") else left)


def _counting(kind: str, when: datetime, seconds: float | None) -> SafeString:
    return format_html(
        '<time data-{}="{}">{}</time>',
        kind,
        when.isoformat().replace("+00:00", "Z"),
        "" if seconds is None else figures.elapsed(seconds),
    )
