//! Sessions and joins when answers are wrong or lost.

mod scripted;

use scripted::{Answers, Asked, DAY, Scripted, Shared, finish, refused, session, signed_in, started, world};
use serde_json::{Value, json};
use solisync_client::{Client, Code, Event, MemoryStore, Session, block_on};

/// The answers of a service that refuses the session.
fn unauthorized() -> Value {
    refused("unauthorized")
}

fn pair(account: &str, refresh: &str, expires: i64) -> Session {
    serde_json::from_value(session(account, refresh, expires)).unwrap()
}

fn refresh_token(client: &Client) -> String {
    client.tokens().unwrap().refresh_token
}

#[test]
fn join_is_sent_again_when_a_proxy_has_refused_it() {
    let answers = Answers::default();
    let (transport, asked) = world(answers.get());
    let client = started(MemoryStore::default(), &transport);
    finish(&client, 1);
    block_on(client.guest()).unwrap();
    answers.set(&[("/api/me/join", 403, json!("<html>"))]);
    assert!(block_on(client.join("ann", "correct horse")).unwrap_err().passes());
    answers.set(&[("/api/me/join", 403, refused("suspended"))]);
    block_on(client.sync()).unwrap();
    assert_eq!(asked.take("/api/me/join").len(), 3 + 1, "three attempts, and one with the answer of the service");
    block_on(client.sync()).unwrap();
    assert_eq!(asked.take("/api/me/join").len(), 0, "the service is asked again a day later");
}

#[test]
fn adopt_leaves_the_session_of_the_store_when_the_given_tokens_are_spent() {
    let answers = Answers::default();
    let (transport, _) = world(answers.get());
    let store = Shared::default();
    let client = started(store.clone(), &transport);
    let keychain = pair("ann", "first", 1);
    client.adopt(keychain.clone()).unwrap();
    answers.set(&[("/api/auth/refresh", 200, session("ann", "second", 2))]);
    block_on(client.refresh()).unwrap();
    for accepts in [true, false] {
        let client = started(store.clone(), &transport);
        client.adopt(keychain.clone()).unwrap();
        assert_eq!(refresh_token(&client), "second");
        if accepts {
            answers.set(&[("/api/", 401, unauthorized())]);
            assert_eq!(block_on(client.sync()).unwrap_err().code, Code::SignedOut);
        }
    }
}

#[test]
fn adopt_takes_newer_tokens_when_the_service_refuses_the_session() {
    let (transport, _) = world(|_| Some((401, unauthorized())));
    let client = started(MemoryStore::default(), &transport);
    client.adopt(pair("ann", "first", 1)).unwrap();
    assert!(block_on(client.sync()).is_err());
    client.adopt(pair("ann", "second", 2)).unwrap();
    assert_eq!((client.player().as_deref(), &*refresh_token(&client)), (Some("ann"), "second"));
}

#[test]
fn refreshed_tokens_are_an_event() {
    let answers = Answers::default();
    let (transport, _) = world(answers.get());
    let client = started(MemoryStore::default(), &transport);
    client.adopt(pair("ann", "first", 1)).unwrap();
    while client.next_event().is_some() {}
    answers.set(&[("/api/auth/refresh", 200, session("ann", "second", 2))]);
    block_on(client.refresh()).unwrap();
    assert!(matches!(client.next_event(), Some(Event::Tokens)));
}

#[test]
fn guest_replaces_no_adopted_session_that_the_service_refuses() {
    let answers = Answers::default();
    let (transport, _) = world(answers.get());
    let client = started(MemoryStore::default(), &transport);
    client.adopt(pair("ann", "first", 1)).unwrap();
    answers.set(&[("/api/me", 401, unauthorized()), ("/api/auth/refresh", 401, unauthorized())]);
    assert!(block_on(client.sync()).is_err());
    assert_eq!(block_on(client.guest()).unwrap_err().code, Code::SignedOut);
    assert_eq!(refresh_token(&client), "first");
}

/// A guest's device with a counted game, and with a join whose answer is lost.
fn joining() -> (Client, Scripted, Asked, Answers) {
    let answers = Answers::default();
    let (transport, asked) = world(answers.get());
    let client = started(MemoryStore::default(), &transport);
    finish(&client, 1);
    block_on(client.guest()).unwrap();
    block_on(client.sync()).unwrap();
    answers.set(&[("/api/me/join", 503, refused("unavailable"))]);
    assert!(block_on(client.join("ann", "correct horse")).is_err());
    asked.take("");
    (client, transport, asked, answers)
}

fn player() -> (&'static str, u16, Value) {
    ("/api/me", 200, json!({"id": "ann", "username": "ann", "guest": false}))
}

#[test]
fn join_as_another_player_finishes_the_one_without_an_answer_and_is_refused() {
    let (client, _, asked, answers) = joining();
    answers.set(&[("/api/me/join", 200, json!({"merged": {}})), player()]);
    assert_eq!(block_on(client.join("bob", "wrong")).unwrap_err().code, Code::NotAGuest);
    assert_eq!((asked.take("/api/me/join").len(), asked.take("/api/auth/login").len()), (1, 0));
}

#[test]
fn sign_out_finishes_a_join() {
    let (client, _, asked, answers) = joining();
    answers.set(&[("/api/me/join", 200, json!({"merged": {}})), player()]);
    block_on(client.sign_out()).unwrap();
    assert_eq!(asked.take("/api/me/join").len(), 1);
}

#[test]
fn player_sends_the_games_of_a_guest_when_a_join_is_not_answered_before_the_session_ends() {
    for other in [false, true] {
        let (client, _, asked, answers) = joining();
        answers.set(&[("/api/me/join", 503, refused("unavailable")), player()]);
        if other {
            let bob = ("/api/auth/login", 200, signed_in("bob"));
            answers.set(&[("/api/me/join", 503, refused("unavailable")), player(), bob]);
            block_on(client.login("bob", "correct horse")).unwrap();
        } else {
            block_on(client.sign_out()).unwrap();
        }
        answers.set(&[]);
        block_on(client.login("ann", "correct horse")).unwrap();
        asked.take("");
        block_on(client.sync()).unwrap();
        let games = asked.take("/api/games");
        assert_eq!(games[0]["games"].as_array().unwrap().len(), 1, "{other}");
    }
}

#[test]
fn sign_out_is_possible_when_the_session_was_refused_for_a_week() {
    let answers = Answers::default();
    let (transport, _) = world(answers.get());
    let store = Shared::default();
    let client = started(store.clone(), &transport);
    block_on(client.login("ann", "correct horse")).unwrap();
    block_on(client.sync()).unwrap();
    answers.set(&[("/api/", 401, unauthorized())]);
    for _ in 0..9 {
        assert!(block_on(started(store.clone(), &transport).sync()).is_err());
        *transport.now.lock().unwrap() += DAY;
    }
    let client = started(store, &transport);
    assert!(client.tokens().is_none());
    block_on(client.sign_out()).unwrap();
    assert_eq!(client.totals().games_played, 0);
}

#[test]
fn guest_is_signed_out_when_the_answers_to_its_deletion_were_lost() {
    let answers = Answers::default();
    let (transport, asked) = world(answers.get());
    let client = started(MemoryStore::default(), &transport);
    block_on(client.guest()).unwrap();
    answers.set(&[("/api/account", 502, json!("<html>"))]);
    assert!(block_on(client.sign_out()).unwrap_err().passes());
    finish(&client, 1);
    answers.set(&[("/api/me", 404, refused("user_not_found"))]);
    block_on(client.sign_out()).unwrap();
    assert_eq!(client.unsent(), 0);
    let former = asked.take("/api/auth/guest");
    answers.set(&[]);
    block_on(client.guest()).unwrap();
    assert_eq!(asked.take("/api/auth/guest")[0]["create"], true, "another guest than {former:?}");
}

#[test]
fn guest_that_another_device_has_claimed_keeps_its_games_when_it_signs_out() {
    let answers = Answers::default();
    let (transport, _) = world(answers.get());
    let client = started(MemoryStore::default(), &transport);
    block_on(client.guest()).unwrap();
    finish(&client, 1);
    let gone = ("/api/auth/guest", 409, refused("guest_gone"));
    answers.set(&[gone, ("/api/", 401, unauthorized())]);
    block_on(client.sign_out()).unwrap();
    answers.set(&[("/api/auth/login", 200, signed_in("guest"))]);
    block_on(client.login("ann", "correct horse")).unwrap();
    assert_eq!(client.unsent(), 1);
}
