//! Z1 and Z2: what each start of a program chooses anew, and what generators give.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::Value;

use super::tell;
use crate::escape::lab::{Lab, Subject};
use crate::escape::report::{Red, demand};
use crate::escape::run::Ran;

/// What is chosen at a start: where things are mapped, how words are hashed, what guards stacks.
const CHOSEN: [&str; 3] = ["library", "hashes", "guards"];

type Told = BTreeMap<String, Value>;

async fn told(subject: &Subject, word: &str) -> Result<Told> {
    let ran = tell(subject, &[word]).await?;
    Ok(by_name(&ran))
}

fn by_name(ran: &Ran) -> Told {
    let reports = ran.reports().into_iter();
    reports.map(|report| (report.id, report.observed)).collect()
}

/// What two kernels have alike.
fn alike<'n>(one: &'n Told, other: &Told) -> Vec<&'n str> {
    one.iter()
        .filter(|(name, value)| other.get(*name) == Some(value))
        .map(|(name, _)| name.as_str())
        .collect()
}

async fn subject(lab: &Lab) -> Result<Subject> {
    lab.subject(Lab::small_limits()).await
}

/// Z1: two trust domains have no template in common.
///
/// # Errors
/// When the sandboxes cannot be made or do not play along.
pub async fn domains_share_nothing(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let others = lab.of_domain("somebody else of the escape suite");
    let (one, two, other) = (
        subject(lab).await?,
        subject(lab).await?,
        subject(&others).await?,
    );
    let first = told(&one, "identity").await?;
    let second = told(&two, "identity").await?;
    let third = told(&other, "identity").await?;
    // The control: within a domain they are copies of one process, and it shows.
    let same = alike(&first, &second);
    demand(&mut reds, "Z1", same.len() == CHOSEN.len(), || {
        format!("the control failed: two copies have only {same:?} alike")
    });
    let same = alike(&first, &third);
    demand(&mut reds, "Z1", same.is_empty(), || {
        format!("sandboxes of two trust domains have {same:?} alike")
    });
    for subject in [one, two, other] {
        subject.remove().await?;
    }
    Ok(reds)
}

/// Z1: with fresh starts two sandboxes of one domain have nothing alike.
///
/// # Errors
/// When the sandboxes cannot be made or do not play along.
pub async fn fresh_starts_share_nothing(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let (one, two) = (subject(lab).await?, subject(lab).await?);
    for word in ["identity", "generators"] {
        let (first, second) = (told(&one, word).await?, told(&two, word).await?);
        demand(&mut reds, "Z1", first.len() >= CHOSEN.len(), || {
            format!("the control failed: {first:?} was told of {word}")
        });
        let same = alike(&first, &second);
        demand(&mut reds, "Z1", same.is_empty(), || {
            format!("two sandboxes with fresh starts have {same:?} alike")
        });
    }
    one.remove().await?;
    two.remove().await?;
    Ok(reds)
}

/// Z2: no generator gives two sandboxes the same, nor a sandbox and the next kernel in it; and no
/// generator that lies in memory is in the same state.
///
/// # Errors
/// When the sandboxes cannot be made or do not play along.
pub async fn generators_differ(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let (one, two) = (subject(lab).await?, subject(lab).await?);
    let mut seen = vec![
        told(&one, "generators").await?,
        told(&two, "generators").await?,
    ];
    one.client.restart_kernel().await?;
    seen.push(told(&one, "generators").await?);
    for (index, values) in seen.iter().enumerate() {
        demand(&mut reds, "Z2", values.len() == 15, || {
            format!("{} generators were asked", values.len())
        });
        for earlier in &seen[..index] {
            let same = alike(values, earlier);
            demand(&mut reds, "Z2", same.is_empty(), || {
                format!("two kernels got the same from {same:?}")
            });
        }
    }
    // Fresh ones: those above have been used.
    for subject in [&one, &two] {
        subject.client.restart_kernel().await?;
    }
    let kept = [
        tell(&one, &["kept-generators"]).await?.reports(),
        tell(&two, &["kept-generators"]).await?.reports(),
    ];
    // The control: those that Python and numpy keep themselves are found.
    for name in ["Random", "RandomState"] {
        let found = kept[0].iter().any(|report| report.id == name);
        demand(&mut reds, "Z2", found, || {
            format!("the control failed: no generator `{name}` was found")
        });
    }
    for report in &kept[0] {
        let same = kept[1]
            .iter()
            .any(|other| other.observed == report.observed);
        demand(&mut reds, "Z2", !same, || {
            format!("two kernels have a `{}` in the same state", report.id)
        });
    }
    one.remove().await?;
    two.remove().await?;
    Ok(reds)
}
