//! The driver of the conformance suite (clients/conformance/README.md): each command has a thread of its own.

mod commands;

use commands::{Command, Device, said};
use solisync_client::{FileStore, UreqTransport, block_on};
use std::io::{BufRead, Write, stdin, stdout};
use std::thread::spawn;

fn say(line: &str) {
    let mut out = stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("the suite listens");
}

fn main() {
    let mut device: Option<Device> = None;
    for line in stdin().lock().lines() {
        let command: Command = serde_json::from_str(&line.expect("a line")).expect("a command");
        if command.r#do == "open" {
            drop(device.take());
            let store = FileStore::open(&command.store).map_err(solisync_client::Error::from);
            let opened = store.and_then(|store| Device::open(&command, store, UreqTransport::default()));
            device = opened.as_ref().ok().cloned();
            say(&said(command.id, opened.map(|device| device.opened())));
            continue;
        }
        let device = device.clone().expect("an open store");
        spawn(move || say(&block_on(device.obey(command, |device| _ = spawn(|| block_on(device.follow()))))));
    }
}
