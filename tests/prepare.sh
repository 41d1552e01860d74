#!/bin/sh
# Brings what the tests need beside Python: a Chromium, PostgreSQL and Redis. As root
# with the system's package manager; otherwise only Playwright's own Chromium. What
# cannot be had is no error: the tests that need it are reported as skipped.
set -u

has() { command -v "$1" >/dev/null 2>&1; }
has_chromium() { has chromium || has chromium-browser || has google-chrome; }
has_postgresql() { has initdb || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; }

wanted=
has_chromium || wanted="$wanted chromium"
has_postgresql || wanted="$wanted postgresql"
has redis-server || wanted="$wanted redis-server"

if [ -n "$wanted" ] && [ "$(id -u)" = 0 ] && has apt-get; then
  echo "Installing for the tests:$wanted"
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update
  for package in $wanted; do
    apt-get -qq install --yes --no-install-recommends "$package" >/dev/null ||
      echo "Could not install $package."
  done
fi

if ! has_chromium; then
  echo "No Chromium on this system: asking Playwright for one."
  timeout 600 .venv/bin/python -m playwright install chromium ||
    echo "No Chromium to be had: browser tests will be SKIPPED."
fi
exit 0
