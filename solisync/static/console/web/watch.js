// @ts-check
/** The page that plays a game: a verified one as players see it, another one up to its first illegal move. */

import { read } from "./api.js";
import { bdi, ownId, playerLink, replayLink, show } from "./console.js";
import { byId, h } from "./page.js";
import { Player } from "./playback.js";

byId("help-open").onclick = () => byId("help").showModal();

show(async () => {
  const [replay, timeline] = await Promise.all(["", "/timeline"].map((part) => read(`/replays/${ownId()}${part}`)));
  new Player(timeline, 0, () => {}, replay.finding ?? undefined);
  byId("player").classList.add("ready");
  return [
    h(
      "p",
      {},
      "Replay ",
      replayLink(replay.id),
      " of ",
      playerLink(replay.user_id, replay.username),
      replay.finding && ": ",
      replay.finding && bdi(replay.finding),
    ),
  ];
});
