#!/usr/bin/env bash
# Builds the tests' server of Google Cloud Storage, once: fake-gcs-server behind `front`, which has what
# it lacks of the XML API. Does nothing when it is there.
#
#   PYHUDI_GCS_HOME  where it lives (default: $HOME/.cache/pyhudi-gcs)
set -euo pipefail

HERE="$(cd "$(dirname "$0")" && pwd)"
HOME_DIR="${PYHUDI_GCS_HOME:-$HOME/.cache/pyhudi-gcs}"
SOURCE="$(cat "$HERE"/front/* | sha256sum | cut -c 1-12)"
SERVER="$HOME_DIR/gcs-front-$SOURCE"

say() { echo "gcs setup: $*" >&2; }
if [ -x "$SERVER" ]; then
  exit 0
fi
command -v go >/dev/null 2>&1 || { say "missing program: go"; exit 1; }
mkdir -p "$HOME_DIR"
PART="$(mktemp -d "$HOME_DIR/part.XXXXXX")"
trap 'rm -rf "$PART"' EXIT
say "building"
(cd "$HERE/front" && CGO_ENABLED=0 go build -trimpath -mod=readonly -buildvcs=false -ldflags='-s -w' -o "$PART/front" .)
mv "$PART/front" "$SERVER"
say "ready"
