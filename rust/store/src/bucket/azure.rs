//! Containers of Azure's Blob Storage and Data Lake, through the blob service that both have.
//!
//! Hadoop calls one `container@account.dfs.core.windows.net`, others by its name alone, and then options or
//! the environment tell the account.

use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::{ObjectStore, RetryConfig};

use super::check;
use super::kind::{Kind, Unbuilt, Version};
use super::service::Connector;

pub(super) const KIND: Kind = Kind {
    name: "azure",
    schemes: &["abfs", "abfss", "wasb", "wasbs", "az", "azure"],
    environment: &["AZURE_", "AZURITE_", "IDENTITY_", "MSI_"],
    // Names of metadata are identifiers there.
    token: "pyhudi_put",
    if_absent: "If-None-Match",
    version: Version::Tag,
    has_suffixes: false,
    has_named_dirs: true,
    mistaken: Some('\\'),
    build,
};

/// An account and where its blobs are.
#[derive(Debug, PartialEq)]
struct Account {
    name: String,
    endpoint: String,
}

fn build(
    named: &str,
    options: &[(String, String)],
    retry: RetryConfig,
) -> Result<Box<dyn ObjectStore>, Unbuilt> {
    let (container, account) = place(named)?;
    let mut builder = MicrosoftAzureBuilder::from_env();
    if let Some(account) = &account {
        builder = at(builder, account);
    }
    for (name, value) in options {
        let key: AzureConfigKey = name.parse().map_err(|_| Unbuilt::Option(name.clone()))?;
        builder = builder.with_config(key, value);
    }
    check_account(&builder, container, account)?;
    let value = |key: AzureConfigKey| builder.get_config_value(&key);
    check::urls([
        ("azure_storage_endpoint", value(AzureConfigKey::Endpoint)),
        ("azure_msi_endpoint", value(AzureConfigKey::MsiEndpoint)),
        (
            "azure_storage_authority_host",
            value(AzureConfigKey::AuthorityHost),
        ),
        (
            "azure_fabric_token_service_url",
            value(AzureConfigKey::FabricTokenServiceUrl),
        ),
    ])?;
    check::words([
        (
            "azure_storage_account_name",
            value(AzureConfigKey::AccountName),
        ),
        (
            "azure_storage_tenant_id",
            value(AzureConfigKey::AuthorityId),
        ),
        ("azure_storage_token", value(AzureConfigKey::Token)),
    ])?;
    let client = builder
        .with_container_name(container)
        .with_retry(retry)
        .with_http_connector(Connector::default())
        .build();
    Ok(Box::new(client.map_err(Unbuilt::Client)?))
}

/// The container, and the account where `container@host` names one. A host of any of Azure's clouds
/// begins with the account, and differs by `dfs` and `blob` between the two services.
fn place(named: &str) -> Result<(&str, Option<Account>), Unbuilt> {
    let Some((container, host)) = named.split_once('@') else {
        return Ok((named, None));
    };
    let labels: Vec<&str> = host.split('.').collect();
    let is_service = |label: &&str| *label == "dfs" || *label == "blob";
    let known = labels.first().filter(|name| !name.is_empty());
    let (Some(name), Some(at)) = (known, labels.iter().skip(1).position(is_service)) else {
        return Err(Unbuilt::Place(format!(
            "{named} names no account as in container@account.dfs.core.windows.net"
        )));
    };
    if container.is_empty() {
        return Err(Unbuilt::Place(format!("{named} names no container")));
    }
    let mut labels = labels.clone();
    if let Some(label) = labels.get_mut(at + 1) {
        *label = "blob";
    }
    Ok((
        container,
        Some(Account {
            name: (*name).to_owned(),
            endpoint: format!("https://{}", labels.join(".")),
        }),
    ))
}

/// The account that a URI names, whatever the environment says of another. An endpoint of the
/// environment is kept if it is that account's, as an emulator's.
fn at(builder: MicrosoftAzureBuilder, account: &Account) -> MicrosoftAzureBuilder {
    let known = builder.get_config_value(&AzureConfigKey::Endpoint);
    let names_it = |endpoint: &String| {
        let mut words = endpoint.split(['/', '.']);
        words.any(|word| word == account.name)
    };
    let endpoint = known
        .filter(names_it)
        .unwrap_or_else(|| account.endpoint.clone());
    builder.with_account(&account.name).with_endpoint(endpoint)
}

/// An account, and only one.
fn check_account(
    builder: &MicrosoftAzureBuilder,
    container: &str,
    account: Option<Account>,
) -> Result<(), Unbuilt> {
    let value = |key| builder.get_config_value(&key);
    let is_on =
        |value: String| ["1", "true", "on", "yes", "y"].contains(&value.to_lowercase().as_str());
    let is_emulator = value(AzureConfigKey::UseEmulator).is_some_and(is_on);
    match (account, value(AzureConfigKey::AccountName)) {
        (Some(named), Some(other)) if named.name != other => Err(Unbuilt::Place(format!(
            "the table's URI names the account {}, and azure_storage_account_name {other}",
            named.name
        ))),
        (None, None) if !is_emulator => Err(Unbuilt::Place(format!(
            "container {container} of which account? Name it in the URI \
             (abfss://{container}@account.dfs.core.windows.net/table) or by azure_storage_account_name"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(named: &str) -> Option<(String, String)> {
        let (_, account) = place(named).ok()?;
        account.map(|account| (account.name, account.endpoint))
    }

    #[test]
    fn hosts_of_both_services_and_all_clouds_are_one_account_of_blobs() {
        for (host, expected) in [
            ("acc.dfs.core.windows.net", "acc.blob.core.windows.net"),
            ("acc.blob.core.windows.net", "acc.blob.core.windows.net"),
            (
                "acc.dfs.core.chinacloudapi.cn",
                "acc.blob.core.chinacloudapi.cn",
            ),
            (
                "acc.z12.dfs.storage.azure.net",
                "acc.z12.blob.storage.azure.net",
            ),
            (
                "onelake.dfs.fabric.microsoft.com",
                "onelake.blob.fabric.microsoft.com",
            ),
        ] {
            let (name, endpoint) = endpoint(&format!("c@{host}")).unwrap();
            assert_eq!(endpoint, format!("https://{expected}"));
            assert!(host.starts_with(&name) && !name.contains('.'));
        }
    }

    #[test]
    fn a_container_alone_names_no_account() {
        assert!(matches!(place("c"), Ok(("c", None))));
        for named in [
            "c@",
            "c@.dfs.core.windows.net",
            "c@acc",
            "c@acc.example.com",
            "@acc.dfs.x",
        ] {
            assert!(matches!(place(named), Err(Unbuilt::Place(_))), "{named}");
        }
    }

    #[test]
    fn an_endpoint_of_the_environment_is_kept_for_its_own_account() {
        let (_, account) = place("c@acc.dfs.core.windows.net").ok().unwrap();
        let account = account.unwrap();
        for (told, expected) in [
            ("http://127.0.0.1:1/acc", "http://127.0.0.1:1/acc"),
            (
                "https://other.blob.core.windows.net",
                account.endpoint.as_str(),
            ),
        ] {
            let builder = MicrosoftAzureBuilder::new().with_endpoint(told.to_owned());
            let found = at(builder, &account).get_config_value(&AzureConfigKey::Endpoint);
            assert_eq!(found.unwrap(), expected);
        }
    }
}
