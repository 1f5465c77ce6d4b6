/* lease: the beats of the host that holds it, the look of the one that waits. */
#include "serve/lease.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "edge/pg/pg.h"
#include "edge/pg/pg_pipeline.h"
#include "segment/feed.h"
#include "segment/namespaces.h"
#include "segment/slots.h"
#include "store/proof.h"

enum {
    BEATS = 5,             /* in the time of the limit */
    LOOK_MS = 200,         /* between two looks at the row */
    MARGIN_MS = 1000,      /* added to the limit, with a tenth of it, for clocks of different rates */
    LIMIT_MOST_MS = 60000, /* of lease_s; the row may hold any number */
    NAME_BYTES = 128,
};

struct lease {
    const struct settings *settings;
    struct segment *segment;
    struct arena *arena; /* of one step */
    struct pg *pg;       /* of z; NULL: there is no connection */
    char name[NAME_BYTES];
    int stop;
    bool has_left; /* on request */
    /* What was seen of the row by a host that waits. */
    int64_t beat, holder; /* holder 0: nobody */
    int64_t since_ms;     /* boot time, after it was seen first; 0: not yet */
};

/* A transaction that changes nothing is acknowledged without a standby: each of these changes the row, or
 * proves nothing.  $1 installation. */
enum { LOOK, BEAT, TAKE, RELEASE };
static const struct pg_statement statements_of_lease[] = {
    [LOOK] = {"lease_look", "select coalesce(installation, 0), beat, limit_ms from lease where one", 0},
    /* The limit is not lowered while another host may count with the former one. */
    [BEAT] = {"lease_beat",
              "update lease set beat = beat + 1, limit_ms = greatest(limit_ms, $2::bigint)"
              " where one and installation = $1::bigint returning limit_ms, " PROOF_SYNCHRONOUS,
              2},
    [TAKE] =
        {"lease_take",
         "update lease set installation = $1::bigint, holder = $5, beat = beat + 1, limit_ms = $2::bigint,"
         " epoch = epoch + 1, since = now() where one and beat = $3::bigint"
         " and coalesce(installation, 0) = $4::bigint returning limit_ms, epoch, " PROOF_SYNCHRONOUS,
         5},
    [RELEASE] = {"lease_release",
                 "update lease set installation = null, beat = beat + 1 where one"
                 " and installation = $1::bigint returning beat, " PROOF_SYNCHRONOUS,
                 1},
};

static int64_t own(const struct lease *lease)
{
    return segment_installation(lease->segment);
}

static int64_t limit_ms(const struct lease *lease)
{
    return lease->settings->lease_s * 1000;
}

/* The limit that stands in a row. */
static int64_t get_limit_ms(const struct pg_result *row, int column)
{
    int64_t limit = pg_get_i64(row, 0, column);
    return limit < 0 ? 0 : limit < LIMIT_MOST_MS ? limit : LIMIT_MOST_MS;
}

static void disconnect(struct lease *lease)
{
    if (lease->pg)
        pg_close(lease->pg);
    lease->pg = NULL;
    lease->since_ms = 0;
}

static bool connect_to_z(struct lease *lease)
{
    const struct pg_options options = {
        .conninfo = lease->settings->database,
        .database = lease->settings->z_database,
        .name = "stampd lease",
        .role_settings = "-c search_path=stampd -c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2"
                         " -c tcp_keepalives_count=2 -c tcp_user_timeout=10000",
        .connect_timeout_s = (int)lease->settings->connect_timeout_s,
        .statement_timeout_ms = limit_ms(lease),
        .lock_timeout_ms = limit_ms(lease),
    };
    if (lease->pg)
        return true;
    if (pg_open(&options, &lease->pg))
        return false;
    if (pg_execute(lease->pg, "listen " LEASE_CHANNEL) ||
        proof_begin(lease->pg, lease->arena, limit_ms(lease), NULL) ||
        pg_prepare(lease->pg, statements_of_lease, COUNT_OF(statements_of_lease)))
        disconnect(lease);
    return lease->pg;
}

/* The row that the statement returns, committed synchronously; NULL: it has changed none, or it is not known.
 */
static const struct pg_result *change(struct lease *lease, int statement, const struct pg_params *params,
                                      bool *is_known_r)
{
    struct pg_verdict verdict = {.outcome = PG_UNKNOWN};
    if (!pg_pipeline_begin(lease->pg, lease->arena)) {
        pg_pipeline_add(lease->pg, &statements_of_lease[statement], params);
        pg_pipeline_run(lease->pg, limit_ms(lease), &verdict);
    }
    *is_known_r = verdict.outcome == PG_COMMITTED && !verdict.fault;
    if (!*is_known_r) {
        disconnect(lease);
        return NULL;
    }
    return pg_rows(verdict.results[0]) ? verdict.results[0] : NULL;
}

/* --- the host that holds it --- */

static void lease_beat(struct lease *lease)
{
    bool is_known;
    const struct pg_params *params = PG_PARAMS(lease->arena, PG_I64(own(lease)), PG_I64(limit_ms(lease)));
    int64_t sent_ms = clock_boot_ms();
    const struct pg_result *row = change(lease, BEAT, params, &is_known);
    if (row) {
        slots_prove_until(lease->segment, sent_ms + get_limit_ms(row, 0));
    } else if (is_known) {
        slots_prove_until(lease->segment, SLOTS_LEASE_LOST);
        log_error("the lease is lost: another host serves the databases; stopping at once");
        kill(getppid(), SIGQUIT); /* sessions, listeners and records of a former lease end with it */
    }
}

/* --- the host that waits --- */

/* Listeners of a former lease may have missed changes of the other host. */
static void miss_all(struct segment *segment)
{
    struct publisher *publisher = feed_publisher_create(segment);
    for (int ns = 0; ns < namespaces_count(segment); ns++)
        feed_publisher_miss(publisher, ns);
    feed_publisher_destroy(publisher);
}

static void lease_take(struct lease *lease)
{
    bool is_known;
    const struct pg_params *params =
        PG_PARAMS(lease->arena, PG_I64(own(lease)), PG_I64(limit_ms(lease)), PG_I64(lease->beat),
                  PG_I64(lease->holder), PG_TEXT(bytes_of(lease->name)));
    int64_t sent_ms = clock_boot_ms();
    const struct pg_result *row = change(lease, TAKE, params, &is_known);
    lease->since_ms = 0;
    if (!row)
        return;
    miss_all(lease->segment);
    slots_move_all(lease->segment); /* copies of a former lease are not the newest any more */
    slots_prove_until(lease->segment, sent_ms + get_limit_ms(row, 0));
    log_info("the lease is taken: this host serves the databases epoch=%lld",
             (long long)pg_get_i64(row, 0, 1));
}

static void lease_watch(struct lease *lease)
{
    enum { HOLDER, AT_BEAT, AT_LIMIT };
    struct pg_result *row;
    if (pg_run(lease->pg, &statements_of_lease[LOOK], PG_NO_PARAMS(lease->arena), &row) || !pg_rows(row)) {
        disconnect(lease);
        return;
    }
    int64_t holder = pg_get_i64(row, 0, HOLDER), beat = pg_get_i64(row, 0, AT_BEAT),
            limit = get_limit_ms(row, AT_LIMIT), now_ms = clock_boot_ms();
    if (!lease->since_ms || holder != lease->holder || beat != lease->beat)
        lease->since_ms = now_ms; /* after it was seen: the beat may have been sent as late as that */
    lease->holder = holder;
    lease->beat = beat;
    if (!holder || holder == own(lease) || now_ms - lease->since_ms >= limit + limit / 10 + MARGIN_MS)
        lease_take(lease);
}

/* --- the process --- */

/* `stampctl cell switch`: this server ends in good order, and is started again to wait. */
static void lease_heed(struct lease *lease)
{
    struct bytes channel, payload;
    bool is_asked = false;
    while (lease->pg && pg_next_notification(lease->pg, lease->arena, &channel, &payload))
        is_asked |= bytes_equal(payload, BYTES(LEASE_SWITCH));
    if (!is_asked || lease->has_left || !slots_have_lease(lease->segment))
        return;
    lease->has_left = true;
    log_info("the lease is to be handed over: stopping");
    kill(getppid(), SIGUSR1);
}

static void lease_step(struct lease *lease)
{
    if (connect_to_z(lease)) {
        if (slots_have_lease(lease->segment))
            lease_beat(lease);
        else
            lease_watch(lease);
    }
    lease_heed(lease);
    arena_reset(lease->arena);
}

static struct lease lease_start(const struct settings *settings, struct segment *segment)
{
    struct lease lease = {.settings = settings, .segment = segment, .arena = arena_create("lease")};
    if (gethostname(lease.name, sizeof lease.name - 1) != 0 || !bytes_is_utf8(bytes_of(lease.name)))
        lease.name[0] = '\0';
    return lease;
}

static void lease_end(struct lease *lease)
{
    disconnect(lease);
    arena_destroy(lease->arena);
}

void lease_run(const struct settings *settings, struct segment *segment)
{
    struct lease lease = lease_start(settings, segment);
    lease.stop = stop_open();
    (void)prctl(PR_SET_NAME, "stampd-lease"); /* for administrators */
    while (stop_requested() == STOP_NOT) {
        lease_step(&lease);
        log_flush(clock_monotonic_ms());
        int64_t pause_ms = slots_have_lease(segment) && lease.pg ? limit_ms(&lease) / BEATS : LOOK_MS;
        struct pollfd sources[] = {{.fd = lease.stop, .events = POLLIN},
                                   {.fd = lease.pg ? pg_socket(lease.pg) : -1, .events = POLLIN}};
        (void)poll(sources, COUNT_OF(sources), (int)pause_ms);
    }
    lease_end(&lease);
}

void lease_release(const struct settings *settings, struct segment *segment)
{
    bool is_known;
    struct lease lease = lease_start(settings, segment);
    if (settings->hosts == HOSTS_PAIR && slots_have_lease(segment)) {
        slots_prove_until(segment, SLOTS_PROVE_NOTHING); /* first: lease.pml */
        if (connect_to_z(&lease) &&
            change(&lease, RELEASE, PG_PARAMS(lease.arena, PG_I64(own(&lease))), &is_known))
            log_info("the lease is released");
    }
    lease_end(&lease);
}
