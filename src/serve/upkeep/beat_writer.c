/* beat_writer: one database after the other; one that hangs delays the beats of the others, and nothing else.
 */
#include "serve/upkeep/beat_writer.h"

#include <poll.h>
#include <sys/prctl.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "edge/crypto/crypto.h"
#include "edge/pg/pg.h"
#include "edge/pg/pg_pipeline.h"
#include "segment/beats.h"
#include "segment/counts/waits.h"
#include "segment/lineage.h"
#include "segment/slots.h"
#include "store/proof.h"
#include "store/session.h"

enum {
    TURN_MS = 250,
    BEAT_MS = 1000,
    WANTED_MS = 60000, /* after the last read of a standby */
    WAIT_MS = 3000,    /* for the acknowledgement */
    PAUSE_MS = 10000,  /* after a failure */
};

struct beat_writer {
    const struct settings *settings;
    struct segment *segment;
    struct arena *arena; /* of one beat */
    struct {
        struct pg *pg;     /* NULL: there is no connection */
        uint32_t timeline; /* of its server */
        int64_t due_ms;
    } of[NAMESPACES_MOST];
};

/* $1 installation, $2 nonce, $3 time.  None of a database that was restored, until `stampctl ns restored`:
 * the primary refuses it. */
static const struct pg_statement beat = {
    "heartbeat",
    "insert into heartbeat (installation, nonce, sent_ms) select $1::bigint, $2::bigint, $3::bigint"
    " where not coalesce(nullif(current_setting('stampd.restored', true), '') <>"
    " (select restored from namespace where one), false)"
    " on conflict (installation) do update set nonce = excluded.nonce, sent_ms = excluded.sent_ms, at = now()"
    " returning installation, " PROOF_SYNCHRONOUS,
    3};
/* Rows of installations that are no more. */
static const char forget[] = "delete from heartbeat where at < now() - interval '7 days'";

static void put_off(struct beat_writer *writer, int ns)
{
    pg_close(writer->of[ns].pg);
    writer->of[ns].pg = NULL;
    writer->of[ns].due_ms = clock_boot_ms() + PAUSE_MS;
}

/* A former primary may acknowledge, where replication is not synchronous; and what it got and did not
 * acknowledge its standbys show: so a new history is met before a beat of it is acknowledged. */
static bool meet(struct beat_writer *writer, int ns)
{
    struct lineage_met met = {.mark = lineage_mark(writer->segment, ns)};
    if (proof_look(writer->of[ns].pg, writer->arena, &met) || session_meet(writer->segment, ns, &met))
        return false;
    writer->of[ns].timeline = met.timeline;
    return true;
}

static bool beat_writer_connect(struct beat_writer *writer, int ns)
{
    const struct settings *settings = writer->settings;
    const char *database = namespaces_database(writer->segment, ns);
    const struct pg_options options = {
        .conninfo = settings_conninfo(settings, database),
        .database = database,
        .name = "stampd beats",
        .role_settings = "-c search_path=stampd -c tcp_user_timeout=10000",
        .connect_timeout_s = (int)settings->connect_timeout_s,
        .statement_timeout_ms = WAIT_MS,
        .lock_timeout_ms = WAIT_MS,
    };
    if (writer->of[ns].pg)
        return true;
    return !pg_open(&options, &writer->of[ns].pg) && meet(writer, ns) &&
           !pg_execute(writer->of[ns].pg, forget) && !pg_prepare(writer->of[ns].pg, &beat, 1);
}

static bool send_beat(struct beat_writer *writer, int ns)
{
    struct pg_verdict verdict = {.outcome = PG_UNKNOWN};
    struct pg *pg = writer->of[ns].pg;
    int64_t nonce = (int64_t)beats_nonce(writer->segment), sent_ms = clock_boot_ms();
    /* behind the nonce, which changes after the timeline */
    if (writer->of[ns].timeline != lineage_timeline(writer->segment, ns) ||
        lineage_is_lost(writer->segment, ns) || pg_pipeline_begin(pg, writer->arena))
        return false;
    pg_pipeline_add(pg, &beat,
                    PG_PARAMS(writer->arena, PG_I64(segment_installation(writer->segment)), PG_I64(nonce),
                              PG_I64(sent_ms)));
    pg_pipeline_run(pg, WAIT_MS, &verdict);
    if (verdict.outcome != PG_COMMITTED || verdict.fault || !pg_rows(verdict.results[0]))
        return false;
    beats_acknowledge(writer->segment, ns, sent_ms);
    return true;
}

static bool beat_writer_is_wanted(const struct beat_writer *writer, int ns)
{
    int64_t wanted_ms = beats_wanted_ms(writer->segment, ns);
    return wanted_ms && clock_boot_ms() - wanted_ms < WANTED_MS && namespaces_database(writer->segment, ns);
}

/* A silent cell would delay the beats of the others. */
static bool is_due(const struct beat_writer *writer, int ns)
{
    return clock_boot_ms() >= writer->of[ns].due_ms &&
           !waits_is_silent(writer->segment, namespaces_cell(writer->segment, ns), clock_monotonic_ms());
}

static void beat_all(struct beat_writer *writer)
{
    for (int ns = 0; ns < NAMESPACES_MOST && stop_requested() == STOP_NOT; ns++) {
        if (!beat_writer_is_wanted(writer, ns)) {
            pg_close(writer->of[ns].pg);
            writer->of[ns].pg = NULL;
            continue;
        }
        if (!is_due(writer, ns))
            continue;
        writer->of[ns].due_ms = clock_boot_ms() + BEAT_MS;
        if (!beat_writer_connect(writer, ns) || !send_beat(writer, ns))
            put_off(writer, ns);
        arena_reset(writer->arena);
    }
}

void beat_writer_run(const struct settings *settings, struct segment *segment)
{
    static struct beat_writer writer;
    uint64_t nonce;
    writer = (struct beat_writer){.settings = settings, .segment = segment, .arena = arena_create("beats")};
    int stop = stop_open();
    (void)prctl(PR_SET_NAME, "stampd-beats"); /* for administrators */
    crypto_random(&nonce, sizeof nonce);
    beats_begin(segment, nonce >> 2 | 1); /* a bigint, also after drops were added */
    while (stop_requested() == STOP_NOT) {
        if (settings->hosts != HOSTS_PAIR || slots_have_lease(segment))
            beat_all(&writer);
        log_flush(clock_monotonic_ms());
        (void)poll(&(struct pollfd){.fd = stop, .events = POLLIN}, 1, TURN_MS);
    }
    for (int ns = 0; ns < NAMESPACES_MOST; ns++)
        pg_close(writer.of[ns].pg);
    arena_destroy(writer.arena);
}
