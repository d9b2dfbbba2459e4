//! What the fuzz targets share: taking the fuzzer's bytes apart.

/// The bytes of one run, from which a target takes what it needs. They never run out: what is not
/// there is zero, so that every input means something.
#[derive(Debug)]
pub struct Bytes<'a> {
    left: &'a [u8],
}

impl<'a> Bytes<'a> {
    /// All of them.
    #[must_use]
    pub const fn new(all: &'a [u8]) -> Self {
        Self { left: all }
    }

    /// Whether all have been taken.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// The next one.
    pub fn byte(&mut self) -> u8 {
        let [byte] = self.array();
        byte
    }

    /// The next `N`.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let taken = self.up_to(N);
        array[..taken.len()].copy_from_slice(taken);
        array
    }

    /// As many as the next byte says, or as there are.
    pub fn few(&mut self) -> &'a [u8] {
        let count = self.byte();
        self.up_to(usize::from(count))
    }

    /// All that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.left)
    }

    fn up_to(&mut self, count: usize) -> &'a [u8] {
        let (taken, left) = self.left.split_at(count.min(self.left.len()));
        self.left = left;
        taken
    }
}

/// Cuts bytes into pieces whose lengths the first ones of `cuts` say, over and over.
pub fn pieces<'a>(mut bytes: &'a [u8], cuts: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let lengths = cuts.iter().chain(std::iter::once(&u8::MAX)).cycle();
    lengths.map_while(move |length| {
        let (piece, rest) = bytes.split_at(usize::from(*length).max(1).min(bytes.len()));
        bytes = rest;
        (!piece.is_empty()).then_some(piece)
    })
}
