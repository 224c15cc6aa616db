// @ts-check
/** The player of a timeline: it steps, seeks and plays, and announces each move in words. */

import { Board, inWords, positions } from "./board.js";
import { gestures } from "./gestures.js";
import { local } from "./http.js";
import { byId, counted, h, say } from "./page.js";

/** @typedef {import("./board.js").Step} Step */

const MOVE_MS = 900; // duration of a move at speed 1
const SPEEDS = [0.5, 1, 2, 4, 8];
const SPEED = "solisync.speed";
const CALM_MS = 1000; // the minimum for users who prefer reduced motion

/** A player in the elements of the page. */
export class Player {
  /**
   * @param {import("./board.js").Timeline} timeline @param {number} first the move to open at
   * @param {(move: number) => void} rested called when the player has stopped at a move
   * @param {string} [ending] said at the end, instead of the win
   */
  constructor(timeline, first, rested, ending) {
    this.positions = positions(timeline);
    this.steps = timeline.steps;
    this.rested = rested;
    this.ending = ending;
    this.end = this.steps.length;
    this.move = 0;
    this.playing = false;
    this.due = 0;
    this.board = new Board(byId("board"), timeline.draw_mode === "DrawThree" ? 3 : 1);
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.texts = this.steps.map((step, index) => inWords(step, this.#score(index)));
    this.seek = byId("seek");
    this.seek.max = this.end;
    this.#fillTranscript();
    this.#drawCurve();
    this.#bind();
    this.show(Math.min(Math.max(first || 0, 0), this.end));
  }

  /** @param {number} move */
  #score(move) {
    return move ? this.steps[move - 1].score : 0;
  }

  #fillTranscript() {
    const marks = byId("marks");
    const item = (/** @type {string} */ text, /** @type {number} */ index) => {
      const undone = this.steps[index].input === "undo";
      if (undone) {
        const mark = marks.appendChild(h("i"));
        mark.style.left = `${((index + 1) / this.end) * 100}%`;
      }
      const jump = () => this.go(index + 1);
      return h("li", { class: undone && "undone" }, h("button", { type: "button", click: jump }, text));
    };
    this.transcript = byId("transcript");
    this.transcript.replaceChildren(...this.texts.map(item));
  }

  /** Draw the score after each move. A click goes to that move. */
  #drawCurve() {
    const curve = byId("curve");
    const most = Math.max(...this.steps.map(({ score }) => score), 1);
    curve.setAttribute("viewBox", `0 0 ${Math.max(this.end, 1)} ${most}`);
    const points = [0, ...this.steps.map(({ score }) => score)].map((score, move) => `${move},${most - score}`);
    curve.querySelector("polyline").setAttribute("points", points.join(" "));
    curve.querySelector("line").setAttribute("y2", most);
    curve.onclick = (/** @type {MouseEvent} */ { clientX }) => {
      const { left, width } = curve.getBoundingClientRect();
      this.go(Math.round(((clientX - left) / width) * this.end));
    };
  }

  #bind() {
    const actions = /** @type {Record<string, () => void>} */ ({
      first: () => this.go(0),
      back: () => this.go(this.move - 1),
      play: () => this.toggle(),
      next: () => this.go(this.move + 1),
      last: () => this.go(this.end),
    });
    for (const [id, action] of Object.entries(actions)) byId(id).onclick = action;
    byId("play").disabled = this.seek.disabled = false;
    gestures(byId("board"), (by) => this.go(this.move + by));
    this.seek.oninput = () => {
      this.pause();
      this.show(Number(this.seek.value)); // the slider announces itself
    };
    this.speed = byId("speed");
    this.speed.value = local?.getItem(SPEED) ?? "1×";
    this.speed.onchange = () => local?.setItem(SPEED, this.speed.value);
    this.calm.onchange = () => this.#limitSpeed();
    this.#limitSpeed();
    byId("player").onkeydown = (/** @type {KeyboardEvent} */ event) => this.#key(event, actions);
    document.addEventListener("visibilitychange", () => (this.due = 0));
  }

  /** Handle a key while the player has focus. @param {KeyboardEvent} event @param {Record<string, () => void>} actions */
  #key(event, actions) {
    const { tagName } = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.altKey || event.metaKey || tagName === "SELECT") return;
    const ten = event.shiftKey ? 10 : 1;
    const on = () => this.go(this.move + ten);
    const back = () => this.go(this.move - ten);
    const action = {
      ArrowRight: on,
      j: on,
      J: on,
      ArrowLeft: back,
      k: back,
      K: back,
      Home: actions.first,
      0: actions.first,
      End: actions.last,
      $: actions.last,
      "]": () => this.#faster(1),
      "[": () => this.#faster(-1),
      "?": () => byId("help").showModal(),
      " ": tagName === "BUTTON" ? undefined : actions.play,
    }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  /** With reduced motion, disable speeds that have no effect. */
  #limitSpeed() {
    byId("calm").hidden = !this.calm.matches;
    [...this.speed.options].forEach((option, index) => (option.disabled = this.calm.matches && SPEEDS[index] > 1));
    if (this.speed.selectedIndex < 0 || this.speed.selectedOptions[0].disabled) this.speed.value = "1×";
  }

  /** @param {number} by */
  #faster(by) {
    const option = this.speed.options[this.speed.selectedIndex + by];
    if (option && !option.disabled) this.speed.value = option.value;
    this.speed.onchange();
    say(`Speed ${this.speed.value}`);
  }

  /** Go to a move and announce it. @param {number} move */
  go(move) {
    this.pause();
    this.show(Math.min(Math.max(move, 0), this.end));
    say(this.#told());
  }

  #told() {
    const ending =
      this.move === this.end ? `. ${this.ending ?? `Won with ${counted(this.#score(this.end), "point")}`}` : "";
    return `${this.move ? this.texts[this.move - 1] : "Start"}${ending}`;
  }

  toggle() {
    if (this.playing) {
      this.pause();
      say(`Paused at move ${this.move}: ${this.#told()}`);
      return;
    }
    if (this.move === this.end) this.show(0);
    this.#playing(true);
    say("Playing");
    this.due = 0;
    requestAnimationFrame((now) => this.#tick(now));
  }

  pause() {
    if (this.playing) this.#playing(false);
  }

  /** @param {boolean} playing */
  #playing(playing) {
    this.playing = playing;
    const button = byId("play");
    button.classList.toggle("playing", playing);
    button.setAttribute("aria-label", playing ? "Pause" : "Play");
    if (!playing) this.rested(this.move);
  }

  get #pace() {
    const pace = MOVE_MS / SPEEDS[this.speed.selectedIndex];
    return this.calm.matches ? Math.max(pace, CALM_MS) : pace;
  }

  /** One frame of playing. Browsers call it only while the page is visible. @param {number} now */
  #tick(now) {
    if (!this.playing) return;
    if (!this.due) this.due = now + this.#pace / 2;
    if (now >= this.due) {
      this.show(this.move + 1);
      this.due = now + this.#pace;
    }
    if (this.move === this.end) {
      this.#playing(false);
      if (!this.ending) this.#wave();
      say(this.#told());
    } else requestAnimationFrame((later) => this.#tick(later));
  }

  /** Let the cards on the foundations rise one after the other, after a win. */
  #wave() {
    if (this.calm.matches) return;
    byId("board")
      .querySelectorAll(".foundation li:last-child")
      .forEach((/** @type {Element} */ card, /** @type {number} */ at) =>
        card.animate([{}, { translate: "0 -14%", rotate: "4deg" }, {}], {
          duration: 600,
          delay: at * 150,
          iterations: 2,
          easing: "ease-in-out",
        }),
      );
  }

  /** Show the position after a move. Cards fly if it is one step from the last position. @param {number} move */
  show(move) {
    const near = Math.abs(move - this.move) === 1 && !this.calm.matches && !document.hidden;
    this.board.show(this.positions[move], near ? Math.min(this.#pace * 0.6, 260) : 0);
    this.move = move;
    this.seek.value = move;
    this.seek.style.setProperty("--done", `${(move / this.end) * 100}%`);
    this.seek.setAttribute("aria-valuetext", `move ${move} of ${this.end}: ${this.#told()}`);
    for (const x of ["x1", "x2"]) byId("curve").querySelector("line").setAttribute(x, move);
    byId("count").textContent = `${move} / ${this.end}`;
    byId("points").textContent = counted(this.#score(move), "point");
    byId("now").textContent = this.#told();
    for (const id of ["first", "back"]) byId(id).disabled = move === 0;
    for (const id of ["next", "last"]) byId(id).disabled = move === this.end;
    this.#mark(move);
    if (!this.playing) this.rested(move);
  }

  /** Mark a move in the transcript, and bring it into view without moving the page. @param {number} move */
  #mark(move) {
    this.transcript.querySelector("[aria-current]")?.removeAttribute("aria-current");
    const button = this.transcript.children[move - 1]?.firstElementChild;
    button?.setAttribute("aria-current", "step");
    const item = this.transcript.children[Math.max(move - 1, 0)];
    if (item) this.transcript.scrollTop = item.offsetTop - (this.transcript.clientHeight - item.offsetHeight) / 2;
  }
}
