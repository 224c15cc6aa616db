"""A node of version 1.0.0 as the database sees it: the statements of a push, word for word, prepared and executed."""

import threading

import psycopg2

from tests.harness.postgres import connect

STATEMENTS = {
    "lock_player": "SELECT true FROM users WHERE id = $1::uuid FOR NO KEY UPDATE",
    "sync_load": """
        SELECT payload, counted, session.session_id, pushed, answers,
            leaderboard.user_id IS NOT NULL AS has_entry, best_score, best_time_secs
        FROM users
        LEFT JOIN sync_states ON sync_states.user_id = id
        LEFT JOIN leaderboard ON leaderboard.user_id = id
        LEFT JOIN LATERAL (
            SELECT session_id FROM refresh_tokens
            WHERE user_id = users.id AND access_expiry = $2::bigint AND expires_at > clock_timestamp()
            ORDER BY session_id LIMIT 1
        ) AS session ON true
        LEFT JOIN known_states AS known ON known.session_id = session.session_id
        WHERE id = $1::uuid
    """,
    "sync_save": """
        WITH saved AS (
            UPDATE sync_states SET payload = $2::text, counted = $3::text, revision = coalesce(revision, 0) + 1
            WHERE user_id = $1::uuid RETURNING true
        )
        SELECT exactly_one(count(*)) FROM saved
    """,
}
RUN_AGAIN = {"0A000", "40P01", "40001"}  # with a new connection: the result type changed, deadlock, serialization


class OldNode(threading.Thread):
    """A node that pushes for one player until `stop`, one win each time; `payload` is only the number of wins."""

    def __init__(self, dsn, player):
        super().__init__(daemon=True)
        self.player = player
        self.acknowledged = 0
        self.wrong = []
        self._dsn = dsn
        self._ended = threading.Event()
        self.start()

    def run(self):
        cursor = self._connect()
        while not self._ended.is_set():
            try:
                self._push(cursor)
            except psycopg2.Error as error:
                if error.pgcode not in RUN_AGAIN:
                    self.wrong.append(error)
                cursor.connection.close()
                cursor = self._connect()
        cursor.connection.close()

    def _connect(self):
        cursor = connect(self._dsn).cursor()
        cursor.execute("; ".join(f"PREPARE {name} AS {sql}" for name, sql in STATEMENTS.items()))
        cursor.execute("SET statement_timeout = '5s'; SET lock_timeout = '4s'")
        return cursor

    def _push(self, cursor):
        cursor.execute("BEGIN; EXECUTE lock_player(%s); EXECUTE sync_load(%s, 0)", (self.player, self.player))
        ((payload, *_),) = cursor.fetchall()
        cursor.execute("EXECUTE sync_save(%s, %s, '[]'); COMMIT", (self.player, str(int(payload) + 1)))
        self.acknowledged += 1

    def stop(self):
        """Wait for the current push; return how many were acknowledged."""
        self._ended.set()
        self.join(20)
        assert self.wrong == []
        return self.acknowledged
