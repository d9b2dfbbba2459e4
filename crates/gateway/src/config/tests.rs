use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt as _;

use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::sign::{Credential, SigningKey};

use super::*;

fn machine() -> Machine {
    let interface = |name: &str, address: &str| Interface {
        name: name.into(),
        address: address.parse().unwrap(),
    };
    Machine {
        interfaces: vec![
            interface("lo", "127.0.0.1"),
            interface("eth0", "192.0.2.7"),
            interface("docker0", "172.17.0.1"),
            interface("br-0a1b2c", "172.18.0.1"),
            interface("cni0", "fd00::1"),
        ],
        memory_bytes: 10 * 1024 * 1024 * 1024,
    }
}

fn sound() -> HashMap<&'static str, String> {
    HashMap::from([
        ("GATEWAY_RUNTIME", "embedded".into()),
        ("GATEWAY_CREDENTIALS", Credential::generate().unwrap().1),
        (
            "GATEWAY_AGENT_KEYS",
            SigningKey::generate().unwrap().public().to_string(),
        ),
        ("GATEWAY_INSTALLATION_ID", InstallationId::new().to_string()),
    ])
}

fn read(variables: &HashMap<&'static str, String>) -> Result<Config, Vec<Fault>> {
    let get = |name: &str| variables.get(name).map(OsString::from);
    Config::read(&get, &machine())
}

/// The one variable that something is wrong with.
fn wrong(changes: &[(&'static str, &str)]) -> &'static str {
    let mut variables = sound();
    for (name, value) in changes {
        variables.insert(name, (*value).to_owned());
    }
    let faults = read(&variables).unwrap_err();
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults[0].variable
}

#[test]
fn what_is_left_out_is_as_the_guide_says() {
    let config = read(&sound()).unwrap();
    assert_eq!(config.runtime, RuntimeKind::Embedded);
    let listen = Listen::Tcp("127.0.0.1:9443".parse().unwrap(), Transport::Tls);
    assert_eq!(config.listen, listen);
    assert!(config.images.allow("glovebox-sandbox"));
    assert_eq!(config.state, PathBuf::from(STATE_FOLDER));
    assert_eq!(config.max_memory_bytes, machine().memory_bytes / 100 * 80);
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let faults = read(&HashMap::new()).unwrap_err();
    let variables: Vec<_> = faults.iter().map(|fault| fault.variable).collect();
    assert_eq!(
        variables,
        [
            "GATEWAY_RUNTIME",
            "GATEWAY_CREDENTIALS",
            "GATEWAY_AGENT_KEYS",
            "GATEWAY_INSTALLATION_ID",
        ]
    );
}

#[test]
fn each_variable_is_checked() {
    let agent_key = SigningKey::generate().unwrap().public().to_string();
    for (name, value) in [
        ("GATEWAY_RUNTIME", "podmann"),
        ("GATEWAY_LISTEN", "localhost"),
        ("GATEWAY_LISTEN", "unix:relative"),
        ("GATEWAY_INSECURE_HTTP", "yes"),
        ("GATEWAY_LISTEN_ANYWAY", "yes"),
        ("GATEWAY_CREDENTIALS", "gbg_12"),
        ("GATEWAY_AGENT_KEYS", "00"),
        ("GATEWAY_AGENT_KEYS", &"0".repeat(64)),
        ("GATEWAY_AGENT_KEYS", &[agent_key.as_str(); 2].join(",")),
        ("GATEWAY_INSTALLATION_ID", "mine"),
        ("GATEWAY_ALLOWED_IMAGES", "a:latest"),
        ("GATEWAY_STATE_DIR", "relative"),
        ("GATEWAY_MAX_SANDBOXES", "0"),
        ("GATEWAY_MAX_MEMORY", "1M"),
        ("GATEWAY_KEEP_READY", "4:medium"),
        ("GATEWAY_KEEP_READY", "4:medium:a,2:medium:a"),
    ] {
        assert_eq!(wrong(&[(name, value)]), name, "{value}");
    }
}

#[test]
fn sandboxes_are_kept_ready_where_the_runtime_can() {
    let mut variables = sound();
    variables.insert("GATEWAY_KEEP_READY", "4:medium:a, 1:small:a".into());
    let kept = read(&variables).unwrap().keep_ready;
    let kept: Vec<_> = kept.iter().map(|one| (one.count, one.class)).collect();
    let wanted = [(4, ResourceClass::Medium), (1, ResourceClass::Small)];
    assert_eq!(kept, wanted);
    variables.insert("GATEWAY_RUNTIME", "docker".into());
    assert_eq!(
        read(&variables).unwrap_err()[0].variable,
        "GATEWAY_KEEP_READY"
    );
}

#[test]
fn an_address_that_containers_reach_is_refused_unless_accepted_by_name() {
    for address in [
        "0.0.0.0:9443",
        "[::]:9443",
        "[::ffff:0.0.0.0]:9443",
        "172.17.0.1:9443",
        "[::ffff:172.17.0.1]:9443",
        "172.18.0.1:1",
        "[fd00::1]:9443",
    ] {
        assert_eq!(wrong(&[("GATEWAY_LISTEN", address)]), "GATEWAY_LISTEN");
        let mut variables = sound();
        variables.insert("GATEWAY_LISTEN", address.into());
        let accepted = "reachable-from-sandboxes".to_owned();
        variables.insert("GATEWAY_LISTEN_ANYWAY", accepted);
        assert!(read(&variables).is_ok(), "{address}");
    }
    let mut variables = sound();
    variables.insert("GATEWAY_LISTEN", "192.0.2.7:9443".into());
    assert!(read(&variables).is_ok());
}

#[test]
fn a_secret_is_never_shown_in_what_is_wrong() {
    let mut variables = sound();
    let secret = format!("{},x", variables["GATEWAY_CREDENTIALS"]);
    variables.insert("GATEWAY_CREDENTIALS", secret.clone());
    let shown = format!("{:?}", read(&variables).unwrap_err());
    assert!(!shown.contains(&secret[4..20]), "{shown}");
}

#[test]
fn a_file_of_credentials_has_to_be_the_gateways_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("credentials");
    let (new, old) = (
        Credential::generate().unwrap(),
        Credential::generate().unwrap(),
    );
    fs_err::write(&path, format!("{}\n{}\n", new.1, old.1)).unwrap();
    let mut variables = sound();
    variables.remove("GATEWAY_CREDENTIALS");
    variables.insert("GATEWAY_CREDENTIALS_FILE", path.to_str().unwrap().into());
    let set_mode = |mode| {
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for mode in [0o644, 0o640, 0o604] {
        set_mode(mode);
        let faults = read(&variables).unwrap_err();
        assert_eq!(faults[0].variable, "GATEWAY_CREDENTIALS_FILE");
        assert!(faults[0].what.contains("others can read it"), "{faults:?}");
    }
    set_mode(0o600);
    let config = read(&variables).unwrap();
    let loaded = config.credentials.load().unwrap();
    let ids: Vec<_> = loaded.0.iter().map(Credential::id).collect();
    assert_eq!(ids, [new.0.id(), old.0.id()]);
    let same = format!("{},{}", new.1, new.1);
    fs_err::write(&path, same).unwrap();
    assert!(config.credentials.load().is_err());
}
