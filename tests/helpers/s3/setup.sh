#!/usr/bin/env bash
# Builds the S3 server of the tests, once: versitygw, which keeps a bucket as a folder of files, and
# whose conditional puts are atomic. Does nothing when it is there.
#
#   PYHUDI_S3_HOME  where it lives (default: $HOME/.cache/pyhudi-s3)
set -euo pipefail

VERSION=v1.8.0
HOME_DIR="${PYHUDI_S3_HOME:-$HOME/.cache/pyhudi-s3}"
SERVER="$HOME_DIR/versitygw-$VERSION"

say() { echo "s3 setup: $*" >&2; }
if [ -x "$SERVER" ]; then
  exit 0
fi
command -v go >/dev/null 2>&1 || { say "missing program: go"; exit 1; }
mkdir -p "$HOME_DIR"
PART="$(mktemp -d "$HOME_DIR/part.XXXXXX")"
trap 'rm -rf "$PART"' EXIT
say "building versitygw $VERSION"
CGO_ENABLED=0 GOBIN="$PART" go install -trimpath -ldflags='-s -w' \
  "github.com/versity/versitygw/cmd/versitygw@$VERSION"
mv "$PART/versitygw" "$SERVER"
say "ready"
