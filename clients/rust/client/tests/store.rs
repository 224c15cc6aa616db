//! Stores that are full, locked or damaged, and crashes between any two of their steps.

use solisync_client::{Background, Client, Code, Event, FileStore, Game, Store, UreqTransport};
use std::collections::BTreeMap;
use std::fs::{read, read_dir, read_to_string, write};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

const NOWHERE: &str = "http://127.0.0.1:9";
const FIRST: &str = "00000000-0000-4000-8000-000000000001";
const SECOND: &str = "00000000-0000-4000-8000-000000000002";

fn won(id: &str) -> Game {
    let replay = Some(r#" {"moves": []}"#.to_owned());
    Game { id: id.to_owned(), won: true, score: 670, seconds: 184, replay, ..Game::default() }
}

type Files = BTreeMap<String, Vec<u8>>;

/// A disk whose steps fail, except for the first ones. Copies are the same disk.
#[derive(Clone, Default)]
struct Disk(Arc<Mutex<(Files, usize)>>);

impl Disk {
    fn allow(&self, steps: usize) {
        self.0.lock().unwrap().1 = steps;
    }

    fn step(&self, change: impl FnOnce(&mut Files)) -> io::Result<()> {
        let (files, steps) = &mut *self.0.lock().unwrap();
        *steps = steps.checked_sub(1).ok_or(ErrorKind::StorageFull)?;
        change(files);
        Ok(())
    }

    fn open(&self) -> Client {
        self.allow(100);
        Client::new(NOWHERE, self.clone(), UreqTransport::default()).unwrap()
    }
}

impl Store for Disk {
    fn load(&mut self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap().0.get("journal").cloned())
    }
    fn save(&mut self, value: &[u8]) -> io::Result<()> {
        self.step(|files| _ = files.insert("journal".to_owned(), value.to_vec()))
    }
    fn set_aside(&mut self) -> io::Result<String> {
        unreachable!("each value is whole")
    }
    fn save_replay(&mut self, game: &str, body: &str) -> io::Result<bool> {
        self.step(|files| _ = files.insert(game.to_owned(), body.as_bytes().to_vec()))?;
        Ok(true)
    }
    fn replay(&mut self, game: &str) -> io::Result<String> {
        Ok(String::from_utf8(self.0.lock().unwrap().0[game].clone()).unwrap())
    }
    fn keep_replays(&mut self, games: &[String]) -> io::Result<()> {
        self.step(|files| files.retain(|file, _| file == "journal" || games.contains(file)))
    }
}

#[test]
fn crash_between_any_two_steps_of_a_finish_loses_nothing() {
    for steps in 0..4 {
        let disk = Disk::default();
        let client = disk.open();
        disk.allow(steps);
        let stored = client.finish(won(FIRST)).is_ok();
        drop(client);
        let client = disk.open();
        assert_eq!(client.totals().games_won, u64::from(stored), "after {steps} steps");
        let files = disk.0.lock().unwrap().0.len();
        assert_eq!(files, if stored { 2 } else { 0 }, "after {steps} steps: a journal names each replay that is there");
        client.finish(won(FIRST)).unwrap();
        client.finish(won(FIRST)).unwrap();
        assert_eq!((client.totals().games_won, client.unsent()), (1, 1), "after {steps} steps");
    }
}

#[test]
fn full_store_reports_an_error_and_keeps_the_game() {
    let disk = Disk::default();
    let client = disk.open();
    disk.allow(0);
    let error = client.finish(won(FIRST)).unwrap_err();
    assert_eq!((error.code.clone(), error.passes()), (Code::Storage, true));
    assert_eq!(client.totals().games_won, 1);
    disk.allow(100);
    client.finish(won(SECOND)).unwrap();
    drop(client);
    assert_eq!(disk.open().totals().games_won, 2);
}

#[test]
fn finish_refuses_what_the_service_would_refuse() {
    let client = Disk::default().open();
    for replay in ["[]", "{", "", "\"{}\""] {
        let error = client.finish(Game { replay: Some(replay.to_owned()), ..won(FIRST) }).unwrap_err();
        assert_eq!(error.code, Code::BadField, "{replay}");
    }
    assert_eq!(client.finish(won("../../etc/passwd")).unwrap_err().code, Code::BadField);
    assert_eq!(client.totals().games_played, 0);
    client.finish(Game { replay: Some("{}".to_owned()), ..won(FIRST) }).unwrap();
    assert_eq!(client.totals().games_played, 1);
}

/// A directory of this test alone.
fn directory(name: &str) -> PathBuf {
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    place
}

#[test]
fn directory_belongs_to_one_client_at_a_time() {
    let place = directory("locked");
    let client = Client::open(NOWHERE, &place).unwrap();
    assert_eq!(FileStore::open(&place).err().unwrap().kind(), ErrorKind::WouldBlock);
    assert_eq!(Client::open(NOWHERE, &place).err().unwrap().code, Code::Storage);
    drop(client);
    Client::open(NOWHERE, &place).unwrap();
}

#[test]
fn directory_opens_again_after_its_background_is_dropped() {
    let place = directory("background");
    for _ in 0..20 {
        let client = Client::open(NOWHERE, &place).unwrap();
        drop(Background::start(&client, &[]));
    }
}

#[test]
fn directory_opens_when_its_replays_have_something_else() {
    let place = directory("other");
    std::fs::create_dir_all(place.join("replays").join("more")).unwrap();
    Client::open(NOWHERE, &place).unwrap();
}

#[test]
fn journal_with_odd_numbers_is_read() {
    for odd in ["null", "7.5", "-1", "1e300", "18446744073709551615"] {
        let place = directory("odd");
        std::fs::create_dir_all(&place).unwrap();
        let refusal = format!(r#"{{"since": {odd}, "at": {odd}, "days": {odd}}}"#);
        let game = format!(r#"{{"game": {{"game_id": "{FIRST}"}}, "settled": {odd}}}"#);
        let player = format!(r#"{{"played": {odd}, "full": {odd}, "games": [{game}]}}"#);
        let joining = format!(r#"{{"from": "guest", "refused": {odd}}}"#);
        let journal = format!(
            r#"{{"version": 2, "player": "ann", "refused": {refusal}, "guest": {{"refused": {refusal}}},
            "joining": {joining}, "players": {{"ann": {player}}}}}"#
        );
        write(place.join("solisync-2.json"), journal).unwrap();
        let client = Client::open(NOWHERE, &place).unwrap();
        assert!(client.next_event().is_none(), "{odd}");
        client.finish(won(SECOND)).unwrap();
        assert!(client.unsent() > 0, "{odd}");
    }
}

#[test]
fn damaged_journal_is_kept_with_its_replays() {
    let place = directory("damaged");
    for (number, damaged) in ["{\"version\": 2, \"pla", "<html>"].into_iter().enumerate() {
        Client::open(NOWHERE, &place).unwrap().finish(won(FIRST)).unwrap();
        write(place.join("solisync-2.json"), damaged).unwrap();
        let client = Client::open(NOWHERE, &place).unwrap();
        let Some(Event::Trouble(error)) = client.next_event() else { panic!("no event") };
        let kept = format!("solisync-2.json.damaged.{}", number + 1);
        assert!(error.code == Code::Storage && error.message.contains(&kept), "{error}");
        assert_eq!(read_to_string(place.join(&kept)).unwrap(), damaged);
        let replays = read_dir(place.join(format!("{kept}-replays"))).unwrap().count();
        assert_eq!((client.totals().games_played, replays), (0, 1));
    }
}

#[test]
fn journal_of_a_newer_client_stays() {
    let place = directory("newer");
    std::fs::create_dir_all(&place).unwrap();
    let journal = br#"{"version": 3, "player": ["somebody"]}"#;
    write(place.join("solisync-2.json"), journal).unwrap();
    assert!(Client::open(NOWHERE, &place).err().unwrap().message.contains("version 3"));
    assert_eq!(read(place.join("solisync-2.json")).unwrap(), journal);
}

#[cfg(unix)]
#[test]
fn only_the_owner_reads_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let place = directory("private");
    Client::open(NOWHERE, &place).unwrap().finish(won(FIRST)).unwrap();
    for file in [place.join("solisync-2.json"), place.join("replays").join(format!("{FIRST}.json"))] {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
    let replay = read_to_string(place.join("replays").join(format!("{FIRST}.json"))).unwrap();
    assert_eq!(replay, format!(r#"{{"game_id":"{FIRST}","moves":[]}}"#));
}

#[test]
fn documented_journal_is_read_and_written() {
    let docs = read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/clients.md")).unwrap();
    let (_, rest) = docs.split_once("```json\n").unwrap();
    let journal = rest.split_once("```").unwrap().0;
    let place = directory("documented");
    std::fs::create_dir_all(&place).unwrap();
    write(place.join("solisync-2.json"), journal).unwrap();
    let client = Client::open(NOWHERE, &place).unwrap();
    assert_eq!((client.totals().games_won, client.unsent()), (1, 1));
    assert!(client.next_event().is_none());
    client.finish(won(SECOND)).unwrap();
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let (before, mut after) = (read(journal), read(&read_to_string(place.join("solisync-2.json")).unwrap()));
    let games = after.pointer_mut("/players/8a6e0804-2bd0-4672-b79d-d97027f9071a/games").unwrap();
    assert_eq!(games.as_array_mut().unwrap().pop().unwrap()["game"]["game_id"], SECOND);
    assert_eq!(after, before);
}
