// @ts-check
/** Which tab of this browser plays. */

const GAME = "solisync.game";
const WAIT_MS = 400; // until a tab that is closing is gone, such as this one before a reload

/** The seat at the game, which one tab of the browser takes. */
export class Seat {
  /** @param {() => void} lost called when another tab takes over @param {() => void} freed called when that tab is closed */
  constructor(lost, freed) {
    this.lost = lost;
    this.freed = freed;
    this.taken = false;
    if (navigator.locks) return;
    // There are no locks on plain HTTP, so tabs ask each other.
    this.channel = new BroadcastChannel(GAME);
    this.channel.onmessage = ({ data }) => {
      if (data === "asks" && this.taken) this.channel?.postMessage("plays");
      if (data === "plays") this.answered = true;
      if (data === "takes over") this.#leave();
    };
  }

  #leave() {
    if (this.taken) this.lost();
    this.taken = false;
  }

  /** Take the seat, and return whether this tab has it. `over` takes it from another tab. @param {boolean} over @returns {Promise<boolean>} */
  async take(over) {
    if (this.channel) {
      this.answered = false;
      this.channel.postMessage(over ? "takes over" : "asks");
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS / 2));
      return (this.taken = over || !this.answered);
    }
    return new Promise((resolve) => {
      let waited = false;
      setTimeout(() => {
        waited = !this.taken;
        resolve(this.taken);
      }, WAIT_MS);
      navigator.locks
        .request(GAME, { steal: over }, () => {
          resolve((this.taken = true));
          if (waited) this.freed();
          return new Promise(() => {}); // until the page is left
        })
        .catch(() => this.#leave()); // another tab has taken over
    });
  }
}
