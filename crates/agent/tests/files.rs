//! Files in and out of an agent.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use bytes::Bytes;
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::file::{FileKind, FileName};
use support::{TestAgent, name};

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn a_file_comes_back_as_it_went_in() {
    let test = TestAgent::start().await;
    for bytes in [0, 1, 4096, 25 * MIB] {
        let content: Vec<u8> = (0..bytes).map(|n| (n * 7 + n / 251) as u8).collect();
        let put = test
            .client
            .put_bytes(&name("a file"), content.clone().into())
            .await
            .unwrap();
        assert_eq!(put.bytes, bytes as u64);
        let back = test
            .client
            .get_bytes(&name("a file"), 1 << 40)
            .await
            .unwrap();
        assert!(back == content, "{bytes} bytes came back changed");
    }
    assert_eq!(fs_err::read_dir(&test.workspace).unwrap().count(), 1);
}

#[tokio::test]
async fn a_local_file_is_streamed_in() {
    let test = TestAgent::start().await;
    let local = tempfile::NamedTempFile::new().unwrap();
    let content = vec![42; 3 * MIB + 17];
    fs_err::write(local.path(), &content).unwrap();
    test.client
        .put_path(&name("x/y/z.bin"), local.path())
        .await
        .unwrap();
    assert!(fs_err::read(test.workspace.join("x/y/z.bin")).unwrap() == content);
}

#[tokio::test]
async fn names_may_be_any_bytes() {
    let test = TestAgent::start().await;
    let names = [
        &b"with space"[..],
        b"quotes ' \" `",
        "\u{1f427} caf\u{e9} \u{65e5}\u{672c}".as_bytes(),
        b"-rf",
        &[b'n'; 255],
        b"not text \xff\xfe",
        b"new\nline",
        b"a%2Fb?c#d",
        b"deep/er/and deeper/file",
        b"CON",
        b"dot.",
    ];
    for bytes in names {
        let name = FileName::from_bytes(bytes).unwrap();
        test.client
            .put_bytes(&name, Bytes::copy_from_slice(bytes))
            .await
            .unwrap();
        assert_eq!(
            test.client.get_bytes(&name, 1000).await.unwrap(),
            bytes,
            "{name}"
        );
        assert_eq!(test.client.stat(&name).await.unwrap().kind, FileKind::File);
    }
    let listing = test.client.list(None).await.unwrap();
    assert!(listing.entries.is_sorted_by(|a, b| a.name < b.name));
    let files = listing
        .entries
        .iter()
        .filter(|entry| entry.kind == FileKind::File)
        .count();
    assert_eq!(files, names.len());
}

#[tokio::test]
async fn what_is_over_the_input_limits_is_refused_and_leaves_nothing() {
    let test = TestAgent::start_with(
        |config| {
            config.input_limits.file_bytes = 1000;
            config.input_limits.total_bytes = 1500;
        },
        Default::default(),
    )
    .await;
    let put = async |bytes: usize| {
        test.client
            .put_bytes(&name("f"), vec![1; bytes].into())
            .await
            .map(drop)
    };
    assert_eq!(
        put(1001).await.unwrap_err().code(),
        Some(ErrorCode::InputLimit)
    );
    assert_eq!(
        put(30 * MIB).await.unwrap_err().code(),
        Some(ErrorCode::InputLimit)
    );
    assert!(!test.workspace.join("f").exists());
    put(1000).await.unwrap();
    assert_eq!(
        put(501).await.unwrap_err().code(),
        Some(ErrorCode::InputLimit)
    );
    put(500).await.unwrap();
    assert_eq!(test.client.status().await.unwrap().input_bytes, 1500);
}
