#!/usr/bin/env bash
# Fetches the tests' HDFS from Maven's central repository, once: a name node and data nodes in one process.
# Does nothing when it is there.
#
#   PYHUDI_HDFS_HOME  where it lives (default: $HOME/.cache/pyhudi-hdfs)
set -euo pipefail

HERE="$(cd "$(dirname "$0")" && pwd)"
HOME_DIR="${PYHUDI_HDFS_HOME:-$HOME/.cache/pyhudi-hdfs}"
JARS="$HOME_DIR/jars-$(sha256sum < "$HERE/pom.xml" | cut -c 1-12)"

say() { echo "hdfs setup: $*" >&2; }
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
