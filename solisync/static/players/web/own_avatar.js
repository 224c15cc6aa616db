// @ts-check
/** The player's avatar on /account: choose, crop and remove it. */

import { ask, me } from "./api.js";
import { attempt, field, stack, submits } from "./forms.js";
import { avatar, byId, h, initial, tell } from "./page.js";

/** @type {ImageBitmap | null} */
let picture = null;
const canvas = h("canvas", { width: 512, height: 512, role: "img", "aria-label": "Preview" });

/** Show the avatar, here and in the header. @param {boolean} [changed] */
export async function showAvatar(changed) {
  const { username: name, avatar_url: path } = await me(changed);
  byId("avatar-remove").hidden = !path;
  byId("seen-by").textContent = document.body.dataset.avatars ? "Anyone can see it." : "Signed-in players can see it.";
  if (changed) dispatchEvent(new Event("session"));
  byId("avatar").replaceChildren(path ? await avatar(path, name, "Your avatar") : initial(name));
}

function crop() {
  if (!picture) return;
  const side = Math.min(picture.width, picture.height) / Number(byId("zoom").value);
  const left = (picture.width - side) * Number(byId("x").value);
  const top = (picture.height - side) * Number(byId("y").value);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.drawImage(picture, left, top, side, side, 0, 0, canvas.width, canvas.height);
}

/** Make the controls work. */
export function bindAvatar() {
  const range = { type: "range", required: false, min: 0, max: 1, step: 0.01, input: crop };
  const cancel = () => {
    form.hidden = true;
    byId("file").value = "";
    byId("file").focus();
  };
  const form = stack(
    "crop",
    [
      canvas,
      ...field("zoom", "Size", { ...range, min: 1, max: 4 }),
      ...field("x", "Left and right", range),
      ...field("y", "Up and down", range),
    ],
    [h("button", { class: "main" }, "Use this picture"), h("button", { type: "button", click: cancel }, "Cancel")],
  );
  form.hidden = true;
  /** @type {Map<number, {x: number, y: number}>} */
  const fingers = new Map();
  const apart = () => {
    const [one, other] = fingers.values();
    return Math.hypot(one.x - other.x, one.y - other.y);
  };
  canvas.onpointerdown = ({ pointerId, x, y }) => {
    canvas.setPointerCapture(pointerId);
    fingers.set(pointerId, { x, y });
  };
  canvas.onpointerup = canvas.onpointercancel = ({ pointerId }) => fingers.delete(pointerId);
  canvas.onwheel = (event) => {
    event.preventDefault();
    byId("zoom").value = Number(byId("zoom").value) * Math.exp(-event.deltaY / 500);
    crop();
  };
  canvas.onpointermove = (event) => {
    if (!event.buttons || !picture) return;
    const before = fingers.size === 2 ? apart() : 0;
    fingers.set(event.pointerId, { x: event.x, y: event.y });
    if (before) {
      byId("zoom").value = (Number(byId("zoom").value) * apart()) / before;
      return crop();
    }
    const shown = Math.min(picture.width, picture.height) / Number(byId("zoom").value) / canvas.clientWidth;
    const drag = (/** @type {string} */ id, /** @type {number} */ moved, /** @type {number} */ size) => {
      const spare = size - shown * canvas.clientWidth;
      if (spare > 0) byId(id).value = Number(byId(id).value) - (moved * shown) / spare;
    };
    drag("x", event.movementX, picture.width);
    drag("y", event.movementY, picture.height);
    crop();
  };
  byId("crop-place").append(form);
  byId("file").onchange = async () => {
    const [file] = byId("file").files;
    if (!file) return;
    byId("file-refused").replaceChildren();
    try {
      picture = await createImageBitmap(file);
    } catch {
      byId("file-refused").append(
        h("p", { class: "refused", role: "alert" }, "Your browser can’t read this file as a picture."),
      );
      return;
    }
    for (const [id, value] of Object.entries({ zoom: 1, x: 0.5, y: 0.5 })) byId(id).value = value;
    form.hidden = false;
    crop();
    byId("zoom").focus();
  };
  submits(form, async () => {
    /** @type {Blob | null} */
    const drawn = await new Promise((resolve) => canvas.toBlob(resolve, "image/webp", 0.9));
    if (!drawn) return;
    await ask("PUT", "/api/me/avatar", { body: drawn });
    form.hidden = true;
    byId("file").value = "";
    await showAvatar(true);
    byId("file").focus();
    tell("Your avatar has changed.");
  });
  byId("avatar-remove").onclick = () =>
    attempt(byId("file-refused"), async () => {
      await ask("DELETE", "/api/me/avatar");
      await showAvatar(true);
      byId("file").focus();
      tell("Your avatar has been removed.");
    });
}
