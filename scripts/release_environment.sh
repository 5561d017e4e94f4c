#!/usr/bin/env bash
# Makes an environment with another version of pyhudi, and prints its interpreter: `make test-last-release`.
#
# usage: release_environment.sh [GIT REF OR WHEEL]
#
# The default is the last tag. Without a tag it is the commit that last changed the format of files in a
# way that earlier versions refuse: later versions and it must read each other's tables.
# PROFILE=release builds it optimized. What was built once stays in build/releases.
set -euo pipefail
cd "$(dirname "$0")/.."
format_change=f59695c1baa1
release=${1:-$(git describe --tags --abbrev=0 2>/dev/null || echo "$format_change")}
python=${PYTHON:-python3}
pip="-m pip --disable-pip-version-check install --quiet"

if [[ $release == *.whl ]]; then
  wheel=$(realpath "$release")
  home=build/releases/wheel-$(sha256sum "$wheel" | cut -c1-12)
  requirements=requirements/build.txt
else
  commit=$(git rev-parse --verify --quiet "$release^{commit}") ||
    { echo "release_environment.sh: no commit or wheel $release; fetch its history, or name another" >&2; exit 1; }
  home=build/releases/${commit:0:12}-${PROFILE:-debug}
  requirements=$home/source/requirements/build.txt
  if ! compgen -G "$home/*.whl" >/dev/null; then
    rm -rf "$home"
    mkdir -p "$home/source"
    git archive "$commit" | tar -x -C "$home/source"
    profile=()
    [[ ${PROFILE:-debug} == release ]] && profile=(--release)
    target=${CARGO_TARGET_DIR:-$PWD/target} maturin=$PWD/.venv/bin/maturin out=$PWD/$home
    (cd "$home/source" && CARGO_TARGET_DIR=$target "$maturin" build --locked --quiet "${profile[@]}" --out "$out" >&2)
  fi
  wheel=$(compgen -G "$home/*.whl")
fi
if [[ ! -e $home/ready ]]; then
  rm -rf "$home/venv"
  "$python" -m venv "$home/venv"
  "$home/venv/bin/python" $pip --require-hashes --requirement "$requirements" >&2
  "$home/venv/bin/python" $pip --no-deps "$wheel" >&2
  touch "$home/ready"
fi
echo "$PWD/$home/venv/bin/python"
