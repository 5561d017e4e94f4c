#!/usr/bin/env bash
# Fetches the tests' Kafka broker from Maven's central repository, once.
# Does nothing when it is there.
#
#   PYHUDI_KAFKA_HOME  where it lives (default: $HOME/.cache/pyhudi-kafka)
set -euo pipefail

HERE="$(cd "$(dirname "$0")" && pwd)"
HOME_DIR="${PYHUDI_KAFKA_HOME:-$HOME/.cache/pyhudi-kafka}"
JARS="$HOME_DIR/jars-$(sha256sum < "$HERE/pom.xml" | cut -c 1-12)"

say() { echo "kafka setup: $*" >&2; }
if [ -d "$JARS" ]; then
  exit 0
fi
for program in java mvn; do
  command -v "$program" >/dev/null 2>&1 || { say "missing program: $program"; exit 1; }
done
mkdir -p "$HOME_DIR"
PART="$(mktemp -d "$HOME_DIR/part.XXXXXX")"
trap 'rm -rf "$PART"' EXIT
say "fetching"
mvn -B -q -f "$HERE/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
  -DincludeScope=runtime -DoutputDirectory="$PART/jars"
mv -T "$PART/jars" "$JARS"
say "ready"
