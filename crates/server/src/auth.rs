//! Who calls: passwords, sessions, keys.

mod password;

pub use password::PasswordError;
pub(crate) use password::Passwords;
