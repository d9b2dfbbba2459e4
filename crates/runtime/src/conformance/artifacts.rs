//! Collecting what a program saved.

use std::collections::BTreeMap;

use glovebox_protocol::artifact::{LeftOutReason, Sweep, Swept};

use super::Subject;

fn collected(swept: &Swept) -> Vec<String> {
    swept
        .artifacts
        .iter()
        .map(|a| a.name.for_display())
        .collect()
}

fn left_out(swept: &Swept) -> BTreeMap<String, LeftOutReason> {
    swept
        .left_out
        .iter()
        .map(|l| (l.name.for_display(), l.reason))
        .collect()
}

pub async fn only_allowed_types_leave(subject: &Subject) {
    let guest = subject.create().await;
    guest
        .python(
            "import os\n\
             os.mkdir('sub'); os.mkdir('.cache')\n\
             for n in ['b.csv','a.txt','c.json','sub/d.md','TEXT.TXT','x.py','noending','x.csv.exe','.hidden.txt','.cache/y.txt']:\n\
             \x20   open(n,'w').write('1,2\\n')",
        )
        .await;
    let swept = guest.client.sweep(&Sweep::default()).await.unwrap();
    assert_eq!(
        collected(&swept),
        ["TEXT.TXT", "a.txt", "b.csv", "c.json", "sub/d.md"]
    );
    let reasons = left_out(&swept);
    for file in ["x.py", "noending", "x.csv.exe"] {
        assert_eq!(reasons[file], LeftOutReason::TypeNotAllowed, "{file}");
    }
    for file in [".hidden.txt", ".cache/y.txt"] {
        // A hidden folder may be told as one entry.
        let told = reasons.get(file).or_else(|| reasons.get(".cache"));
        assert_eq!(told, Some(&LeftOutReason::Hidden), "{file}");
    }
    guest.remove().await;
}

pub async fn a_file_whose_content_belies_its_name_stays(subject: &Subject) {
    let guest = subject.create().await;
    guest
        .python(
            "open('page.png','w').write('<html><script>1</script></html>')\n\
             open('sheet.xlsx','wb').write(b'MZ\\x90\\x00')\n\
             open('text.txt','wb').write(b'\\x7fELF\\x00\\x01')\n\
             open('ok.png','wb').write(bytes.fromhex('89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000000000500010d0a2db40000000049454e44ae426082'))",
        )
        .await;
    let swept = guest.client.sweep(&Sweep::default()).await.unwrap();
    assert_eq!(collected(&swept), ["ok.png"]);
    assert_eq!(swept.artifacts[0].media_type, "image/png");
    let reasons = left_out(&swept);
    for file in ["page.png", "sheet.xlsx", "text.txt"] {
        assert_eq!(reasons[file], LeftOutReason::ContentMismatch, "{file}");
    }
    guest.remove().await;
}

pub async fn links_and_special_files_stay(subject: &Subject) {
    let guest = subject.create().await;
    guest
        .python(
            "import os, socket\n\
             open('real.txt','w').write('x')\n\
             os.symlink('/etc/passwd','link.txt'); os.symlink('real.txt','near.txt')\n\
             open('twice.txt','w').write('y'); os.link('twice.txt','again.txt')\n\
             os.mkfifo('pipe.txt')\n\
             socket.socket(socket.AF_UNIX).bind('socket.txt')",
        )
        .await;
    let swept = guest.client.sweep(&Sweep::default()).await.unwrap();
    assert_eq!(collected(&swept), ["real.txt"]);
    let reasons = left_out(&swept);
    for (file, reason) in [
        ("link.txt", LeftOutReason::Symlink),
        ("near.txt", LeftOutReason::Symlink),
        ("twice.txt", LeftOutReason::HardLink),
        ("again.txt", LeftOutReason::HardLink),
        ("pipe.txt", LeftOutReason::Special),
        ("socket.txt", LeftOutReason::Special),
    ] {
        assert_eq!(reasons[file], reason, "{file}");
    }
    guest.remove().await;
}

pub async fn an_unchanged_input_stays_and_a_changed_one_leaves(subject: &Subject) {
    let guest = subject.create().await;
    guest.put("same.csv", b"1,2\n").await;
    guest.put("changed.csv", b"1,2\n").await;
    guest.put("touched.csv", b"1,2\n").await;
    guest
        .python(
            "open('changed.csv','a').write('3,4\\n')\n\
             open('touched.csv','w').write('1,2\\n')\n\
             open('copy.csv','w').write(open('same.csv').read())",
        )
        .await;
    let swept = guest.client.sweep(&Sweep::default()).await.unwrap();
    assert_eq!(collected(&swept), ["changed.csv", "copy.csv"]);
    let reasons = left_out(&swept);
    for file in ["same.csv", "touched.csv"] {
        assert_eq!(reasons[file], LeftOutReason::UnchangedInput, "{file}");
    }
    guest.remove().await;
}

pub async fn a_collection_is_bounded_in_files_and_bytes(subject: &Subject) {
    let guest = subject.create().await;
    guest
        .python(
            "for n in range(30): open(f'{n:02}.txt','w').write('x')\n\
             open('0.big.txt','w').write('x' * 5000)",
        )
        .await;
    let sweep = Sweep {
        max_bytes: 1000,
        ..Sweep::default()
    };
    let swept = guest.client.sweep(&sweep).await.unwrap();
    assert_eq!(swept.artifacts.len(), 25);
    let reasons = left_out(&swept);
    assert_eq!(reasons["0.big.txt"], LeftOutReason::TooManyBytes);
    let over = reasons
        .values()
        .filter(|r| **r == LeftOutReason::TooManyFiles)
        .count();
    assert_eq!(over, 5);
    guest.remove().await;
}
