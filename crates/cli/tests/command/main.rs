//! `glovebox` as a person or a program uses it: one file for each side of it.

#![cfg(test)]

mod backup;
mod doctor;
mod ends;
mod events;
mod examples;
mod gateway;
mod inputs;
mod notebook;
mod progress;
mod refusals;
mod results;
mod script;
mod settings;
mod setup;
mod signals;
mod support;
mod version;
