#!/usr/bin/env bash
# Makes (or completes) the oracle's home: a venv with PySpark 3.5 and the real
# Apache Hudi Spark bundles. Safe to run again; does nothing when all is there.
#
#   HUDI_ORACLE_HOME  where it lives (default: $HOME/.cache/hudi-oracle)
#   HUDI_ORACLE_VERSIONS  bundles to fetch (default: "1.2.0 1.0.2 0.15.0")
#   PYTHON  interpreter for the venv (default: python3)
set -euo pipefail

HOME_DIR="${HUDI_ORACLE_HOME:-$HOME/.cache/hudi-oracle}"
VERSIONS="${HUDI_ORACLE_VERSIONS:-1.2.0 1.0.2 0.15.0}"
PY="${PYTHON:-python3}"
PYSPARK_VERSION=3.5.5
STAMP="pyspark==$PYSPARK_VERSION pyarrow==17.0.0 pandas==2.2.3 numpy==1.26.4"

say() { echo "oracle setup: $*" >&2; }
need() { command -v "$1" >/dev/null 2>&1 || { say "missing program: $1"; exit 1; }; }
need "$PY"; need java; need mvn

mkdir -p "$HOME_DIR/jars"
if [ ! -x "$HOME_DIR/venv/bin/python" ]; then
  say "making the venv"
  "$PY" -m venv "$HOME_DIR/venv"
fi
if [ "$(cat "$HOME_DIR/venv/.stamp" 2>/dev/null || true)" != "$STAMP" ]; then
  say "installing $STAMP"
  # setuptools: PySpark 3.5 still imports distutils on newer Pythons
  # shellcheck disable=SC2086
  "$HOME_DIR/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    setuptools==80.10.2 wheel==0.45.1 $STAMP
  echo "$STAMP" > "$HOME_DIR/venv/.stamp"
fi

M2="$(mvn -B -q help:evaluate -Dexpression=settings.localRepository -DforceStdout 2>/dev/null || true)"
[ -d "$M2" ] || M2="$HOME/.m2/repository"
for v in $VERSIONS; do
  name="hudi-spark3.5-bundle_2.12-$v.jar"
  if [ ! -s "$HOME_DIR/jars/$name" ]; then
    say "fetching $name"
    ok=
    for try in 1 2 3; do
      if mvn -B -q dependency:get -Dtransitive=false \
           -Dartifact="org.apache.hudi:hudi-spark3.5-bundle_2.12:$v"; then ok=1; break; fi
      say "try $try failed"; sleep 5
    done
    [ -n "$ok" ] || { say "could not fetch $name"; exit 1; }
    cp "$M2/org/apache/hudi/hudi-spark3.5-bundle_2.12/$v/$name" "$HOME_DIR/jars/$name.part"
    mv "$HOME_DIR/jars/$name.part" "$HOME_DIR/jars/$name"
  fi
done
"$HOME_DIR/venv/bin/python" -c 'import pyspark, pyarrow, pandas; print("oracle setup: ready, pyspark", pyspark.__version__)' >&2
