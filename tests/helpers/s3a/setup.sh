#!/usr/bin/env bash
# What Apache Hudi needs to write to S3: Hadoop's file system and Amazon's client from Maven's central repository,
# and the bytes of Hudi's storage lock, compiled against Hudi. Does nothing when it is there.
#
#   PYHUDI_S3A_HOME  where it lives (default: $HOME/.cache/pyhudi-s3a)
#   HUDI_ORACLE_HOME  where Hudi lives (default: $HOME/.cache/hudi-oracle)
set -euo pipefail

HERE="$(cd "$(dirname "$0")" && pwd)"
HOME_DIR="${PYHUDI_S3A_HOME:-$HOME/.cache/pyhudi-s3a}"
ORACLE="${HUDI_ORACLE_HOME:-$HOME/.cache/hudi-oracle}"
JARS="$HOME_DIR/jars-$(cat "$HERE/pom.xml" "$HERE/S3StorageLockClient.java" | sha256sum | cut -c 1-12)"

say() { echo "s3a setup: $*" >&2; }
if [ -d "$JARS" ]; then
  exit 0
fi
for program in javac jar mvn; do
  command -v "$program" >/dev/null 2>&1 || { say "missing program: $program"; exit 1; }
done
mkdir -p "$HOME_DIR"
PART="$(mktemp -d "$HOME_DIR/part.XXXXXX")"
trap 'rm -rf "$PART"' EXIT
say "fetching"
for try in 1 2 3; do
  if mvn -B -q -f "$HERE/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
       -DincludeScope=runtime -DoutputDirectory="$PART/jars"; then break; fi
  [ "$try" -lt 3 ] || { say "could not fetch"; exit 1; }
  say "try $try failed"; sleep 5
done
javac -nowarn -proc:none -d "$PART/classes" \
  -cp "$PART/jars/*:$ORACLE/jars/hudi-spark3.5-bundle_2.12-1.2.0.jar" "$HERE/S3StorageLockClient.java"
jar --create --file "$PART/jars/storage-lock-client.jar" -C "$PART/classes" .
rm -rf "$JARS"
mv -T "$PART/jars" "$JARS"
say "ready"
