//! Joins: a player takes over the games of a guest. The end of a session, too.

use crate::client::{Client, Event, body};
use crate::error::Error;
use crate::journal::{Joining, Journal, today};
use crate::messages::Code;
use crate::session::Begun;
use serde::de::IgnoredAny;
use serde_json::json;

/// Whether a join would never succeed.
fn is_gone(error: &Error) -> bool {
    matches!(error.code, Code::GuestGone | Code::NotAGuest | Code::Unauthorized)
}

/// Whether a join may succeed another day.
fn is_refused(error: &Error) -> bool {
    !error.passes() && matches!(error.status, 400 | 403) || error.is(Code::GuestUnknown)
}

impl Client {
    /// Log in as a player, who takes over the guest's games. After an error, call this again.
    pub async fn join(&self, username: &str, password: &str) -> Result<(), Error> {
        let _one = self.0.syncing.lock().await;
        self.finish_join().await?; // of this player or of another one, if a join had no answer
        let me = self.me().await?;
        if me.username == username.trim() {
            return Ok(()); // it has succeeded
        }
        if !me.guest {
            return Err(Error::new(0, Code::NotAGuest, "The session is a player's, not a guest's: log in instead."));
        }
        self.send().await?; // the guest's games reach the service
        let begun = self.begun("/api/auth/login", username, password).await?;
        let account = begun.account()?;
        let tokens = self.settled().await?;
        self.change(|journal| begin_join(journal, begun, &account))?;
        drop(tokens);
        let joined = self.finish_join().await;
        self.tell(Event::SignedIn);
        joined
    }

    /// Send the join that has begun. If the guest's token isn't valid, sign in to the guest by its key once.
    async fn finish_join(&self) -> Result<(), Error> {
        loop {
            let Some(joining) = self.look(|journal| journal.joining.clone()) else { return Ok(()) };
            let name = self.look(Journal::name);
            let content = body(&json!({"guest_refresh_token": joining.token}));
            let error = match self.take(&name, "POST", "/api/me/join", Some(content), &[]).await {
                Ok(()) => {
                    return self.change(|journal| {
                        journal.joining = None;
                        journal.move_games(&joining.from, &name, true);
                    });
                }
                Err(error) => error,
            };
            if error.is(Code::Unauthorized) {
                self.me().await?; // fails if the error was about the player's own session
            }
            let is_invalid = error.is(Code::Unauthorized) || error.is(Code::NotAGuest);
            let anew = match joining.key.as_deref().filter(|_| is_invalid) {
                Some(key) => self.token_of_guest(key).await.map(Some),
                None => Err(error),
            };
            let now = self.0.transport.now();
            self.change(|journal| match (&anew, &mut journal.joining) {
                (Ok(Some(token)), Some(joining)) => (joining.token, joining.key) = (token.clone(), None),
                (Err(error), mine) if is_gone(error) => *mine = None,
                (Err(error), Some(mine)) if is_refused(error) => mine.refused = now,
                _ => {}
            })?;
            anew?;
        }
    }

    /// Finish a join before other work, unless the service has refused it today. A refusal stops nothing else.
    pub(crate) async fn join_first(&self) -> Result<(), Error> {
        let Some(joining) = self.look(|journal| journal.joining.clone()) else { return Ok(()) };
        if today(self.0.transport.now(), joining.refused) {
            return Ok(());
        }
        match self.finish_join().await {
            Err(error) if is_gone(&error) || is_refused(&error) => {
                if joining.refused == 0 {
                    self.tell(Event::Trouble(error));
                }
                Ok(())
            }
            answer => answer,
        }
    }

    /// End the session on the service, and return whether it was a guest's, who is deleted then.
    async fn leave(&self) -> Result<bool, Error> {
        self.restore().await?;
        let _ = self.join_first().await; // after an error, the player sends the guest's games
        let is_guest = self.me().await?.guest;
        let _tokens = self.settled().await?;
        let session = self.session(None)?;
        if is_guest {
            let request = self.request("DELETE", "/api/account", None, Some(session.access_token));
            self.repeated::<IgnoredAny>(request).await?;
        } else {
            let content = json!({"refresh_token": session.refresh_token});
            self.post::<IgnoredAny>("/api/auth/logout", &content).await?;
        }
        Ok(is_guest)
    }

    /// End the session. Unsent games stay in the store until the same player logs in. A guest is deleted with its games.
    pub async fn sign_out(&self) -> Result<(), Error> {
        let _one = self.0.syncing.lock().await;
        let was_guest = self.look(|journal| journal.is_guest == Some(true));
        let is_set_aside = |journal: &Journal| journal.player.is_some() && journal.usable().is_none();
        let is_deleted = match !was_guest && self.look(is_set_aside) {
            true => false, // the service can't end this session
            false => match self.leave().await {
                // the guest was deleted before, but the answer was lost; or another device has claimed it
                Err(error) if was_guest && matches!(error.code, Code::UserNotFound | Code::SignedOut) => {
                    error.is(Code::UserNotFound)
                }
                left => left?,
            },
        };
        self.change(|journal| {
            let name = journal.name();
            journal.give_up_join("");
            if is_deleted {
                journal.players.remove(&name);
            } else {
                (journal.of(&name).latest, journal.of(&name).played) = (None, 0);
            }
            journal.guest.take_if(|guest| was_guest || is_deleted || guest.left);
            let Journal { player, is_guest, session, retry_key, refused, .. } = journal;
            (*player, *is_guest, *session, *retry_key, *refused) = (None, None, None, None, None);
        })?;
        self.tell(Event::SignedOut("left".to_owned()));
        Ok(())
    }
}

/// Sign in as a player who takes over the guest of the session.
fn begin_join(journal: &mut Journal, begun: Begun, account: &str) {
    let from = journal.name();
    let key = journal.guest.as_ref().filter(|guest| guest.id.as_ref() == Some(&from)).map(|guest| guest.key.clone());
    let token = journal.session.take().map(|guest| guest.refresh_token);
    journal.move_games(&from, account, false);
    journal.leave_guest();
    journal.sign_in(begun.session, account, begun.player.as_ref());
    journal.joining = token.map(|token| Joining { from, token, key, refused: 0 });
}
