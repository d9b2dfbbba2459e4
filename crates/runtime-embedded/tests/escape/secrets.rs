//! A secret that the launching process has is nowhere in a sandbox, and in nothing that a runtime
//! writes.

use std::process::Stdio;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, ensure};
use glovebox_protocol::sign::SigningKey;
use glovebox_testkit::escape::{Lab, Red, outside, report};
use tokio::process::Command;

use crate::lab::Embedded;

/// The variable that holds the secret in the process that launches.
const VARIABLE: &str = "GLOVEBOX_ESCAPE_SECRET";
/// Looks like a token, and is found nowhere else.
const SECRET: &str = "sk-live-4f1c9a52e8b7d630-glovebox-escape";

/// This very test, started once more with the secret in its environment and its arguments. Its
/// folder for files is one that holds the secret as well.
#[tokio::test]
async fn a_secret_of_the_launching_process_stays_outside() -> Result<()> {
    let own_environment = fs_err::read("/proc/self/environ")?;
    let has_secret = holds(&own_environment, SECRET.as_bytes());
    if has_secret {
        return with_the_secret().await;
    }
    let folder = tempfile::tempdir()?;
    fs_err::write(folder.path().join("secret.txt"), SECRET)?;
    let output = Command::new(std::env::current_exe()?)
        .args([
            "--exact",
            "secrets::a_secret_of_the_launching_process_stays_outside",
        ])
        // Another name to run besides, which no test has.
        .args(["--nocapture", SECRET])
        .env(VARIABLE, SECRET)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .await
        .context("starting this test once more")?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

async fn with_the_secret() -> Result<()> {
    let arguments = fs_err::read("/proc/self/cmdline")?;
    ensure!(
        holds(&arguments, SECRET.as_bytes()),
        "the arguments do not hold the secret"
    );
    let embedded = Embedded::start().await?;
    let reds = outside::secret_of_the_launcher(&embedded.lab, SECRET).await?;
    embedded.finish().await?;
    report::none(&reds)
}

/// S10: the key that commands the agents is in no file of the runtime, in nothing that an agent
/// could be asked about, and cannot be printed.
#[tokio::test]
async fn a_signing_key_is_written_nowhere() -> Result<()> {
    let mut reds = Vec::new();
    let seed: [u8; 32] = *b"\xa7seed of the escape suite's key\xb3";
    let hexadecimal: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
    let shown = format!("{:?}", SigningKey::from_seed(&seed)?);
    if shown.contains(&hexadecimal) || holds(shown.as_bytes(), &seed) {
        reds.push(Red::new("S10", "a key shows itself when it is printed"));
    }
    // File systems do not keep time as finely as the clock does.
    let before = SystemTime::now() - Duration::from_secs(2);
    let embedded = Embedded::start().await?;
    let key = SigningKey::from_seed(&seed)?;
    let installation = embedded.lab.installation();
    let lab = Lab::with_key(embedded.lab.runtime.clone(), installation, key);
    let subject = lab.subject(Lab::small_limits()).await?;
    subject.kernel("print(1)").await?;
    let wrong = subject.client.get_bytes(&"absent".parse()?, 1).await;
    let said = format!("{wrong:?}");
    let words = glovebox_testkit::escape::attacks::host::Agent::of(&subject)
        .await?
        .words()?;
    for (place, text) in [("an error", said.as_bytes()), ("the agent's words", &words)] {
        if holds(text, &seed) || holds(text, hexadecimal.as_bytes()) {
            reds.push(Red::new("S10", format!("{place} hold the key")));
        }
    }
    for folder in [embedded.run_folder(), glovebox_testkit::test_data()?] {
        for pattern in [&seed[..], hexadecimal.as_bytes()] {
            for path in outside::folder_holds(&folder, pattern, before)? {
                reds.push(Red::new("S10", format!("{} holds the key", path.display())));
            }
        }
    }
    // The control: the same search finds the key where it is.
    let planted = tempfile::tempdir()?;
    fs_err::write(planted.path().join("key"), seed)?;
    ensure!(
        outside::folder_holds(planted.path(), &seed, before)?.len() == 1,
        "the control failed"
    );
    subject.remove().await?;
    drop(lab);
    embedded.finish().await?;
    report::none(&reds)
}

fn holds(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|part| part == word)
}
