//! The gateway's own image, started as the guide says, makes a sandbox beside itself.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use glovebox_client::{GatewayAddress, GatewayClient, GatewayIdentity, Trust};
use glovebox_protocol::ids::InstallationId;
use glovebox_protocol::sign::{Credential, SigningKey};
use glovebox_runtime::conformance::Subject;
use glovebox_testkit::GatewayRuntime;
use rustix::fs::{Gid, Uid, chown, stat};
use rustix::process::{getegid, geteuid};

use crate::{embedded, engine};

/// The id that the image's program runs under.
const USER: u32 = 65532;

/// The command of the guide, up to what differs from host to host.
const GUIDE: &str = include_str!("../../../../docs/deployment/sandbox-gateway.md");

/// What keeps the container in, and stands in the guide.
const SEALED: [&str; 6] = [
    "--read-only",
    "--cap-drop",
    "ALL",
    "--security-opt",
    "no-new-privileges",
    "--rm",
];

/// A container that is removed when this is dropped.
struct Container {
    name: String,
    child: Child,
}

impl Drop for Container {
    fn drop(&mut self) {
        engine::docker(&["rm", "--force", "--volumes", &self.name]);
        // It ends with its container.
        let _ = self.child.wait();
    }
}

fn image() -> String {
    let file = glovebox_testkit::programs()
        .unwrap()
        .join("gateway-image.id");
    let id = fs_err::read_to_string(file);
    id.expect("`make test` builds the image with scripts/image gateway")
        .trim()
        .to_owned()
}

fn volume(path: &Path) -> String {
    format!("{0}:{0}", path.display())
}

#[tokio::test]
async fn the_image_of_the_gateway_makes_sandboxes_as_the_guide_says() {
    for word in SEALED {
        assert!(GUIDE.contains(word), "{word}");
    }
    let installation = InstallationId::new();
    let (credential, written) = Credential::generate().unwrap();
    let key = Arc::new(SigningKey::generate().unwrap());
    let _cleaner = engine::Cleaner(installation);
    let state = tempfile::tempdir().unwrap();
    let closed = std::fs::Permissions::from_mode(0o700);
    fs_err::set_permissions(state.path(), closed).unwrap();
    // Whoever may not give the folder to the image's user runs the program as themselves.
    let (me, mine) = (geteuid(), getegid());
    let user = if me.is_root() {
        let (user, group) = (Uid::from_raw(USER), Gid::from_raw(USER));
        chown(state.path(), Some(user), Some(group)).unwrap();
        format!("{USER}:{USER}")
    } else {
        format!("{}:{}", me.as_raw(), mine.as_raw())
    };
    let socket = stat(engine::SOCKET).unwrap();

    let name = format!("glovebox-gateway-{installation}");
    let mut child = Command::new("docker")
        .args(["run", "--name", &name])
        .args(SEALED)
        .args(["--user", &user])
        .args(["--group-add", &socket.st_gid.to_string()])
        .args(["--volume", &volume(Path::new(engine::SOCKET))])
        .args(["--volume", &volume(state.path())])
        .args(["--publish", "127.0.0.1::9443"])
        .args(["--env", "GATEWAY_RUNTIME=docker"])
        .args(["--env", "GATEWAY_LISTEN=0.0.0.0:9443"])
        .args(["--env", "GATEWAY_LISTEN_ANYWAY=reachable-from-sandboxes"])
        .args(["--env", &format!("GATEWAY_CREDENTIALS={written}")])
        .args(["--env", &format!("GATEWAY_AGENT_KEYS={}", key.public())])
        .args(["--env", &format!("GATEWAY_INSTALLATION_ID={installation}")])
        .args([
            "--env",
            &format!("GATEWAY_STATE_DIR={}", state.path().display()),
        ])
        .arg(image())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut printed = BufReader::new(child.stdout.take().unwrap());
    let container = Container { name, child };
    let mut said = String::new();
    while !said.contains("\"listening\"") {
        let read = told.read_line(&mut said).unwrap();
        assert!(read > 0, "the gateway has ended: {said}");
    }
    std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
    let mut line = String::new();
    printed.read_line(&mut line).unwrap();
    let pin = line.trim().strip_prefix("fingerprint ").unwrap();

    let published = engine::docker(&["port", &container.name, "9443"]);
    let address = format!("https://{}", published.lines().next().unwrap());
    let trust = Trust::pinned(pin.parse().unwrap());
    let address = GatewayAddress::parse(&address, Some(trust), false).unwrap();
    let identity = GatewayIdentity {
        credential,
        installation: Some(installation),
    };
    let client = GatewayClient::new(identity, address);
    let runtime = Arc::new(GatewayRuntime::of(client.clone()).await.unwrap());
    let subject = Subject::new(runtime, installation, embedded::PYTHON).through(client, key);
    let guest = subject.create().await;
    assert_eq!(guest.execute("print(6 * 7)").await.text(), "42\n");
    assert_eq!(engine::containers(installation).len(), 1);
    guest.remove().await;
    assert!(engine::containers(installation).is_empty());

    drop(container);
    let mut rest = String::new();
    printed.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "the fingerprint is printed once");
}
