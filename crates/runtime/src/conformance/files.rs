//! Files in and out.

use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::file::FileName;
use glovebox_protocol::sign::BodyDigest;

use super::Subject;
use super::subject::name;

pub async fn a_file_comes_out_as_it_went_in(subject: &Subject) {
    let guest = subject.create().await;
    let large: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    for content in [Vec::new(), b"one line\n".to_vec(), large] {
        let put = guest
            .client
            .put_bytes(&name("data.bin"), content.clone().into())
            .await
            .unwrap();
        assert_eq!(put.sha256, BodyDigest::of(&content));
        let seen = guest
            .python(
                "import hashlib; print(hashlib.sha256(open('data.bin','rb').read()).hexdigest())",
            )
            .await;
        assert_eq!(seen.text().trim(), put.sha256.to_string());
        let back = guest.client.get_bytes(&name("data.bin"), 4_000_000).await;
        assert_eq!(back.unwrap(), content);
    }
    guest.remove().await;
}

pub async fn any_name_that_linux_takes_is_taken(subject: &Subject) {
    let guest = subject.create().await;
    let longest = "n".repeat(255);
    let names: [&[u8]; 9] = [
        b"a b.csv",
        b"it's \"quoted\".csv",
        "données 数据 🐧.csv".as_bytes(),
        b"-rf",
        longest.as_bytes(),
        b"no \xff\xfe text",
        b"new\nline",
        b"semi;colon&$(id)`x`",
        b"%41%2e",
    ];
    for bytes in names {
        let file = FileName::from_bytes(bytes).unwrap();
        guest
            .client
            .put_bytes(&file, bytes.to_vec().into())
            .await
            .unwrap();
    }
    let seen = guest
        .python("import os; print(sorted(os.listdir(b'.')) == sorted(open(n,'rb').read() for n in os.listdir(b'.')))")
        .await;
    assert_eq!(seen.text(), "True\n");
    let listing = guest.client.list(None).await.unwrap();
    let mut listed: Vec<_> = listing.entries.iter().map(|e| e.name.as_bytes()).collect();
    listed.sort_unstable();
    let mut expected = names.to_vec();
    expected.sort_unstable();
    assert_eq!(listed, expected);
    for bytes in names {
        let file = FileName::from_bytes(bytes).unwrap();
        assert_eq!(guest.client.get_bytes(&file, 4096).await.unwrap(), bytes);
    }
    guest.remove().await;
}

pub async fn a_folder_is_made_on_the_way(subject: &Subject) {
    let guest = subject.create().await;
    guest.put("a/b/c.txt", b"deep").await;
    let seen = guest.python("print(open('a/b/c.txt').read())").await;
    assert_eq!(seen.text(), "deep\n");
    let refused = guest
        .client
        .put_bytes(&name("a/b/c.txt/d"), b"x".to_vec().into())
        .await;
    assert!(refused.is_err(), "a file was taken for a folder");
    guest.remove().await;
}

pub async fn input_over_the_limit_is_refused_and_leaves_nothing(subject: &Subject) {
    let mut spec = subject.spec();
    spec.input_limits.file_bytes = 1000;
    spec.input_limits.total_bytes = 1500;
    let guest = subject.create_as(spec).await;
    let put = async |file: &str, size: usize| {
        guest
            .client
            .put_bytes(&name(file), vec![b'x'; size].into())
            .await
    };
    assert_eq!(
        put("large", 1001).await.unwrap_err().code(),
        Some(ErrorCode::InputLimit)
    );
    put("fits", 1000).await.unwrap();
    assert_eq!(
        put("total", 501).await.unwrap_err().code(),
        Some(ErrorCode::InputLimit)
    );
    put("rest", 500).await.unwrap();
    let seen = guest
        .python("import os; print(sorted(os.listdir('.')))")
        .await;
    assert_eq!(seen.text(), "['fits', 'rest']\n");
    guest.remove().await;
}

pub async fn a_link_is_never_followed(subject: &Subject) {
    let guest = subject.create().await;
    let made = guest
        .python("import os; os.mkdir('d'); os.symlink('/etc/passwd','link'); os.symlink('/etc','folder'); os.symlink('loop','loop')")
        .await;
    assert!(made.ended.outcome.is_success(), "{made:?}");
    for file in ["link", "folder/passwd", "loop", "d/../link"] {
        let Ok(file) = FileName::from_bytes(file) else {
            continue;
        };
        let got = guest.client.get_bytes(&file, 1 << 20).await;
        assert!(got.is_err(), "{file} was read: {got:?}");
    }
    let written = guest
        .client
        .put_bytes(&name("folder/new"), b"x".to_vec().into())
        .await;
    assert!(written.is_err(), "a file was written through a link");
    guest.remove().await;
}

pub async fn a_deleted_file_is_gone(subject: &Subject) {
    let guest = subject.create().await;
    guest.put("here", b"x").await;
    guest.client.delete(&name("here")).await.unwrap();
    let got = guest.client.get_bytes(&name("here"), 10).await;
    assert_eq!(got.unwrap_err().code(), Some(ErrorCode::NotFound));
    let again = guest.client.delete(&name("here")).await;
    assert_eq!(again.unwrap_err().code(), Some(ErrorCode::NotFound));
    guest.remove().await;
}
