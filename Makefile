# One command per task; `make help` lists them. Each installs what it needs into .venv* and .cache,
# with locked versions, and does nothing twice: build/stamps remembers.
#
# Needs: python3 (3.10 to 3.14), cargo, and for `make test` also java 17, mvn, go, node and npm.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:
.SUFFIXES:

PYTHON ?= python3
STAMPS := build/stamps
BIN := .venv/bin
PIP := -m pip --disable-pip-version-check install --quiet

# Beside no source, and still once only: half of a short run is compiling Python.
export PYTHONPYCACHEPREFIX := $(CURDIR)/build/pycache
# Sets have one order, so that a test fails again as it failed.
export PYTHONHASHSEED := 0
# maturin sets these for its own cargo runs; the same values everywhere keep cargo from building PyO3
# twice, and let the extension link without a shared libpython.
export PYO3_BUILD_EXTENSION_MODULE := 1
export PYO3_ENVIRONMENT_SIGNATURE := $(shell $(PYTHON) -c 'import sys, struct; print(f"cpython-{sys.version_info[0]}.{sys.version_info[1]}-{struct.calcsize(chr(80)) * 8}bit")')
export PYO3_PYTHON := $(CURDIR)/.venv/bin/python

RUST_SOURCES := Cargo.toml Cargo.lock pyproject.toml $(shell find rust -path rust/fuzz -prune -o \( -name '*.rs' -o -name Cargo.toml \) -print)
PYTHON_SOURCES := $(shell find python -name '*.py' -o -name '*.pyi' -o -name '*.avsc' -o -name py.typed)
PYTHON_CODE := python tests rust/fuzz/seed.py docs/site_hooks.py $(wildcard benches examples scripts)

FUZZ_SECONDS ?= 30
BENCH_ARGS ?=
BENCH_SIZE ?= small
BASE ?= HEAD~1
HEAD_COMMIT ?= HEAD
PYTEST_ARGS ?=
# Each process has Apache Hudi and its like for itself, some 2 GB.
TEST_PROCESSES ?= 2
PYTHON_TESTS := not jvm and not s3 and not hdfs and not kafka and not polaris
MODEL_EXAMPLES ?= 5000
MACHINE_EXAMPLES ?= 500
PROPERTY_CASES ?= 5000
PROPERTY_SEED ?=
RELEASE ?=
DEPENDENCY_PYTHONS ?= 3.10 3.13
DEPENDENCY_TESTS := $(addprefix tests/unit/test_,catalog_settings.py cli_files.py conform.py dataset.py \
  foreign_names.py outputs.py polars_source.py sql_session.py)
DIFFERENTIAL_STEPS ?= 200
ODD_ROUNDS ?= 20
PROCEDURE_COMMITS ?= 120
SOAK_SECONDS ?= 600
FAULTS ?= 1
CLUSTER_SECONDS ?= 600
SEEDS ?= 5000
FIRST_SEED ?= 0
DEVIATIONS ?= 2
COUNTS := $(CURDIR)/build/counts
ARCH ?= x86_64
PARTITIONS ?= 100000
LOG_FILES ?= 100000

.PHONY: help
help: ## lists these targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# ---------------------------------------------------------------- the main job

.PHONY: setup
setup: $(STAMPS)/native ## the development environment in .venv, with the extension built
	@echo "setup: ready; try $(BIN)/python examples/demo.py"

.PHONY: demo
demo: $(STAMPS)/extension ## reads, upserts and deletes in a table that Apache Hudi wrote; no JVM
	$(BIN)/python examples/demo.py

# Linked against the C library of 2014, whatever system builds it; PyO3 needs no Python of that one.
.PHONY: wheel
wheel: $(STAMPS)/wheel-tools ## the wheel for others, optimised, in dist/; for x86_64 or ARCH=aarch64
	@[ -d "$$(rustc --print target-libdir --target $(ARCH)-unknown-linux-gnu)" ] || \
	  { echo "make wheel: no Rust library for $(ARCH); try: rustup target add $(ARCH)-unknown-linux-gnu" >&2; exit 1; }
	env -u PYO3_PYTHON -u PYO3_ENVIRONMENT_SIGNATURE PATH="$(CURDIR)/.venv-wheel/bin:$$PATH" \
	  scripts/reproducible.sh maturin build --release --locked --zig --compatibility manylinux_2_17 \
	  --target $(ARCH)-unknown-linux-gnu --out dist
	$(PYTHON) scripts/normalize_wheel.py dist/*.whl

.PHONY: wheel-twice
wheel-twice: $(STAMPS)/build ## builds the committed sources' wheel in two directories and compares the bytes, half an hour
	PATH="$(CURDIR)/$(BIN):$$PATH" scripts/build_wheel_twice.sh

# zig has what C code needs of either system. Linking is left to machines of theirs.
.PHONY: check-systems
check-systems: $(STAMPS)/wheel-tools ## compiles the core for Windows and macOS
	for target in x86_64-pc-windows-gnu aarch64-apple-darwin; do \
	  [ -d "$$(rustc --print target-libdir --target $$target)" ] || \
	    { echo "make check-systems: no Rust library for it; try: rustup target add $$target" >&2; exit 1; }; \
	  env -u PYO3_PYTHON -u PYO3_ENVIRONMENT_SIGNATURE PYO3_CROSS_PYTHON_VERSION=3.10 \
	    PATH="$(CURDIR)/.venv-wheel/bin:$$PATH" \
	    cargo-zigbuild check --locked --target $$target --package pyhudi-native; \
	done

# ---------------------------------------------------------------- tests

.PHONY: test
# Asked once: a commit made while it runs does not change the part.
test: export PYHUDI_PART := $(or $(PYHUDI_PART),$(shell echo $$(( 0x0$$(git rev-parse --short=7 HEAD 2>/dev/null) % 10 + 1 ))/10))
test: test-parts ## all tests but HDFS, with a tenth of the long ones that changes with each commit; needs java 17, mvn, go and npm
	@echo "make test: all passed"

.PHONY: test-all
test-all: test-parts ## all tests but HDFS
	@echo "make test-all: all passed"

.PHONY: test-parts
test-parts: lint test-rust stubs test-python test-s3 test-spark test-jvm

.PHONY: test-fast
test-fast: PYTHON_TESTS := not jvm and not s3 and not hdfs and not kafka and not polaris and not slow
test-fast: lint test-rust stubs test-python ## tests that need neither a JVM nor a cloud server, without the slow ones
	@echo "make test-fast: all passed"

.PHONY: test-rust
test-rust: $(STAMPS)/develop ## Rust tests
	cargo test --locked --workspace
	cargo test --locked --manifest-path models/Cargo.toml

.PHONY: check-protocol
check-protocol: ## all states of the model of the commit protocol, with FAULTS (1) crashes or stalls, and what goes wrong without each rule
	cargo run --quiet --locked --manifest-path models/Cargo.toml -- mutations
	cargo run --quiet --locked --manifest-path models/Cargo.toml -- check all $(FAULTS)

.PHONY: test-python
test-python: $(STAMPS)/native ## Python tests that need no JVM
	$(BIN)/python -m pytest -q -n $(TEST_PROCESSES) --dist worksteal -m "$(PYTHON_TESTS)" $(PYTEST_ARGS)

.PHONY: test-s3
test-s3: $(STAMPS)/native $(STAMPS)/s3 $(STAMPS)/clouds ## Python tests of tables in buckets: S3, Google's and Azure's, against servers of this machine
	$(BIN)/python -m pytest -q -m "s3 and not jvm" tests/cloud tests/anomalies $(PYTEST_ARGS)

# The environment of the release has its own interpreter: tests drive both.
.PHONY: test-last-release
test-last-release: $(STAMPS)/native ## tables of the last release and of this version, changed in turn; RELEASE is a git ref or a wheel, PROFILE=release builds it optimized
	python=$$(PYTHON="$(PYTHON)" scripts/release_environment.sh $(RELEASE)); \
	  PYHUDI_RELEASE_PYTHON=$$python $(BIN)/python -m pytest -q tests/release $(PYTEST_ARGS)

# Another seed each time, which a failure is repeated with.
.PHONY: test-properties-long
test-properties-long: export PROPTEST_CASES := $(PROPERTY_CASES)
test-properties-long: export PROPTEST_RNG_SEED := $(or $(PROPERTY_SEED),$(shell date +%s))
test-properties-long: ## property tests of the Rust core: PROPERTY_CASES (5000) new cases of each, or those of PROPERTY_SEED
	@echo "test-properties-long: PROPERTY_CASES=$(PROPTEST_CASES) PROPERTY_SEED=$(PROPTEST_RNG_SEED)"
	cargo test --locked --workspace --test properties --no-fail-fast
	cargo test --locked --package pyhudi-metadata --lib properties
	cargo test --locked --package pyhudi-slice --test merging properties

.PHONY: test-hdfs
test-hdfs: $(STAMPS)/native $(STAMPS)/oracle $(STAMPS)/hdfs $(STAMPS)/spark4 ## tables on HDFS, against a local name node, also with Apache Hudi and Spark
	$(BIN)/python -m pytest -q -m hdfs tests/cloud $(PYTEST_ARGS)
	.venv-spark4/bin/python -m pytest -q -m hdfs tests/spark $(PYTEST_ARGS)

.PHONY: test-kafka
test-kafka: $(STAMPS)/native $(STAMPS)/kafka ## ingestion from a local Kafka broker
	$(BIN)/python -m pytest -q -m kafka tests/kafka $(PYTEST_ARGS)

.PHONY: test-polaris
test-polaris: $(STAMPS)/native $(STAMPS)/polaris $(STAMPS)/s3 ## tables by name in a local Apache Polaris; compiled from PYHUDI_POLARIS_SOURCE, with Java 21 in JAVA_HOME
	$(BIN)/python -m pytest -q -m polaris tests/polaris $(PYTEST_ARGS)

.PHONY: test-model-long
test-model-long: $(STAMPS)/native ## merging compared with the slow model, over MODEL_EXAMPLES (5000) new histories
	PYHUDI_MODEL_EXAMPLES=$(MODEL_EXAMPLES) $(BIN)/python -m pytest -q --timeout 0 \
	  tests/unit/test_merge_model.py $(PYTEST_ARGS)

.PHONY: test-operations-long
test-operations-long: $(STAMPS)/native ## all operations in random order beside the model: MACHINE_EXAMPLES (500) tables, 40 operations each
	PYHUDI_MACHINE_EXAMPLES=$(MACHINE_EXAMPLES) PYHUDI_MACHINE_STEPS=40 $(BIN)/python -m pytest -q --timeout 0 \
	  tests/unit/test_operations_machine.py $(PYTEST_ARGS)

.PHONY: test-differential-long
test-differential-long: $(STAMPS)/native $(STAMPS)/oracle ## pyhudi and Hudi write in turn, DIFFERENTIAL_STEPS (200) steps per table
	PYHUDI_EVERY_SETTING=1 PYHUDI_DIFFERENTIAL_STEPS=$(DIFFERENTIAL_STEPS) $(BIN)/python -m pytest -q --timeout 0 -m jvm \
	  tests/compat/test_differential.py $(PYTEST_ARGS)

.PHONY: test-odd-histories-long
test-odd-histories-long: $(STAMPS)/native $(STAMPS)/oracle ## unusual tables under Hudi's services, ODD_ROUNDS (20) rounds per table
	PYHUDI_EVERY_SETTING=1 PYHUDI_ODD_ROUNDS=$(ODD_ROUNDS) $(BIN)/python -m pytest -q --timeout 0 -m jvm \
	  tests/compat/test_odd_histories.py $(PYTEST_ARGS)

.PHONY: test-procedures
test-procedures: $(STAMPS)/native $(STAMPS)/oracle ## Hudi's procedures on histories of PROCEDURE_COMMITS (120) commits with services of pyhudi
	PYHUDI_EVERY_SETTING=1 PYHUDI_PROCEDURE_COMMITS=$(PROCEDURE_COMMITS) $(BIN)/python -m pytest -q --timeout 0 -m jvm \
	  tests/compat/test_procedures.py $(PYTEST_ARGS)

.PHONY: test-jvm
test-jvm: $(STAMPS)/native $(STAMPS)/oracle $(STAMPS)/java-client $(STAMPS)/s3 $(STAMPS)/s3a ## Python tests against Apache Hudi itself
	$(BIN)/python -m pytest -q -n $(TEST_PROCESSES) --dist worksteal -m "jvm and not hdfs" $(PYTEST_ARGS)

.PHONY: test-jvm-pairs
test-jvm-pairs: $(STAMPS)/native $(STAMPS)/oracle $(STAMPS)/java-client $(STAMPS)/s3 $(STAMPS)/s3a ## the same, with all pairs of settings
	PYHUDI_EVERY_PAIR=1 $(BIN)/python -m pytest -q -n $(TEST_PROCESSES) --dist worksteal -m "jvm and not hdfs" $(PYTEST_ARGS)

.PHONY: test-every-setting
test-every-setting: $(STAMPS)/native $(STAMPS)/oracle $(STAMPS)/java-client $(STAMPS)/s3 $(STAMPS)/s3a $(STAMPS)/clouds $(STAMPS)/hdfs $(STAMPS)/kafka ## the full cross of settings, of which other targets test pairs
	PYHUDI_EVERY_SETTING=1 $(BIN)/python -m pytest -q -n $(TEST_PROCESSES) --dist worksteal -m "not polaris" $(PYTEST_ARGS)

.PHONY: test-spark
test-spark: test-spark35 test-spark4 ## Spark tests: the engine contract on PySpark 3.5, all tests on 4.x

.PHONY: test-spark35
test-spark35: $(STAMPS)/spark35
	.venv-spark35/bin/python -m pytest -q -n $(TEST_PROCESSES) --dist worksteal -m spark35 \
	  tests/engine tests/spark $(PYTEST_ARGS)

.PHONY: test-spark4
test-spark4: $(STAMPS)/spark4 $(STAMPS)/s3 $(STAMPS)/oracle
	.venv-spark4/bin/python -m pytest -q -n $(TEST_PROCESSES) --dist worksteal -m "not hdfs" \
	  tests/engine tests/spark $(PYTEST_ARGS)

.PHONY: test-spark35-all
test-spark35-all: $(STAMPS)/spark35 $(STAMPS)/s3 $(STAMPS)/oracle ## all Spark tests on PySpark 3.5 too, of which test-spark takes some
	PYHUDI_EVERY_SETTING=1 .venv-spark35/bin/python -m pytest -q -n $(TEST_PROCESSES) --dist worksteal -m "not hdfs" \
	  tests/engine tests/spark $(PYTEST_ARGS)

.PHONY: test-engines
test-engines: $(STAMPS)/engines ## Ray, Dask, Daft and DataFusion themselves, by the wheel and by the examples of docs/how-to
	.venv-engines/bin/python -m pytest -q tests/other_engines $(PYTEST_ARGS)

.PHONY: test-dbt
test-dbt: $(STAMPS)/dbt ## projects of dbt-spark and dbt-duckdb whose models are Hudi tables, run by dbt itself
	.venv-dbt/bin/python -m pytest -q tests/dbt $(PYTEST_ARGS)

# Old releases use names of their own dependencies that new releases of those warn of.
# `make test-dependency-versions DEPENDENCY_PYTHONS=3.12` chooses another; uv searches PATH for them.
.PHONY: test-dependency-versions
test-dependency-versions: $(STAMPS)/native $(STAMPS)/uv ## some fast tests with the lowest versions of dependencies that the project claims and with the newest, on DEPENDENCY_PYTHONS (3.10 3.13)
	for python in $(DEPENDENCY_PYTHONS); do for resolution in lowest-direct highest; do \
	  environment=build/dependency-versions/$$python-$$resolution; \
	  echo "test-dependency-versions: Python $$python, $$resolution"; \
	  .cache/uv/bin/uv venv --quiet --clear --no-python-downloads --python $$python $$environment; \
	  .cache/uv/bin/uv pip install --quiet --python $$environment/bin/python --only-binary :all: \
	    --resolution $$resolution --requirement pyproject.toml \
	    --extra cli --extra duckdb --extra pandas --extra polars; \
	  .cache/uv/bin/uv pip install --quiet --python $$environment/bin/python \
	    'pytest>=9' 'pytest-timeout>=2.4' 'hypothesis>=6'; \
	  PYTHONPATH=python $$environment/bin/python -m pytest -q \
	    $$([ $$resolution = highest ] || echo -W ignore::DeprecationWarning) \
	    $(DEPENDENCY_TESTS) $(PYTEST_ARGS); \
	done; done

.PHONY: test-kerberos
test-kerberos: $(STAMPS)/kerberos $(STAMPS)/oracle ## Hive metastores with Kerberos and a local KDC; needs krb5-kdc, krb5-admin-server, krb5-user, libkrb5-dev, python3-dev of Debian
	PATH="$$PATH:/usr/sbin" .venv-kerberos/bin/python -m pytest -q tests/kerberos $(PYTEST_ARGS)

.PHONY: test-machines
test-machines: $(STAMPS)/native $(STAMPS)/s3 ## limits and faults of machines: PARTITIONS (100000), LOG_FILES (100000), a bucket that refuses requests for a minute
	PYHUDI_PARTITIONS=$(PARTITIONS) PYHUDI_LOG_FILES=$(LOG_FILES) PYHUDI_OUTAGE_SECONDS=60 \
	  $(BIN)/python -m pytest -q -s --timeout 0 tests/machines tests/sim/test_clocks.py tests/cloud/test_outages.py $(PYTEST_ARGS)

.PHONY: soak
soak: $(STAMPS)/native $(STAMPS)/s3 $(STAMPS)/clouds ## eight writers and two readers, killed at random, for SOAK_SECONDS (600) on local files and in a bucket
	PYHUDI_SOAK_SECONDS=$(SOAK_SECONDS) $(BIN)/python -m pytest -q --timeout 0 \
	  tests/sim/test_processes.py tests/cloud/test_many_writers.py $(PYTEST_ARGS)

.PHONY: soak-spark
soak-spark: $(STAMPS)/spark4 ## two Spark drivers of one table, killed, stopped and restarted, for SOAK_SECONDS (600) on each of two tables
	PYHUDI_SOAK_SECONDS=$(SOAK_SECONDS) .venv-spark4/bin/python -m pytest -q --timeout 0 \
	  tests/spark/test_many_drivers.py $(PYTEST_ARGS)

.PHONY: test-spark-cluster
test-spark-cluster: $(STAMPS)/spark4 ## a cluster of a master and two workers: executors and drivers that are killed, suspended, added and removed; streams and maintenance for CLUSTER_SECONDS (600)
	PYHUDI_CLUSTER_SECONDS=$(CLUSTER_SECONDS) .venv-spark4/bin/python -m pytest -q tests/spark_cluster $(PYTEST_ARGS)

.PHONY: simulate
simulate: $(STAMPS)/native ## interleavings of several writers: SEEDS (5000) of each kind of table, from FIRST_SEED (0) on; with PYHUDI_HARD=1 harder ones; counted for docs/explanation/reliability.md
	rm -rf $(COUNTS)
	PYHUDI_COUNTS=$(COUNTS) PYHUDI_SEEDS=$(SEEDS) PYHUDI_FIRST_SEED=$(FIRST_SEED) $(BIN)/python -m pytest -q --timeout 0 -n $(TEST_PROCESSES) \
	  tests/sim/test_many_writers.py $(PYTEST_ARGS)
	PYHUDI_COUNTS=$(COUNTS) $(BIN)/python -m tests.sim.counts simulate$(if $(PYHUDI_HARD),-hard) \
	  "make simulate$(if $(PYHUDI_HARD), PYHUDI_HARD=1) SEEDS=$(SEEDS) FIRST_SEED=$(FIRST_SEED)"
	$(BIN)/python scripts/generate_docs.py

.PHONY: small-worlds
small-worlds: $(STAMPS)/native ## two writers of one row each, in each order of their storage calls with DEVIATIONS (2) switches or faults
	rm -rf $(COUNTS)
	PYHUDI_COUNTS=$(COUNTS) PYHUDI_DEVIATIONS=$(DEVIATIONS) $(BIN)/python -m pytest -q --timeout 0 -n $(TEST_PROCESSES) --dist worksteal \
	  tests/sim/test_small_worlds.py -k serializable $(PYTEST_ARGS)
	PYHUDI_COUNTS=$(COUNTS) $(BIN)/python -m tests.sim.counts small-worlds "make small-worlds DEVIATIONS=$(DEVIATIONS)"
	$(BIN)/python scripts/generate_docs.py

.PHONY: anomalies
anomalies: $(STAMPS)/native $(STAMPS)/s3 $(STAMPS)/oracle ## which anomalies each mode of concurrency shows, also beside Apache Hudi, into docs/explanation/anomalies.md; ANOMALY_ARGS go to the program
	$(BIN)/python -m tests.anomalies.measure $(ANOMALY_ARGS)
	$(BIN)/python -m tests.anomalies.measure --hudi 0.15.0 --hudi 1.0.2 --hudi 1.2.0
	$(BIN)/python scripts/generate_docs.py

.PHONY: golden
golden: $(STAMPS)/native ## compares every golden table with what Apache Hudi reads from it
	$(BIN)/python -m tests.helpers.report $(GOLDEN_ARGS)

.PHONY: fuzz
fuzz: $(STAMPS)/cargo-fuzz ## each decoder on damaged input, FUZZ_SECONDS (30) each
	$(PYTHON) rust/fuzz/seed.py
	for target in $$(basename -s .rs rust/fuzz/fuzz_targets/*.rs); do \
	  echo "fuzz: $$target"; \
	  .cache/cargo/bin/cargo-fuzz run --sanitizer none --fuzz-dir rust/fuzz "$$target" -- \
	    -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=2048 -timeout=10; \
	done

.PHONY: fuzz-keep
fuzz-keep: $(STAMPS)/cargo-fuzz ## minimizes inputs that fuzzing found, and stores them in rust/fuzz/kept
	for target in $$(basename -s .rs rust/fuzz/fuzz_targets/*.rs); do \
	  .cache/cargo/bin/cargo-fuzz cmin --sanitizer none --fuzz-dir rust/fuzz "$$target"; \
	done
	$(PYTHON) rust/fuzz/seed.py keep

.PHONY: bench
bench: $(STAMPS)/bench ## reads compared with other readers, as ratios; BENCH_ARGS go to the program
	.venv-bench/bin/python benches/python/reads.py $(BENCH_ARGS)

.PHONY: bench-writes
bench-writes: $(STAMPS)/bench ## writes compared with other writers, as ratios; BENCH_ARGS go to the program
	.venv-bench/bin/python benches/python/writes.py $(BENCH_ARGS)

.PHONY: bench-concurrency
bench-concurrency: $(STAMPS)/bench ## cost of a lock, and concurrent writers compared with deltalake; BENCH_ARGS go to the program
	.venv-bench/bin/python benches/python/concurrency.py $(BENCH_ARGS)

.PHONY: bench-clustering
bench-clustering: $(STAMPS)/bench ## clustering compared with deltalake's optimize, and scans by layout; BENCH_ARGS go to the program
	.venv-bench/bin/python benches/python/clustering.py $(BENCH_ARGS)

.PHONY: bench-services
bench-services: $(STAMPS)/bench $(STAMPS)/oracle ## services compared with Apache Hudi's, cleaning and archiving of a large table; BENCH_ARGS go to the program
	.venv-bench/bin/python benches/python/services.py $(BENCH_ARGS)

.PHONY: bench-suites
bench-suites: $(STAMPS)/bench $(STAMPS)/s3 ## suites of the field with pyhudi and its peers, of BENCH_SIZE (tiny, small, sf1), and their page; BENCH_ARGS go to the program: --spark needs `make oracle`
	.venv-bench/bin/python benches/python/suites.py --size $(BENCH_SIZE) $(BENCH_ARGS)
	.venv-bench/bin/python benches/python/suite_page.py --size $(BENCH_SIZE)

.PHONY: bench-limits
bench-limits: $(STAMPS)/bench $(STAMPS)/s3 ## each aim of speed beside its peer, written to benches/README.md; BENCH_ARGS go to the program
	.venv-bench/bin/python benches/python/limits.py $(BENCH_ARGS)

.PHONY: bench-compare
bench-compare: $(STAMPS)/bench ## what got slower or faster between BASE and HEAD_COMMIT (HEAD); BENCH_ARGS go to the program
	.venv-bench/bin/python benches/python/compare_commits.py $(BASE) $(HEAD_COMMIT) $(BENCH_ARGS)

.PHONY: bench-month
bench-month: $(STAMPS)/bench ## a month of a table: 3,000 small commits with its default services; BENCH_ARGS go to the program
	.venv-bench/bin/python benches/python/month.py $(BENCH_ARGS)

.PHONY: bench-hudi-rs
bench-hudi-rs: ## builds the Rust program that bench-writes compares with; needs protoc
	cargo build --release --locked --manifest-path benches/hudi_rs/Cargo.toml

.PHONY: bench-spark
bench-spark: $(STAMPS)/bench-spark $(STAMPS)/oracle ## pyhudi on Spark compared with Apache Hudi on Spark, as ratios; BENCH_ARGS go to the program
	.venv-bench-spark/bin/python benches/spark/compare.py $(BENCH_ARGS)

.PHONY: bench-many-rows
bench-many-rows: $(STAMPS)/bench-spark ## 20 million rows upserted with a driver of 1 GiB; BENCH_ARGS go to the program: --payload 1024 makes a table of 20 GB
	.venv-bench-spark/bin/python benches/spark/many_rows.py build/bench/many-rows $(BENCH_ARGS)

.PHONY: bench-lookups
bench-lookups: $(STAMPS)/bench ## lookups by key and counts on an open handle, compared with their targets; BENCH_ARGS go to the program
	.venv-bench/bin/python benches/python/lookups.py $(BENCH_ARGS)

.PHONY: bench-scale
bench-scale: $(STAMPS)/bench ## scaling with file groups, keys, commits; BENCH_ARGS go to the program
	.venv-bench/bin/python benches/python/scale.py --plot docs/explanation/scale.svg $(BENCH_ARGS)

.PHONY: bench-planning
bench-planning: $(STAMPS)/bench ## planning a scan of 100,000 file groups, compared with its targets
	.venv-bench/bin/python benches/python/planning.py --check $(BENCH_ARGS)

# ---------------------------------------------------------------- documentation

.PHONY: docs
docs: $(STAMPS)/docs ## the pages of docs/ and the API as a site in build/site; broken links fail
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet

# ---------------------------------------------------------------- the code's form

.PHONY: lint
lint: lint-python lint-rust ## formatting, linters and types of both languages

.PHONY: lint-python
lint-python: $(STAMPS)/develop
	$(BIN)/ruff format --check $(PYTHON_CODE)
	$(BIN)/ruff check $(PYTHON_CODE)
	$(BIN)/mypy
	PYTHONPATH=python $(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/check_language.py

.PHONY: lint-rust
lint-rust: $(STAMPS)/develop
	cargo fmt --all --check
	cargo fmt --manifest-path rust/fuzz/Cargo.toml --check
	cargo fmt --manifest-path models/Cargo.toml --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo clippy --locked --manifest-path models/Cargo.toml --all-targets -- -D warnings

.PHONY: stubs
stubs: $(STAMPS)/native ## the Rust module's stub against the built module
	cd build && ../$(BIN)/python -m mypy.stubtest --mypy-config-file ../pyproject.toml pyhudi._native

# Advisories are asked from the internet; licences, bans and sources need no network.
AUDIT_CHECKS ?= advisories bans licenses sources
.PHONY: audit
audit: $(STAMPS)/cargo-deny $(STAMPS)/pip-audit ## licences, sources and advisories of all dependencies; AUDIT_CHECKS="bans licenses sources" needs no network
	.cache/cargo/bin/cargo-deny --locked check $(AUDIT_CHECKS)
	if [[ "$(AUDIT_CHECKS)" == *advisories* ]]; then for group in build develop wheel docs; do \
	  .cache/pip-audit/bin/pip-audit --progress-spinner off --disable-pip --require-hashes --requirement requirements/$$group.txt; \
	done; fi

.PHONY: fmt
fmt: $(STAMPS)/develop ## formats all code and applies the linter's fixes
	$(BIN)/ruff check --fix-only --quiet $(PYTHON_CODE)
	$(BIN)/ruff format $(PYTHON_CODE)
	cargo fmt --all

.PHONY: lock
lock: $(STAMPS)/uv ## resolves the Python dependency groups again
	for group in build develop spark35 spark4 engines dbt kerberos wheel bench docs; do \
	  .cache/uv/bin/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes \
	    --no-emit-index-url --no-annotate --no-strip-extras --custom-compile-command "make lock" --upgrade \
	    --group "pyproject.toml:$$group" --output-file "requirements/$$group.txt"; \
	done

.PHONY: oracle
oracle: $(STAMPS)/oracle ## Apache Hudi 0.15.0, 1.0.2 and 1.2.0 for the tests (HUDI_ORACLE_HOME)

.PHONY: java-client
java-client: $(STAMPS)/java-client ## Hudi's Java client 1.2.0 and 1.2.1 for the tests, by mvn (HUDI_ORACLE_HOME)

.PHONY: s3
s3: $(STAMPS)/s3 ## a real S3 server for the tests, built with go (PYHUDI_S3_HOME)

.PHONY: s3a
s3a: $(STAMPS)/s3a ## what Apache Hudi needs to write to that server, by mvn (PYHUDI_S3A_HOME)

.PHONY: clouds
clouds: $(STAMPS)/s3 $(STAMPS)/clouds ## that and the servers of Google's and Azure's storage, by go and npm (PYHUDI_GCS_HOME, PYHUDI_AZURE_HOME)

.PHONY: hdfs
hdfs: $(STAMPS)/hdfs ## HDFS for the tests, by mvn (PYHUDI_HDFS_HOME)

.PHONY: kafka
kafka: $(STAMPS)/kafka ## a Kafka broker for the tests, by mvn (PYHUDI_KAFKA_HOME)

.PHONY: polaris
polaris: $(STAMPS)/polaris ## Apache Polaris for the tests, by mvn from its sources (PYHUDI_POLARIS_HOME)

.PHONY: clean
clean: ## removes what was built; environments and the oracle stay
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache python/pyhudi/_native*.so
	cargo clean --quiet

# ---------------------------------------------------------------- environments

# With what compiling and running take and no more: the demo is the first thing that is made.
$(STAMPS)/build: requirements/build.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python $(PIP) --require-hashes --requirement $<
	@mkdir -p $(@D) && touch $@

$(STAMPS)/develop: requirements/develop.txt | $(STAMPS)/build
	$(BIN)/python $(PIP) --require-hashes --requirement requirements/develop.txt
	@mkdir -p $(@D) && touch $@

$(STAMPS)/extension: $(STAMPS)/build $(RUST_SOURCES)
	PIP_QUIET=1 $(BIN)/maturin develop --locked --quiet
	@mkdir -p $(@D) && touch $@

$(STAMPS)/native: $(STAMPS)/develop $(STAMPS)/extension
	@mkdir -p $(@D) && touch $@

# An unoptimised wheel: the same crates as every other target, so that nothing is built again.
$(STAMPS)/wheel: $(STAMPS)/native $(PYTHON_SOURCES)
	rm -rf build/wheel
	$(BIN)/maturin build --locked --quiet --out build/wheel
	@touch $@

$(STAMPS)/spark35 $(STAMPS)/spark4 $(STAMPS)/engines $(STAMPS)/dbt $(STAMPS)/kerberos: $(STAMPS)/%: requirements/%.txt $(STAMPS)/wheel
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python $(PIP) --require-hashes --requirement requirements/$*.txt
	.venv-$*/bin/python $(PIP) --no-deps --force-reinstall build/wheel/*.whl
	@touch $@

# The headers to compile gssapi with, and a KDC: the system's packages have them.
.PHONY: kerberos-programs
$(STAMPS)/kerberos: | kerberos-programs
kerberos-programs:
	@for program in krb5-config kinit krb5kdc kadmin.local; do \
	  PATH="$$PATH:/usr/sbin" command -v $$program >/dev/null || \
	    { echo "make test-kerberos: no program $$program; try: apt-get install krb5-kdc krb5-admin-server krb5-user libkrb5-dev python3-dev" >&2; exit 1; }; \
	done

$(STAMPS)/wheel-tools: requirements/wheel.txt
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python $(PIP) --require-hashes --requirement $<
	@mkdir -p $(@D) && touch $@

$(STAMPS)/docs: requirements/docs.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python $(PIP) --require-hashes --requirement $<
	@mkdir -p $(@D) && touch $@

$(STAMPS)/wheel-release: $(RUST_SOURCES) $(PYTHON_SOURCES) | $(STAMPS)/develop
	rm -rf build/wheel-release
	$(BIN)/maturin build --release --locked --quiet --out build/wheel-release
	@mkdir -p $(@D) && touch $@

$(STAMPS)/bench: requirements/bench.txt $(STAMPS)/wheel-release
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python $(PIP) --require-hashes --requirement $<
	.venv-bench/bin/python $(PIP) --no-deps --force-reinstall build/wheel-release/*.whl
	@touch $@

$(STAMPS)/bench-spark: requirements/spark35.txt $(STAMPS)/wheel-release
	$(PYTHON) -m venv .venv-bench-spark
	.venv-bench-spark/bin/python $(PIP) --require-hashes --requirement $<
	.venv-bench-spark/bin/python $(PIP) --no-deps --force-reinstall build/wheel-release/*.whl
	@touch $@

# The home may be shared with other checkouts and may have gone since: setup.sh looks each time, and
# is quick when all is there.
.PHONY: $(STAMPS)/oracle
$(STAMPS)/oracle:
	PYTHON="$(PYTHON)" tests/helpers/oracle/setup.sh

# As the oracle's home, where it is, too.
.PHONY: $(STAMPS)/java-client
$(STAMPS)/java-client: $(STAMPS)/oracle
	tests/helpers/java_client/setup.sh

# As the oracle's home.
.PHONY: $(STAMPS)/s3
$(STAMPS)/s3:
	tests/helpers/s3/setup.sh

.PHONY: $(STAMPS)/s3a
$(STAMPS)/s3a: $(STAMPS)/oracle
	tests/helpers/s3a/setup.sh

.PHONY: $(STAMPS)/clouds
$(STAMPS)/clouds:
	tests/helpers/gcs/setup.sh
	tests/helpers/azure/setup.sh

.PHONY: $(STAMPS)/kafka
$(STAMPS)/kafka:
	tests/helpers/kafka/setup.sh

.PHONY: $(STAMPS)/polaris
$(STAMPS)/polaris:
	tests/helpers/polaris/setup.sh

.PHONY: $(STAMPS)/hdfs
$(STAMPS)/hdfs:
	tests/helpers/hdfs/setup.sh

$(STAMPS)/uv:
	$(PYTHON) -m venv .cache/uv
	.cache/uv/bin/python $(PIP) uv==0.13.8
	@mkdir -p $(@D) && touch $@

$(STAMPS)/cargo-deny:
	cargo install --locked --quiet --root .cache/cargo cargo-deny@0.20.2
	@mkdir -p $(@D) && touch $@

$(STAMPS)/pip-audit:
	$(PYTHON) -m venv .cache/pip-audit
	.cache/pip-audit/bin/python $(PIP) pip-audit==2.10.1
	@mkdir -p $(@D) && touch $@

$(STAMPS)/cargo-fuzz:
	cargo install --locked --quiet --root .cache/cargo cargo-fuzz@0.13.2
	@mkdir -p $(@D) && touch $@
