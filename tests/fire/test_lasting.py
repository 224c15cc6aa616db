"""Operations that end sessions or lose seconds: no guest, player or restriction is lost, and nothing revoked lives.

docs/decisions.md "The retention clock" says what each deletion waits for. A clock that is wrong has its own drill.
"""

import pytest
from twisted.internet.threads import deferToThread

from tests.fire.population import Device, Population
from tests.fire.servers import all_hosts, servers
from tests.harness.concurrency import until
from tests.harness.constants import SECRET
from tests.harness.service import ready


@pytest.mark.parametrize(
    "way", ["revoke --everyone", "another secret", pytest.param("restore", marks=pytest.mark.short)]
)
async def test_operation_that_ends_all_sessions_loses_nobody(
    serve, migrated_database, empty_database, open_database, reactor, place, full, figure, way
):
    """An hour of sessions is gone; each guest is back with its key, and each restriction stands."""
    people = Population(reactor, open_database, 30 if full else 3)
    service, dsn = await serve(migrated_database), migrated_database
    await people.settle(service, dsn)
    revoked = [device.pair["refresh_token"] for device in people.devices]
    if way == "revoke --everyone":
        await people.administrate("sessions", "revoke", "--everyone", "--yes")
    elif way == "another secret":
        assert service.stop() == 0
        service = await serve(dsn, JWT_SECRET=SECRET[::-1])
    else:
        await people.administrate("backup", place / "backup")
        assert service.stop() == 0
        dsn = empty_database
        await people.administrate("restore", place / "backup", DATABASE_URL=dsn)
        service = await serve(dsn)
    await people.check(service, dsn, revoked=revoked)
    figure(f"{way}: {len(people.devices)} guests and 3 players before and after")


async def test_failover_that_loses_the_last_seconds_loses_no_guest(serve, new_cluster, open_database, reactor, figure):
    """The standby lacks the last refresh of each guest; a guest that it lacks altogether is unknown, not gone."""
    with servers(cluster=new_cluster) as made:
        primary = made.make_primary()
        standby = made.make("standby").follow(primary)
        service = await serve(all_hosts(primary, standby))
        people = Population(reactor, open_database, 30)
        await people.settle(service, primary.dsn)
        await deferToThread(primary.wait_for_standby, "")
        await deferToThread(standby.change, "primary_conninfo", "")
        await until(reactor, lambda: not primary.sql("SELECT FROM pg_stat_replication"))
        for device in people.devices:
            assert await device.refresh(service) == 200
        late = Device(1_000)
        await late.sign_in(service)
        await deferToThread(primary.kill)
        await deferToThread(standby.promote)
        await ready(reactor, service.client())
        unknown = await late.sign_in(service, create=False)
        assert (unknown.status, unknown.headers["error-code"]) == (404, "guest_unknown")
        assert [await device.refresh(service) for device in people.devices] == [401] * len(people.devices)
        await people.check(service, standby.dsn)
        figure(f"a failover without the last refreshes: {len(people.devices)} guests before and after")
