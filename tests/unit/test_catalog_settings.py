"""Catalogs that a file or environment variables configure."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyhudi
from pyhudi.catalog.catalog_settings import settings_from_json, settings_of
from pyhudi.catalog.named_table import find_table
from pyhudi.errors import ConfigError

HIVE = '[catalog.prod]\ntype = "hive"\nuris = "thrift://metastore:9083"\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory; there is no other configuration."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.delenv("PYHUDI_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    return work


def test_file_of_working_directory_comes_before_the_users(folder: Path, tmp_path: Path) -> None:
    user = tmp_path / "user" / "pyhudi"
    user.mkdir(parents=True)
    (user / "pyhudi.toml").write_text(HIVE.replace("metastore", "users"))
    assert settings_of("prod").properties == {"uris": "thrift://users:9083"}
    (folder / "pyhudi.toml").write_text(HIVE)
    assert settings_of("prod").properties == {"uris": "thrift://metastore:9083"}


def test_variable_names_the_file(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "pyhudi.toml").write_text(HIVE)
    other = tmp_path / "other.toml"
    other.write_text('[catalog.aws]\ntype = "glue"\nregion = "eu-west-1"\n')
    monkeypatch.setenv("PYHUDI_CONFIG", str(other))
    assert settings_of("aws").properties == {"region": "eu-west-1"}
    with pytest.raises(ConfigError, match=r"no catalog 'prod' is configured .*: aws"):
        settings_of("prod")
    monkeypatch.setenv("PYHUDI_CONFIG", str(tmp_path / "none.toml"))
    with pytest.raises(ConfigError, match=r"PYHUDI_CONFIG is .* not a file"):
        settings_of("prod")


def test_environment_adds_to_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pyhudi.toml").write_text(
        f'{HIVE}[catalog.prod.storage_options]\nRegion = "a"\nendpoint = "e"\n'
    )
    monkeypatch.setenv("PYHUDI_CATALOG__PROD__URIS", "thrift://other:9083")
    monkeypatch.setenv("PYHUDI_CATALOG__PROD__STORAGE_OPTIONS__REGION", "b")
    monkeypatch.setenv("PYHUDI_CATALOG__DEV_2__TYPE", "glue")
    settings = settings_of("prod")
    assert settings.properties == {"uris": "thrift://other:9083"}
    assert settings.storage_options == {"region": "b", "endpoint": "e"}
    assert settings_of("dev_2").type == "glue"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[catalogs.prod]\n", "Did you mean 'catalog'"),
        (
            '[catalog.prod]\ntype = "hive"\nuri = "x"\n',
            "unknown key 'uri'\nHint: Did you mean 'uris'",
        ),
        ('[catalog.prod]\ntype = "hive"\nregion = "x"\n', "belongs to the type glue"),
        ('[catalog.prod]\ntype = "hive"\n', "needs uris"),
        ('[catalog.prod]\ntype = "hive"\nuris = "x"\ntls = "on"\n', "neither true nor false"),
        ('[catalog.prod]\ntype = "hive"\nuris = "x"\nssl = true\n', "Did you mean 'tls'"),
        (
            '[catalog.prod]\ntype = "hive"\nuris = "x"\nprincipal = "hive/_HOST@LAKE"\n',
            "Did you mean 'kerberos_principal'",
        ),
        ('[catalog.prod]\ntype = "hive"\nuris = "x"\nauth = "x"\n', "Did you mean 'kerberos'"),
        ('[catalog.prod]\ntype = "hive"\nuris = "x"\nkeytab = "x"\n', "KRB5_CLIENT_KTNAME"),
        ('[catalog.prod]\nuris = "x"\n', "has no type"),
        ('[catalog.prod]\ntype = "nessie"\n', "pyhudi has the types hive, glue, polaris"),
        ('[catalog.prod]\ntype = "hive"\nuris = 1\n', "uris of the catalog 'prod' is not text"),
        ('[catalog.Prod]\ntype = "hive"\n', "cannot be a catalog's name"),
        ('[catalog]\nprod = "hive"\n', "catalog.prod is not a section"),
        ("[catalog.prod\n", "is not TOML"),
        ('[catalog.prod]\ntype = "hive"\nuris = "${NOT_SET}"\n', "prod.uris needs .* NOT_SET"),
    ],
)
def test_wrong_file_is_refused(folder: Path, content: str, message: str) -> None:
    (folder / "pyhudi.toml").write_text(content)
    with pytest.raises(ConfigError, match=message):
        settings_of("prod")


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("PYHUDI_CATALOG__PROD", "does not name an entry"),
        ("PYHUDI_CATALOG__PROD__TYPE__X", "type has no parts"),
        ("PYHUDI_CATALOG__PR-OD__TYPE", "cannot be a catalog's name"),
    ],
)
def test_wrong_variable_is_refused(
    variable: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "x")
    with pytest.raises(ConfigError, match=message):
        settings_of("prod")


def test_secrets_are_resolved_and_not_displayed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "pyhudi.toml").write_text(
        f'{HIVE}[catalog.prod.storage_options]\nsecret_access_key = "${{KEY}}"\n'
    )
    monkeypatch.setenv("KEY", "s3cret")
    settings = settings_of("prod")
    assert settings.storage_options == {"secret_access_key": "s3cret"}
    texts = (repr(settings), settings.to_json(), repr(pyhudi.load_catalog("prod")))
    assert not any("s3cret" in text for text in texts)
    with pytest.raises(ConfigError) as error:
        settings_of("prod", {"uris": "thrift://user:s3cret@host:1"})
    assert "s3cret" not in str(error.value)


def test_settings_travel_as_text() -> None:
    settings = settings_of("own", {"type": "glue", "region": "eu-west-1"})
    copy = settings_from_json(settings.to_json())
    assert (copy.name, copy.type, copy.properties) == ("own", "glue", {"region": "eu-west-1"})


def test_unknown_catalog_suggests_a_similar_one(folder: Path) -> None:
    (folder / "pyhudi.toml").write_text(HIVE)
    with pytest.raises(ConfigError, match="Did you mean 'prod'"):
        pyhudi.load_catalog("prd")


def test_tls_settings_come_from_file_and_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "pyhudi.toml").write_text(f'{HIVE}tls = true\nca_file = "missing.pem"\n')
    monkeypatch.setenv("PYHUDI_CATALOG__PROD__CHECK_HOSTNAME", "False")
    settings = settings_of("prod")
    assert settings.properties == {
        "uris": "thrift://metastore:9083",
        "tls": "true",
        "ca_file": "missing.pem",
        "check_hostname": "false",
    }
    assert settings_from_json(settings.to_json()).properties == settings.properties
    with pytest.raises(ConfigError, match=r"ca_file 'missing\.pem' cannot be used"):
        settings.connect()


def test_error_of_a_damaged_file_names_the_place(folder: Path) -> None:
    """And does not say that the table's name is a directory."""
    (folder / "pyhudi.toml").write_text("[catalog.prod]\ntype = hive\n")
    with pytest.raises(ConfigError, match="line 2, column 8") as error:
        find_table("prod.sales.trips")
    assert "directory" not in str(error.value)
    (folder / "pyhudi.toml").write_text("")
    with pytest.raises(ConfigError, match=r"Write a directory as ./prod.sales.trips"):
        find_table("prod.sales.trips")
