/* hosts: beats, the list, ticks, and questions that are open. */
#include "journal/hosts/hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/coding/hex.h"
#include "base/log.h"
#include "base/memory.h"
#include "journal/hosts/hosts_beat.h"
#include "journal/hosts/hosts_link.h"
#include "journal/hosts/hosts_list.h"

/* A host that z has not answered for LEASE_MS says no more that anything is absent; the others remove it when
 * they have seen no new beat for LAPSE_MS, which is longer by more than clocks differ. */
enum {
    BEAT_MS = 1000,
    LEASE_MS = 6000,
    LAPSE_MS = 10000,
    LAPSE_SIGHTS = 6, /* as many answers of z have shown the same beat: it is not z that was away */
    TICK_MS = 100,
    HELD_MS = 20,
    SILENCE_MS = 600,
    REQUEST_MS = 4000,
    STANDSTILL_MS = 2000,
    ROUNDS_MOST = 1024,
    SWEEP_ENTRIES = 1000,
    OWN_MOST = 256, /* messages to itself that one turn passes on */
    READY_MOST = 64,
    KEYS_OF_MB = 1024,
    PARTS = 8, /* of cluster_mb: one for keys without records, one for questions that are open */
    CONTENTS_LEAST = 2,
    MS_OF_S = 1000,
    US = 1000
};

/* A message to this host itself; its texts are behind it. */
struct own_message {
    struct own_message *next;
    struct cluster_message message;
};

struct hosts_watched {
    uint32_t number; /* 0: free */
    int64_t beat, since_ms;
    int sights;
};

struct hosts_open_ask {
    struct hosts_memo *memo; /* NULL: free, or nobody waits any more */
    uint64_t cookie;         /* 0: free */
};

struct hosts {
    const struct settings *settings;
    struct records *records; /* of this host: whose programs see what is known of the hosts */
    struct hosts_links *links;
    struct hosts_beat *beat;
    struct events_timer *beats, *ticks, *soon;
    struct cluster_host *cluster; /* NULL: z has not let this host in */
    struct cluster_settings terms;
    char places[HOSTS_UUID + 1];
    struct cluster_map *map;
    uint32_t self;
    struct hosts_member members[HOSTS_MOST];
    uint32_t member_count;
    struct hosts_watched watched[HOSTS_MOST];
    uint64_t doubt, doubt_over;
    int64_t doubt_until_ms;
    int64_t turned_ms, stood_ms; /* the last turn of the loop; since then z is to answer, 0: it has */
    bool was_refused, was_exhaustive;
    size_t content_most;
    struct own_message *own_first, *own_last;
    struct hosts_memo *ready_first, *ready_last;
    struct hosts_open_ask asks[HOSTS_ASKS_MOST];
    uint64_t last_cookie;
};

/* A host that has stood still may have been removed meanwhile, and what it has may be old: it serves nothing
 * to itself until z has answered again; nor to others, whose lists are later.  If z is away, a question ends
 * before that does. */
static struct cluster_time hosts_now(struct hosts *hosts)
{
    int64_t now_ms = clock_boot_ms();
    if (hosts->cluster && hosts->turned_ms && now_ms - hosts->turned_ms > STANDSTILL_MS) {
        log_warning("this host has stood still: it asks z before it goes on milliseconds=%lld",
                    (long long)(now_ms - hosts->turned_ms));
        hosts->stood_ms = now_ms;
        events_timer_start(hosts->beats, 0);
    }
    hosts->turned_ms = now_ms;
    return (struct cluster_time){.now_ms = now_ms, .wall_us = clock_wall_ms() * US};
}

static bool hosts_is_held(const struct hosts *hosts)
{
    return hosts->stood_ms && clock_boot_ms() - hosts->stood_ms < REQUEST_MS;
}

/* --- what the algorithm calls --- */

static void send_message(void *context, const struct cluster_message *message)
{
    struct hosts *hosts = context;
    if (message->to != hosts->self) {
        hosts_links_send(hosts->links, message);
        return;
    }
    struct own_message *own = memory_grown(NULL, sizeof *own + message->key.size + message->content.size, 1,
                                           "message of the hosts");
    char *text = (char *)(own + 1);
    own->next = NULL;
    own->message = *message;
    if (message->key.size)
        memcpy(text, message->key.data, message->key.size);
    if (message->content.size)
        memcpy(text + message->key.size, message->content.data, message->content.size);
    own->message.key.data = text;
    own->message.content.data = text + message->key.size;
    *(hosts->own_last ? &hosts->own_last->next : &hosts->own_first) = own;
    if (!hosts->own_last)
        events_timer_start(hosts->soon, 0);
    hosts->own_last = own;
}

static void add_ready(struct hosts *hosts, struct hosts_memo *memo)
{
    memo->is_ready = true;
    memo->earlier = hosts->ready_last;
    memo->later = NULL;
    if (!hosts->ready_first)
        events_timer_start(hosts->soon, 0);
    *(hosts->ready_last ? &hosts->ready_last->later : &hosts->ready_first) = memo;
    hosts->ready_last = memo;
}

static void remove_ready(struct hosts *hosts, struct hosts_memo *memo)
{
    *(memo->earlier ? &memo->earlier->later : &hosts->ready_first) = memo->later;
    *(memo->later ? &memo->later->earlier : &hosts->ready_last) = memo->earlier;
    memo->is_ready = false;
}

static void note_answer(struct hosts *hosts, struct hosts_memo *memo, const struct cluster_answer *answer)
{
    struct hosts_result *result = &memo->results[memo->count++];
    *result = (struct hosts_result){.answer = *answer, .end_ms = clock_present_ms() + answer->ttl_ms};
    char *copy = memory_grown(NULL, answer->content.size + 1, 1, "answer of the hosts");
    if (answer->content.size)
        memcpy(copy, answer->content.data, answer->content.size);
    result->answer.content = (struct bytes){copy, answer->content.size};
    memo->is_asking = false;
    add_ready(hosts, memo);
}

static struct hosts_open_ask *find_ask(struct hosts *hosts, uint64_t cookie)
{
    struct hosts_open_ask *ask = &hosts->asks[cookie % HOSTS_ASKS_MOST];
    return ask->cookie == cookie ? ask : NULL;
}

static void take_answer(void *context, uint64_t cookie, const struct cluster_answer *answer)
{
    struct hosts *hosts = context;
    struct hosts_open_ask *ask = find_ask(hosts, cookie);
    if (!ask)
        return;
    struct hosts_memo *memo = ask->memo;
    *ask = (struct hosts_open_ask){0};
    if (memo)
        note_answer(hosts, memo, answer);
}

/* --- questions --- */

bool hosts_ask(struct hosts *hosts, struct hosts_memo *memo, const struct cluster_request *request)
{
    static const struct cluster_answer none = {.outcome = CLUSTER_NO_PARTICIPANTS};
    assert(!memo->is_asking && memo->count < HOSTS_RESULTS_MOST);
    if (!hosts->cluster) {
        note_answer(hosts, memo, &none);
        return true;
    }
    struct cluster_request levelled = *request;
    if (!levelled.level)
        levelled.level = cluster_map_depth(hosts->map);
    if (levelled.ttl_ms > hosts->terms.ttl_most_ms) /* the terms have changed since the message began */
        levelled.ttl_ms = hosts->terms.ttl_most_ms;
    for (size_t tries = 0; tries < HOSTS_ASKS_MOST; tries++) {
        uint64_t cookie = ++hosts->last_cookie;
        struct hosts_open_ask *ask = &hosts->asks[cookie % HOSTS_ASKS_MOST];
        if (ask->cookie)
            continue;
        *ask = (struct hosts_open_ask){memo, cookie};
        memo->is_asking = true;
        memo->cookie = cookie;
        if (cluster_ask(hosts->cluster, &levelled, cookie, hosts_now(hosts)))
            return true;
        *ask = (struct hosts_open_ask){0};
        memo->is_asking = false;
        return false;
    }
    return false;
}

void hosts_memo_forget(struct hosts *hosts, struct hosts_memo *memo)
{
    if (memo->is_asking) {
        struct hosts_open_ask *ask = find_ask(hosts, memo->cookie);
        if (ask)
            ask->memo = NULL;
    }
    if (memo->is_ready)
        remove_ready(hosts, memo);
    for (size_t i = 0; i < memo->count; i++)
        free((char *)memo->results[i].answer.content.data);
    memo->count = memo->next = 0;
    memo->began_ms = memo->most_ms = 0;
    memo->is_asking = false;
}

size_t hosts_memo_memory(const struct hosts_memo *memo)
{
    size_t size = 0;
    for (size_t i = 0; i < memo->count; i++)
        size += memo->results[i].answer.content.size;
    return size;
}

int64_t hosts_ttl_most_ms(const struct hosts *hosts)
{
    return hosts->cluster ? hosts->terms.ttl_most_ms : 0;
}

size_t hosts_content_most(const struct hosts *hosts)
{
    return hosts->content_most;
}

unsigned hosts_depth(const struct hosts *hosts)
{
    return hosts->map ? cluster_map_depth(hosts->map) : 0;
}

size_t hosts_space_size(struct bytes key)
{
    const char *end = key.size ? memchr(key.data, 0, key.size) : NULL;
    size_t size = end ? (size_t)(end - key.data) + 1 + HOSTS_MADE_BYTES : 0;
    return size <= key.size ? size : 0;
}

static void on_hosts_soon(void *context)
{
    struct hosts *hosts = context;
    for (int i = 0; i < OWN_MOST && hosts->own_first && !hosts_is_held(hosts); i++) {
        struct own_message *own = hosts->own_first;
        hosts->own_first = own->next;
        if (!own->next)
            hosts->own_last = NULL;
        if (hosts->cluster)
            cluster_receive(hosts->cluster, &own->message, hosts_now(hosts));
        free(own);
    }
    for (int i = 0; i < READY_MOST && hosts->ready_first; i++) {
        struct hosts_memo *memo = hosts->ready_first;
        remove_ready(hosts, memo);
        memo->done(memo->context);
    }
    if (hosts->own_first || hosts->ready_first)
        events_timer_start(hosts->soon, hosts->ready_first || !hosts_is_held(hosts) ? 0 : HELD_MS);
}

/* --- the list --- */

static uint32_t number_of(void *context, const char *fingerprint)
{
    struct hosts *hosts = context;
    for (uint32_t i = 0; i < hosts->member_count; i++)
        if (strcmp(hosts->members[i].fingerprint, fingerprint) == 0)
            return hosts->members[i].number;
    return 0;
}

static void receive_message(void *context, const struct cluster_message *message)
{
    struct hosts *hosts = context;
    if (hosts->cluster)
        cluster_receive(hosts->cluster, message, hosts_now(hosts));
}

static void create_cluster(struct hosts *hosts, const struct hosts_sight *sight)
{
    const struct settings *settings = hosts->settings;
    size_t bytes = (size_t)settings->cluster_mb << 20;
    size_t least = CONTENTS_LEAST * (size_t)settings->limit_content_bytes;
    const struct cluster_hooks hooks = {hosts, send_message, take_answer};
    hosts->terms = (struct cluster_settings){
        .bounds = {.record_bytes = bytes / PARTS * (PARTS - 2),
                   .keys = (uint32_t)settings->cluster_mb * KEYS_OF_MB,
                   .key_bytes = bytes / PARTS},
        .space = hosts_space_size,
        .limits = {.space_bytes = (uint64_t)settings->limit_namespace_records_mb << 20,
                   .space_records = (uint64_t)settings->limit_namespace_records},
        .asks_bytes = bytes / PARTS < least ? least : bytes / PARTS,
        .ttl_most_ms = sight->ttl_s * MS_OF_S,
        .request_ms = REQUEST_MS,
        .silence_ms = SILENCE_MS,
        .copies = (unsigned)sight->copies,
        .asks_most = HOSTS_ASKS_MOST,
        .rounds_most = ROUNDS_MOST,
        .sweep_entries = SWEEP_ENTRIES,
    };
    hosts_list_places(sight->places, &hosts->terms.places);
    snprintf(hosts->places, sizeof hosts->places, "%s", sight->places);
    hosts->cluster = cluster_create(&hosts->terms, &hooks);
}

static void drop_own(struct hosts *hosts)
{
    while (hosts->own_first) {
        struct own_message *own = hosts->own_first;
        hosts->own_first = own->next;
        free(own);
    }
    hosts->own_last = NULL;
}

/* Questions that are open end as UNKNOWN. */
static void destroy_cluster(struct hosts *hosts)
{
    static const struct cluster_answer unknown = {.outcome = CLUSTER_UNKNOWN};
    cluster_destroy(hosts->cluster);
    hosts->cluster = NULL;
    cluster_map_destroy(hosts->map);
    hosts->map = NULL;
    drop_own(hosts);
    for (size_t i = 0; i < HOSTS_ASKS_MOST; i++)
        if (hosts->asks[i].cookie)
            take_answer(hosts, hosts->asks[i].cookie, &unknown);
    hosts->self = 0;
    hosts->member_count = 0;
    hosts_links_follow(hosts->links, NULL, 0, 0);
}

/* z does not have it, or has let it go. */
static void be_refused(struct hosts *hosts)
{
    if (!hosts->was_refused)
        log_warning("this host takes no part in the records of several hosts: the list of z has no host with "
                    "the address %s and the fingerprint of its key",
                    hosts->settings->cluster_address);
    hosts->was_refused = true;
    if (hosts->cluster)
        destroy_cluster(hosts);
}

static void watch_member(struct hosts *hosts, const struct hosts_member *member,
                         struct hosts_watched *watched_r)
{
    *watched_r = (struct hosts_watched){member->number, member->beat, clock_boot_ms(), 0};
    for (size_t i = 0; i < HOSTS_MOST; i++)
        if (hosts->watched[i].number == member->number && hosts->watched[i].beat == member->beat)
            *watched_r = hosts->watched[i];
    watched_r->sights++;
}

static void watch_members(struct hosts *hosts, const struct hosts_sight *sight)
{
    struct hosts_watched watched[HOSTS_MOST];
    memset(watched, 0, sizeof watched);
    for (uint32_t i = 0; i < sight->count; i++)
        if (sight->members[i].number != sight->self)
            watch_member(hosts, &sight->members[i], &watched[i]);
    memcpy(hosts->watched, watched, sizeof watched);
}

/* For so long from now on nobody can know what was lost. */
static int64_t read_doubt(struct hosts *hosts, const struct hosts_sight *sight)
{
    int64_t now_ms = clock_boot_ms(), left_ms = 0;
    if (sight->doubt > sight->doubt_over && sight->doubt != hosts->doubt) {
        hosts->doubt = sight->doubt;
        hosts->doubt_until_ms = now_ms + hosts->terms.ttl_most_ms + 2 * hosts->terms.request_ms;
    }
    if (sight->doubt > sight->doubt_over) {
        left_ms = hosts->doubt_until_ms - now_ms;
        if (left_ms <= 0)
            hosts->doubt_over = hosts->doubt;
    }
    left_ms = left_ms < 0 ? 0 : left_ms;
    return sight->is_doubted && left_ms < LEASE_MS ? LEASE_MS : left_ms;
}

static bool has_same_terms(const struct hosts *hosts, const struct hosts_sight *sight)
{
    return hosts->terms.ttl_most_ms == sight->ttl_s * MS_OF_S &&
           hosts->terms.copies == (unsigned)sight->copies && strcmp(hosts->places, sight->places) == 0;
}

static void note_exhaustive(struct hosts *hosts)
{
    struct cluster_report report;
    cluster_report(hosts->cluster, &report);
    if (report.is_exhaustive != hosts->was_exhaustive)
        log_info("this host %s: list=%llu number=%u members=%u connected=%u",
                 report.is_exhaustive ? "knows which keys are absent" : "cannot know which keys are absent",
                 (unsigned long long)report.seen, hosts->self, hosts->member_count,
                 hosts_links_connected(hosts->links));
    hosts->was_exhaustive = report.is_exhaustive;
}

static void follow_list(struct hosts *hosts, const struct hosts_sight *sight)
{
    if (hosts->cluster && !has_same_terms(hosts, sight)) {
        log_warning("the terms of the hosts have changed in z: this host begins again, empty");
        destroy_cluster(hosts);
    }
    if (!hosts->cluster)
        create_cluster(hosts, sight);
    if (!hosts->map || cluster_map_version(hosts->map) < sight->version) {
        cluster_map_destroy(hosts->map);
        hosts->map = hosts_list_map(&hosts->terms.places, sight);
    }
    hosts->self = sight->self;
    memcpy(hosts->members, sight->members, sizeof hosts->members);
    hosts->member_count = sight->count;
    hosts_list_content_most(sight, (size_t)hosts->settings->limit_content_bytes, &hosts->content_most);
    hosts_links_follow(hosts->links, hosts->members, hosts->member_count, hosts->self);
    watch_members(hosts, sight);
    const struct cluster_view view = {.map = hosts->map,
                                      .self = sight->self,
                                      .seen = sight->seen,
                                      .swept = sight->swept,
                                      .sure_until_ms = sight->sent_ms + LEASE_MS,
                                      .doubt_ms = read_doubt(hosts, sight)};
    cluster_see(hosts->cluster, &view, hosts_now(hosts));
    note_exhaustive(hosts);
}

static void send_beat(struct hosts *hosts)
{
    struct hosts_report report;
    memset(&report, 0, sizeof report);
    report.number = hosts->self;
    report.doubt_over = hosts->doubt_over;
    report.sent_ms = clock_boot_ms();
    report.memory = ((uint64_t)hosts->settings->cluster_mb << 20) / PARTS * (PARTS - 2);
    report.content_most = (uint64_t)hosts->settings->limit_content_bytes;
    if (hosts->cluster)
        cluster_report(hosts->cluster, &report.of);
    for (size_t i = 0; i < HOSTS_MOST; i++) {
        const struct hosts_watched *watched = &hosts->watched[i];
        if (!watched->number || watched->sights < LAPSE_SIGHTS ||
            report.sent_ms - watched->since_ms < LAPSE_MS)
            continue;
        report.silent[report.silent_count] = watched->number;
        report.silent_beats[report.silent_count++] = watched->beat;
    }
    hosts_beat_send(hosts->beat, &report);
}

static void show_hosts(struct hosts *hosts, const struct hosts_sight *sight)
{
    static struct records_hosts all; /* too large for a stack */
    all = sight->all;
    all.version = sight->version;
    all.at_ms = clock_monotonic_ms();
    all.connected = hosts_links_connected(hosts->links);
    records_host_write(hosts->records, &all);
}

static void on_seen(void *context, const struct hosts_sight *sight)
{
    struct hosts *hosts = context;
    if (sight->is_failed)
        return;
    if (sight->is_notice) {
        send_beat(hosts);
        return;
    }
    if (!sight->count || !sight->self) {
        be_refused(hosts);
        return;
    }
    hosts->was_refused = false;
    show_hosts(hosts, sight);
    bool is_new = !hosts->map || cluster_map_version(hosts->map) < sight->version;
    follow_list(hosts, sight);
    if (sight->sent_ms >= hosts->stood_ms)
        hosts->stood_ms = 0;
    if (is_new)
        send_beat(hosts); /* others wait for the version that this host has seen */
}

static void on_beat(void *context)
{
    struct hosts *hosts = context;
    events_timer_start(hosts->beats, BEAT_MS);
    send_beat(hosts);
}

static void on_hosts_tick(void *context)
{
    struct hosts *hosts = context;
    events_timer_start(hosts->ticks, TICK_MS);
    if (!hosts->cluster)
        return;
    cluster_tick(hosts->cluster, hosts_now(hosts));
    note_exhaustive(hosts);
}

/* --- all --- */

bool hosts_open(struct hosts **hosts_r, struct events *events, const struct settings *settings,
                struct records *records, char *problem, size_t problem_size)
{
    char fingerprint[CRYPTO_SHA256_HEX + 1];
    *hosts_r = NULL;
    if (!*settings->cluster_address)
        return true;
    if (!*settings->cluster_listen || !*settings->cluster_key_file) {
        snprintf(problem, problem_size, "cluster_address needs cluster_listen and cluster_key_file");
        return false;
    }
    struct hosts *hosts = memory_zeroed(1, sizeof *hosts, "starting as one of several hosts");
    const struct hosts_links_owner owner = {number_of, receive_message, hosts};
    hosts->settings = settings;
    hosts->records = records;
    hosts->content_most = (size_t)settings->limit_content_bytes;
    *hosts_r = hosts;
    if (!hosts_links_open(&hosts->links, events, settings, &owner, fingerprint, problem, problem_size))
        return false;
    log_info("one of several hosts: address=%s fingerprint=%s", settings->cluster_address, fingerprint);
    hosts->beats = events_timer_create(events, on_beat, hosts);
    hosts->ticks = events_timer_create(events, on_hosts_tick, hosts);
    hosts->soon = events_timer_create(events, on_hosts_soon, hosts);
    hosts->beat = hosts_beat_create(events, settings, records, fingerprint, on_seen, hosts);
    events_timer_start(hosts->beats, 0);
    events_timer_start(hosts->ticks, TICK_MS);
    return true;
}

void hosts_close(struct hosts *hosts)
{
    if (!hosts)
        return;
    hosts_beat_destroy(hosts->beat);
    hosts_links_close(hosts->links);
    cluster_destroy(hosts->cluster);
    cluster_map_destroy(hosts->map);
    drop_own(hosts);
    events_timer_destroy(hosts->beats);
    events_timer_destroy(hosts->ticks);
    events_timer_destroy(hosts->soon);
    free(hosts);
}
