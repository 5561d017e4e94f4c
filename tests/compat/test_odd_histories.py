"""Random histories of tables with odd options, under Hudi's own services.

`make test` takes a few short ones, `make test-odd-histories-long` all of them; see
`tests/helpers/odd_history.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.helpers.history import RELEASES
from tests.helpers.odd_history import COLUMNS, EVERY, SECONDS, OddHistory, OddTable
from tests.helpers.oracle.client import HudiOracle

PAYLOADS = "org.apache.hudi.common.model."
KEYGEN = "hoodie.datasource.write.keygenerator.class"
GENERATORS = "org.apache.hudi.keygen."
CLUSTERING = "org.apache.hudi.client.clustering."
NO_ROLLBACKS = ("cluster", "clean", "archive", "savepoint")

BUCKETS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.bucket.index.hash.field": "id",
}
RESIZING = {
    **BUCKETS,
    "hoodie.bucket.index.max.num.buckets": "8",
    "hoodie.bucket.index.min.num.buckets": "1",
    "hoodie.bucket.index.split.threshold": "0.00001",
    "hoodie.parquet.max.file.size": "1024",
    "hoodie.clustering.plan.strategy.class": CLUSTERING
    + "plan.strategy.SparkConsistentBucketClusteringPlanStrategy",
    "hoodie.clustering.execution.strategy.class": CLUSTERING
    + "run.strategy.SparkConsistentBucketClusteringExecutionStrategy",
    "hoodie.clustering.updates.strategy": CLUSTERING
    + "update.strategy.SparkConsistentBucketDuplicateUpdateStrategy",
}
TIMES = {
    "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
    "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    "hoodie.keygen.timebased.timezone": "UTC",
}
UNLISTED = {
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.index.partition.stats.enable": "false",
}
"""Hudi 1.x cannot bootstrap with column statistics."""
LATEST = ("latest", "non-defaults", "dms")
"""Payloads by which 0.15.0 keeps the larger ordering value of log records: hudi-differences.md."""
DAYS = {**COLUMNS, "day": "string"}


def payload(name: str) -> dict[str, str]:
    return {
        "hoodie.datasource.write.payload.class": PAYLOADS + name,
        "hoodie.payload.ordering.field": "ts",
    }


def odd_tables(version: int) -> list[OddTable]:
    """The tables of one release."""
    # Unless another is named, 0.15.0 takes the payload class whose records do not come late.
    default = payload("DefaultHoodieRecordPayload") if version == 6 else {}

    def one(
        name: str, kind: str, properties: Mapping[str, str] | None = None, **how: object
    ) -> OddTable:
        known = {**default, **(properties or {})}
        return OddTable(name, version, kind, properties=known, **how)  # type: ignore[arg-type]

    payloads = {
        "latest": payload("OverwriteWithLatestAvroPayload"),
        "event-time": payload("EventTimeAvroPayload"),
        "non-defaults": payload("OverwriteNonDefaultsWithLatestAvroPayload"),
        "partial-update": payload("PartialUpdateAvroPayload"),
        "dms": payload("AWSDmsAvroPayload"),
    }
    changes = {
        f"changes-{mode}": {
            "hoodie.table.cdc.enabled": "true",
            "hoodie.table.cdc.supplemental.logging.mode": mode,
        }
        for mode in ("op_key_only", "data_before", "data_before_after")
    }
    generators = {
        "encoded": ({"hoodie.datasource.write.partitionpath.urlencode": "true"}, "city"),
        "two-levels": ({KEYGEN: GENERATORS + "ComplexKeyGenerator"}, "city,day"),
        "flat": ({KEYGEN: GENERATORS + "NonpartitionedKeyGenerator"}, ""),
        "times": (
            {
                KEYGEN: GENERATORS + "TimestampBasedKeyGenerator",
                "hoodie.table.keygenerator.class": GENERATORS + "TimestampBasedKeyGenerator",
                **TIMES,
            },
            "day",
        ),
    }
    dms = {**COLUMNS, "Op": "string"}
    return [
        *(
            one(
                name,
                kind,
                properties=properties,
                columns=dms if name == "dms" else COLUMNS,
                late=not (version == 6 and kind == "mor" and name in LATEST),
            )
            for name, properties in payloads.items()
            for kind in ("cow", "mor")
            # pyhudi refuses the mode CUSTOM that 1.0.2 gives such a table.
            if not (version == 8 and name == "event-time")
        ),
        *(
            one(name, kind, properties=properties)
            for name, properties in changes.items()
            for kind in ("cow", "mor")
        ),
        *(
            one(
                name,
                kind,
                properties=properties,
                partition=by,
                columns=DAYS,
            )
            for name, (properties, by) in generators.items()
            for kind in ("cow", "mor")
            # 0.15.0 reads the text of the path in place of such a column (hudi-differences.md).
            if not (version == 6 and name == "times")
        ),
        one("consistent", "mor", options=RESIZING, opened=BUCKETS),
        *(
            one(
                "dropped-columns",
                kind,
                properties={"hoodie.datasource.write.drop.partition.columns": "true"},
                options={"hoodie.parquet.small.file.limit": "0"},
                # Hudi 1.2.0 fails to merge into files without the columns.
                hudis=("insert",),
                services=NO_ROLLBACKS,
                refused="drop.partition.columns",
            )
            for kind in ("cow", "mor")
        ),
        *(
            one(
                "bootstrapped",
                kind,
                cities=("oslo", "quito", "lima"),
                options=UNLISTED,
                bootstrapped=True,
            )
            for kind in ("cow", "mor")
        ),
    ]


SETTINGS = [odd for version in RELEASES for odd in odd_tables(version)]
SHORT = (
    "v9-cow-changes-op_key_only",
    "v9-cow-times",
    "v9-mor-dropped-columns",
    "v9-mor-non-defaults",
    "v9-mor-two-levels",
)
"""Those of `make test`."""


@pytest.mark.parametrize(
    ("odd", "hudi"),
    [
        pytest.param(one, RELEASES[one.version], id=str(one))
        for one in SETTINGS
        if EVERY or str(one) in SHORT
    ],
    indirect=["hudi"],
)
@pytest.mark.timeout(SECONDS)
def test_history_with_services(tmp_path: Path, hudi: HudiOracle, odd: OddTable) -> None:
    OddHistory(tmp_path, hudi, odd).run()
