"""Settings of S3 from the files of AWS' tools: `~/.aws/config` and `~/.aws/credentials`.

Options that the caller passes win, then environment variables, then the profile that AWS_PROFILE
names ("default" without it), then the container and the machine, which the core asks. A profile
with AWS IAM Identity Center (SSO) is not supported: its hint exports the credentials. Nothing here
prints a secret.
"""

from __future__ import annotations

import configparser
import os
import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyhudi.clock import Clock, SystemClock
from pyhudi.errors import ConfigError, StorageError, UnsupportedTableFeature
from pyhudi.storage.options import StorageOptions

_KEY, _SECRET, _TOKEN = "aws_access_key_id", "aws_secret_access_key", "aws_session_token"
_KEYS = (_KEY, _SECRET, _TOKEN)
_EXPLICIT = (
    *_KEYS,
    "aws_skip_signature",
    "aws_web_identity_token_file",
)
"""Options or environment variables with which the files are not asked for credentials."""
_EXPLICIT_OPTIONS = (
    "aws_container_credentials_relative_uri",
    "aws_container_credentials_full_uri",
    "aws_metadata_endpoint",
)
_CONTAINER = _EXPLICIT_OPTIONS[:2]
_REGIONS = ("aws_region", "aws_default_region")
_ENDPOINTS = ("aws_endpoint_url_s3", "aws_endpoint_url", "aws_endpoint")
_MACHINE = ("169.254.169.254", 80)
_MACHINE_SECONDS = 1.0
"""AWS' tools wait as long for the machine's metadata service."""
_UNSUPPORTED = {
    "sso_session": "AWS IAM Identity Center",
    "sso_start_url": "AWS IAM Identity Center",
    "login_session": "a login session",
    "credential_source": "credential_source",
    "mfa_serial": "a device for multi-factor authentication",
}
"""Entries of a profile that only AWS' own tools understand."""


@dataclass(frozen=True)
class AwsSettings:
    """The options of a store, with those of the files."""

    options: StorageOptions = field(repr=False)
    expires_ms: int | None = None
    """Time at which credentials of a program or a role end, in epoch ms; None if they do not."""


def with_aws_files(uri: str, options: StorageOptions, clock: Clock | None = None) -> AwsSettings:
    """Return the options of an S3 location, completed by the files of AWS' tools.

    Raises `ConfigError` for a missing profile and for damaged files, `UnsupportedTableFeature` for
    a profile that pyhudi does not support, `StorageError` if there are no credentials at all.
    """
    profiles = _Profiles.load()
    name = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or "default"
    if name != "default" and name not in profiles.sections:
        known = ", ".join(sorted(profiles.sections)) or "none"
        msg = f"there is no AWS profile {name!r} in {profiles.files_text}; there are {known}"
        raise ConfigError(msg, hint="Correct AWS_PROFILE, or unset it.")
    profile = profiles.sections.get(name, {})
    settings = StorageOptions(_location_settings(profile, profiles, options))
    settings.update(options)
    if _is_set(options, *_EXPLICIT) or any(name in options for name in _EXPLICIT_OPTIONS):
        return AwsSettings(settings)
    credentials = _Source(profiles, settings, clock or SystemClock()).credentials(name)
    if credentials is not None:
        settings.update(credentials.options)
        return AwsSettings(settings, credentials.expires_ms)
    if not _is_set({}, *_CONTAINER) and not _has_machine():
        tried = (
            "storage_options, the environment (AWS_ACCESS_KEY_ID, AWS_WEB_IDENTITY_TOKEN_FILE), "
            f"the profile {name!r} of {profiles.files_text}, the container and the machine"
        )
        raise StorageError(
            f"{uri}: there are no AWS credentials; pyhudi tried {tried}",
            hint="Pass storage_options, set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run "
            'aws configure. For a public bucket pass {"aws_skip_signature": "true"}.',
        )
    return AwsSettings(settings)


def _is_set(options: Mapping[str, str], *names: str) -> bool:
    return any(options.get(name) or os.environ.get(name.upper()) for name in names)


def _has_machine() -> bool:
    """Return whether the metadata service of a machine in AWS answers."""
    if os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        return False
    if os.environ.get("AWS_METADATA_ENDPOINT"):
        return True
    with suppress(OSError):
        socket.create_connection(_MACHINE, timeout=_MACHINE_SECONDS).close()
        return True
    return False


def _location_settings(
    profile: Mapping[str, str], profiles: _Profiles, options: StorageOptions
) -> dict[str, str]:
    """Return region and endpoint of a profile, unless options or the environment have them."""
    settings = {}
    region = profile.get("region")
    if region and not _is_set(options, *_REGIONS):
        settings["aws_region"] = region
    endpoint = profiles.endpoint(profile, "s3")
    if endpoint and not _is_set(options, *_ENDPOINTS):
        settings["aws_endpoint_url"] = endpoint
        # AWS' tools need no other setting for a server without TLS.
        if endpoint.startswith("http://") and not _is_set(options, "aws_allow_http"):
            settings["aws_allow_http"] = "true"
    return settings


# --- files ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Profiles:
    """The profiles of both files by name; entries of the credentials file win."""

    sections: Mapping[str, Mapping[str, str]]
    services: Mapping[str, Mapping[str, str]]
    files: tuple[Path, ...]

    @property
    def files_text(self) -> str:
        return " and ".join(map(str, self.files))

    @classmethod
    def load(cls) -> _Profiles:
        config = _file("AWS_CONFIG_FILE", "config")
        credentials = _file("AWS_SHARED_CREDENTIALS_FILE", "credentials")
        sections: dict[str, dict[str, str]] = {}
        services: dict[str, Mapping[str, str]] = {}
        for section, entries in _read(config).items():
            kind, _, name = section.partition(" ")
            name = name.strip().strip("\"'")
            if section == "default" or kind == "profile":
                sections.setdefault(name or section, {}).update(entries)
            elif kind == "services":
                services[name] = entries
        for section, entries in _read(credentials).items():
            sections.setdefault(section.strip(), {}).update(entries)
        return cls(sections, services, (credentials, config))

    def endpoint(self, profile: Mapping[str, str], service: str) -> str | None:
        """Return the endpoint of a service that a profile sets."""
        ignores = profile.get("ignore_configured_endpoint_urls", "")
        variable = os.environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", ignores)
        if variable.lower() == "true":
            return None
        nested = self.services.get(profile.get("services", ""), {}).get(service, "")
        match = re.search(r"^\s*endpoint_url\s*=\s*(\S+)", nested, re.MULTILINE)
        return match[1] if match else profile.get("endpoint_url")


def _file(variable: str, name: str) -> Path:
    return Path(os.environ.get(variable) or f"~/.aws/{name}").expanduser()


def _read(path: Path) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser(
        strict=False, default_section="", inline_comment_prefixes=("#", ";"), delimiters=("=",)
    )
    try:
        with suppress(FileNotFoundError, NotADirectoryError):
            parser.read_string(path.read_text("utf-8"))
    except (configparser.Error, UnicodeDecodeError) as error:
        # The parser quotes lines, which may be secrets.
        line = getattr(error, "lineno", None) or (getattr(error, "errors", None) or [(0, "")])[0][0]
        msg = f"{path} is not a file of AWS' tools: line {line} cannot be parsed"
        raise ConfigError(msg, hint="Correct the file, or delete it.") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    return {name: dict(parser.items(name)) for name in parser.sections()}


# --- credentials ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Credentials:
    """Options with credentials, and the time of their end."""

    options: Mapping[str, str] = field(repr=False)
    expires_ms: int | None = None


@dataclass(frozen=True)
class _Source:
    """Finds the credentials of profiles."""

    profiles: _Profiles
    settings: StorageOptions
    """The options so far: region and endpoints."""
    clock: Clock
    parents: tuple[str, ...] = ()
    """Profiles that lead to this one by `source_profile`."""

    def credentials(self, name: str) -> _Credentials | None:
        """Return the credentials of a profile; None if it has none."""
        profile = self.profiles.sections.get(name, {})
        for entry, meaning in _UNSUPPORTED.items():
            if entry in profile:
                raise UnsupportedTableFeature(
                    f"the AWS profile {name!r} has {entry}: pyhudi does not support {meaning}",
                    hint=f'Run eval "$(aws configure export-credentials --profile {name} '
                    '--format env)" first.',
                )
        # A profile that is its own source has the keys for its role.
        if "role_arn" in profile and name not in self.parents[-1:]:
            return self._role(name, profile)
        if _KEY in profile:
            keys = {key: profile[key] for key in _KEYS if profile.get(key)}
            if _SECRET not in keys:
                raise ConfigError(f"the AWS profile {name!r} has {_KEY} without {_SECRET}")
            return _Credentials(keys)
        if "credential_process" in profile:
            return _of_program(name, profile["credential_process"])
        return None

    def _role(self, name: str, profile: Mapping[str, str]) -> _Credentials:
        session = profile.get("role_session_name") or "pyhudi"
        if "web_identity_token_file" in profile:
            return _Credentials(
                {
                    "aws_role_arn": profile["role_arn"],
                    "aws_role_session_name": session,
                    "aws_web_identity_token_file": profile["web_identity_token_file"],
                }
            )
        source = profile.get("source_profile")
        if not source:
            msg = f"the AWS profile {name!r} has role_arn without source_profile"
            raise ConfigError(msg, hint="Add source_profile, or web_identity_token_file.")
        if source in self.parents:
            raise ConfigError(f"the AWS profile {name!r} is a source of itself: {source!r}")
        base = replace(self, parents=(*self.parents, name)).credentials(source)
        if base is None or _KEY not in base.options:
            msg = f"the AWS profile {source!r}, the source of {name!r}, has no keys"
            raise ConfigError(msg, hint="Add aws_access_key_id and aws_secret_access_key to it.")
        from pyhudi.storage.aws_roles import assume_role  # noqa: PLC0415 - few profiles have roles

        region = profile.get("region") or self.settings.get("aws_region") or _environment_region()
        endpoint = (
            self.settings.get("aws_endpoint_url_sts")
            or os.environ.get("AWS_ENDPOINT_URL_STS")
            or self.profiles.endpoint({**profile, "endpoint_url": ""}, "sts")
        )
        answer = assume_role(
            {
                "RoleArn": profile["role_arn"],
                "RoleSessionName": session,
                "ExternalId": profile.get("external_id", ""),
                "DurationSeconds": profile.get("duration_seconds", ""),
            },
            base.options,
            region=region,
            endpoint=endpoint or None,
            clock=self.clock,
        )
        return _of_answer(answer, f"the role {profile['role_arn']}")


def _environment_region() -> str:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def _of_program(name: str, command: str) -> _Credentials:
    """Return the credentials that the program of a profile prints."""
    import json  # noqa: PLC0415 - few profiles have programs
    import shlex  # noqa: PLC0415 - as above
    import subprocess  # noqa: PLC0415, S404 - as above

    what = f"credential_process of the AWS profile {name!r}"
    try:
        # The user's own file names the program, as for AWS' tools.
        done = subprocess.run(  # noqa: S603
            shlex.split(command), capture_output=True, check=False, timeout=60
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"{what} failed: {type(error).__name__}") from error
    if done.returncode:
        raise ConfigError(f"{what} failed with code {done.returncode}", hint="Run it yourself.")
    answer: Any = None
    try:
        answer = json.loads(done.stdout)
        is_valid = answer["Version"] == 1 and answer["AccessKeyId"] and answer["SecretAccessKey"]
    except (ValueError, KeyError, TypeError):
        is_valid = False
    if not is_valid:
        raise ConfigError(f"{what} does not print credentials", hint="It must print JSON.")
    return _of_answer(answer, what)


def _of_answer(answer: Mapping[str, Any], what: str) -> _Credentials:
    from datetime import datetime, timezone  # noqa: PLC0415 - as above

    names = dict(zip(("AccessKeyId", "SecretAccessKey", "SessionToken"), _KEYS, strict=True))
    options = {option: str(answer[name]) for name, option in names.items() if answer.get(name)}
    expiration = answer.get("Expiration")
    if not expiration:
        return _Credentials(options)
    try:
        moment = datetime.fromisoformat(str(expiration).replace("Z", "+00:00"))
    except ValueError:
        raise ConfigError(f"{what}: the expiration {expiration!r} is not a time") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return _Credentials(options, int(moment.timestamp() * 1000))
