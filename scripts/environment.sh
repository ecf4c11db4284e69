# For the scripts beside this one, which read it: an environment of their own under .envs, made anew
# when pyproject.toml has changed. Each says in `install` what belongs in it, then `prepare NAME WHAT`.
# Where it cannot be had, that is said, and nothing has failed.

cd "$(dirname "$0")/.." || exit 1

pip_install() {
    "$python" -m pip install -qq --disable-pip-version-check "$@"
}

make_environment() {
    [ -x "$python" ] || ${PYTHON:-python3} -m venv "$folder" || return 1
    install && touch "$folder/.done"
}

prepare() {
    folder=.envs/$1
    python=$folder/bin/python
    [ -e "$folder/.done" ] && [ ! pyproject.toml -nt "$folder/.done" ] && return
    told=$(make_environment 2>&1) && return
    printf '%s\n' "$told" | tail -n 3 >&2
    echo "$2 cannot be installed here: its tests are skipped" >&2
    exit 0
}
