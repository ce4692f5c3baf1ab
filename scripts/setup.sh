#!/bin/sh
# What every target needs before it starts. `setup.sh check` takes a fraction of a second and says in one sentence what is missing;
# `setup.sh` then also brings .venv to what constraints.txt pins, and does nothing when it holds that already.
set -eu
cd "$(dirname "$0")/.."

problems=""
missing() { problems="$problems  $1
"; }

for tool in git make; do
  command -v $tool >/dev/null 2>&1 || missing "$tool is missing: apt install $tool"
done
if gxx=$(${CXX:-g++} -dumpversion 2>/dev/null); then
  [ "${gxx%%.*}" -ge 12 ] || missing "${CXX:-g++} is version $gxx, but 12 or newer is needed: apt install g++-12, then make CXX=g++-12"
else
  missing "g++ is missing: apt install g++ (version 12 or newer)"
fi
# The python of an existing .venv stands for the one it was made from.
python=python3
[ -x .venv/bin/python ] && python=.venv/bin/python
if version=$($python -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null); then
  if ! $python -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    missing "$python is version $version, but 3.11 or newer is needed: apt install python3.11 python3.11-venv, or remove .venv if it is an old one"
  elif [ $python = python3 ] && ! $python -c 'import ensurepip, venv' 2>/dev/null; then
    missing "python3 cannot make a virtual environment: apt install python3-venv"
  fi
else
  missing "python3 is missing: apt install python3 python3-venv (version 3.11 or newer)"
fi
if [ -n "$problems" ]; then
  printf 'Kernelwright cannot be built yet:\n%s' "$problems" >&2
  exit 1
fi
[ "${1:-}" = check ] && exit 0

# A copy of the pins inside .venv tells what it holds; file times say nothing after a checkout.
stamp=.venv/.kernelwright-constraints
cmp -s constraints.txt $stamp && exit 0
start=$(date +%s)
[ -x .venv/bin/python ] || python3 -m venv .venv
echo "setup: installing what constraints.txt pins into .venv (about 3 GB the first time: PyTorch with its CUDA libraries)"
.venv/bin/python -m pip install --disable-pip-version-check --quiet -r constraints.txt
cp constraints.txt $stamp
echo "setup: $(($(date +%s) - start)) s"
