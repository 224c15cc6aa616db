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
        if self.look(|journal| journal.joining.is_none()) {
            let me = self.me().await?;
            if me.username == username.trim() {
                return Ok(()); // it has succeeded before
            }
            if !me.guest {
                return Err(Error::new(
                    0,
                    Code::NotAGuest,
                    "The session is a player's, not a guest's: log in instead.",
                ));
            }
            self.send().await?; // the guest's games reach the service
            let begun = self.begun("/api/auth/login", username, password).await?;
            let account = begun.account()?;
            let _tokens = self.settled().await?;
            self.change(|journal| begin_join(journal, begun, &account))?;
        }
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

    /// End the session. Unsent games stay in the store until the same player logs in. A guest is deleted with its games.
    pub async fn sign_out(&self) -> Result<(), Error> {
        let _one = self.0.syncing.lock().await;
        let is_set_aside = self.look(|journal| journal.refused.is_some() && journal.is_guest == Some(false));
        let is_guest = !is_set_aside && self.me().await?.guest;
        let _tokens = if is_set_aside { None } else { Some(self.settled().await?) };
        if is_guest {
            let session = self.session(None)?;
            self.repeated::<IgnoredAny>(self.request("DELETE", "/api/account", None, Some(session.access_token)))
                .await?;
        } else if !is_set_aside {
            let content = json!({"refresh_token": self.session(None)?.refresh_token});
            self.post::<IgnoredAny>("/api/auth/logout", &content).await?;
        }
        self.change(|journal| {
            let name = journal.name();
            if is_guest {
                journal.players.remove(&name);
            } else {
                (journal.of(&name).latest, journal.of(&name).played) = (None, 0);
            }
            journal.guest.take_if(|guest| is_guest || guest.left);
            let Journal { player, is_guest, session, retry_key, refused, joining, .. } = journal;
            (*player, *is_guest, *session, *retry_key) = (None, None, None, None);
            (*refused, *joining) = (None, None);
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
    journal.joining = token.map(|token| Joining { from, token, key, refused: 0 });
    journal.leave_guest();
    journal.sign_in(begun.session, account, begun.player.as_ref());
}
