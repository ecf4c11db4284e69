#!/bin/sh
# Chromium for the tests of pages, where it is missing and may be installed. Never fails: without a
# browser those tests are skipped and say so.
for name in chromium chromium-browser google-chrome google-chrome-stable; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    install="apt-get install -y -qq --no-install-recommends chromium"
    { $install || { apt-get update -qq && $install; }; } >/dev/null 2>&1 && exit 0
fi
echo "no Chromium on this machine: the tests of pages in a browser are skipped" >&2
exit 0
