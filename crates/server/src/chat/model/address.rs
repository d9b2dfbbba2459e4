//! Where an endpoint may be: what a system admin may enter, and what its name may stand for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use url::{Host, Url};

use super::error::ModelError;

/// What people enter who copy the whole address of a call.
const CALL: &str = "/chat/completions";

/// The address under which an endpoint has its calls, such as `https://api.example.com/v1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    url: Url,
    /// Without a slash at its end.
    text: String,
}

/// A text is no address of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBaseUrl {
    /// It is no address at all.
    #[error("that is no address of the form https://HOST/v1")]
    NoUrl,
    /// It is one of another kind.
    #[error("an endpoint is reached by https:// or http://")]
    Scheme,
    /// It has a user or password in it.
    #[error("the address has a user or password in it, where everybody would see it")]
    Credentials,
    /// It has a question mark or a number sign.
    #[error("the address goes on after a question mark or number sign")]
    Query,
    /// It is where nothing may be asked.
    #[error("{host} is {why}, which is never asked")]
    Refused {
        /// The host.
        host: String,
        /// What it is.
        why: &'static str,
    },
}

impl BaseUrl {
    /// Reads it.
    ///
    /// # Errors
    /// When it is none, or is one that is never asked.
    pub fn parse(text: &str) -> Result<Self, InvalidBaseUrl> {
        let mut url = Url::parse(text.trim()).map_err(|_| InvalidBaseUrl::NoUrl)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(InvalidBaseUrl::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(InvalidBaseUrl::Credentials);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(InvalidBaseUrl::Query);
        }
        let path = url.path().trim_end_matches('/');
        let path = path.strip_suffix(CALL).unwrap_or(path);
        let path = path.trim_end_matches('/').to_owned();
        url.set_path(&path);
        let literal = match url.host() {
            None => return Err(InvalidBaseUrl::NoUrl),
            Some(Host::Domain(_)) => None,
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        };
        if let Some(why) = literal.and_then(never_asked) {
            let host = url.host_str().unwrap_or_default().to_owned();
            return Err(InvalidBaseUrl::Refused { host, why });
        }
        let text = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self { url, text })
    }

    /// The address without a slash at its end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether both are at the same place: the same kind of connection, host and port. A key that
    /// was entered for one is only then sent to the other.
    #[must_use]
    pub fn is_same_place(&self, other: &Self) -> bool {
        self.url.scheme() == other.url.scheme()
            && self.url.host() == other.url.host()
            && self.port() == other.port()
    }

    /// Whether what is sent travels encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The host as it stands in the address.
    #[must_use]
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Host and port, as messages and the header `Host` have them.
    #[must_use]
    pub fn place(&self) -> String {
        match self.url.port() {
            None => self.host().to_owned(),
            Some(port) => format!("{}:{port}", self.host()),
        }
    }

    fn port(&self) -> u16 {
        // Both schemes have one.
        self.url.port_or_known_default().unwrap_or(443)
    }

    /// The target of a call, such as `/v1/chat/completions`.
    pub(super) fn target(&self, call: &str) -> String {
        format!("{}{call}", self.url.path().trim_end_matches('/'))
    }

    /// Where connections may go: what the host stands for now, without what is never asked. Whoever
    /// connects takes exactly these, so that no second look at the name can give others.
    ///
    /// # Errors
    /// When the name stands for nothing, or for nothing that may be asked.
    pub async fn resolve(&self) -> Result<Vec<SocketAddr>, ModelError> {
        let found: Vec<SocketAddr> = match self.url.host() {
            Some(Host::Ipv4(address)) => vec![(address, self.port()).into()],
            Some(Host::Ipv6(address)) => vec![(address, self.port()).into()],
            Some(Host::Domain(name)) => tokio::net::lookup_host((name, self.port()))
                .await
                .map_err(|source| ModelError::Resolve {
                    host: name.to_owned(),
                    source,
                })?
                .collect(),
            None => Vec::new(),
        };
        allowed(self.host(), found)
    }
}

/// The addresses that may be asked, of those that a host stands for.
fn allowed(host: &str, found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, ModelError> {
    let mut why_not = "no address";
    let mut allowed = Vec::new();
    for address in found {
        match never_asked(address.ip()) {
            None => allowed.push(address),
            Some(why) => why_not = why,
        }
    }
    if allowed.is_empty() {
        return Err(ModelError::AddressRefused {
            host: host.to_owned(),
            why: why_not,
        });
    }
    Ok(allowed)
}

/// What an address is, where it is never asked: machines of a cloud tell secrets to whoever asks
/// from there. Private and loopback addresses are fine, as models on the own network are normal.
fn never_asked(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => never_asked_v4(address),
        IpAddr::V6(address) => never_asked_v6(address),
    }
}

fn never_asked_v4(address: Ipv4Addr) -> Option<&'static str> {
    const METADATA: [Ipv4Addr; 3] = [
        Ipv4Addr::new(100, 100, 100, 200),
        Ipv4Addr::new(168, 63, 129, 16),
        Ipv4Addr::new(192, 0, 0, 192),
    ];
    if address.is_link_local() {
        Some("a link-local address")
    } else if METADATA.contains(&address) {
        Some("a metadata address of a cloud")
    } else if address.octets()[0] == 0 || address.is_broadcast() || address.is_multicast() {
        Some("no address of one machine")
    } else {
        None
    }
}

fn never_asked_v6(address: Ipv6Addr) -> Option<&'static str> {
    const METADATA: [Ipv6Addr; 2] = [
        Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
        Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    ];
    let words = address.segments();
    if let Some(inner) = inner_v4(words) {
        return never_asked_v4(inner);
    }
    if address.is_unicast_link_local() {
        Some("a link-local address")
    } else if METADATA.contains(&address) {
        Some("a metadata address of a cloud")
    } else if address.is_unspecified() || address.is_multicast() {
        Some("no address of one machine")
    } else {
        None
    }
}

/// The address of version 4 that one of version 6 leads to.
fn inner_v4(words: [u16; 8]) -> Option<Ipv4Addr> {
    let from = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match words {
        // Loopback and "none" are of version 6.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        // Mapped, compatible, translated.
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => {
            Some(from(high, low))
        }
        // What a network translates by RFC 6052, with the well-known beginning.
        [0x64, 0xff9b, .., high, low] => Some(from(high, low)),
        // 6to4.
        [0x2002, high, low, ..] => Some(from(high, low)),
        // Teredo, which has it inside out.
        [0x2001, 0, .., high, low] => Some(from(!high, !low)),
        // ISATAP, below whatever beginning.
        [.., 0 | 0x200, 0x5efe, high, low] => Some(from(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_kept_in_one_form() {
        for (given, kept) in [
            ("https://api.example.com/v1/", "https://api.example.com/v1"),
            (" http://127.0.0.1:8080 ", "http://127.0.0.1:8080"),
            (
                "https://API.example.com:443/v1/chat/completions",
                "https://api.example.com/v1",
            ),
            ("http://[::1]:1/v1", "http://[::1]:1/v1"),
            ("http://10.0.0.7/openai/v1//", "http://10.0.0.7/openai/v1"),
        ] {
            assert_eq!(BaseUrl::parse(given).unwrap().as_str(), kept);
        }
        let url = BaseUrl::parse("http://[::1]:9/a").unwrap();
        assert_eq!(url.target("/models"), "/a/models");
        assert_eq!(url.place(), "[::1]:9");
        let bare = BaseUrl::parse("http://h").unwrap();
        assert_eq!(bare.target("/models"), "/models");
    }

    #[test]
    fn what_is_no_address_of_an_endpoint_is_refused() {
        use InvalidBaseUrl as No;
        for (given, why) in [
            ("", No::NoUrl),
            ("api.example.com/v1", No::NoUrl),
            ("ftp://a/v1", No::Scheme),
            ("file:///etc/passwd", No::Scheme),
            ("https://key@a/v1", No::Credentials),
            ("https://a/v1?key=1", No::Query),
            ("https://a/v1#x", No::Query),
        ] {
            assert_eq!(BaseUrl::parse(given), Err(why), "{given}");
        }
    }

    #[test]
    fn link_local_and_metadata_addresses_are_never_asked_however_they_are_written() {
        for host in [
            "169.254.169.254",
            "169.254.0.1",
            "2852039166",
            "0xA9FEA9FE",
            "0251.0376.0251.0376",
            "169.254.43518",
            "[fe80::1]",
            "[febf::1]",
            "[::ffff:169.254.169.254]",
            "[::169.254.169.254]",
            "[::ffff:0:169.254.169.254]",
            "[64:ff9b::169.254.169.254]",
            "[64:ff9b:1::169.254.169.254]",
            "[2002:a9fe:a9fe::1]",
            "[2001::5601:5601]",
            "[2001:0:4136:e378:8000:63bf:5601:5601]",
            "[fd00::5efe:169.254.169.254]",
            "[fd00::200:5efe:a9fe:a9fe]",
            "[fd00:ec2::254]",
            "[fd20:ce::254]",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "0.0.0.0",
            "[::]",
            "255.255.255.255",
            "224.0.0.1",
            "[ff02::1]",
        ] {
            let read = BaseUrl::parse(&format!("http://{host}/v1"));
            assert!(
                matches!(read, Err(InvalidBaseUrl::Refused { .. })),
                "{host}: {read:?}"
            );
        }
        // The control: what is near by and may be asked.
        for host in [
            "127.0.0.1",
            "[::1]",
            "10.1.2.3",
            "192.168.0.9",
            "172.16.0.1",
            "100.64.0.1",
            "[fd00::1]",
            "[64:ff9b::8.8.8.8]",
            "[2001::f7f7:f7f7]",
            "[2001:db8::5601:5601]",
            "169.253.1.1",
        ] {
            assert!(
                BaseUrl::parse(&format!("http://{host}/v1")).is_ok(),
                "{host}"
            );
        }
    }

    #[test]
    fn a_name_that_stands_for_such_an_address_is_not_asked_there() {
        let at = |text: &str| -> SocketAddr { text.parse().unwrap() };
        let metadata = at("169.254.169.254:80");
        let error = allowed("a.example.com", vec![metadata, at("[fd00:ec2::254]:80")]).unwrap_err();
        assert_eq!(error.code(), "model_address");
        assert!(error.message().contains("a.example.com is"), "{error}");
        assert!(allowed("a.example.com", Vec::new()).is_err());
        // Machines of the own network often have a link-local address beside another.
        let near = at("192.168.0.7:80");
        let found = allowed("a.local", vec![at("[fe80::1]:80"), near]);
        assert_eq!(found.unwrap(), [near]);
    }

    #[test]
    fn a_key_stays_with_its_place() {
        let at = |text| BaseUrl::parse(text).unwrap();
        let first = at("https://a.example.com/v1");
        for same in ["https://a.example.com/v2", "https://A.example.com:443/"] {
            assert!(first.is_same_place(&at(same)), "{same}");
        }
        for other in [
            "http://a.example.com/v1",
            "https://b.example.com/v1",
            "https://a.example.com:8443/v1",
            "https://a.example.com./v1",
        ] {
            assert!(!first.is_same_place(&at(other)), "{other}");
        }
    }
}
