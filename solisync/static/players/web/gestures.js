// @ts-check
/** Clicks, taps, swipes and the wheel on an element, as steps back (-1) and forward (1). Two fingers zoom the page. */

const SWIPE = 36; // pixels for each step
const WHEEL = 60; // units of the wheel for each step

/** @param {HTMLElement} place @param {(by: number) => void} step */
export function gestures(place, step) {
  let from = 0;
  let swiped = false;
  let pinched = false;
  place.style.touchAction = "pan-y pinch-zoom";
  place.onpointerdown = ({ clientX, isPrimary }) => {
    from = clientX;
    swiped = pinched = !isPrimary;
  };
  place.onpointermove = ({ clientX, pointerType, buttons }) => {
    if (pointerType === "mouse" || !buttons || pinched || Math.abs(clientX - from) < SWIPE) return;
    swiped = true;
    const by = clientX < from ? 1 : -1;
    from -= by * SWIPE;
    step(by);
  };
  place.onclick = ({ clientX }) => {
    const { left, width } = place.getBoundingClientRect();
    if (!swiped) step(clientX < left + width / 2 ? -1 : 1);
    swiped = false;
  };
  let turned = 0;
  place.onwheel = (event) => {
    if (event.ctrlKey || !place.matches(":focus")) return; // without the focus, the page scrolls
    event.preventDefault();
    turned += event.deltaMode ? Math.sign(event.deltaY) * WHEEL : event.deltaY;
    if (Math.abs(turned) < WHEEL) return;
    step(Math.sign(turned));
    turned = 0;
  };
}
