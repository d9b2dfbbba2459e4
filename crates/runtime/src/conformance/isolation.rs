//! What one sandbox can see of another, and of the world.

use std::sync::Arc;

use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::sign::SigningKey;

use super::Subject;
use crate::Capability;

pub async fn sandboxes_do_not_share_files(subject: &Subject) {
    let (one, two) = (subject.create().await, subject.create().await);
    one.put("secret.txt", b"of one").await;
    let seen = two.python("import os; print(os.listdir('.'))").await;
    assert_eq!(seen.text(), "[]\n");
    assert!(two.client.list(None).await.unwrap().entries.is_empty());
    one.remove().await;
    two.remove().await;
}

pub async fn a_request_for_one_sandbox_is_refused_by_another(subject: &Subject) {
    let (one, two) = (subject.create().await, subject.create().await);
    if let Some(crossed) = subject.crossed(one.id, two.id) {
        let refused = crossed.run(&two.script("open('pwned','w')")).await;
        let refused = refused.map(|_| ()).unwrap_err();
        assert_eq!(refused.code(), Some(ErrorCode::AuthRejected));
    }
    assert!(two.client.list(None).await.unwrap().entries.is_empty());
    one.remove().await;
    two.remove().await;
}

pub async fn a_request_with_an_unknown_key_is_refused(subject: &Subject) {
    let guest = subject.create().await;
    let stranger = subject.client(guest.id, Arc::new(SigningKey::generate().unwrap()));
    let refused = stranger
        .run(&guest.script("open('pwned','w')"))
        .await
        .map(|_| ());
    assert_eq!(refused.unwrap_err().code(), Some(ErrorCode::AuthRejected));
    assert!(guest.client.list(None).await.unwrap().entries.is_empty());
    guest.remove().await;
}

pub async fn a_sandbox_has_no_network(subject: &Subject) {
    let guest = subject.create().await;
    let ran = guest
        .python(
            "import socket\n\
             def can(family):\n\
             \x20   try: socket.socket(family); return True\n\
             \x20   except OSError: return False\n\
             print(can(socket.AF_INET), can(socket.AF_INET6), can(socket.AF_UNIX))",
        )
        .await;
    if subject.can(Capability::NoNetwork) {
        assert_eq!(ran.text(), "False False True\n");
    } else {
        assert_eq!(
            ran.text(),
            "True True True\n",
            "the capability is not claimed, and yet there"
        );
    }
    guest.remove().await;
}
