"""What Apache Hudi is started with to write to the tests' S3 server; `make s3a` sets it up."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tests.helpers.oracle.client import oracle_home
from tests.helpers.s3.server import ACCESS_KEY, REGION, SECRET_KEY, S3Server

_HERE = Path(__file__).parent
_HOME = Path(os.environ.get("PYHUDI_S3A_HOME") or Path.home() / ".cache" / "pyhudi-s3a")
_MADE_OF = ("pom.xml", "S3StorageLockClient.java")


def variables(server: S3Server) -> dict[str, str]:
    """The environment in which Hudi and pyhudi both find the server."""
    options = server.options.items()
    return {name.upper(): text for name, text in options if name.startswith("aws_")}


def settings(release: str, server: S3Server) -> dict[str, str]:
    """Spark's settings for a release of Hudi."""
    bundle = oracle_home() / "jars" / f"hudi-spark3.5-bundle_2.12-{release}.jar"
    of_s3a = {
        "impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "endpoint": server.url,
        "endpoint.region": REGION,
        "access.key": ACCESS_KEY,
        "secret.key": SECRET_KEY,
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        # The server's folders are real ones, which do not go while something is in them.
        "directory.marker.retention": "keep",
        "multiobjectdelete.enable": "false",
        # Hudi leaves streams open, each of which keeps a connection.
        "connection.maximum": "10000",
    }
    return {
        # Without the short settings for local tables, which the oracle puts first by itself.
        "spark.driver.extraClassPath": f"{bundle}:{_jars()}/*",
        **{f"spark.hadoop.fs.s3a.{name}": value for name, value in of_s3a.items()},
    }


def _jars() -> Path:
    made_of = b"".join((_HERE / name).read_bytes() for name in _MADE_OF)
    path = _HOME / f"jars-{hashlib.sha256(made_of).hexdigest()[:12]}"
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: run `make s3a`")
    return path
