/* live_searches: the table of searches, their evaluation, and what listeners have got of it. */
#include "live/live_searches.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "edge/crypto/crypto.h"
#include "edge/fcgi_ask.h"
#include "live/access/live_follow.h"
#include "live/live_audience_private.h"
#include "live/live_searcher.h"
#include "live/live_shares.h"
#include "live/topics/live_found.h"
#include "segment/slots.h"

enum {
    PAUSE_MS = 50,   /* between two evaluations of a search; ten times as long as one takes */
    TOKEN_MS = 10,   /* an evaluation counts once more for each */
    RETRY_MS = 1000, /* after a failure that may be over then; twice as long after each further one */
    DOUBLINGS_MOST = 6,
    REFUSED_MS = 10000,  /* after a refusal: the schema may have changed */
    WAKE_LEAST_MS = 1,   /* until what is due is looked at: it may be touched by several listeners */
    PATIENCE_MS = 30000, /* for an answer */
    ANSWER_MOST = 8 << 20,
    BUCKETS = 4096,
    WORKERS_PART = 4,   /* of the workers may evaluate at the same time, at least one */
    NAMESPACE_PART = 2, /* of live_different_searches and live_memory_mb: a half */
    CLIENT_PART = 8     /* an eighth */
};

struct live_search {
    struct live_audience *audience;
    struct live_search *next_in_bucket;
    uint64_t hash, begun, done; /* the latter: evaluations */
    int64_t sight;
    bool is_administrator;
    struct live_searching *first, *last; /* its listeners; the first is asked for */
    struct live_share *payer;            /* of the client of the first; NULL: none */
    struct live_search_list *list;       /* in which it waits; NULL: in none */
    struct live_search *next, *previous;
    int64_t due_ms, begun_ms, pause_ms;
    struct fcgi_ask *ask;
    int failures;             /* since the last answer */
    bool is_touched, is_told; /* while it was asked for; its listeners are being flushed */
    struct live_found found;
    size_t bytes;
    struct bytes text, body;
};

struct live_searches {
    struct live_searches_parts parts;
    struct events_timer *timer;
    int64_t wake_ms;                        /* when it is due; INT64_MAX: it rests */
    struct live_search_queue *first, *last; /* with searches that wait, in turn */
    size_t in_flight, count, position;      /* the latter of the worker that was asked last */
    uint64_t seed;
    struct arena *arena;
    struct live_search *buckets[BUCKETS];
};

static void live_searches_go_on(void *context);

struct live_searches *live_searches_create(const struct live_searches_parts *parts)
{
    struct live_searches *searches = memory_zeroed(1, sizeof *searches, "live");
    searches->parts = *parts;
    searches->timer = events_timer_create(parts->events, live_searches_go_on, searches);
    searches->wake_ms = INT64_MAX;
    searches->arena = arena_create("live searches");
    crypto_random(&searches->seed, sizeof searches->seed);
    return searches;
}

void live_searches_destroy(struct live_searches *searches)
{
    assert(!searches->count);
    events_timer_destroy(searches->timer);
    arena_destroy(searches->arena);
    free(searches);
}

/* --- what waits for its evaluation --- */

static void wake_at(struct live_searches *searches, int64_t wake_ms)
{
    int64_t wait_ms = wake_ms - clock_monotonic_ms();
    if (wake_ms >= searches->wake_ms)
        return;
    searches->wake_ms = wake_ms;
    events_timer_start(searches->timer, wait_ms < WAKE_LEAST_MS ? WAKE_LEAST_MS : wait_ms);
}

static void unlist(struct live_searches *searches, struct live_search_queue *queue)
{
    *(queue->previous ? &queue->previous->next : &searches->first) = queue->next;
    *(queue->next ? &queue->next->previous : &searches->last) = queue->previous;
    queue->next = queue->previous = NULL;
    queue->is_listed = false;
}

static void list_last(struct live_searches *searches, struct live_search_queue *queue)
{
    queue->previous = searches->last;
    queue->next = NULL;
    *(searches->last ? &searches->last->next : &searches->first) = queue;
    searches->last = queue;
    queue->is_listed = true;
}

static void leave_list(struct live_search *search)
{
    struct live_search_queue *queue = &search->audience->searches;
    if (!search->list)
        return;
    *(search->previous ? &search->previous->next : &search->list->first) = search->next;
    *(search->next ? &search->next->previous : &search->list->last) = search->previous;
    search->next = search->previous = NULL;
    search->list = NULL;
    if (!queue->due.first && !queue->resting.first && queue->is_listed)
        unlist(search->audience->all->searches, queue);
}

static void enter_list(struct live_search *search, struct live_search_list *list, int64_t due_ms)
{
    struct live_search_queue *queue = &search->audience->searches;
    leave_list(search);
    struct live_search *before = list->last;
    while (before && before->due_ms > due_ms)
        before = before->previous;
    search->list = list;
    search->due_ms = due_ms;
    search->previous = before;
    search->next = before ? before->next : list->first;
    *(before ? &before->next : &list->first) = search;
    *(search->next ? &search->next->previous : &list->last) = search;
    if (!queue->is_listed)
        list_last(search->audience->all->searches, queue);
    wake_at(search->audience->all->searches, due_ms);
}

static void wait_for_turn(struct live_search *search)
{
    enter_list(search, &search->audience->searches.due, search->begun_ms + search->pause_ms);
}

static void rest(struct live_search *search, int64_t rest_ms)
{
    enter_list(search, &search->audience->searches.resting, clock_monotonic_ms() + rest_ms);
}

static void rest_longer(struct live_search *search)
{
    rest(search, (int64_t)RETRY_MS << search->failures);
    search->failures += search->failures < DOUBLINGS_MOST;
}

/* What it finds may have changed.  One that fails is not asked for sooner. */
static void touch(struct live_search *search)
{
    if (search->ask)
        search->is_touched = true;
    else if (search->list != &search->audience->searches.due && !(search->list && search->failures))
        wait_for_turn(search);
}

/* --- its memory --- */

static void search_count_memory(struct live_search *search)
{
    size_t bytes = sizeof *search + search->text.size + search->body.size + live_found_bytes(&search->found);
    search->audience->memory += bytes - search->bytes;
    search->audience->all->memory += bytes - search->bytes;
    if (search->payer)
        search->payer->memory += bytes - search->bytes;
    search->bytes = bytes;
}

/* Its first listener is another one now, or there is none. */
static void find_payer(struct live_search *search)
{
    struct live_share *payer = search->first ? search->first->owner->listener->share : NULL;
    if (search->payer)
        search->payer->memory -= search->bytes;
    if (payer)
        payer->memory += search->bytes;
    search->payer = payer;
}

static size_t left_of(size_t most, size_t used)
{
    return most > used ? most - used : 0;
}

/* What it finds may take what is left of the memory of all, of its namespace and of its client, and its equal
 * part in any case. */
static size_t room_of(const struct live_search *search)
{
    const struct live_audience *audience = search->audience;
    const struct settings *settings = audience->all->settings;
    size_t memory = (size_t)settings->live_memory_mb << 20;
    size_t equal = memory / ((size_t)settings->live_different_searches + 1);
    size_t left = left_of(memory, audience->all->memory);
    size_t left_there = left_of(memory / NAMESPACE_PART, audience->memory);
    size_t left_to_it = search->payer ? left_of(memory / CLIENT_PART, search->payer->memory) : left;
    if (!search->is_administrator && left_there < left)
        left = left_there;
    if (!search->is_administrator && left_to_it < left)
        left = left_to_it;
    size_t room = live_found_bytes(&search->found) + left;
    return room > equal ? room : equal;
}

/* --- the table --- */

static void search_destroy(struct live_search *search)
{
    struct live_searches *searches = search->audience->all->searches;
    struct live_search **link = &searches->buckets[search->hash % BUCKETS];
    while (*link != search)
        link = &(*link)->next_in_bucket;
    *link = search->next_in_bucket;
    searches->count--;
    search->audience->searches.count--;
    leave_list(search);
    if (search->ask) {
        fcgi_ask_cancel(search->ask);
        searches->in_flight--;
    }
    search->audience->memory -= search->bytes;
    search->audience->all->memory -= search->bytes;
    live_found_free(&search->found);
    free(search);
}

/* Neither one namespace nor one client may exhaust what all share. */
static bool has_room(const struct live_searches *searches, const struct live_listener *listener)
{
    size_t most = (size_t)searches->parts.settings->live_different_searches;
    return searches->count < most && listener->audience->searches.count < most / NAMESPACE_PART + 1 &&
           (!listener->share || listener->share->searches < most / CLIENT_PART + 1);
}

/* Equal rights: nobody's, or the same account with the same roles under the same rules, or the
 * administrator's. */
static struct live_search *find_search(struct live_listener *listener, const struct live_searching *one)
{
    struct live_audience *audience = listener->audience;
    struct live_searches *searches = audience->all->searches;
    int64_t sight = live_follow_sight(listener);
    uint64_t hash = slots_hash_text(searches->seed, one->text);
    struct live_search **first = &searches->buckets[hash % BUCKETS];
    for (struct live_search *search = *first; search; search = search->next_in_bucket)
        if (search->hash == hash && search->audience == audience && search->sight == sight &&
            search->is_administrator == listener->is_administrator && bytes_equal(search->text, one->text))
            return search;
    if (!has_room(searches, listener))
        return NULL;
    struct live_search *search = memory_zeroed(1, sizeof *search + one->text.size + one->body.size, "live");
    char *room = (char *)(search + 1);
    memcpy(room, one->text.data, one->text.size);
    memcpy(room + one->text.size, one->body.data, one->body.size);
    search->text = (struct bytes){room, one->text.size};
    search->body = (struct bytes){room + one->text.size, one->body.size};
    search->audience = audience;
    search->hash = hash;
    search->sight = sight;
    search->is_administrator = listener->is_administrator;
    search->next_in_bucket = *first;
    *first = search;
    searches->count++;
    audience->searches.count++;
    search_count_memory(search);
    return search;
}

static void join(struct live_search *search, struct live_searching *one)
{
    one->search = search;
    one->next = NULL;
    one->previous = search->last;
    *(search->last ? &search->last->next : &search->first) = one;
    search->last = one;
    find_payer(search);
    if (one->owner->listener->share)
        one->owner->listener->share->searches++;
}

static void part(struct live_searching *one)
{
    struct live_search *search = one->search;
    if (!search)
        return;
    *(one->previous ? &one->previous->next : &search->first) = one->next;
    *(one->next ? &one->next->previous : &search->last) = one->previous;
    one->search = NULL;
    find_payer(search);
    if (one->owner->listener->share)
        one->owner->listener->share->searches--;
    if (!search->first && !search->is_told)
        search_destroy(search);
}

/* --- evaluation --- */

static bool take_found(struct live_search *search, struct bytes answer)
{
    struct live_searches *searches = search->audience->all->searches;
    const char *problem =
        arena_printf(searches->arena, "{\"code\":\"XCROWDED\",\"args\":[\"live_memory_mb\",\"%lld\"]}",
                     (long long)searches->parts.settings->live_memory_mb);
    const struct live_found_room room = {room_of(search), bytes_of(problem)};
    bool is_settled = live_found_take_answer(&search->found, search->text, answer, &room, searches->arena);
    arena_reset(searches->arena);
    search_count_memory(search);
    return is_settled;
}

/* Another listener of equal rights is asked for next: the session of this one may have ended. */
static void ask_another(struct live_search *search)
{
    struct live_searching *one = search->first;
    if (one == search->last)
        return;
    part(one);
    join(search, one);
}

/* Each writes what it has not got, once it is certain what it may see. */
static void tell(struct live_search *search)
{
    struct live_searches *searches = search->audience->all->searches;
    search->is_told = true;
    for (struct live_searching *one = search->first, *next; one; one = next) {
        next = one->next;
        searches->parts.flush(one->owner->listener);
    }
    search->is_told = false;
    if (!search->first)
        search_destroy(search);
}

static void on_answer(void *context, struct bytes answer)
{
    struct live_search *search = context;
    struct live_searches *searches = search->audience->all->searches;
    search->ask = NULL; /* freed behind this call */
    searches->in_flight--;
    int64_t took_ms = clock_monotonic_ms() - search->begun_ms;
    search->audience->searches.tokens -= (double)took_ms / TOKEN_MS;
    search->pause_ms = took_ms * 10 > PAUSE_MS ? took_ms * 10 : PAUSE_MS;
    bool is_settled = take_found(search, answer);
    if (is_settled) {
        search->done = search->begun;
        search->failures = 0;
        if (search->is_touched)
            wait_for_turn(search);
        else if (!search->found.page)
            rest(search, REFUSED_MS);
    } else {
        ask_another(search);
        rest_longer(search);
    }
    search->is_touched = false;
    tell(search);
    live_searches_go_on(searches);
}

/* The workers of the second half have no large bodies. */
static const char *next_worker(struct live_searches *searches, char path_r[PATH_MAX])
{
    const struct settings *settings = searches->parts.settings;
    size_t workers = (size_t)settings->workers, first = workers / 2;
    searches->position = (searches->position + 1) % (workers - first);
    snprintf(path_r, PATH_MAX, "%s/worker-%zu.sock", settings->run_directory, first + searches->position);
    return path_r;
}

static void ask(struct live_search *search)
{
    char path[PATH_MAX];
    struct live_searches *searches = search->audience->all->searches;
    const struct live_searcher *asker = search->first->owner;
    const char *address = arena_printf(searches->arena, "/%s/op/find", search->audience->code);
    const char *size = arena_printf(searches->arena, "%zu", search->body.size);
    const struct fcgi_ask_parameter parameters[] = {
        {"REQUEST_METHOD", BYTES("POST")},
        {"REQUEST_URI", bytes_of(address)},
        {"CONTENT_TYPE", BYTES("application/json")},
        {"CONTENT_LENGTH", bytes_of(size)},
        {"STAMPD_NS", bytes_of(search->audience->code)},
        {"STAMPD_DATABASE", bytes_of(search->audience->database)},
        {"STAMPD_CLIENT", asker->client},
        {"HTTP_AUTHORIZATION", asker->authorization},
        {"HTTP_COOKIE", asker->cookie},
        /* Which page may read the stream was judged when it began. */
        {"HTTP_SEC_FETCH_SITE", BYTES("same-origin")},
    };
    leave_list(search);
    search->begun++;
    search->begun_ms = clock_monotonic_ms();
    search->ask =
        fcgi_ask_begin(searches->parts.events, &(struct fcgi_ask_options){.path = next_worker(searches, path),
                                                                          .parameters = parameters,
                                                                          .count = COUNT_OF(parameters),
                                                                          .body = search->body,
                                                                          .answer_most = ANSWER_MOST,
                                                                          .patience_ms = PATIENCE_MS,
                                                                          .answered = on_answer,
                                                                          .context = search});
    arena_reset(searches->arena);
    if (search->ask)
        searches->in_flight++;
    else
        rest_longer(search);
}

static void fill(const struct settings *settings, struct live_search_queue *queue, int64_t now_ms)
{
    double rate = (double)settings->live_search_rate;
    double tokens = queue->tokens + rate * (double)(now_ms - queue->filled_ms) / 1000;
    queue->tokens = tokens < rate ? tokens : rate;
    queue->filled_ms = now_ms;
}

/* Begins one of the namespace; false: none is due, or it has had its share. */
static bool begin_one(struct live_searches *searches, struct live_search_queue *queue, int64_t now_ms)
{
    fill(searches->parts.settings, queue, now_ms);
    while (queue->resting.first && queue->resting.first->due_ms <= now_ms)
        enter_list(queue->resting.first, &queue->due, now_ms);
    struct live_search *search = queue->due.first;
    if (!search || search->due_ms > now_ms || queue->tokens < 1)
        return false;
    queue->tokens--;
    ask(search);
    if (queue->is_listed) { /* the next one's turn */
        unlist(searches, queue);
        list_last(searches, queue);
    }
    return true;
}

/* When one is due next; those that wait for an evaluation under way are looked at when it has ended. */
static int64_t next_due_ms(const struct live_searches *searches, int64_t now_ms)
{
    int64_t next_ms = INT64_MAX, turn_ms = 1000 / searches->parts.settings->live_search_rate + 1;
    for (const struct live_search_queue *queue = searches->first; queue; queue = queue->next) {
        const struct live_search *due = queue->due.first, *resting = queue->resting.first;
        int64_t due_ms = due ? due->due_ms : INT64_MAX;
        if (due && queue->tokens < 1 && due_ms < now_ms + turn_ms)
            due_ms = now_ms + turn_ms;
        next_ms = due_ms < next_ms ? due_ms : next_ms;
        next_ms = resting && resting->due_ms < next_ms ? resting->due_ms : next_ms;
    }
    return next_ms;
}

static void live_searches_go_on(void *context)
{
    struct live_searches *searches = context;
    size_t part_of_workers = (size_t)searches->parts.settings->workers / WORKERS_PART;
    size_t most = part_of_workers ? part_of_workers : 1;
    int64_t now_ms = clock_monotonic_ms();
    bool has_begun = true;
    searches->wake_ms = INT64_MAX;
    while (has_begun && searches->in_flight < most) {
        has_begun = false;
        for (struct live_search_queue *queue = searches->first, *next; queue && !has_begun; queue = next) {
            next = queue->next;
            has_begun = begin_one(searches, queue, now_ms);
        }
    }
    if (searches->first && searches->in_flight < most)
        wake_at(searches, next_due_ms(searches, now_ms));
}

/* --- listeners --- */

static void enter(struct live_searching *one)
{
    struct live_listener *listener = one->owner->listener;
    struct live_search *search = find_search(listener, one);
    one->is_refused = !search;
    if (one->search != search) {
        part(one);
        if (search)
            join(search, one);
    }
    one->turn = 0;
    if (!search)
        return;
    bool is_settled = search->found.turn && !search->list && !search->ask;
    one->least = is_settled ? search->done : search->begun + 1;
    if (!is_settled)
        touch(search);
}

void live_searches_enter(struct live_listener *listener)
{
    struct live_searcher *searcher = listener->searcher;
    if (!searcher)
        return;
    bool is_first = !searcher->listener;
    searcher->listener = listener;
    for (size_t i = 0; i < searcher->count; i++) {
        struct live_searching *one = &searcher->list[i];
        one->has_stamp = is_first && searcher->stamp_count;
        enter(one);
        if (!is_first && one->search) { /* anything may have changed */
            touch(one->search);
            one->least = one->search->begun + 1;
        }
    }
}

void live_searches_leave(struct live_listener *listener)
{
    struct live_searcher *searcher = listener->searcher;
    for (size_t i = 0; searcher && i < searcher->count; i++)
        part(&searcher->list[i]);
    free(searcher);
    listener->searcher = NULL;
}

void live_searches_take_changed(struct live_listener *listener)
{
    const struct live_searcher *searcher = listener->searcher;
    struct live_feed *feed = &listener->feed;
    if (!searcher)
        return;
    for (const struct live_mark *mark;
         (mark = live_index_take_changed_from(feed, &feed->marks[searcher->count_own]));) {
        size_t place = (size_t)(mark - feed->marks), i = 0;
        while (searcher->list[i].end <= place)
            i++;
        if (searcher->list[i].search)
            touch(searcher->list[i].search);
    }
}

static bool has_news(const struct live_searching *one)
{
    const struct live_search *search = one->search;
    return one->is_refused ||
           (search && search->found.turn && one->turn != search->found.turn && search->done >= one->least);
}

bool live_searches_have_news(const struct live_listener *listener)
{
    const struct live_searcher *searcher = listener->searcher;
    for (size_t i = 0; searcher && i < searcher->count; i++)
        if (has_news(&searcher->list[i]))
            return true;
    return false;
}

/* The turn of the page that the client has; 0: none that is known. */
static uint64_t turn_of(const struct live_searching *one)
{
    const struct live_searcher *searcher = one->owner;
    uint64_t known = one->turn;
    for (size_t i = 0; one->has_stamp && i < searcher->stamp_count && !known; i++)
        known = live_found_turn_of(&one->search->found, searcher->stamps[i]);
    return known;
}

void live_searches_write(struct live_listener *listener, struct builder *text)
{
    struct live_searching *one = listener->searcher->list;
    while (!has_news(one))
        one++;
    builder_printf(text, "event: find\ndata: {\"def\":%zu", one->position);
    if (one->is_refused)
        builder_printf(text,
                       ",\"fault\":{\"code\":\"XCROWDED\",\"args\":[\"live_different_searches\",\"%lld\"]}",
                       (long long)listener->audience->all->settings->live_different_searches);
    else
        one->turn = live_found_write(&one->search->found, turn_of(one), text);
    one->is_refused = one->has_stamp = false;
    builder_add_text(text, "}\n\n");
}
