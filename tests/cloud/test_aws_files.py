"""Buckets with the credentials of AWS' files: profiles, programs, roles, and none at all."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs

import pyarrow as pa
import pytest
from botocore.auth import SigV4Auth  # type: ignore[import-untyped]
from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
from botocore.credentials import Credentials  # type: ignore[import-untyped]

import pyhudi
from pyhudi.clock import SystemClock
from pyhudi.errors import ConfigError, StorageError, UnsupportedTableFeature
from pyhudi.storage import aws_files
from pyhudi.storage.storage import Storage
from tests.cloud.conftest import Bucket
from tests.helpers.s3.server import ACCESS_KEY, SECRET_KEY

KEYS = f"aws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n"


class Files:
    """The files of AWS' tools in a directory of the test."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
        self.folder, self._url = folder / ".aws", url
        self.folder.mkdir()
        self._monkeypatch = monkeypatch
        monkeypatch.setenv("HOME", str(folder))

    def config(self, text: str) -> None:
        (self.folder / "config").write_text(text.replace("URL", self._url))

    def credentials(self, text: str) -> None:
        (self.folder / "credentials").write_text(text)

    def profile(self, name: str) -> None:
        self._monkeypatch.setenv("AWS_PROFILE", name)


@pytest.fixture
def files(s3_bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    return Files(tmp_path, monkeypatch, s3_bucket.server.url)


def reads(bucket: Bucket, options: dict[str, str] | None = None) -> None:
    storage = Storage(bucket.uri("t"), options)
    storage.put("a", b"1")
    assert storage.read("a") == b"1"


def test_default_profile_opens_table(s3_bucket: Bucket, files: Files) -> None:
    files.credentials(f"[default]\n{KEYS}")
    files.config("[default]\nregion = us-east-1\nendpoint_url = URL\n")
    table = pyhudi.create_table(s3_bucket.uri("t"), pa.table({"id": ["a"]}), key="id")
    assert table.count() == 1
    assert SECRET_KEY not in repr(table.storage.options)


def test_named_profile_and_services_section(s3_bucket: Bucket, files: Files) -> None:
    files.credentials(f"[other]\n{KEYS}")
    files.config(
        "[default]\nendpoint_url = http://127.0.0.1:1\n"
        "[profile other]\nregion = us-east-1 # a comment\nservices = local\n"
        "[services local]\ns3 =\n  endpoint_url = URL\nsts =\n  endpoint_url = http://127.0.0.1:1\n"
    )
    files.profile("other")
    reads(s3_bucket)


def test_variables_name_the_files(
    s3_bucket: Bucket, files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.config("[profile x]\n" + KEYS + "endpoint_url = URL\n")
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(files.folder / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "absent"))
    files.profile("x")
    reads(s3_bucket)


def test_options_and_variables_win_over_files(
    s3_bucket: Bucket, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.config(
        "[default]\naws_access_key_id = wrong\naws_secret_access_key = wrong\n"
        "endpoint_url = http://127.0.0.1:1\n"
    )
    reads(s3_bucket, s3_bucket.options)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_bucket.server.url)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    reads(s3_bucket)


def test_program_gives_credentials_again_before_they_end(
    s3_bucket: Bucket, files: Files, tmp_path: Path
) -> None:
    log, program = tmp_path / "calls", tmp_path / "give.py"
    answer = {"Version": 1, "AccessKeyId": ACCESS_KEY, "SecretAccessKey": SECRET_KEY}
    program.write_text(
        f"import json\nopen({str(log)!r}, 'a').write('x')\n"
        f"print(json.dumps({{**{answer!r}, 'Expiration': '2001-01-01T00:00:00Z'}}))\n"
    )
    files.config(
        f"[default]\ncredential_process = {sys.executable} {program}\nendpoint_url = URL\n"
    )
    reads(s3_bucket)
    assert len(log.read_text()) > 1
    program.write_text(f"print({json.dumps(json.dumps(answer))})\n")
    reads(s3_bucket)
    program.write_text("print('a-secret'); raise SystemExit(3)\n")
    with pytest.raises(ConfigError, match="failed with code 3") as raised:
        reads(s3_bucket)
    assert "a-secret" not in str(raised.value)


class TokenService(BaseHTTPRequestHandler):
    """A token service that checks the signature as botocore makes it."""

    calls: ClassVar[list[dict[str, str]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        self.calls.append(form)
        request = AWSRequest("POST", f"http://{self.headers['host']}/", data=body)
        names = self.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0]
        for name in names.split(";"):
            request.headers[name] = self.headers[name]
        request.context["timestamp"] = self.headers["x-amz-date"]
        auth = SigV4Auth(Credentials("base", "base-secret"), "sts", "us-east-1")
        expected = auth.signature(
            auth.string_to_sign(request, auth.canonical_request(request)), request
        )
        is_signed = self.headers["authorization"].endswith(expected)
        is_allowed = is_signed and form["RoleArn"].endswith("/writer")
        text = (
            "<R><Credentials><AccessKeyId>" + ACCESS_KEY + "</AccessKeyId><SecretAccessKey>"
            + SECRET_KEY + "</SecretAccessKey><SessionToken>-</SessionToken>"
            "<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></R>"
            if is_allowed
            else f"<E><Message>signed {is_signed}: not allowed</Message></E>"
        )  # fmt: skip
        self.send_response(200 if is_allowed else 403)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def token_service() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), TokenService)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    TokenService.calls.clear()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_role_of_source_profile(
    s3_bucket: Bucket, files: Files, token_service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session token that it gets is passed on; the local S3 server has no use for it."""
    files.credentials("[base]\naws_access_key_id = base\naws_secret_access_key = base-secret\n")
    role = "source_profile = base\nexternal_id = a/b c\nregion = us-east-1\nendpoint_url = URL\n"
    files.config(
        f"[profile job]\nrole_arn = arn:aws:iam::1:role/writer\n{role}"
        f"[profile bad]\nrole_arn = arn:aws:iam::1:role/reader\n{role}"
    )
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", token_service)
    files.profile("job")
    settings = aws_files.with_aws_files(s3_bucket.uri("t"), Storage(s3_bucket.uri("t")).options)
    assert settings.options["aws_access_key_id"] == ACCESS_KEY
    assert settings.options["aws_session_token"] == "-"
    assert settings.expires_ms == 4_070_908_800_000
    assert SECRET_KEY not in repr(settings)
    assert TokenService.calls[0]["ExternalId"] == "a/b c"
    files.profile("bad")
    with pytest.raises(ConfigError, match="signed True: not allowed"):
        Storage(s3_bucket.uri("t")).list()


def test_role_by_web_identity_is_left_to_the_core(files: Files, s3_bucket: Bucket) -> None:
    files.config(
        "[default]\nrole_arn = arn:aws:iam::1:role/r\nweb_identity_token_file = /run/token\n"
    )
    settings = aws_files.with_aws_files(s3_bucket.uri("t"), Storage(s3_bucket.uri("t")).options)
    assert settings.options == {
        "aws_role_arn": "arn:aws:iam::1:role/r",
        "aws_role_session_name": "pyhudi",
        "aws_web_identity_token_file": "/run/token",
    }


@pytest.mark.parametrize(
    ("config", "error", "words"),
    [
        (
            "[profile x]\nsso_session = s\n",
            UnsupportedTableFeature,
            "export-credentials --profile x",
        ),
        ("[profile x]\nmfa_serial = m\nrole_arn = r\n", UnsupportedTableFeature, "multi-factor"),
        ("[profile x]\nrole_arn = r\nsource_profile = y\n", ConfigError, "'y', the source of 'x'"),
        ("[profile x]\nrole_arn = r\n", ConfigError, "without source_profile"),
        ("[profile x]\naws_access_key_id = k\n", ConfigError, "without aws_secret_access_key"),
        ("[profile x]\ncredential_process = /no/such\n", ConfigError, "failed: FileNotFoundError"),
        ("[profile y]\n", ConfigError, "no AWS profile 'x' .*; there are y"),
        ("[profile x]\n a-secret\n", ConfigError, "line 2 cannot be parsed"),
    ],
)
def test_profiles_that_cannot_be_used(
    config: str, error: type[Exception], words: str, s3_bucket: Bucket, files: Files
) -> None:
    files.config(config)
    files.profile("x")
    with pytest.raises(error, match=f"(?s){words}") as raised:
        Storage(s3_bucket.uri("t")).list()
    assert "a-secret" not in str(raised.value)


def test_missing_credentials_are_reported_quickly(
    s3_bucket: Bucket, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a machine in AWS: a port of this machine where nothing answers stands for it."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setattr(aws_files, "_MACHINE", closed.getsockname())
        begin = SystemClock().ticks_ms()
        with pytest.raises(StorageError, match="no AWS credentials; pyhudi tried") as raised:
            pyhudi.open_table(s3_bucket.uri("t"))
    assert SystemClock().ticks_ms() - begin < 5_000
    assert str(files.folder / "credentials") in str(raised.value)
    assert "aws_skip_signature" in raised.value.hint
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(StorageError, match="no AWS credentials"):
        pyhudi.table_exists(s3_bucket.uri("t"))
