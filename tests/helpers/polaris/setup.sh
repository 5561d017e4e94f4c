#!/usr/bin/env bash
# Compiles the tests' Apache Polaris from its source release, once. Does nothing when it is there.
# Not all of its jars are in every registry, so that the server is not fetched.
#
#   PYHUDI_POLARIS_SOURCE  the unpacked source release, or a checkout of the tag apache-polaris-1.5.0
#   PYHUDI_POLARIS_HOME    where the server lives (default: $HOME/.cache/pyhudi-polaris)
#   JAVA_HOME              a JDK of Java 21 or later
set -euo pipefail

VERSION=1.5.0
HERE="$(cd "$(dirname "$0")" && pwd)"
HOME_DIR="${PYHUDI_POLARIS_HOME:-$HOME/.cache/pyhudi-polaris}"
SERVER="$HOME_DIR/server-$(sha256sum < "$HERE/server/pom.xml" | cut -c 1-12)"

say() { echo "polaris setup: $*" >&2; }
if [ -d "$SERVER" ]; then
  exit 0
fi
command -v mvn >/dev/null 2>&1 || { say "missing program: mvn"; exit 1; }
SOURCE="${PYHUDI_POLARIS_SOURCE:-}"
if [ "$(cat "$SOURCE/version.txt" 2>/dev/null)" != "$VERSION" ]; then
  say "set PYHUDI_POLARIS_SOURCE to the sources of Apache Polaris $VERSION"
  exit 1
fi
[ -n "${JAVA_HOME:-}" ] || JAVA_HOME="$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")"
if ! "$JAVA_HOME/bin/javac" --release 21 -version >/dev/null 2>&1; then
  say "set JAVA_HOME to a JDK of Java 21 or later"
  exit 1
fi
mkdir -p "$HOME_DIR"
PART="$(mktemp -d "$HOME_DIR/part.XXXXXX")"
trap 'rm -rf "$PART"' EXIT
cp -r "$HERE"/pom.xml "$HERE"/immutables "$HERE"/server "$PART"
say "compiling"
JAVA_HOME="$JAVA_HOME" mvn -B -q -f "$PART/pom.xml" -Dpolaris.source="$(cd "$SOURCE" && pwd)" package
ln -s "$JAVA_HOME" "$PART/server/target/quarkus-app/java"
mv -T "$PART/server/target/quarkus-app" "$SERVER"
say "ready"
