//! The watcher of ambiguous requests against the parser that the HTTP library uses: as long as the
//! watcher lets bytes pass, both find the same requests in them, however they are cut.

#![no_main]

use glovebox_fuzz::{Bytes, pieces};
use glovebox_protocol::strict::Scanner;
use libfuzzer_sys::fuzz_target;

/// As many headers as the HTTP library takes.
const MAX_HEADERS: usize = 100;

fn is_ambiguous(parts: &[&[u8]]) -> bool {
    let mut scanner = Scanner::default();
    parts.iter().for_each(|part| scanner.scan(part));
    scanner.is_ambiguous()
}

/// Whether the watcher believes that a request begins behind these bytes. It is asked by what it
/// makes of requests that would not be requests anywhere else: in a body all of them would pass,
/// within a head one of the first two would not.
fn is_between_requests(seen: &[u8]) -> bool {
    !is_ambiguous(&[seen, b"GET / HTTP/1.1\r\n\r\n"])
        && !is_ambiguous(&[seen, b"\r\nGET / HTTP/1.1\r\n\r\n"])
        && is_ambiguous(&[seen, b"#\r\n\r\n"])
}

/// The length of the body that these headers announce, where the library could take them in one
/// way only.
fn announced(headers: &[httparse::Header<'_>]) -> usize {
    let named = |name: &'static str| {
        let all = headers.iter();
        all.filter(move |header| header.name.eq_ignore_ascii_case(name))
    };
    assert_eq!(named("transfer-encoding").count(), 0);
    let lengths: Vec<_> = named("content-length").collect();
    match lengths[..] {
        [] => 0,
        [one] => {
            let text = std::str::from_utf8(one.value).expect("a length that passed is digits");
            let digits = text.trim_ascii();
            assert!(digits.bytes().all(|byte| byte.is_ascii_digit()), "{digits}");
            digits.parse().expect("a length that passed is a number")
        }
        _ => panic!("two lengths passed"),
    }
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes::new(data);
    let cuts = bytes.few();
    let wire = bytes.rest();

    let mut scanner = Scanner::default();
    for piece in pieces(wire, cuts) {
        let before = scanner.is_ambiguous();
        scanner.scan(piece);
        assert!(!before || scanner.is_ambiguous(), "it was taken back");
    }
    assert_eq!(
        scanner.is_ambiguous(),
        is_ambiguous(&[wire]),
        "cut and whole"
    );
    if scanner.is_ambiguous() {
        return;
    }

    let mut at = 0;
    while at < wire.len() {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        // A fault ends the connection, and what is not whole has no effect.
        let Ok(httparse::Status::Complete(head)) = request.parse(&wire[at..]) else {
            return;
        };
        assert!(!request.path.is_some_and(|path| path.contains('#')));
        let body = announced(request.headers);
        at += head;
        if wire.len() - at < body {
            // Of a body that is not all there the watcher awaits the rest.
            assert!(!is_ambiguous(&[wire, b"#"]));
            return;
        }
        at += body;
        assert!(is_between_requests(&wire[..at]), "another end of a request");
    }
});
