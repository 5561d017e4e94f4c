#!/usr/bin/env bash
# Runs a command that builds a wheel so that no path of this machine is in its compiled code:
# `normalize_wheel.py` removes the rest of what differs between two builds.
set -euo pipefail
here=$(pwd)
cargo_home=${CARGO_HOME:-$HOME/.cargo}
sysroot=$(rustc --print sysroot)
remap="--remap-path-prefix=$cargo_home=/cargo --remap-path-prefix=$here=/pyhudi"
remap+=" --remap-path-prefix=$sysroot=/rust --remap-path-prefix=${CARGO_TARGET_DIR:-$here/target}=/target"
export RUSTFLAGS="${RUSTFLAGS:-} $remap"
# For the parts in C; Microsoft's compiler has no such option.
if [ "${OS:-}" != Windows_NT ]; then
  export CFLAGS="${CFLAGS:-} -ffile-prefix-map=$cargo_home=/cargo -ffile-prefix-map=$here=/pyhudi"
fi
exec "$@"
