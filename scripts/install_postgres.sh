#!/bin/sh
# PostgreSQL for the tests of stores on a server, where it is missing and may be installed. Never fails:
# without it those tests are skipped and say so.
command -v postgres >/dev/null 2>&1 && exit 0
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 && exit 0
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    install="apt-get install -y -qq --no-install-recommends postgresql pgbouncer"
    { $install || { apt-get update -qq && $install; }; } >/dev/null 2>&1 && exit 0
fi
echo "no PostgreSQL on this machine: the tests of stores on a server are skipped" >&2
exit 0
