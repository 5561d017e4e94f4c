"""The request of AWS' security token service for the credentials of a role, signed (SigV4)."""

from __future__ import annotations

import hashlib
import hmac
import html
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from pyhudi.clock import Clock
from pyhudi.errors import ConfigError, StorageError

_SECONDS = 30
_FORM = "application/x-www-form-urlencoded; charset=utf-8"


def assume_role(
    arguments: Mapping[str, str],
    credentials: Mapping[str, str],
    *,
    region: str,
    endpoint: str | None,
    clock: Clock,
) -> dict[str, str]:
    """Return AccessKeyId, SecretAccessKey, SessionToken and Expiration of a role.

    Args:
        arguments: those of the action AssumeRole; empty ones are left out.
        credentials: storage options with the keys that may take the role.
        region: region of the service.
        endpoint: address of the service; None for AWS' own of the region.
        clock: time of the signature.

    Raises:
        ConfigError: the service refuses the request.
        StorageError: the service does not answer.
    """
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    url = endpoint or f"https://sts.{region}.{domain}"
    passed = {name: value for name, value in arguments.items() if value}
    body = urlencode({"Action": "AssumeRole", "Version": "2011-06-15", **passed}).encode()
    if not url.startswith(("https://", "http://")):
        raise ConfigError(f"the endpoint {url!r} of AWS STS is not a URL")
    url = url.rstrip("/") + "/"
    headers = _signature_headers(url, body, credentials, region, clock.now_ms())
    role = arguments["RoleArn"]
    try:
        with urlopen(Request(url, body, headers), timeout=_SECONDS) as response:  # noqa: S310 - checked
            text = response.read().decode()
    except HTTPError as error:
        reason = _element(error.read().decode(errors="replace"), "Message") or error.reason
        raise ConfigError(f"AWS STS does not give the role {role}: {reason}") from None
    except (URLError, OSError) as error:
        raise StorageError(f"AWS STS at {url} does not answer: {error}") from error
    names = ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")
    answer = {name: _element(text, name) for name in names}
    if not all(answer.values()):
        raise StorageError(f"AWS STS at {url} answers without credentials")
    return answer


def _element(xml: str, name: str) -> str:
    match = re.search(rf"<{name}>([^<]*)</{name}>", xml)
    return html.unescape(match[1]) if match else ""


def _signature_headers(
    url: str, body: bytes, credentials: Mapping[str, str], region: str, now_ms: int
) -> dict[str, str]:
    """Return the headers of a signed POST request."""
    parts = urlsplit(url)
    moment = datetime.fromtimestamp(now_ms / 1000, timezone.utc)
    time, day = moment.strftime("%Y%m%dT%H%M%SZ"), moment.strftime("%Y%m%d")
    headers = {"content-type": _FORM, "host": parts.netloc, "x-amz-date": time}
    if token := credentials.get("aws_session_token"):
        headers["x-amz-security-token"] = token
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = "\n".join(
        ("POST", parts.path, "", lines, names, hashlib.sha256(body).hexdigest())
    ).encode()
    scope = f"{day}/{region}/sts/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{time}\n{scope}\n{hashlib.sha256(request).hexdigest()}"
    key = f"AWS4{credentials['aws_secret_access_key']}".encode()
    for part in (day, region, "sts", "aws4_request"):
        key = hmac.digest(key, part.encode(), hashlib.sha256)
    signature = hmac.digest(key, text.encode(), hashlib.sha256).hex()
    credential = f"{credentials['aws_access_key_id']}/{scope}"
    headers["Authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}"
    )
    return headers
