#!/usr/bin/env bash
# Installs the tests' server of Azure's Blob Storage, once: Azurite, with the packages of package-lock.json.
# Does nothing when it is there.
#
#   PYHUDI_AZURE_HOME  where it lives (default: $HOME/.cache/pyhudi-azure)
set -euo pipefail

HERE="$(cd "$(dirname "$0")" && pwd)"
HOME_DIR="${PYHUDI_AZURE_HOME:-$HOME/.cache/pyhudi-azure}"
LOCKED="$(sha256sum "$HERE/package-lock.json" | cut -c 1-12)"
SERVER="$HOME_DIR/azurite-$LOCKED"

say() { echo "azure setup: $*" >&2; }
if [ -d "$SERVER" ]; then
  exit 0
fi
for program in node npm; do
  command -v "$program" >/dev/null 2>&1 || { say "missing program: $program"; exit 1; }
done
mkdir -p "$HOME_DIR"
PART="$(mktemp -d "$HOME_DIR/part.XXXXXX")"
trap 'rm -rf "$PART"' EXIT
say "installing"
cp "$HERE/package.json" "$HERE/package-lock.json" "$PART"
(cd "$PART" && npm ci --ignore-scripts --omit=dev --omit=optional --no-audit --no-fund --loglevel=error >&2)
mv "$PART" "$SERVER"
say "ready"
