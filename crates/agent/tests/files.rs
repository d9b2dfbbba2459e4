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
        let content: Vec<u8> = (0..bytes)
            .map(|n| ((n * 7 + n / 251) % 256).try_into().unwrap())
            .collect();
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
            let limits = &mut config.claim.as_mut().unwrap().input_limits;
            limits.file_bytes = 1000;
            limits.total_bytes = 1500;
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

#[tokio::test]
async fn a_path_that_leaves_the_workspace_is_refused() {
    let test = TestAgent::start().await;
    let outside = test.workspace.parent().unwrap().join("workspace2");
    fs_err::create_dir(&outside).unwrap();
    for target in [
        "..",
        "../workspace2/x",
        "%2e%2e/x",
        "%2E%2E/x",
        "a/../../x",
        "/etc/passwd",
        "%2Fetc%2Fpasswd",
        "a%2Fb",
        "a%252Fb/..",
        "a//b",
        "./a",
        "a/.",
        "a/",
        "",
        "a%00b",
        "a\\..\\b%",
        "%",
        "%zz",
        &"a/".repeat(3000),
        &"n".repeat(256),
    ] {
        for (method, noun) in [
            ("PUT", "files"),
            ("GET", "files"),
            ("DELETE", "files"),
            ("GET", "stat"),
        ] {
            let status =
                support::signed_status(&test, method, &format!("/v1/{noun}/{target}")).await;
            assert!(
                matches!(status, 400 | 404 | 414),
                "{method} {noun}/{target}: {status}"
            );
        }
    }
    assert_eq!(fs_err::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(fs_err::read_dir(&test.workspace).unwrap().count(), 0);
}

#[tokio::test]
async fn links_and_special_files_are_neither_read_nor_written_through() {
    let test = TestAgent::start().await;
    let outside = test.workspace.parent().unwrap().join("outside");
    fs_err::create_dir(&outside).unwrap();
    let sentinel = outside.join("sentinel");
    fs_err::write(&sentinel, "untouched").unwrap();
    let link = |to: &std::path::Path, name: &str| {
        fs_err::os::unix::fs::symlink(to, test.workspace.join(name)).unwrap();
    };
    link(&sentinel, "file-link");
    link(&outside, "folder-link");
    link(std::path::Path::new("/proc/self/environ"), "proc-link");
    link(std::path::Path::new("loop"), "loop");
    link(std::path::Path::new("file-link"), "chain");
    let fifo = test.workspace.join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(test.workspace.join("socket")).unwrap();
    fs_err::create_dir(test.workspace.join("folder")).unwrap();
    fs_err::write(test.workspace.join("folder/inner"), "").unwrap();
    for file in [
        "file-link",
        "folder-link",
        "folder-link/sentinel",
        "proc-link",
        "loop",
        "chain",
        "fifo",
        "socket",
        "folder",
    ] {
        let error = test.client.get_bytes(&name(file), 1000).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::Conflict), "reading {file}");
        let error = test
            .client
            .put_bytes(&name(file), "changed".into())
            .await
            .unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::Conflict), "writing {file}");
    }
    let error = test
        .client
        .put_bytes(&name("folder-link/new/deep"), "x".into())
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Conflict));
    assert_eq!(fs_err::read_to_string(&sentinel).unwrap(), "untouched");
    assert_eq!(fs_err::read_dir(&outside).unwrap().count(), 1);
    // Looking and removing deal with the link itself.
    assert_eq!(
        test.client.stat(&name("chain")).await.unwrap().kind,
        FileKind::Symlink
    );
    assert_eq!(
        test.client.stat(&name("fifo")).await.unwrap().kind,
        FileKind::Special
    );
    for file in ["file-link", "folder-link", "fifo", "folder/inner", "folder"] {
        test.client.delete(&name(file)).await.unwrap();
    }
    assert!(
        test.client
            .delete(&name("folder-link/sentinel"))
            .await
            .is_err()
    );
    assert_eq!(fs_err::read_to_string(&sentinel).unwrap(), "untouched");
    // Nothing that was refused left its beginning behind.
    let left = test.client.list(None).await.unwrap();
    assert!(
        !left.entries.iter().any(|entry| entry.name.is_hidden()),
        "{left:?}"
    );
}

#[tokio::test]
async fn a_file_is_replaced_whole_and_a_file_that_is_not_there_is_404() {
    let test = TestAgent::start().await;
    test.client
        .put_bytes(&name("f"), "a longer first".into())
        .await
        .unwrap();
    test.client
        .put_bytes(&name("f"), "second".into())
        .await
        .unwrap();
    assert_eq!(
        test.client.get_bytes(&name("f"), 100).await.unwrap(),
        b"second"
    );
    for result in [
        test.client.get_bytes(&name("none"), 1).await.map(drop),
        test.client.stat(&name("none")).await.map(drop),
        test.client.delete(&name("none")).await,
        test.client.get_bytes(&name("f/below"), 1).await.map(drop),
    ] {
        assert_eq!(result.unwrap_err().code(), Some(ErrorCode::NotFound));
    }
}

#[tokio::test]
async fn a_file_of_another_hash_or_length_is_not_put() {
    let test = TestAgent::start().await;
    let wrong = glovebox_protocol::sign::BodyDigest::of(b"other");
    let error = test
        .client
        .put(&name("f"), &mut &b"bytes"[..], 5, wrong)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::BodyMismatch));
    let right = glovebox_protocol::sign::BodyDigest::of(b"bytes");
    let short = test
        .client
        .put(&name("f"), &mut &b"byt"[..], 5, right)
        .await;
    assert!(short.is_err());
    test.client.status().await.unwrap();
    while fs_err::read_dir(&test.workspace).unwrap().count() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(test.client.status().await.unwrap().input_bytes, 0);
    test.client
        .put(&name("f"), &mut &b"bytes and more"[..], 5, right)
        .await
        .unwrap();
    assert_eq!(
        fs_err::read_to_string(test.workspace.join("f")).unwrap(),
        "bytes"
    );
}
