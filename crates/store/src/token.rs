//! Random tokens: shown once, stored as their hash.

use std::fmt;

use ring::rand::{SecureRandom as _, SystemRandom};
use zeroize::Zeroizing;

use crate::error::StoreError;

/// How many random bytes a token has.
const BYTES: usize = 32;

/// A token that proves something to whoever holds it: 256 random bits after a word that says
/// what it is for. It does not print itself.
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

/// What is stored of a token.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenHash(String);

impl Token {
    /// Makes a new one that begins with `prefix`, so that people and scanners see what it is.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn random(prefix: &str) -> Result<Self, StoreError> {
        let mut bytes = Zeroizing::new([0; BYTES]);
        SystemRandom::new()
            .fill(bytes.as_mut())
            .map_err(|_| StoreError::Random)?;
        Ok(Self(Zeroizing::new(format!("{prefix}{}", hex(&*bytes)))))
    }

    /// Takes what somebody sent as their token.
    #[must_use]
    pub fn unverified(text: &str) -> Self {
        Self(Zeroizing::new(text.to_owned()))
    }

    /// The token itself: for the one who is to have it, and for nobody else.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What is stored of it. A token has too many values to be guessed from its hash, so that
    /// no slow hash is needed.
    #[must_use]
    pub fn hash(&self) -> TokenHash {
        let digest = ring::digest::digest(&ring::digest::SHA256, self.0.as_bytes());
        TokenHash(hex(digest.as_ref()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl TokenHash {
    /// The hash in hexadecimal.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Bytes as lowercase hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_do_not_print_themselves() {
        let (one, other) = (Token::random("gb_").unwrap(), Token::random("gb_").unwrap());
        assert_ne!(one.reveal(), other.reveal());
        assert_eq!(one.reveal().len(), 3 + 2 * BYTES);
        assert_eq!(one.hash(), Token::unverified(one.reveal()).hash());
        assert!(!format!("{one:?}").contains(&one.reveal()[3..]));
    }
}
