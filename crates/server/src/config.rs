//! What a server is told: checked values, wherever they came from.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use crate::tls::TlsFiles;
use crate::worker::Queue;

/// Everything that a server is told at its start.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where the metrics are served to whoever asks; nowhere where nobody says.
    pub metrics_listen: Option<SocketAddr>,
    /// The folder that holds database, master key, files and sockets.
    pub data: PathBuf,
    /// The address of the database.
    pub database: String,
    /// The certificate that it speaks TLS with, and its key; plain HTTP where nobody says.
    pub tls: Option<TlsFiles>,
    /// The address that people use, where it is not the one at which it listens.
    pub public_url: Option<PublicUrl>,
    /// Network addresses whose word about the caller's address is taken.
    pub trusted_proxies: Vec<std::net::IpAddr>,
    /// Whether plain HTTP may be spoken beyond this machine.
    pub insecure_http: bool,
    /// `false` forces code execution off whatever the console says.
    pub sandbox_enabled: bool,
    /// `false` makes profiles read-only.
    pub sandbox_gui_config: bool,
    /// For how many days after the end of a sandbox it is kept what ran in it.
    pub history_days: u32,
    /// How many streams of events there may be at once.
    pub streams: StreamLimits,
    /// The queues that it works on beside its requests.
    pub queues: Vec<Queue>,
    /// How many lines its log has lost.
    pub lost_lines: LostLines,
    /// The program `glovebox-gateway` that this server starts for sandboxes on this machine.
    pub gateway: GatewayProgram,
}

/// What runs the sandboxes of this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum MachineRuntime {
    /// The embedded runtime.
    #[default]
    Embedded,
    /// A Docker engine.
    Docker {
        /// Its socket; the usual one where nobody says.
        socket: Option<PathBuf>,
    },
}

impl MachineRuntime {
    /// Its name, as profiles and gateways have it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Docker { .. } => "docker",
        }
    }
}

/// How many streams of events may be open at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamLimits {
    /// For one person, or one key.
    pub per_caller: u32,
    /// For all of them, in this process.
    pub in_all: u32,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self {
            per_caller: 100,
            in_all: 2000,
        }
    }
}

/// Says how many lines the log has lost, whoever writes it. Clones share it.
#[derive(Clone)]
pub struct LostLines(Arc<dyn Fn() -> u64 + Send + Sync>);

/// How the gateway of this machine is started.
#[derive(Debug, Clone)]
pub struct GatewayProgram {
    /// The program.
    pub program: PathBuf,
    /// What it drives.
    pub runtime: MachineRuntime,
    /// The folder of the root tree.
    pub tree: PathBuf,
    /// The folder for its sockets.
    pub run: PathBuf,
    /// Its `PATH`, where it looks for a Python.
    pub search: std::ffi::OsString,
    /// Protections whose lack is accepted by name, separated by commas.
    pub accept_weaker: String,
    /// How many sandboxes there may be at once; its own default where nobody says.
    pub max_sandboxes: Option<u32>,
    /// How much memory they may use together, in bytes; its own default where nobody says.
    pub max_memory: Option<u64>,
}

/// The address that people use: `https://HOST[:PORT]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl(String);

/// A setting is not what it has to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} {what}; {fix}")]
pub struct InvalidSetting {
    /// Its name, as on the command line.
    pub setting: &'static str,
    /// What is wrong with it.
    pub what: String,
    /// What to do.
    pub fix: &'static str,
}

impl LostLines {
    /// What this says.
    #[must_use]
    pub fn counted_by(count: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(count))
    }

    pub(crate) fn count(&self) -> u64 {
        (self.0)()
    }
}

impl Default for LostLines {
    /// For a log that loses nothing.
    fn default() -> Self {
        Self::counted_by(|| 0)
    }
}

impl std::fmt::Debug for LostLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LostLines").field(&self.count()).finish()
    }
}

impl PublicUrl {
    /// Reads it.
    ///
    /// # Errors
    /// When it is no such address.
    pub fn parse(text: &str) -> Result<Self, InvalidSetting> {
        let refused = || InvalidSetting {
            setting: "--public-url",
            what: format!("is `{text}`, which is no https:// address without a path"),
            fix: "write it as https://glovebox.example.com",
        };
        let uri: http::Uri = text.trim_end_matches('/').parse().map_err(|_| refused())?;
        let is_plain = matches!(uri.path(), "" | "/") && uri.query().is_none();
        match (uri.scheme_str(), uri.authority()) {
            (Some("https"), Some(authority)) if is_plain && !authority.as_str().contains('@') => {
                Ok(Self(format!("https://{authority}")))
            }
            _ => Err(refused()),
        }
    }

    /// The address without a slash at its end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Config {
    /// Refuses what would let strangers listen in.
    ///
    /// # Errors
    /// When the server would speak plain HTTP beyond this machine without being told so.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        if self.tls.is_some() {
            return Ok(());
        }
        let is_local = self.listen.ip().is_loopback();
        if self.public_url.is_some() && self.trusted_proxies.is_empty() {
            return Err(InvalidSetting {
                setting: "--trusted-proxies",
                what: "is not set, while --public-url says that another program is in front".into(),
                fix: "name the addresses that its connections come from, such as 127.0.0.1: without them \
                  everybody seems to have the same one",
            });
        }
        if is_local || self.public_url.is_some() || self.insecure_http {
            return Ok(());
        }
        Err(InvalidSetting {
            setting: "--listen",
            what: format!(
                "is {}, beyond this machine, where passwords would travel readable",
                self.listen
            ),
            fix: "set --tls-cert and --tls-key, or put a program with TLS in front and set \
                  --public-url and --trusted-proxies, or set --insecure-http where everybody on the network is trusted",
        })
    }

    /// Whether people reach it over TLS.
    #[must_use]
    pub const fn is_secure(&self) -> bool {
        self.public_url.is_some() || self.tls.is_some()
    }

    /// The address to show to people.
    #[must_use]
    pub fn address(&self) -> String {
        match (&self.public_url, &self.tls) {
            (Some(url), _) => url.as_str().to_owned(),
            (None, Some(_)) => format!("https://{}", self.listen),
            (None, None) => format!("http://{}", self.listen),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(listen: &str) -> Config {
        Config {
            listen: listen.parse().unwrap(),
            metrics_listen: None,
            tls: None,
            data: "/data".into(),
            database: "sqlite:///data/glovebox.db".into(),
            public_url: None,
            trusted_proxies: Vec::new(),
            insecure_http: false,
            sandbox_enabled: true,
            sandbox_gui_config: true,
            history_days: 90,
            streams: StreamLimits::default(),
            queues: Vec::new(),
            lost_lines: LostLines::default(),
            gateway: GatewayProgram {
                program: "/bin/glovebox-gateway".into(),
                runtime: MachineRuntime::Embedded,
                tree: "/data".into(),
                run: "/run".into(),
                search: "/bin".into(),
                accept_weaker: String::new(),
                max_sandboxes: None,
                max_memory: None,
            },
        }
    }

    #[test]
    fn plain_http_beyond_this_machine_has_to_be_asked_for() {
        assert!(config("127.0.0.1:8080").check().is_ok());
        assert!(config("[::1]:8080").check().is_ok());
        let mut open = config("0.0.0.0:8080");
        assert!(open.check().is_err());
        open.insecure_http = true;
        assert!(open.check().is_ok());
        let mut behind = config("10.0.0.1:8080");
        behind.public_url = Some(PublicUrl::parse("https://gb.example.com").unwrap());
        assert!(behind.check().is_err());
        behind.listen = "127.0.0.1:8080".parse().unwrap();
        assert!(behind.check().is_err(), "everybody would have one address");
        behind.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
        assert!(behind.check().is_ok());
    }

    #[test]
    fn with_a_certificate_it_may_listen_anywhere() {
        let mut config = config("0.0.0.0:8443");
        config.tls = Some(TlsFiles {
            certificate: "/cert.pem".into(),
            key: "/key.pem".into(),
        });
        assert!(config.check().is_ok() && config.is_secure());
        assert_eq!(config.address(), "https://0.0.0.0:8443");
        config.public_url = Some(PublicUrl::parse("https://gb.example.com").unwrap());
        assert!(config.check().is_ok());
        assert_eq!(config.address(), "https://gb.example.com");
    }

    #[test]
    fn a_public_url_is_https_and_has_no_path() {
        let read = |text| PublicUrl::parse(text).map(|url| url.0);
        assert_eq!(read("https://a.b/").as_deref(), Ok("https://a.b"));
        assert_eq!(read("https://a.b:8443").as_deref(), Ok("https://a.b:8443"));
        for bad in [
            "http://a.b",
            "a.b",
            "https://a.b/c",
            "https://u@a.b",
            "https://a?b",
            "",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
