"""Tables of versions 4 and 5, and of version 6 by 0.14.1, written by those releases' Java client.

Their Spark bundles are not to be had where this was made; hudi-java-client and what it needs are. It
writes no metadata table before 0.14 and knows no bucket index. The reader is 1.2.0.
"""
import json
import os
import subprocess

from golden import Builder, COMMON, HERE, table

RELEASES = {"v4": "0.11.1", "v5": "0.13.1", "v6by14": "0.14.1"}
HOME = os.environ.get("HUDI_ORACLE_HOME") or os.path.join(os.path.expanduser("~"), ".cache", "hudi-oracle")
# what the client leaves for its surroundings to bring
BESIDES = ("org.apache.parquet:parquet-avro:1.10.1", "org.apache.avro:avro:1.8.2", "org.apache.hadoop:hadoop-client-api:3.3.4",
           "org.apache.hadoop:hadoop-client-runtime:3.3.4", "com.esotericsoftware:kryo-shaded:4.0.2", "log4j:log4j:1.2.17")
NOT_ITS_OWN = ("org.apache.hadoop", "org.apache.hive", "org.apache.spark", "org.scala-lang")
OPENED = ("java.lang", "java.lang.invoke", "java.lang.reflect", "java.util", "java.util.concurrent", "java.util.concurrent.atomic",
          "java.nio", "java.net", "java.io", "java.time", "java.math", "java.text", "sun.nio.ch")
PAYLOAD = "org.apache.hudi.common.model."
KEYS = "org.apache.hudi.keygen."


def jars(release):
    """Fetches the client's jars once."""
    return [fetch("java-" + release, ["org.apache.hudi:hudi-java-client:" + release]), fetch("java-besides", BESIDES)]


def fetch(name, artifacts):
    folder = os.path.join(HOME, name)
    if os.path.exists(os.path.join(folder, "done")):
        return os.path.join(folder, "jars")
    os.makedirs(folder, exist_ok=True)
    out = "".join("<exclusion><groupId>%s</groupId><artifactId>*</artifactId></exclusion>" % g for g in NOT_ITS_OWN)
    one = "<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version>%s</dependency>"
    deps = [one % (*a.split(":"), "<exclusions>%s</exclusions>" % out if "hudi" in a else "") for a in artifacts]
    with open(os.path.join(folder, "pom.xml"), "w") as f:
        f.write('<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>golden</groupId>'
                "<artifactId>golden</artifactId><version>1</version><packaging>pom</packaging><dependencies>%s</dependencies></project>"
                % "".join(deps))
    subprocess.run(["mvn", "-B", "-q", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=jars"],
                   cwd=folder, check=True)
    open(os.path.join(folder, "done"), "w").close()
    return os.path.join(folder, "jars")


class OldBuilder(Builder):
    """Collects the steps; the release's Java client carries them out at the end."""

    def __init__(self, spec, h, work):
        super().__init__(spec, h, work)
        self.max_reads, self.max_spans = 2, 2

    def create(self, kind, fields, partition="city", payload="OverwriteWithLatestAvroPayload", keygen="SimpleKeyGenerator",
               key="id", ordering="ts", **extra):
        options = {**COMMON, "hoodie.table.name": self.name, "hoodie.datasource.write.recordkey.field": key,
                   "hoodie.datasource.write.partitionpath.field": partition, "hoodie.datasource.write.precombine.field": ordering,
                   "hoodie.payload.ordering.field": ordering, "hoodie.payload.event.time.field": ordering,
                   "hoodie.datasource.write.payload.class": PAYLOAD + payload,
                   "hoodie.compaction.payload.class": PAYLOAD + payload,
                   "hoodie.datasource.write.keygenerator.class": KEYS + keygen, "hoodie.auto.commit": "false",
                   "hoodie.index.type": "INMEMORY", "hoodie.rollback.using.markers": "false", "hoodie.parquet.small.file.limit": "0",
                   "hoodie.compact.inline": "false", "hoodie.compact.inline.max.delta.commits": "1"}
        if self.name != "v6by14_mor_compaction":  # one is enough; the others stay small
            options["hoodie.metadata.enable"] = "false"
        options.update({k.replace("__", "#").replace("_", ".").replace("#", "_"): str(v) for k, v in extra.items()})
        self.step("create", type=kind, schema=avro(fields), options=options)

    def step(self, do, **what):
        self.steps.append({"kind": "java", "do": do, **what})

    def insert(self, rows):
        self.step("write", rows=rows, insert=True)

    def upsert(self, rows, die=False):
        self.step("write", rows=rows, **({"die": True} if die else {}))

    def delete(self, rows):
        self.step("write", rows=rows, delete=True)

    def carry_out(self):
        path = self.base + ".steps.jsonl"
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(step) + "\n" for step in self.steps)
        opened = [x for p in OPENED for x in ("--add-opens", "java.base/%s=ALL-UNNAMED" % p)]
        classes = ":".join(folder + "/*" for folder in jars(self.spec["hudi"]))
        done = subprocess.run(["java", *opened, "-Xmx1g", "-Duser.timezone=UTC", "-cp", classes,
                               os.path.join(HERE, "OldHudi.java"), self.base, path], capture_output=True, text=True)
        os.remove(path)
        if done.returncode:
            text = [x for x in done.stderr.splitlines() if x.startswith(("Exception", "Caused by", "\tat OldHudi"))]
            raise RuntimeError("\n".join(text[-20:]))

    def finish(self, out_dir):
        self.carry_out()
        return super().finish(out_dir)


def avro(fields):
    """id string!, n int: `!` for a column that is never null"""
    found = []
    for field in fields.split(", "):
        name, kind = field.split(" ")
        if kind.endswith("[]"):
            kind = {"type": "array", "items": kind[:-2]}
        if isinstance(kind, str) and kind.endswith("!"):
            found.append({"name": name, "type": kind[:-1]})
        else:
            found.append({"name": name, "type": ["null", kind], "default": None})
    return json.dumps({"type": "record", "name": "golden_record", "namespace": "golden", "fields": found})


COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
FIELDS = "id string!, name string, n int, x double, ts long!, city string, tags string[]"
CITIES = ["osaka", "quito", None]


def row(i, cities=CITIES, **new):
    return {"id": "k%02d" % i, "name": "n%d" % i, "n": i, "x": i + 0.5, "ts": 10, "city": cities[i % len(cities)], "tags": ["a", "b%d" % i], **new}


def rows(n, start=0, **new):
    return [row(i, **new) for i in range(start, start + n)]


def basic(kind, **how):
    """updates, late and tied ones, deletes, new keys, a key that comes back"""
    def f(t):
        t.create(kind, FIELDS, **how)
        t.insert(rows(12))
        t.upsert([row(0, name="newer", ts=20), row(1, name="late", ts=5), row(2, name="tie"), row(12, name="new", ts=20)])
        t.delete([row(3), row(4), row(5)])
        t.upsert([row(0, name="again", ts=15), row(3, name="back", ts=1), row(6, name=None, n=None, x=None, tags=None, ts=30)])
    return f


def complex_key(t):
    t.create(MOR, FIELDS, key="id,n", partition="city,n", keygen="ComplexKeyGenerator",
             hoodie_datasource_write_hive__style__partitioning="true")
    some = [{**r, "n": i % 2} for i, r in enumerate(rows(6))]
    t.insert(some)
    t.upsert([{**some[0], "name": "upd", "ts": 20}, {**some[5], "name": "upd", "ts": 20}])
    t.delete(some[1:3])


DELETED = FIELDS.replace(", tags string[]", ", _hoodie_is_deleted boolean")


def soft(i, gone=False, **new):
    return {**{k: v for k, v in row(i, **new).items() if k != "tags"}, "_hoodie_is_deleted": gone}


def soft_deletes(t):
    """rows that say they are deleted: newer, late, tied; then back again"""
    t.create(MOR, DELETED, payload="DefaultHoodieRecordPayload")
    t.insert([soft(i) for i in range(10)])
    t.upsert([soft(0, True, ts=20), soft(1, True, ts=5), soft(2, True, ts=10), soft(3, name="newer", ts=20), soft(4, name="late", ts=5)])
    t.upsert([soft(0, name="older", ts=15), soft(2, name="same", ts=10), soft(5, name="u", ts=30)])


def compaction(t):
    t.create(MOR, FIELDS)
    t.insert(rows(9))
    t.upsert([row(0, name="upd-1", ts=20), row(1, name="upd-1", ts=20)])
    t.step("schedule_compaction")
    t.upsert([row(0, name="upd-2", ts=30)])
    t.step("compact")
    t.upsert([row(1, name="upd-3", ts=40), row(2, name="upd-3", ts=40)])
    t.delete([row(3)])
    t.step("schedule_compaction")
    t.upsert([row(0, name="upd-4", ts=50), row(20, name="new", ts=50)])


def crash(kind):
    def f(t):
        t.create(kind, FIELDS)
        t.insert(rows(9))
        t.upsert([row(0, name="upd-1", ts=20), row(1, name="upd-1", ts=20)])
        t.upsert([row(1, name="bad", ts=30), row(2, name="bad", ts=30), row(30, name="bad", ts=30)], die=True)
        t.upsert([row(2, name="upd-2", ts=40)])
        t.upsert([row(5, name="rolled back", ts=50), row(31, name="rolled back", ts=50)])
        t.step("rollback")
        t.upsert([row(0, name="upd-3", ts=60)])
        t.upsert([row(6, name="never committed", ts=70)], die=True)
    return f


def archived(kind):
    def f(t):
        t.create(kind, FIELDS, **{"hoodie_keep_min_commits": 3, "hoodie_keep_max_commits": 4, "hoodie_cleaner_commits_retained": 2,
                                  "hoodie_commits_archival_batch": 2})
        t.insert(rows(6))
        for i in range(9):
            t.upsert([row(i % 6, name="upd-%d" % i, ts=20 + i), row((i + 2) % 6, name="upd-%d" % i, ts=20 + i)])
            if kind == MOR and i == 4:
                t.step("schedule_compaction")
                t.step("compact")
    return f


def clustering(t):
    t.create(COW, FIELDS, **{"hoodie_clustering_plan_strategy_class": "org.apache.hudi.client.clustering.plan.strategy.JavaSizeBasedClusteringPlanStrategy",
                             "hoodie_clustering_execution_strategy_class": "org.apache.hudi.client.clustering.run.strategy.JavaSortAndSizeExecutionStrategy",
                             "hoodie_clustering_plan_strategy_sort_columns": "n", "hoodie_clustering_plan_strategy_small_file_limit": "104857600"})
    t.insert(rows(6))
    t.insert(rows(6, 6))
    t.step("cluster")
    t.upsert([row(1, name="upd", ts=20)])
    t.insert(rows(3, 20))
    t.step("schedule_clustering")


def overwrite(t):
    t.create(COW, FIELDS)
    t.insert(rows(9))
    t.step("overwrite", rows=[row(0, name="over", ts=20), row(30, name="over", ts=20)])
    t.upsert([row(0, name="upd", ts=30), row(1, name="upd", ts=30)])


def restore(kind):
    def f(t):
        t.create(kind, FIELDS)
        t.insert(rows(6))
        t.upsert([row(0, name="upd-1", ts=20)])
        t.step("savepoint")
        t.upsert([row(0, name="gone", ts=30), row(20, name="gone", ts=30)])
        t.delete([row(1)])
        t.step("restore_last")
        t.upsert([row(2, name="after", ts=40)])
    return f


TABLES = [
    ("cow_part", basic(COW), "COW, a null partition value"),
    ("mor_part", basic(MOR), "MOR, a null partition value, log blocks, deletes"),
    ("cow_nonpart", basic(COW, partition="", keygen="NonpartitionedKeyGenerator"), "COW without partitions"),
    ("mor_nonpart", basic(MOR, partition="", keygen="NonpartitionedKeyGenerator", payload="DefaultHoodieRecordPayload"),
     "MOR without partitions, DefaultHoodieRecordPayload"),
    ("mor_hive_complex", complex_key, "MOR, two keys, two hive-style levels"),
    ("mor_soft_deletes", soft_deletes, "MOR, _hoodie_is_deleted, DefaultHoodieRecordPayload"),
    ("mor_compaction", compaction, "completed and pending compaction"),
    ("cow_crash", crash(COW), "crashed, rolled-back and pending writes, COW"),
    ("mor_crash", crash(MOR), "crashed, rolled-back and pending writes, MOR"),
    ("cow_archived", archived(COW), "archived timeline, cleaned files"),
    ("mor_archived", archived(MOR), "archived timeline, a compaction"),
    ("cow_clustering", clustering, "completed and pending clustering"),
    ("cow_overwrite", overwrite, "insert_overwrite"),
    ("cow_restore", restore(COW), "savepoint, restore, a commit after"),
    ("mor_restore", restore(MOR), "savepoint, restore, a commit after, MOR"),
]
# the clients before 0.14 cannot restore past delta commits; the rest is left out to keep the set small
WANTED = {
    "v4": ("cow_part", "mor_part", "mor_hive_complex", "mor_soft_deletes", "mor_compaction", "mor_crash", "mor_archived", "cow_overwrite",
           "cow_restore"),
    "v5": ("mor_part", "mor_soft_deletes", "mor_crash", "cow_clustering", "cow_nonpart"),
    "v6by14": ("mor_soft_deletes", "mor_compaction", "mor_crash", "mor_restore"),
}
for name, f, about in TABLES:
    for prefix, release in RELEASES.items():
        if name in WANTED[prefix]:
            table("%s_%s" % (prefix, name), release, about, [name.split("_")[0], "merge"], builder=OldBuilder, reader="1.2.0")(f)
