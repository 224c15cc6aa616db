//! What the plugin shows when something fails.

use bevy_app::App;
use bevy_ecs::message::Messages;
use solisync_bevy_example::{Claimed, Cloud, CloudPlugin, Finished, Heard};
use solisync_client::{Code, Event, Game};
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

fn game(directory: &Path) -> App {
    let mut app = App::new();
    app.add_plugins(CloudPlugin { url: "http://127.0.0.1:9".to_owned(), directory: directory.to_owned() });
    app
}

/// Run frames until the plugin shows an error with this code.
fn wait_for(app: &mut App, code: Code) {
    let ends = Instant::now() + PATIENCE;
    loop {
        app.update();
        let heard = app.world_mut().resource_mut::<Messages<Heard>>().drain().collect::<Vec<_>>();
        if heard.iter().any(|Heard(event)| matches!(event, Event::Trouble(error) if error.code == code)) {
            return;
        }
        assert!(Instant::now() < ends, "waited in vain for {code:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn player_sees_the_error_of_a_claim_and_of_a_second_copy() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bevy-{}", std::process::id()));
    let mut first = game(&directory);
    first.world_mut().write_message(Claimed("ann".to_owned(), "correct horse".to_owned()));
    wait_for(&mut first, Code::SignedOut);

    let mut second = game(&directory);
    wait_for(&mut second, Code::Storage);
    let id = first.world().resource::<Cloud>().client.as_ref().unwrap().new_id();
    let finished = Game { id, ..Game::default() };
    for (app, played) in [(&mut first, 1), (&mut second, 0)] {
        app.world_mut().write_message(Finished(finished.clone()));
        app.update();
        let cloud = app.world().resource::<Cloud>();
        assert_eq!(cloud.client.as_ref().map_or(0, |client| client.totals().games_played), played);
    }
    wait_for(&mut second, Code::Storage);
    second.world_mut().write_message(Claimed("ann".to_owned(), "correct horse".to_owned()));
    wait_for(&mut second, Code::Storage);
}
