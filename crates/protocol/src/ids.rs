//! Typed ids. No bare `Uuid` or `String` stands for an object anywhere in the project.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An id was not a lowercase, hyphenated UUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a lowercase UUID")]
pub struct InvalidId {
    given: String,
}

macro_rules! typed_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Uuid);

        impl $name {
            /// Makes a new id. Ids sort by the time they were made; they prove nothing and
            /// are no secret.
            #[must_use]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                parse_canonical(text).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.to_string()
            }
        }
    };
}

typed_id! {
    /// One sealed box with one workspace folder.
    SandboxId
}
typed_id! {
    /// One installation of Glovebox: a server with its gateways, or one `glovebox run`.
    InstallationId
}
typed_id! {
    /// One gateway; made with its state folder, and kept as long as that.
    GatewayId
}
typed_id! {
    /// One run of code in a sandbox: a process from start to exit, or one call of a kernel.
    ExecutionId
}

typed_id! {
    /// A person who can sign in.
    UserId
}
typed_id! {
    /// One sign-in of a person in one browser.
    SessionId
}
typed_id! {
    /// One attempt to sign in.
    AttemptId
}
typed_id! {
    /// A key with which a program calls the server.
    ApiKeyId
}
typed_id! {
    /// A group of workspaces that share a runtime profile.
    OrganizationId
}
typed_id! {
    /// People who work together, with their sandboxes, files and threads.
    WorkspaceId
}
typed_id! {
    /// One named, complete target for sandboxes.
    ProfileId
}
typed_id! {
    /// One look at a profile: a test or a canary.
    CheckId
}
typed_id! {
    /// One version of a file that left a sandbox.
    ArtifactId
}
typed_id! {
    /// One row of a queue.
    TaskId
}
typed_id! {
    /// One entry of the audit log.
    AuditId
}
typed_id! {
    /// One refusal by the gate that the workspace is shown.
    DenialId
}
typed_id! {
    /// One conversation in a workspace.
    ThreadId
}
typed_id! {
    /// One message of a thread: what a person sent, or a reply to it.
    MessageId
}
typed_id! {
    /// One file that a person attached to a message, or is about to.
    AttachmentId
}
typed_id! {
    /// One file of a workspace's knowledge base.
    KnowledgeFileId
}
typed_id! {
    /// What one file looks like, made once for a workspace.
    PreviewId
}
typed_id! {
    /// One model endpoint that chat may ask.
    ModelId
}

/// Accepts exactly the form that `Display` writes, so that one object has one spelling in
/// paths, logs and signatures.
fn parse_canonical(text: &str) -> Result<Uuid, InvalidId> {
    let refused = || InvalidId {
        given: text.chars().take(64).collect(),
    };
    let id = Uuid::try_parse(text).map_err(|_| refused())?;
    if id.as_hyphenated().to_string() == text {
        Ok(id)
    } else {
        Err(refused())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        let id = SandboxId::new();
        let text = id.to_string();
        assert_eq!(text.parse::<SandboxId>().unwrap(), id);
        for other in [
            text.to_uppercase(),
            text.replace('-', ""),
            format!("{{{text}}}"),
            format!("urn:uuid:{text}"),
            format!(" {text}"),
        ] {
            assert!(other.parse::<SandboxId>().is_err(), "{other} was accepted");
        }
    }

    #[test]
    fn ids_sort_by_age() {
        let ids: Vec<_> = (0..1000).map(|_| ExecutionId::new()).collect();
        assert!(ids.is_sorted());
    }
}
