#!/usr/bin/env bash
# Fetches Hudi's Java client 1.2.0 and 1.2.1 from Maven's central repository, once.
# Does nothing when both are there.
#
#   HUDI_ORACLE_HOME  where they live (default: $HOME/.cache/hudi-oracle)
set -euo pipefail

HERE="$(cd "$(dirname "$0")" && pwd)"
HOME_DIR="${HUDI_ORACLE_HOME:-$HOME/.cache/hudi-oracle}"

say() { echo "java client setup: $*" >&2; }
for release in 1.2.0 1.2.1; do
  jars="$HOME_DIR/java-client-$release-$(sha256sum < "$HERE/pom.xml" | cut -c 1-12)"
  [ ! -d "$jars" ] || continue
  for program in java mvn; do
    command -v "$program" >/dev/null 2>&1 || { say "missing program: $program"; exit 1; }
  done
  mkdir -p "$HOME_DIR"
  part="$(mktemp -d "$HOME_DIR/part.XXXXXX")"
  trap 'rm -rf "$part"' EXIT
  say "fetching $release"
  mvn -B -q -f "$HERE/pom.xml" -Dhudi="$release" \
    org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$part/jars"
  mv -T "$part/jars" "$jars"
  rm -rf "$part"
done
