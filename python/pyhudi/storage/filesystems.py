"""Filesystem objects of pyarrow and fsspec as a location and storage options.

pyhudi reads and writes with its own client: the objects have no conditional writes, which commits
need. So it takes the settings of an object, and refuses an object with one that it cannot take:
nothing is guessed. Settings are what the object itself pickles (pyarrow) or was made with (fsspec).
Settings of caches and buffers are ignored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pyhudi.errors import ConfigError
from pyhudi.storage.options import scheme_of

Settings: TypeAlias = dict[str, Any]
Options: TypeAlias = dict[str, str]

_HINT = (
    'Pass storage_options, such as storage_options={"aws_region": "eu-west-1"}: '
    "see docs/reference/storage-options.md."
)
_CACHES = (
    "asynchronous",
    "blocksize",
    "cache_regions",
    "cache_timeout",
    "consistency",
    "default_block_size",
    "default_cache_type",
    "default_fill_cache",
    "fixed_upload_size",
    "listings_expiry_time",
    "loop",
    "max_concurrency",
    "max_paths",
    "skip_instance_cache",
    "use_listings_cache",
)
"""Settings of fsspec that decide how it buffers, not what it reads."""
_S3 = {
    "key": "aws_access_key_id",
    "username": "aws_access_key_id",
    "aws_access_key_id": "aws_access_key_id",
    "secret": "aws_secret_access_key",
    "password": "aws_secret_access_key",
    "aws_secret_access_key": "aws_secret_access_key",
    "token": "aws_session_token",
    "aws_session_token": "aws_session_token",
    "region_name": "aws_region",
    "endpoint_url": "aws_endpoint_url",
    "anon": "aws_skip_signature",
}
"""Options by the names of s3fs and of its `client_kwargs`."""
_ADLFS = {
    "account_name": "azure_storage_account_name",
    "account_key": "azure_storage_account_key",
    "sas_token": "azure_storage_sas_key",
    "client_id": "azure_storage_client_id",
    "client_secret": "azure_storage_client_secret",
    "tenant_id": "azure_storage_tenant_id",
}


def with_filesystem(
    uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None, filesystem: Any
) -> tuple[str | os.PathLike[str], Mapping[str, str] | None]:
    """Return the location and the storage options of a path in a filesystem.

    Args:
        uri: a location, or a path of the filesystem, such as `bucket/lake/trips`.
        storage_options: None with a filesystem.
        filesystem: an object of pyarrow or fsspec; None returns the other arguments.

    Raises:
        ConfigError: the object is of another class, or has a setting that is not an option.
    """
    if filesystem is None:
        return uri, storage_options
    if storage_options:
        msg = "storage_options and filesystem are both set"
        raise ConfigError(msg, hint="Pass one of them.")
    path = os.fspath(uri)
    while (inner := _inner(filesystem)) is not None:
        base, filesystem = inner
        if base:
            if scheme_of(path) is not None:
                raise ConfigError(f"{path} is not a path below {base}", hint="Pass a path.")
            path = f"{base.rstrip('/')}/{path.lstrip('/')}"
    name = _name(filesystem)
    if name not in _KINDS:
        raise ConfigError(f"pyhudi cannot use a filesystem of the class {name}", hint=_HINT)
    schemes, read = _KINDS[name]
    options = read(filesystem)
    scheme = scheme_of(path)
    if scheme is None and schemes[0] != "file":
        path = f"{schemes[0]}://{path.lstrip('/')}"
    elif scheme is not None and scheme not in schemes:
        raise ConfigError(f"{path} is not a location of {name}", hint=f"Pass {schemes[0]}://….")
    return path, options or None


def _name(filesystem: Any) -> str:
    """Return the class as `module.Class`, with the package for the module."""
    kind = type(filesystem)
    module = "pyarrow.fs" if kind.__module__.startswith("pyarrow.") else kind.__module__
    return f"{module}.{kind.__qualname__}"


def _inner(filesystem: Any) -> tuple[str, Any] | None:
    """Return the directory and the filesystem that an object wraps."""
    match _name(filesystem):
        case "pyarrow.fs.SubTreeFileSystem":
            return str(filesystem.base_path), filesystem.base_fs
        case "pyarrow.fs.PyFileSystem" if _name(filesystem.handler) == "pyarrow.fs.FSSpecHandler":
            return "", filesystem.handler.fs
        case "fsspec.implementations.dirfs.DirFileSystem":
            return str(filesystem.path), filesystem.fs
        case _:
            return None


def _settings(filesystem: Any) -> Settings:
    """Return what fsspec made the object with, without what it was left to decide."""
    if filesystem.storage_args:
        raise _unreadable(filesystem, "arguments without a name")
    settings = filesystem.storage_options.items()
    return {name: value for name, value in settings if name not in _CACHES and _is_set(value)}


def _state(filesystem: Any) -> Settings:
    """Return what pyarrow pickles of the object."""
    _, (state,) = filesystem.__reduce__()
    return {name: value for name, value in state.items() if _is_set(value)}


def _is_set(value: Any) -> bool:
    return value is not None and value is not False and value not in ("", {}, ())


def _unreadable(filesystem: Any, setting: str) -> ConfigError:
    msg = f"pyhudi cannot take {setting} from a filesystem of the class {_name(filesystem)}"
    return ConfigError(msg, hint=_HINT)


def _rename(filesystem: Any, settings: Settings, names: Mapping[str, str]) -> Options:
    """Return the options of settings. Raises `ConfigError` for one without an option."""
    options: Options = {}
    for name, value in settings.items():
        if name not in names or not isinstance(value, (str, bool)):
            raise _unreadable(filesystem, f"the setting {name!r}")
        options[names[name]] = str(value).lower() if isinstance(value, bool) else value
    return options


def _s3fs(filesystem: Any) -> Options:
    settings = _settings(filesystem)
    settings.pop("use_ssl", None)
    options = _rename(filesystem, settings.pop("client_kwargs", {}), _S3)
    if settings.pop("requester_pays", None):
        options["aws_request_payer"] = "true"
    options |= _rename(filesystem, settings, _S3)
    return _allow_http(options, "aws_endpoint_url", "aws_allow_http")


def _gcsfs(filesystem: Any) -> Options:
    settings = _settings(filesystem)
    settings.pop("project", None)
    settings.pop("access", None)
    token = settings.pop("token", None)
    options = _rename(filesystem, settings, {"endpoint_url": "google_base_url"})
    match token:
        case None | "google_default" | "cloud":
            return options
        case "anon":
            return options | {"google_skip_signature": "true"}
        case {"type": "service_account"}:
            return options | {"google_service_account_key": json.dumps(token)}
        case str() if os.path.isfile(token):  # noqa: PTH113 - text as it came
            return options | {"google_application_credentials": token}
        case _:
            raise _unreadable(filesystem, "a token of this type")


def _adlfs(filesystem: Any) -> Options:
    settings = _settings(filesystem)
    is_anonymous = settings.pop("anon", False)
    options = _rename(filesystem, settings, _ADLFS)
    return options | ({"azure_skip_signature": "true"} if is_anonymous else {})


def _arrow_s3(filesystem: Any) -> Options:
    state = _state(filesystem)
    proxy = state.get("proxy_options", {})
    unreadable = ("role_arn", "external_id", "default_metadata", "tls_ca_file_path")
    for name in unreadable:
        if name in state:
            raise _unreadable(filesystem, f"the setting {name!r}")
    if proxy.get("host"):
        raise _unreadable(filesystem, "the setting 'proxy_options'")
    names = {
        "access_key": "aws_access_key_id",
        "secret_key": "aws_secret_access_key",
        "session_token": "aws_session_token",
        "anonymous": "aws_skip_signature",
        "region": "aws_region",
        "force_virtual_addressing": "aws_virtual_hosted_style_request",
    }
    known = {name: value for name, value in state.items() if name in names}
    options = _rename(filesystem, known, names)
    if "endpoint_override" in state:
        options["aws_endpoint_url"] = _endpoint(state)
    return _allow_http(options, "aws_endpoint_url", "aws_allow_http")


def _arrow_gcs(filesystem: Any) -> Options:
    state = _state(filesystem)
    for name in ("target_service_account", "default_metadata"):
        if name in state:
            raise _unreadable(filesystem, f"the setting {name!r}")
    names = {"access_token": "google_bearer_token", "anonymous": "google_skip_signature"}
    known = {name: value for name, value in state.items() if name in names}
    options = _rename(filesystem, known, names)
    if "endpoint_override" in state:
        options["google_base_url"] = _endpoint(state)
        options["google_allow_http"] = str(state["scheme"] == "http").lower()
    return options


def _arrow_azure(filesystem: Any) -> Options:
    state = _state(filesystem)
    defaults = {
        "blob_storage_authority": ".blob.core.windows.net",
        "dfs_storage_authority": ".dfs.core.windows.net",
        "blob_storage_scheme": "https",
        "dfs_storage_scheme": "https",
    }
    for name, default in defaults.items():
        if state.pop(name, default) != default:
            raise _unreadable(filesystem, f"the setting {name!r}")
    return _rename(filesystem, state, _ADLFS)


def _endpoint(state: Settings) -> str:
    endpoint = str(state["endpoint_override"])
    return endpoint if "://" in endpoint else f"{state['scheme']}://{endpoint}"


def _allow_http(options: Options, endpoint: str, allow: str) -> Options:
    is_plain = options.get(endpoint, "").lower().startswith("http://")
    return options | {allow: "true"} if is_plain else options


def _local(_filesystem: Any) -> Options:
    return {}


_SCHEMES_S3 = ("s3", "s3a")
_SCHEMES_GCS = ("gs", "gcs")
_SCHEMES_AZURE = ("az", "azure", "abfs", "abfss", "wasb", "wasbs")
_KINDS: dict[str, tuple[tuple[str, ...], Callable[[Any], Options]]] = {
    "adlfs.spec.AzureBlobFileSystem": (_SCHEMES_AZURE, _adlfs),
    "fsspec.implementations.local.LocalFileSystem": (("file",), _local),
    "gcsfs.core.GCSFileSystem": (_SCHEMES_GCS, _gcsfs),
    "gcsfs.extended_gcsfs.ExtendedGcsFileSystem": (_SCHEMES_GCS, _gcsfs),
    "pyarrow.fs.AzureFileSystem": (_SCHEMES_AZURE, _arrow_azure),
    "pyarrow.fs.GcsFileSystem": (_SCHEMES_GCS, _arrow_gcs),
    "pyarrow.fs.LocalFileSystem": (("file",), _local),
    "pyarrow.fs.S3FileSystem": (_SCHEMES_S3, _arrow_s3),
    "s3fs.core.S3FileSystem": (_SCHEMES_S3, _s3fs),
}
"""Schemes, the first for paths without one, and what reads the options, by class."""
