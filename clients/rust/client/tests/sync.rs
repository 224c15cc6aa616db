//! What a client sends, and what it makes of the answers.

mod scripted;

use scripted::{Answers, DAY, Shared, client, event, eventually, finish, nothing, started, tokens, win, world};
use serde_json::{Value, json};
use solisync_client::{
    Answer, Background, Change, Chunk, Client, Code, Event, FileStore, Game, Level, MemoryStore, Mode, block_on,
};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[test]
fn games_go_in_batches_of_a_hundred() {
    let (client, _, log) = client(MemoryStore::default(), nothing);
    let ids: Vec<_> = (0..201).map(|number| finish(&client, number)).collect();
    block_on(client.sync()).unwrap();
    let sent = &log.lock().unwrap().sent;
    assert_eq!(sent.iter().map(Vec::len).collect::<Vec<_>>(), [100, 100, 1]);
    assert_eq!(sent.concat(), ids);
    assert_eq!(client.unsent(), 0);
}

#[test]
fn games_have_the_time_of_the_player_and_numbers_in_range() {
    let (client, _, log) = client(MemoryStore::default(), nothing);
    let mode = Mode::Difficulty(Level::Hard);
    let game = Game { id: client.new_id(), mode, seed: Some(u64::MAX), score: u32::MAX, ..Game::default() };
    client.finish(game).unwrap();
    block_on(client.sync()).unwrap();
    let game = &log.lock().unwrap().games[0];
    assert_eq!(game["ended_at"], "2024-10-03T19:00:00.000-05:00");
    assert_eq!((&game["seed"], &game["score"]), (&json!(u64::MAX.to_string()), &json!(i32::MAX)));
    assert_eq!(game["mode"], json!({"Difficulty": "Hard"}));
}

#[test]
fn node_of_an_older_version_leaves_the_games() {
    let older = |path: &str| (path == "/api/games").then_some((404, "not_found"));
    let (client, ..) = client(MemoryStore::default(), older);
    finish(&client, 1);
    let error = block_on(client.sync()).unwrap_err();
    assert!(error.passes() && error.code == Code::Unavailable, "{error}");
    assert_eq!((client.unsent(), client.totals().games_played), (1, 1));
}

#[test]
fn game_with_an_error_is_set_aside() {
    let (client, transport, _) = client(MemoryStore::default(), nothing);
    let id = finish(&client, 1);
    *transport.service.lock().unwrap() = Box::new(move |path, _| {
        let refused = json!({"game_id": Value::Null, "counted": false, "error": "bad_field"});
        let games = if path == "/api/games" { vec![refused] } else { vec![] };
        (200, json!({"id": "abc", "games": games, "merged": {"stats": {"games_played": 0}}}))
    });
    block_on(client.sync()).unwrap();
    block_on(client.sync()).unwrap();
    assert_eq!((client.unsent(), client.totals().games_played), (0, 0));
    let troubles = std::iter::from_fn(|| client.next_event()).filter(|event| matches!(event, Event::Trouble(_)));
    assert_eq!(troubles.count(), 1);
    client.finish(Game { id, ..Game::default() }).unwrap();
    assert_eq!(client.unsent(), 0);
}

#[test]
fn answer_without_the_games_settles_nothing() {
    let (client, transport, _) = client(MemoryStore::default(), nothing);
    finish(&client, 1);
    *transport.service.lock().unwrap() = Box::new(|_, _| (200, json!({"id": "abc", "merged": {}})));
    assert!(block_on(client.sync()).unwrap_err().passes());
    assert_eq!(client.unsent(), 1);
}

#[test]
fn settled_games_are_sent_again_in_a_new_session_and_once_a_day() {
    let (client, transport, log) = client(MemoryStore::default(), nothing);
    let id = finish(&client, 1);
    let times_sent = || log.lock().unwrap().sent.concat().iter().filter(|sent| **sent == id).count();
    block_on(client.sync()).unwrap();
    block_on(client.sync()).unwrap();
    assert_eq!(times_sent(), 1);
    for times in [2, 3, 3] {
        *transport.now.lock().unwrap() += DAY;
        block_on(client.sync()).unwrap();
        block_on(client.sync()).unwrap();
        assert_eq!(times_sent(), times, "once a day, for two days");
    }
    block_on(client.sign_out()).unwrap();
    client.adopt(tokens()).unwrap();
    block_on(client.sync()).unwrap();
    assert_eq!(times_sent(), 4);
}

#[test]
fn settled_games_are_sent_again_after_the_service_has_lost_some() {
    let (client, _, log) = client(MemoryStore::default(), nothing);
    let ids: Vec<_> = (0..3).map(|number| finish(&client, number)).collect();
    block_on(client.sync()).unwrap();
    log.lock().unwrap().counted = 1;
    block_on(client.sync()).unwrap();
    block_on(client.sync()).unwrap();
    assert_eq!(log.lock().unwrap().sent, [ids.clone(), ids.clone()]);
    log.lock().unwrap().counted -= 1;
    let new = finish(&client, 3); // hides the loss in the total
    block_on(client.sync()).unwrap();
    assert_eq!(log.lock().unwrap().sent[2..], [vec![new.clone()], [ids, vec![new]].concat()]);
}

#[test]
fn settled_games_are_kept_for_thirty_days_and_at_least_two_hundred() {
    let store = Shared::default();
    let (client, transport, _) = client(store.clone(), nothing);
    let kept = || {
        let journal: Value = serde_json::from_slice(&store.0.lock().unwrap()).unwrap();
        journal["players"]["abc"]["games"].as_array().unwrap().len()
    };
    (0..250).for_each(|number| _ = finish(&client, number));
    block_on(client.sync()).unwrap();
    *transport.now.lock().unwrap() += 29 * DAY;
    block_on(client.sync()).unwrap();
    assert_eq!(kept(), 250);
    *transport.now.lock().unwrap() += 2 * DAY;
    block_on(client.sync()).unwrap();
    assert_eq!(kept(), 200);
}

#[test]
fn push_has_nothing_that_the_service_counts() {
    let (client, _, log) = client(MemoryStore::default(), nothing);
    finish(&client, 2);
    let more = [("theme".to_owned(), serde_json::from_str(r#""dark""#).unwrap())].into();
    block_on(client.push(&Change { card_backs: vec![0, 3], more, ..Change::default() })).unwrap();
    let pushed = log.lock().unwrap().pushed[0].clone();
    assert_eq!((&pushed["progress"]["unlocked_card_backs"], &pushed["theme"]), (&json!([0, 3]), &json!("dark")));
    assert_eq!((&pushed["stats"]["games_played"], &pushed["progress"]["total_xp"]), (&json!(0), &json!(0)));
    assert_eq!(pushed["stats"]["fastest_win_seconds"], Value::Null);
}

#[test]
fn odd_json_is_taken_as_it_is() {
    let (client, transport, _) = client(MemoryStore::default(), nothing);
    let odd = r#"{"merged": {"stats": {"games_played": 7.0, "fastest_win_seconds": 18446744073709552000, "x": 1e999},
        "progress": {"mark": "\ud800"}, "achievements": [{"id": "\u0000", "why": "\udfff"}]}}"#;
    *transport.service.lock().unwrap() = Box::new(move |path, _| match path {
        "/api/sync/pull" => (200, json!(odd)),
        _ => (200, json!({"id": "abc"})),
    });
    block_on(client.sync()).unwrap();
    let totals = client.totals();
    assert_eq!((totals.games_played, totals.fastest_win_seconds), (7, None));
    assert_eq!(client.progress().achievements[0].id, "\0");
    assert!(client.latest::<Box<serde_json::value::RawValue>>().unwrap().get().contains(r"\ud800"));
}

#[test]
fn background_begins_a_guest_and_sends_games_whenever_it_runs() {
    let (client, transport, log) = client(MemoryStore::default(), nothing);
    block_on(client.sign_out()).unwrap();
    let service = transport.service.clone();
    let mut works = std::mem::replace(&mut *service.lock().unwrap(), Box::new(|_, _| (502, json!("<html>"))));
    finish(&client, 1);
    let background = Background::with_guest(&client, &[]);
    let wait_for = |wanted: fn(&Event) -> bool| event(&client, |event| wanted(&event).then_some(()));
    wait_for(|event| matches!(event, Event::Trouble(error) if error.code == Code::Network));
    *service.lock().unwrap() = Box::new(move |path, body| match path {
        "/api/auth/guest" => (
            200,
            json!({"access_token": tokens().access_token, "refresh_token": "r",
            "player": {"id": "abc", "guest": true}}),
        ),
        _ => works(path, body),
    });
    wait_for(|event| matches!(event, Event::SignedIn));
    wait_for(|event| matches!(event, Event::Progress));
    finish(&client, 2);
    eventually(|| (client.unsent() == 0).then_some(()));
    drop(background);
    let _another = Background::start(&client, &[]);
    finish(&client, 3);
    eventually(|| (client.unsent() == 0).then_some(()));
    assert_eq!(log.lock().unwrap().counted, 3);
}

#[test]
fn join_as_a_player_is_refused_and_changes_nothing() {
    let (client, transport, _) = client(MemoryStore::default(), nothing);
    let paths: Arc<Mutex<Vec<String>>> = Arc::default();
    let theirs = paths.clone();
    *transport.service.lock().unwrap() = Box::new(move |path, _| {
        theirs.lock().unwrap().push(path.to_owned());
        (200, json!({"id": "abc", "username": "ann", "guest": false}))
    });
    let error = block_on(client.join("bob", "correct horse")).unwrap_err();
    assert!(error.code == Code::NotAGuest && !error.passes(), "{error}");
    assert_eq!(*paths.lock().unwrap(), ["/api/me"]);
    assert!(client.player().as_deref() == Some("abc") && client.tokens() == Some(tokens()));
    block_on(client.join("ann", "correct horse")).unwrap(); // a join whose answer was lost
}

#[test]
fn errors_tell_a_session_that_has_ended_from_none() {
    let (client, transport, _) = client(MemoryStore::default(), nothing);
    let never = Client::new("https://service", MemoryStore::default(), transport.clone()).unwrap();
    let error = block_on(never.sync()).unwrap_err();
    assert_eq!((error.code, error.status), (Code::SignedOut, 0));
    assert!(error.message.contains("signed out"), "{}", error.message);
    *transport.service.lock().unwrap() = Box::new(|_, _| (401, json!({"error": "unauthorized"})));
    for _ in 0..2 {
        let error = block_on(client.sync()).unwrap_err();
        assert_eq!((error.code, error.status), (Code::SignedOut, 401));
        assert!(error.message.contains("has ended"), "{}", error.message);
    }
}

#[test]
fn verdict_of_a_win_of_an_earlier_start_is_an_event() {
    let store = Shared::default();
    let (client, transport, _) = client(store.clone(), nothing);
    let id = client.new_id();
    let replay = Some("{}".to_owned());
    client.finish(Game { id: id.clone(), won: true, replay, ..Game::default() }).unwrap();
    block_on(client.sync()).unwrap();
    drop(client);
    *transport.service.lock().unwrap() = Box::new(|path, _| match path {
        "/api/replays/abc/verdict" => (200, json!({"status": "verified"})),
        _ => (200, json!({"merged": {}, "id": "abc"})),
    });
    for start in 0..2 {
        let client = Client::new("https://service", store.clone(), transport.clone()).unwrap();
        let background = Background::start(&client, &[]);
        let mut each = transport.stream();
        each(Chunk::Bytes(b"event: board\ndata: {}\n\n".to_vec()));
        let mut verdicts = Vec::new();
        event(&client, |event| match event {
            Event::Verdict { game, status, .. } => {
                verdicts.push((game, status));
                None
            }
            Event::Stream { name, .. } => (name == "board").then_some(()),
            _ => None,
        });
        let expected = [(Some(id.clone()), "verified".to_owned())];
        assert_eq!(verdicts, expected[start..], "start {start}");
        drop(background); // before its stream ends
    }
}

#[test]
fn games_are_sent_at_once_when_an_outage_ends() {
    let (client, transport, log) = client(MemoryStore::default(), nothing);
    *transport.patience.lock().unwrap() = Duration::from_secs(30);
    let service = transport.service.clone();
    let works = std::mem::replace(&mut *service.lock().unwrap(), Box::new(|_, _| (502, json!("<html>"))));
    finish(&client, 1);
    let _background = Background::start(&client, &[]);
    event(&client, |event| matches!(event, Event::Trouble(_)).then_some(()));
    eventually(|| (!transport.paused.lock().unwrap().is_empty()).then_some(()));
    *service.lock().unwrap() = works;
    let _each = transport.stream();
    eventually(|| (client.unsent() == 0).then_some(()));
    assert_eq!(log.lock().unwrap().counted, 1);
}

#[test]
fn verdict_that_comes_before_the_answer_to_an_upload_has_its_game() {
    let (client, transport, _) = client(MemoryStore::default(), nothing);
    let background = client.clone();
    std::thread::spawn(move || block_on(background.follow(&[])));
    let mut each = transport.stream();
    let service = transport.service.clone();
    let mut works = std::mem::replace(&mut *service.lock().unwrap(), Box::new(|_, _| unreachable!()));
    *service.lock().unwrap() = Box::new(move |path, body| {
        if path == "/api/replays" {
            each(Chunk::Bytes(
                b"event: verdict\ndata: {\"replay_id\": \"abc\", \"status\": \"verified\"}\n\n".to_vec(),
            ));
            std::thread::sleep(Duration::from_millis(100));
        }
        works(path, body)
    });
    let id = client.new_id();
    let replay = Some("{}".to_owned());
    client.finish(Game { id: id.clone(), won: true, replay, ..Game::default() }).unwrap();
    block_on(client.sync()).unwrap();
    let game = event(&client, |event| if let Event::Verdict { game, .. } = event { Some(game) } else { None });
    assert_eq!(game, Some(id));
}

#[test]
fn win_is_uploaded_later_when_a_proxy_refuses_it() {
    let answers = Answers::default();
    let (transport, asked) = world(answers.get());
    let client = started(MemoryStore::default(), &transport);
    block_on(client.guest()).unwrap();
    client.finish(win(1)).unwrap();
    for status in [400, 413] {
        answers.set(&[("/api/replays", status, json!("<html>"))]);
        assert!(block_on(client.sync()).unwrap_err().passes());
        assert_eq!(client.unsent(), 1, "after {status}");
    }
    answers.set(&[]);
    asked.take("");
    block_on(client.sync()).unwrap();
    assert_eq!((client.unsent(), asked.take("/api/replays").len()), (0, 1));
}

#[test]
fn wins_are_uploaded_when_the_replay_of_another_is_damaged() {
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("replay-{}", std::process::id()));
    let (transport, asked) = world(|_| None);
    let client = started(FileStore::open(&place).unwrap(), &transport);
    block_on(client.guest()).unwrap();
    client.finish(win(1)).unwrap();
    client.finish(win(2)).unwrap();
    std::fs::write(place.join("replays").join(format!("{}.json", win(1).id)), b"{\"\xff\xfe").unwrap();
    let error = block_on(client.sync()).unwrap_err();
    assert!(!error.passes() && error.message.contains(&win(1).id), "{error}");
    let uploaded = asked.take("/api/replays");
    assert!(uploaded.len() == 1 && uploaded[0]["game_id"] == win(2).id, "{uploaded:?}");
    block_on(client.sync()).unwrap();
}

#[test]
fn server_that_says_200_to_everything_is_asked_less_and_less() {
    let answers = Answers::default();
    let (transport, asked) = world(answers.get());
    let store = Shared::default();
    let before = started(store.clone(), &transport);
    block_on(before.guest()).unwrap();
    finish(&before, 1);
    let client = started(store, &transport);
    answers.set(&[("/api/", 200, json!("<html>"))]);
    *transport.patience.lock().unwrap() = Duration::from_millis(1_500);
    let _background = Background::start(&client, &[]);
    for _ in 0..2 {
        let mut each = eventually(|| transport.streams.lock().unwrap().pop());
        each(Chunk::Begun(Answer { status: 200, headers: vec![], body: vec![] }));
        each(Chunk::Bytes(b"<html></html>\n\n".to_vec()));
        each(Chunk::End);
    }
    let long_pauses = || transport.paused.lock().unwrap().len();
    let streams = || transport.streams.lock().unwrap().len();
    eventually(|| (long_pauses() == 2 || streams() > 0).then_some(()));
    assert_eq!((streams(), asked.take("/api/games").len()), (0, 3), "one sync with three attempts");
}

#[test]
fn stream_opens_again_after_a_sync_when_the_service_has_refused_it() {
    let store = Shared::default();
    let (_, transport, _) = client(store.clone(), nothing);
    let client = started(store, &transport);
    let _background = Background::start(&client, &[]);
    let mut each = eventually(|| transport.streams.lock().unwrap().pop());
    let headers = vec![("error-code".to_owned(), "suspended".to_owned())];
    each(Chunk::Begun(Answer { status: 403, headers, body: b"{}".to_vec() }));
    event(&client, |event| matches!(event, Event::Trouble(error) if error.code == Code::Suspended).then_some(()));
    let _each = eventually(|| {
        finish(&client, 1);
        transport.streams.lock().unwrap().pop()
    });
}

#[test]
fn stream_stays_closed_after_a_sync_when_the_player_has_too_many() {
    let store = Shared::default();
    let (_, transport, _) = client(store.clone(), nothing);
    let client = started(store, &transport);
    let _background = Background::start(&client, &[]);
    let mut each = transport.stream();
    each(Chunk::Bytes(b"event: end\ndata: {\"reason\": \"superseded\"}\n\n".to_vec()));
    for number in 1..4 {
        finish(&client, number);
        eventually(|| (client.unsent() == 0).then_some(()));
    }
    assert_eq!(transport.streams.lock().unwrap().len(), 0);
}

#[test]
fn full_store_holds_up_no_game_and_sync_reports_it() {
    let (transport, asked) = world(|_| None);
    let store = Shared::default();
    let client = started(store.clone(), &transport);
    block_on(client.guest()).unwrap();
    store.1.store(true, Ordering::Relaxed);
    assert!(client.finish(win(1)).is_err());
    assert_eq!(block_on(client.sync()).unwrap_err().code, Code::Storage);
    assert_eq!(client.unsent(), 0);
    assert_eq!(asked.take("/api/replays").len(), 1);
    assert_eq!(block_on(client.refresh()).unwrap_err().code, Code::Storage);
    assert!(asked.take("/api/auth/refresh").is_empty(), "a key is stored before it is sent");
    store.1.store(false, Ordering::Relaxed);
    block_on(client.sync()).unwrap();
    assert_eq!(started(store, &transport).unsent(), 0);
}

#[test]
fn finished_games_wait_when_the_service_has_named_a_time() {
    let answers = Answers::default();
    let (transport, asked) = world(answers.get());
    let store = Shared::default();
    block_on(started(store.clone(), &transport).guest()).unwrap();
    let client = started(store, &transport);
    *transport.patience.lock().unwrap() = Duration::from_secs(100);
    let later = |seconds: &str| json!({"error": "unavailable", "retry_after": seconds});
    answers.set(&[("/api/sync/pull", 503, later("600")), ("/api/games", 503, later("600"))]);
    let background = Background::start(&client, &[]);
    let pause = eventually(|| transport.paused.lock().unwrap().pop());
    (1..20).for_each(|number| _ = finish(&client, number));
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(asked.take("/api/games").len(), 0);
    answers.set(&[]);
    pause(());
    eventually(|| (client.unsent() == 0).then_some(()));
    drop(background);
}

#[test]
fn retry_after_may_be_a_date() {
    let answers = Answers::default();
    let (transport, _) = world(answers.get());
    let client = started(MemoryStore::default(), &transport);
    for (date, seconds) in [("Fri, 04 Oct 2024 00:02:00 GMT", 120), ("Thu, 03 Oct 2024 00:00:00 GMT", 0)] {
        answers.set(&[("/api/daily", 404, json!({"error": "not_found", "retry_after": date}))]);
        let error = block_on(client.get::<Value>("/api/daily-challenge")).unwrap_err();
        assert_eq!(error.retry_after, seconds, "{date}");
    }
}

#[test]
fn largest_numbers_of_the_service_are_shown_with_more_games() {
    let numbers = json!({"games_played": u64::MAX, "games_won": u64::MAX, "lifetime_score": u64::MAX,
        "win_streak_current": u64::MAX, "avg_time_seconds": u64::MAX, "draw_one_wins": u64::MAX});
    let answers = Answers::default();
    let (transport, _) = world(answers.get());
    let client = started(MemoryStore::default(), &transport);
    block_on(client.guest()).unwrap();
    answers.set(&[("/api/sync/pull", 200, json!({"merged": {"stats": numbers}}))]);
    block_on(client.sync()).unwrap();
    client.finish(Game { day: Some("9223372036854775807-12-31".to_owned()), ..win(1) }).unwrap();
    let totals = client.totals();
    assert_eq!((totals.games_won, totals.lifetime_score), (u64::MAX, u64::MAX));
}

#[test]
fn replay_has_the_id_of_its_game_when_it_has_another() {
    let (transport, asked) = world(|_| None);
    let client = started(MemoryStore::default(), &transport);
    block_on(client.guest()).unwrap();
    let replay = r#"{"seed": 18446744073709551615, "game_id": "another", "moves": []}"#.to_owned();
    client.finish(Game { replay: Some(replay), ..win(1) }).unwrap();
    block_on(client.sync()).unwrap();
    let uploaded = json!({"game_id": win(1).id, "seed": u64::MAX, "moves": []});
    assert_eq!(asked.take("/api/replays"), [uploaded]);
}
