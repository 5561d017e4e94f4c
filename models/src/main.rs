//! A checked model of the commit protocol of pyhudi; see `docs/explanation/reliability.md`.
//!
//! ```text
//! cargo run -- check [SETUP] [FAULTS]   visits all states of a setup, or of all of them
//! cargo run -- replay FILE...            replays traces of the real code, as tests/sim writes them
//! cargo run -- without RULES SETUP FAULTS  checks a setup without some rules
//! cargo run -- mutations                removes rules, and shows what goes wrong without them
//! ```

mod check;
mod mutations;
mod protocol;
mod replay;
mod rules;
mod steps;
mod table;

use std::process::ExitCode;

use check::{Outcome, check, setups};
use mutations::{MUTATIONS, Mutation};
use protocol::Setup;

/// More states than any check has.
const LIMIT: usize = 2_000_000_000;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let is_right = match args[..] {
        ["mutations"] => MUTATIONS
            .iter()
            .map(print_mutation)
            .fold(true, |all, one| all & one),
        ["replay", ref files @ ..] => files
            .iter()
            .map(|f| replay_file(f))
            .fold(true, |a, b| a & b),
        ["check"] => check_all("all", 1),
        ["check", name] => check_all(name, 1),
        ["check", name, faults] => check_all(name, faults.parse().unwrap_or(1)),
        ["without", removed, setup, faults] => {
            let faults = faults.parse().unwrap_or(1);
            print_mutation(&Mutation {
                removed,
                setup,
                faults,
            })
        }
        _ => {
            eprintln!(
                "usage: check [SETUP] [FAULTS] | without RULES SETUP FAULTS | mutations | replay FILE..."
            );
            false
        }
    };
    if is_right {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn check_all(name: &str, faults: u8) -> bool {
    let chosen = setups()
        .into_iter()
        .filter(|setup| name == "all" || setup.name == name);
    let mut is_right = true;
    for faults_of_run in 0..=faults {
        for setup in chosen.clone() {
            let outcome = check(
                &Setup {
                    faults: faults_of_run,
                    ..setup.clone()
                },
                LIMIT,
            );
            print(&format!("{}, {faults_of_run} faults", setup.name), &outcome);
            is_right &= outcome.is_complete;
        }
    }
    is_right
}

/// Print whether the model allows a trace.
fn replay_file(path: &str) -> bool {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string());
    let trace = text.and_then(|text| serde_json::from_str(&text).map_err(|e| e.to_string()));
    let outcome = trace.and_then(|trace| replay::replay(&trace, &setups()[0]));
    match &outcome {
        Ok(states) => println!("{path}: allowed, {states} states at the end"),
        Err(error) => println!("{path}: {error}"),
    }
    outcome.is_ok()
}

fn without(mutation: &Mutation<'_>) -> Option<Setup> {
    let setup = setups()
        .into_iter()
        .find(|setup| setup.name == mutation.setup)?;
    Some(Setup {
        rules: mutation.removed.parse().ok()?,
        faults: mutation.faults,
        ..setup
    })
}

fn print_mutation(mutation: &Mutation<'_>) -> bool {
    let Some(setup) = without(mutation) else {
        return false;
    };
    let outcome = check(&setup, LIMIT);
    print(
        &format!("{} without {}", setup.name, mutation.removed),
        &outcome,
    );
    !outcome.violations.is_empty()
}

fn print(title: &str, outcome: &Outcome) {
    println!(
        "{title}: {} states in {:.1} s",
        outcome.states, outcome.seconds
    );
    for (name, events) in &outcome.violations {
        println!("  not true: {name}");
        for event in events {
            println!("    {event}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocol_without_faults_holds() {
        for setup in setups() {
            let outcome = check(
                &Setup {
                    writes: 2,
                    ..setup.clone()
                },
                LIMIT,
            );
            assert!(
                outcome.is_complete,
                "{}: {:?}",
                setup.name, outcome.violations
            );
        }
    }

    #[test]
    fn protocol_with_one_fault_holds() {
        for setup in setups().into_iter().take(2) {
            let outcome = check(
                &Setup {
                    writes: 2,
                    faults: 1,
                    ..setup.clone()
                },
                LIMIT,
            );
            assert!(
                outcome.is_complete,
                "{}: {:?}",
                setup.name, outcome.violations
            );
        }
    }

    #[test]
    fn each_removed_rule_is_missed() {
        for mutation in MUTATIONS {
            let setup = without(mutation).expect("the rules and the setup exist");
            let outcome = check(&setup, 20_000_000);
            assert!(!outcome.violations.is_empty(), "{}", mutation.removed);
        }
    }
}
