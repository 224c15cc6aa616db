"""Headers of all pages for players (docs/pages.md)."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)
UNUSED_FEATURES = (
    "accelerometer autoplay camera display-capture fullscreen geolocation gyroscope hid magnetometer microphone midi"
    " payment picture-in-picture publickey-credentials-get screen-wake-lock serial usb xr-spatial-tracking"
)
PAGE_HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": ", ".join(f"{feature}=()" for feature in UNUSED_FEATURES.split()),
    "Referrer-Policy": "same-origin",
}
