//! Which sandboxes are made before anybody asks for them.

use glovebox_protocol::class::ResourceClass;

use super::{RuntimeKind, Variables};

/// Most sandboxes of one kind that are kept ready.
const MAX_COUNT: u32 = 1000;

/// Sandboxes of one kind that are kept ready, each with a kernel from a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptReady {
    /// How many.
    pub count: u32,
    /// What their limits are those of.
    pub class: ResourceClass,
    /// Who may be given one.
    pub trust_domain: String,
}

pub(super) fn read(variables: &mut Variables<'_>, runtime: Option<RuntimeKind>) -> Vec<KeptReady> {
    let name = "GATEWAY_KEEP_READY";
    let Some(text) = variables.text(name) else {
        return Vec::new();
    };
    if runtime == Some(RuntimeKind::Docker) {
        let fix = "unset it, or set GATEWAY_RUNTIME to `embedded`";
        variables
            .faults
            .add(name, "is set, and Docker keeps none ready", fix);
        return Vec::new();
    }
    let kept: Option<Vec<KeptReady>> = text.split(',').map(entry).collect();
    let kept = kept.filter(|kept| is_each_once(kept));
    kept.unwrap_or_else(|| {
        let what = "names no kinds of sandboxes, each once";
        let fix =
            "write COUNT:CLASS:TRUST_DOMAIN, such as 4:medium:acme, several with commas in between";
        variables.faults.add(name, what, fix);
        Vec::new()
    })
}

/// `COUNT:CLASS:TRUST_DOMAIN`; only the last may have colons in it.
fn entry(text: &str) -> Option<KeptReady> {
    let mut parts = text.trim().splitn(3, ':');
    let (count, class, trust_domain) = (parts.next()?, parts.next()?, parts.next()?);
    let count = count.parse().ok();
    let kept = KeptReady {
        count: count.filter(|count| (1..=MAX_COUNT).contains(count))?,
        class: class.parse().ok()?,
        trust_domain: trust_domain.into(),
    };
    (!trust_domain.is_empty()).then_some(kept)
}

fn is_each_once(kept: &[KeptReady]) -> bool {
    kept.iter().enumerate().all(|(at, one)| {
        let mut before = kept[..at].iter();
        !before.any(|other| other.class == one.class && other.trust_domain == one.trust_domain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_count_a_class_and_a_trust_domain() {
        let kept = KeptReady {
            count: 4,
            class: ResourceClass::Medium,
            trust_domain: "acme:one".into(),
        };
        assert_eq!(entry(" 4:medium:acme:one"), Some(kept));
        for wrong in [
            "",
            "4",
            "4:medium",
            "4:medium:",
            "0:small:a",
            "x:small:a",
            "1001:small:a",
            "4:giant:a",
        ] {
            assert_eq!(entry(wrong), None, "{wrong:?}");
        }
    }
}
