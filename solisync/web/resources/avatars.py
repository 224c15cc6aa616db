"""Avatars over HTTP (docs/protocol.md "The player")."""

from functools import partial
from typing import ClassVar

from ...errors import Locked, NotFound, existing
from ...postgres.database import Database
from ...process.audit import audit
from ...rules.accounts import Me, me
from ...rules.avatars import AVATAR_TOO_LARGE, AVATAR_TYPES, check_avatar, media_type
from ...rules.shapes import Ok, is_id
from ...storage.players import avatars
from ..route import Content, Upload, delete, get, put
from ..wire.reply import Abandoned, Reply, matches

# A browser that opens an avatar as a page runs no script in it (docs/security.md "Uploads").
SANDBOX = {"Content-Security-Policy": "default-src 'none'; sandbox", "Content-Disposition": "inline"}


class Avatars:
    """Stores players' images and serves them to players or, if `public`, to any client."""

    tag: ClassVar[str] = "avatars"

    def __init__(self, *, database: Database, public: bool) -> None:
        self._database = database
        self._cache_control = f"{'public' if public else 'private'}, no-cache"

    @put(
        "/api/me/avatar",
        name="upload_avatar",
        summary="Set the player's avatar",
        protected=True,
        for_guests=False,
        body=Upload(AVATAR_TYPES, too_large=partial(Abandoned, "avatar_too_large", AVATAR_TOO_LARGE)),
        errors=("avatar_type", "avatar_signature", "locked", "user_not_found"),
        links={"avatar": {"user_id": "$response.body#/id"}},
    )
    async def upload(self, *, player: str, content: bytes, content_type: str) -> Me:
        """Replace the player's avatar with this image."""
        extension = check_avatar(content_type, content)
        replaced = existing(await self._database.run(avatars.replace, player, extension, content))
        if replaced.locked:
            raise Locked
        if replaced.changed:
            audit("avatar changed", user_id=player)
        return me(player, replaced.username, replaced.avatar_extension)

    @delete(
        "/api/me/avatar",
        name="delete_avatar",
        summary="Remove the player's avatar",
        protected=True,
        errors=("user_not_found",),
    )
    async def delete(self, *, player: str) -> Ok:
        """Delete the player's avatar; no error without an avatar."""
        removed = existing(await self._database.run(avatars.remove, player))
        if removed:
            audit("avatar removed", user_id=player)
        return Ok()

    @get(
        "/avatars/{user_id}.{extension}",
        name="avatar",
        summary="Show a player's avatar",
        protected=lambda settings: not settings.public_avatars,
        answer=Content(AVATAR_TYPES),
        errors=("avatar_not_found",),
        alias="/avatars/{user_id}",
        alias_tag="",
    )
    async def show(
        self, *, player: str | None = None, user_id: str, extension: str = "", if_none_match: str | None
    ) -> Reply:
        """Return a player's avatar. Caches may keep it but must revalidate; shared caches only keep public avatars."""
        content_type = media_type(extension)
        if content_type is None or not is_id(user_id):
            raise NotFound("avatar_not_found")
        if if_none_match is not None:
            etag = await self._database.run(avatars.etag, user_id, extension)
            if etag is not None and matches(if_none_match, etag):
                return Reply.not_modified(self._headers(etag))
        avatar = existing(await self._database.run(avatars.avatar, user_id, extension), "avatar_not_found")
        return Reply(body=avatar.image, content_type=content_type, headers=self._headers(avatar.etag))

    def _headers(self, etag: str) -> dict[str, str]:
        return {"ETag": etag, "Cache-Control": self._cache_control, **SANDBOX}
