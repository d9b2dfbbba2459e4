//! The deployment guide lists what preflight checks, and nothing else.

const GUIDE: &str = include_str!("../../../../docs/deployment/sandbox-gateway.md");

#[test]
fn every_check_stands_in_the_guide_and_the_other_way_round() {
    let preflight = GUIDE.split("## Preflight").nth(1).unwrap();
    let listed: Vec<_> = preflight
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let checks: Vec<_> = glovebox_gateway::preflight::CHECKS
        .into_iter()
        .chain(glovebox_runtime_embedded::CHECKS)
        .collect();
    assert_eq!(listed, checks);
}
