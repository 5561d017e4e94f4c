#!/usr/bin/env bash
# Builds the wheel in two directories and compares the bytes: `make wheel-twice`.
#
# BUILD is the command that builds a wheel into dist/; the default links with this system's library.
set -euo pipefail
cd "$(dirname "$0")/.."
work=${WORK:-build/wheel-twice}
build=${BUILD:-maturin build --release --locked --out dist}
rm -rf "$work"
mkdir -p "$work"
work=$(cd "$work" && pwd)
for copy in first second/deeper; do
  mkdir -p "$work/$copy"
  git archive HEAD | tar -x -C "$work/$copy"
  (cd "$work/$copy" && CARGO_TARGET_DIR="$work/$copy/target" scripts/reproducible.sh $build &&
    ${PYTHON:-python3} scripts/normalize_wheel.py dist/*.whl)
done
sha256sum "$work"/first/dist/*.whl "$work"/second/deeper/dist/*.whl
cmp "$work"/first/dist/*.whl "$work"/second/deeper/dist/*.whl
echo "wheel-twice: both wheels have the same bytes"
