//! Sizes and times as people write and read them.

use std::time::Duration;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// Longest time limit that can be asked for.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// Reads a size: a number of bytes, or one with `K`, `M` or `G` (each times 1024; `KiB`, `KB`
/// and so on mean the same).
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let refused = || format!("`{text}` is no size; write it as 512M or 2G");
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| refused())?;
    let unit = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => KIB,
        "m" | "mb" | "mib" => MIB,
        "g" | "gb" | "gib" => GIB,
        _ => return Err(refused()),
    };
    number.checked_mul(unit).ok_or_else(refused)
}

/// Reads a time: a number of seconds, or one with `ms`, `s`, `m` or `h`.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let refused = || format!("`{text}` is no time; write it as 30s, 5m or 2h");
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| refused())?;
    let milliseconds = match unit {
        "ms" => 1,
        "" | "s" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        _ => return Err(refused()),
    };
    let time = number
        .checked_mul(milliseconds)
        .map(Duration::from_millis)
        .ok_or_else(refused)?;
    if time.is_zero() {
        return Err("a time limit of 0 would end the program before it begins".into());
    }
    if time > LONGEST {
        return Err("the longest time limit is 168h (7 days)".into());
    }
    Ok(time)
}

/// A size in words with the unit that suits it.
pub(crate) fn size(bytes: u64) -> String {
    let (unit, name) = match bytes {
        1 => return "1 byte".into(),
        0..KIB => return format!("{bytes} bytes"),
        KIB..MIB => (KIB, "KiB"),
        MIB..GIB => (MIB, "MiB"),
        _ => (GIB, "GiB"),
    };
    let tenths = (u128::from(bytes) * 10 + u128::from(unit) / 2) / u128::from(unit);
    if tenths >= 100 || tenths.is_multiple_of(10) {
        format!("{} {name}", (tenths + 5) / 10)
    } else {
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    }
}

/// A time in words.
pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 if time.subsec_millis() == 0 => format!("{seconds} s"),
        0..60 => format!("{}.{} s", seconds, time.subsec_millis() / 100),
        60..3600 => with_rest(seconds / 60, "min", seconds % 60, "s"),
        _ => with_rest(seconds / 3600, "h", seconds % 3600 / 60, "min"),
    }
}

fn with_rest(whole: u64, unit: &str, rest: u64, rest_unit: &str) -> String {
    if rest == 0 {
        format!("{whole} {unit}")
    } else {
        format!("{whole} {unit} {rest} {rest_unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        assert_eq!(parse_size("512M"), Ok(512 * MIB));
        assert_eq!(parse_size("2 GiB"), Ok(2 * GIB));
        assert_eq!(parse_size("1048576"), Ok(MIB));
        for bad in ["", "M", "-1M", "1.5G", "1T", "99999999999G"] {
            assert!(parse_size(bad).is_err(), "`{bad}` was accepted");
        }
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(parse_time("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_time("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(parse_time("90"), Ok(Duration::from_secs(90)));
        for bad in ["", "s", "0", "0s", "-5s", "1d", "169h"] {
            assert!(parse_time(bad).is_err(), "`{bad}` was accepted");
        }
    }

    #[test]
    fn sizes_and_times_read_well() {
        let sizes = [0, 1023, 1024, 1536, 10 * KIB + 300, 26_214_400, 3 * GIB].map(size);
        assert_eq!(
            sizes,
            [
                "0 bytes",
                "1023 bytes",
                "1 KiB",
                "1.5 KiB",
                "10 KiB",
                "25 MiB",
                "3 GiB"
            ]
        );
        let times =
            [500, 2000, 90_000, 600_000, 5_400_000].map(|ms| time(Duration::from_millis(ms)));
        assert_eq!(
            times,
            ["0.5 s", "2 s", "1 min 30 s", "10 min", "1 h 30 min"]
        );
    }
}
