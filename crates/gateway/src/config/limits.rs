//! How much of its host a gateway may give to sandboxes.

use super::Variables;

const MIB: u64 = 1024 * 1024;

/// What is left to the host when nobody says how much sandboxes may take: a fifth.
const SHARE_PERCENT: u64 = 80;

pub(super) fn sandboxes(variables: &mut Variables<'_>, default: u32) -> u32 {
    let name = "GATEWAY_MAX_SANDBOXES";
    let Some(text) = variables.text(name) else {
        return default;
    };
    match text.parse() {
        Ok(number @ 1..=10_000) => number,
        _ => {
            variables.faults.add(
                name,
                "is out of range",
                "set it to a number from 1 to 10000",
            );
            default
        }
    }
}

pub(super) fn memory(variables: &mut Variables<'_>, host_bytes: u64) -> u64 {
    let name = "GATEWAY_MAX_MEMORY";
    let default = host_bytes / 100 * SHARE_PERCENT;
    let Some(text) = variables.text(name) else {
        return default;
    };
    match quantity(&text) {
        Some(bytes) if bytes >= 256 * MIB => bytes,
        _ => {
            let fix = "set it to at least 256M, as a number of bytes or with M or G behind it";
            variables.faults.add(name, "is no amount of memory", fix);
            default
        }
    }
}

/// A number of bytes, or of MiB or GiB with `M` or `G` behind it.
fn quantity(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'M' => (&text[..text.len() - 1], MIB),
        b'G' => (&text[..text.len() - 1], 1024 * MIB),
        _ => (text, 1),
    };
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse::<u64>().ok()?.checked_mul(unit))?
}

/// The memory of this machine, in bytes.
#[must_use]
pub fn host_memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    let total: u64 = info.totalram;
    total.saturating_mul(u64::from(info.mem_unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_a_number_of_bytes_or_has_a_unit() {
        for (text, bytes) in [
            ("1048576", Some(MIB)),
            ("512M", Some(512 * MIB)),
            ("2G", Some(2048 * MIB)),
            ("", None),
            ("M", None),
            ("-1", None),
            ("+1", None),
            ("1.5G", None),
            ("1K", None),
            ("99999999999999999999G", None),
            ("18446744073709551615M", None),
        ] {
            assert_eq!(quantity(text), bytes, "{text:?}");
        }
    }
}
