// Load for solisync by k6 (https://k6.io): players log in once, then pull, push and read the leaderboard.
//
//     solisync --migrate
//     echo 'correct horse' | solisync seed --players 5000 --password-stdin
//     SOLISYNC_AUTH_LIMIT=1000/1 solisync
//     k6 run -e BASE_URL=http://127.0.0.1:8080 -e PLAYERS=5000 -e PASSWORD='correct horse' deploy/load/solisync.js
//
// VUS is the number of simultaneous players (50), DURATION how long they play (1m), PAUSE the seconds between two rounds
// of a player (1). The limit is raised because all logins come from one address. Never run this against real players.

import http from "k6/http";
import { check, sleep } from "k6";

const BASE_URL = (__ENV.BASE_URL || "http://127.0.0.1:8080").replace(/\/$/, "");
const PLAYERS = Number(__ENV.PLAYERS || 100);
const PASSWORD = __ENV.PASSWORD;
const VUS = Number(__ENV.VUS || 50);
const PAUSE = Number(__ENV.PAUSE || 1);

export const options = {
  scenarios: {
    players: {
      executor: "ramping-vus",
      startVUs: 0,
      stages: [
        // bcrypt limits logins to about ten a second
        { duration: `${Math.ceil(VUS / 5)}s`, target: VUS },
        { duration: __ENV.DURATION || "1m", target: VUS },
      ],
    },
  },
  thresholds: {
    checks: ["rate>0.99"],
    "http_req_duration{name:pull}": ["p(95)<250"],
    "http_req_duration{name:push}": ["p(95)<250"],
    "http_req_duration{name:board}": ["p(95)<250"],
  },
};

let token = null; // of this virtual user, which plays as one player to the end

function send(name, method, path, body) {
  const headers = { "Content-Type": "application/json" };
  if (token !== null) {
    headers.Authorization = `Bearer ${token}`;
  }
  const answer = http.request(method, BASE_URL + path, body, { headers, tags: { name } });
  check(answer, { [name]: (response) => response.status === 200 });
  return answer;
}

function logIn() {
  const username = `seeded_${1 + ((__VU - 1) % PLAYERS)}`;
  const answer = send("login", "POST", "/api/auth/login", JSON.stringify({ username, password: PASSWORD }));
  if (answer.status === 200) {
    token = answer.json("access_token");
  } else {
    sleep(Number(answer.headers["Retry-After"] || 1));
  }
}

// The body of a push: the progress of a pull after one more game. As numbers, JavaScript would round large values.
function afterAnotherGame(text) {
  const progress = text.slice(text.indexOf('"merged":') + '"merged":'.length, text.lastIndexOf(',"server_time"'));
  return progress.replace(/"(games_played|games_lost)":(\d+)/g, (_, name, value) => `"${name}":${Number(value) + 1}`);
}

export default function () {
  if (token === null) {
    logIn();
    return;
  }
  const pulled = send("pull", "GET", "/api/sync/pull", null);
  if (pulled.status === 200) {
    send("push", "POST", "/api/sync/push", afterAnotherGame(pulled.body));
  }
  send("board", "GET", "/api/leaderboard", null);
  sleep(PAUSE);
}
