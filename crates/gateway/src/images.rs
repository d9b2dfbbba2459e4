//! Which images sandboxes may be made of.
//!
//! An image is named as engines name one: `[REGISTRY/]REPOSITORY[:TAG][@sha256:DIGEST]`. The
//! list holds repositories, and is compared with them byte for byte: an engine's short forms, such
//! as leaving out `docker.io/library/`, are other names and refused.

use std::str::FromStr;

/// Longest name of an image, in bytes.
const MAX_NAME: usize = 512;

/// What sandboxes may be made of; not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedImages(Vec<String>);

/// A text names no image, or more of one than belongs into the list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidImage(&'static str);

impl AllowedImages {
    /// The repository that `make image` builds.
    pub const DEFAULT: &'static str = "glovebox-sandbox";

    /// Whether sandboxes of this image may be made.
    #[must_use]
    pub fn allow(&self, image: &str) -> bool {
        repository(image).is_ok_and(|name| self.0.iter().any(|allowed| allowed == name))
    }

    /// Each repository, in the order in which it was given.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// Reads the form of `GATEWAY_ALLOWED_IMAGES`: repositories with commas in between.
impl FromStr for AllowedImages {
    type Err = InvalidImage;

    fn from_str(text: &str) -> Result<Self, InvalidImage> {
        let mut images = Vec::new();
        for name in text.split(',').map(str::trim) {
            if repository(name)? != name {
                return Err(InvalidImage(
                    "a tag or digest stands where only a repository may",
                ));
            }
            images.push(name.to_owned());
        }
        Ok(Self(images))
    }
}

impl std::fmt::Display for AllowedImages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

/// The repository of an image's name, registry included.
fn repository(image: &str) -> Result<&str, InvalidImage> {
    if image.len() > MAX_NAME {
        return Err(InvalidImage("the name of an image is too long"));
    }
    let (named, digest) = match image.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (image, None),
    };
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return Err(InvalidImage(
            "a digest is `sha256:` and 64 hexadecimal digits",
        ));
    }
    let last = named.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match named[last..].split_once(':') {
        Some((_, tag)) => (&named[..named.len() - tag.len() - 1], Some(tag)),
        None => (named, None),
    };
    if tag.is_some_and(|tag| !is_word(tag, 128)) {
        return Err(InvalidImage(
            "a tag is made of letters, digits, `_`, `.` and `-`",
        ));
    }
    let mut parts = name.split('/');
    let is_name = match name.split_once('/') {
        // Only the first of several parts can be a registry, which may have a port.
        Some((first, _)) => {
            parts.next();
            let (host, port) = first.split_once(':').unwrap_or((first, "0"));
            is_word(host, 255) && is_word(port, 5) && parts.all(|part| is_word(part, 255))
        }
        None => is_word(name, 255),
    };
    if is_name {
        Ok(name)
    } else {
        Err(InvalidImage(
            "an image is named as REPOSITORY, with a registry in front if need be",
        ))
    }
}

fn is_digest(digest: &str) -> bool {
    digest.strip_prefix("sha256:").is_some_and(|digits| {
        digits.len() == 64
            && digits
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}

fn is_word(text: &str, limit: usize) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    (1..=limit).contains(&text.len())
        && text.bytes().all(plain)
        && text.as_bytes()[0].is_ascii_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn an_allowed_repository_is_allowed_with_any_tag_and_digest() {
        let allowed: AllowedImages = "glovebox-sandbox, localhost:5000/team/box".parse().unwrap();
        for image in [
            "glovebox-sandbox".to_owned(),
            "glovebox-sandbox:1.2".to_owned(),
            format!("glovebox-sandbox@{DIGEST}"),
            format!("glovebox-sandbox:latest@{DIGEST}"),
            "localhost:5000/team/box:3".to_owned(),
        ] {
            assert!(allowed.allow(&image), "{image} was refused");
        }
    }

    #[test]
    fn no_trick_with_registry_tag_or_digest_names_another_image() {
        let allowed: AllowedImages = AllowedImages::DEFAULT.parse().unwrap();
        for image in [
            "",
            "glovebox-sandbox-evil",
            "evil/glovebox-sandbox",
            "docker.io/library/glovebox-sandbox",
            "localhost:5000/glovebox-sandbox",
            "glovebox-sandbox/evil",
            "glovebox-sandbox:5000/evil",
            "glovebox-sandbox@evil",
            "glovebox-sandbox@sha256:00",
            "glovebox-sandbox:a:b",
            "glovebox-sandbox:",
            "glovebox-sandbox@",
            "glovebox-sandbox@sha256:0@glovebox-sandbox",
            "Glovebox-sandbox",
            " glovebox-sandbox",
            "glovebox-sandbox\0",
            "glovebox-sandbox\n",
            "../glovebox-sandbox",
            DIGEST,
        ] {
            assert!(!allowed.allow(image), "{image:?} was allowed");
        }
        assert!(!allowed.allow(&format!("evil@{DIGEST}")));
        assert!(!allowed.allow(&"a".repeat(10_000)));
    }

    #[test]
    fn only_repositories_stand_in_the_list() {
        for list in ["", "a,", "a:1", &format!("a@{DIGEST}"), "a b"] {
            assert!(list.parse::<AllowedImages>().is_err(), "{list:?}");
        }
    }
}
