// @ts-check
/** Which of the tabs of this browser plays. */

const GAME = "solisync.game";
const WAIT_MS = 400; // for a tab that is just being left, such as this one before a reload

/** One tab of the browser plays. */
export class Seat {
  /** @param {() => void} lost called when another tab takes over @param {() => void} freed called when it is closed */
  constructor(lost, freed) {
    this.lost = lost;
    this.freed = freed;
    this.taken = false;
    if (navigator.locks) return;
    // On plain HTTP the tabs ask one another.
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

  /** Whether this tab plays from now on; `over`: even if another one does. @param {boolean} over @returns {Promise<boolean>} */
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
      navigator.locks.request(GAME, { steal: over }, () => {
        resolve((this.taken = true));
        if (waited) this.freed();
        return new Promise(() => {}); // until the page is left
      }).catch(() => this.#leave()); // another tab has taken it
    });
  }
}
