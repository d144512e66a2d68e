#!/bin/sh
# Prints the first Python here that can be used, or says in one sentence what to install. The Makefile asks it.
#   find-python.sh          3.11 to 3.13, those first on which GPflow runs; else 3.14, which is pinned and not tried yet
#   find-python.sh train    3.11 or 3.12, because GPflow 2.11 does not run on newer ones
# A name on the path may be a stub that runs nothing, so each is tried. PYTHON names the only one to try.
set -u
goal=${1:-serve}
bare= needed=
for python in ${PYTHON:-python3.11 python3.12 python3 python3.13 python3.14}; do
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    case $goal,$version in
        *,3.11 | *,3.12 | serve,3.13 | serve,3.14) ;;
        *) continue ;;
    esac
    if "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        command -v "$python"
        exit
    fi
    bare=${bare:-$version}
    [ "$python" = python3 ] && package=python3-venv || package=python$version-venv
    needed=${needed:-$package}
done
if [ -n "$bare" ]; then
    echo "Python $bare is here without its module venv: install it (on Debian and Ubuntu: apt install $needed)." >&2
elif [ "$goal" = train ]; then
    echo "Training needs Python 3.11 or 3.12, because GPflow 2.11 does not run on newer ones: install one of them" \
        "(where the system has none, 'uv python install 3.12' or pyenv does), or name it with PYTHON=." >&2
else
    echo "Normalcy needs Python 3.11, 3.12 or 3.13: install one (on Debian and Ubuntu: apt install python3" \
        "python3-venv), or name it with PYTHON=." >&2
fi
exit 1
