#!/bin/sh
# Makes the package of this build importable in .venv. A .venv that is a link belongs to another tree and is left alone;
# there PYTHONPATH=build/python does the same.
set -eu
cd "$(dirname "$0")/.."
[ -d .venv ] && [ ! -L .venv ] || exit 0
package=$(cd "$1" && pwd)/python
for site in .venv/lib/python3*/site-packages; do
  [ "$(cat "$site/kernelwright.pth" 2>/dev/null)" = "$package" ] || printf '%s\n' "$package" >"$site/kernelwright.pth"
done
