//! Names of files: every name has one spelling on the wire and comes back from it, none leaves the
//! workspace, and none is more than a name on somebody's screen.

#![no_main]

use glovebox_protocol::file::{FileName, MAX_PART, MAX_PATH};
use libfuzzer_sys::fuzz_target;

fn holds(name: &FileName) {
    let bytes = name.as_bytes();
    assert!(!bytes.is_empty() && bytes.len() <= MAX_PATH && !bytes.contains(&0));
    for part in bytes.split(|byte| *byte == b'/') {
        assert!(!matches!(part, b"" | b"." | b"..") && part.len() <= MAX_PART);
    }
    let wire = name.encoded();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/%".contains(&byte);
    assert!(wire.bytes().all(plain), "{wire}");
    assert_eq!(wire.parse::<FileName>().as_ref(), Ok(name));
    let document = serde_json::to_string(name).expect("a name is text");
    let read: FileName = serde_json::from_str(&document).expect("its own document");
    assert_eq!(&read, name);
    assert!(!name.for_display().chars().any(char::is_control));
    assert!(bytes.ends_with(name.base()) && !name.base().contains(&b'/'));
}

fuzz_target!(|data: &[u8]| {
    if let Ok(name) = FileName::from_bytes(data) {
        assert_eq!(name.as_bytes(), data);
        holds(&name);
    }
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(name) = text.parse::<FileName>()
    {
        assert_eq!(name.encoded(), text, "a second spelling");
        holds(&name);
    }
});
