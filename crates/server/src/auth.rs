//! Who calls: passwords, sessions, keys.

mod password;

pub(crate) use password::Passwords;
pub use password::PasswordError;
