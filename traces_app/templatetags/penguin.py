"""What templates of pages and socket frames share: icons, times, figures."""

from __future__ import annotations

from datetime import UTC, datetime

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from traces_app import figures

register = template.Library()

register.filter("duration", figures.duration)
register.filter("size", figures.size)
register.filter("figure", figures.number)


@register.simple_tag
def icon(name: str, kind: str = "") -> SafeString:
    """Draw an icon beside words; `kind` is `spin`, `chevron` or `push chevron`."""
    if kind == "spin":
        shape = '<svg class="icon" data-spin aria-hidden="true"><use href="#i-{}"/></svg>'
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


@register.simple_tag
def since(value: str | datetime) -> SafeString:
    """Show how long ago a time was, counting on while the page is open."""
    when = figures.moment(value)
    seconds = (datetime.now(UTC) - when).total_seconds()
    return format_html(
        '<time datetime="PT{}S" data-since="{}">{}</time>',
        max(0, int(seconds)),
        when.isoformat().replace("+00:00", "Z"),
        figures.elapsed(seconds),
    )


@register.simple_tag
def until(value: str | datetime) -> SafeString:
    """Show how long it is until a time, counting down while the page is open."""
    when = figures.moment(value)
    seconds = (when - datetime.now(UTC)).total_seconds()
    return format_html(
        '<time datetime="PT{}S" data-until="{}">{}</time>',
        max(0, int(seconds)),
        when.isoformat().replace("+00:00", "Z"),
        figures.elapsed(seconds),
    )
