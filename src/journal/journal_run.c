/* journal_run: from messages to commands of records, and back. */
#include "journal/journal_run.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "edge/pattern.h"
#include "records/records_state.h"

enum { PAGE_STANDARD = 100, PAGE_MOST = 1000, PASSED_MOST = 2000, OUT_MOST = 1 << 20 };

/* What costs how many steps: journal_turns.h. */
enum {
    MATCH_STEPS = 25000, /* a page passes no other key after so many steps of the matcher */
    KEY_STEPS = 25000,   /* a key that takes more of them does not match */
    MESSAGE_STEPS = 100,
    PASSED_STEPS = 25,       /* for each key that a page passes */
    PATTERN_BYTE_STEPS = 50, /* to compile it */
    STEP_BYTES = 16          /* of messages and answers, for one step */
};

static uint64_t now_us(void)
{
    return (uint64_t)clock_wall_ms() * 1000;
}

static enum journal_next journal_run_refuse(struct builder *out, const struct journal_request *request,
                                            const char *word)
{
    journal_message_refuse(out, request, now_us(), word);
    return JOURNAL_GO_ON;
}

/* --- AUTH --- */

static enum journal_next journal_run_enter(struct journal_session *session,
                                           const struct journal_request *request, struct builder *out)
{
    if (request->has_value && journal_session_enter(session, request->key, request->value))
        return journal_run_refuse(out, request, "");
    journal_run_refuse(out, request, "KEY");
    return JOURNAL_CLOSE;
}

/* --- tasks --- */

const char *journal_run_operation(uint16_t function)
{
    static const char *const operations[] = {"take", "keep", "done", "fail"};
    return function >= JOURNAL_NEXT && function <= JOURNAL_FAIL ? operations[function - JOURNAL_NEXT] : NULL;
}

static enum journal_next journal_run_pass(const struct journal_session *session,
                                          const struct journal_request *request, struct builder *out)
{
    if (journal_query_of(request) != JOURNAL_KEY || request->flags & (JOURNAL_PERSIST | JOURNAL_LISTEN))
        return journal_run_refuse(out, request, "UNSUPPORTED");
    if (!request->has_value || request->type != RECORDS_STRING)
        return journal_run_refuse(out, request, "VALUE");
    return *session->key ? JOURNAL_PASS : journal_run_refuse(out, request, "RIGHT");
}

void journal_run_answer(struct builder *out, const struct journal_request *request, const char *error,
                        struct bytes text)
{
    struct journal_answer answer;
    if (*error) {
        journal_run_refuse(out, request, error);
        return;
    }
    journal_message_begin(&answer, out, request, now_us(), 0, "");
    journal_message_add(&answer, BYTES(""), RECORDS_STRING, text, true);
    journal_message_end(&answer);
}

/* --- one record --- */

static const struct {
    enum journal_function function;
    enum records_deed deed;
} deeds[] = {
    {JOURNAL_SET, RECORDS_SET},   {JOURNAL_GET, RECORDS_GET},       {JOURNAL_DELETE, RECORDS_DELETE},
    {JOURNAL_ADD, RECORDS_ADD},   {JOURNAL_NOT, RECORDS_NOT},       {JOURNAL_TRUNCATE, RECORDS_TRUNCATE},
    {JOURNAL_LOCK, RECORDS_LOCK}, {JOURNAL_UNLOCK, RECORDS_UNLOCK}, {JOURNAL_RENAME, RECORDS_RENAME}};

static bool find_deed(uint16_t function, enum records_deed *deed_r)
{
    for (size_t i = 0; i < COUNT_OF(deeds); i++)
        if (deeds[i].function == function) {
            *deed_r = deeds[i].deed;
            return true;
        }
    return false;
}

/* The timeout is in milliseconds from now: an end, a mark "worked on", or the length of a lock. */
static bool read_timeout(const struct journal_request *request, struct records_command *command)
{
    int64_t timeout_ms = (int64_t)request->timeout;
    bool is_update = request->flags & JOURNAL_UPDATE_TIMEOUT;
    bool is_lease = command->deed == RECORDS_LOCK || (command->deed == RECORDS_GET && !is_update);
    uint64_t most = is_lease ? RECORDS_LEASE_MOST_MS : (uint64_t)RECORDS_TOUCH_MOST_S * 1000;
    if (request->timeout > most || (command->deed == RECORDS_LOCK && !timeout_ms))
        return false;
    if (is_lease) {
        command->lease_ms = timeout_ms;
    } else if (timeout_ms) {
        command->expires_ms = clock_present_ms() + timeout_ms;
        command->touch_s = is_update && command->deed != RECORDS_GET ? (timeout_ms + 999) / 1000 : 0;
    }
    return true;
}

static bool may_persist(enum records_deed deed)
{
    return deed == RECORDS_SET || deed == RECORDS_ADD || deed == RECORDS_LOCK;
}

/* A SET may be only of what is there, and any change of one key only of what has the stamp. */
static bool takes_stamps(const struct journal_request *request, struct records_command *command)
{
    bool is_set = command->deed == RECORDS_SET, is_key = journal_query_of(request) == JOURNAL_KEY;
    bool may_compare = command->deed != RECORDS_GET && command->deed != RECORDS_LOCK &&
                       command->deed != RECORDS_UNLOCK && request->stamp;
    command->is_only_present = request->flags & JOURNAL_ONLY_PRESENT;
    command->stamp = request->stamp;
    command->shows_present = request->flags & JOURNAL_DATA;
    return (!command->is_only_present || is_set) && (!(request->flags & JOURNAL_IF_STAMP) || may_compare) &&
           (!(request->flags & JOURNAL_STAMP) || is_key);
}

/* The word of the error; NULL: a command. */
static const char *read_command(const struct journal_session *session, const struct journal_request *request,
                                struct records_command *command)
{
    if (!find_deed(request->function, &command->deed))
        return "FUNCTION";
    command->is_listened = request->flags & JOURNAL_LISTEN;
    bool may_listen = (command->deed == RECORDS_SET || command->deed == RECORDS_GET) &&
                      journal_query_of(request) == JOURNAL_KEY;
    command->is_persisted = request->flags & JOURNAL_PERSIST;
    if ((command->is_persisted && !may_persist(command->deed)) || (command->is_listened && !may_listen))
        return "UNSUPPORTED";
    if (!takes_stamps(request, command))
        return "UNSUPPORTED";
    if (request->timestamp &&
        request->timestamp > now_us() + (uint64_t)session->settings->dhop_future_ms * 1000)
        return "TIMESTAMP";
    if (!read_timeout(request, command))
        return "TIMEOUT";
    bool needs_value =
        command->deed == RECORDS_SET || command->deed == RECORDS_ADD || command->deed == RECORDS_TRUNCATE;
    if (needs_value != request->has_value ||
        (needs_value && (request->type >= RECORDS_TYPES ||
                         !records_is_content((enum records_type)request->type, request->value))))
        return "VALUE";
    command->type = (enum records_type)request->type;
    if ((command->deed == RECORDS_ADD && command->type != RECORDS_INTEGER &&
         command->type != RECORDS_FLOAT) ||
        (command->deed == RECORDS_TRUNCATE &&
         (command->type != RECORDS_INTEGER || records_read_integer(request->value) < 0)))
        return "VALUE";
    command->size = command->deed == RECORDS_TRUNCATE ? (size_t)records_read_integer(request->value) : 0;
    if (command->size > (size_t)session->settings->limit_content_bytes)
        return "OUT_OF_RANGE";
    command->content = request->value;
    command->timestamp_us = (int64_t)request->timestamp;
    command->owner = bytes_of(session->owner);
    command->may_overwrite = request->flags & JOURNAL_OVERWRITE ||
                             (command->deed == RECORDS_SET && (command->is_only_present || command->stamp));
    command->records_most = (uint64_t)session->settings->limit_namespace_records;
    command->is_immediate = command->deed == RECORDS_DELETE && command->may_overwrite;
    command->leaves_worked = request->flags & JOURNAL_WORKED_ON;
    command->is_probe = command->deed == RECORDS_GET && !(request->flags & JOURNAL_DATA);
    return NULL;
}

/* What stands in an answer about one record. */
static void answer_journal_run(struct builder *out, const struct journal_request *request, const char *error,
                               const struct records_found *found, bool with_record)
{
    struct journal_answer answer;
    int64_t left_ms = found->expires_ms ? found->expires_ms - clock_present_ms() : 0;
    journal_message_begin(&answer, out, request,
                          found->timestamp_us ? (uint64_t)found->timestamp_us : now_us(),
                          left_ms > 0 ? (uint64_t)left_ms : 0, error);
    answer.flags |= (uint16_t)((found->worked_until_ms ? JOURNAL_WORKED_ON : 0) |
                               (found->locked_until_ms ? JOURNAL_LOCKED : 0));
    if (request->flags & JOURNAL_STAMP && found->stamp)
        journal_message_add_stamp(&answer, found->stamp);
    if (with_record)
        journal_message_add(&answer, found->key, (uint8_t)found->type, found->content,
                            found->content.data != NULL);
    journal_message_end(&answer);
}

/* A refusal shows what is in the way, if it was requested, to whoever may read that; not what the disk does
 * not give: it would look like an empty value. */
static void refuse_outcome(const struct journal_session *session, const struct journal_request *request,
                           enum records_outcome outcome, const struct records_found *found,
                           struct builder *out)
{
    const char *word = records_outcome_word(outcome);
    bool is_met = outcome == RECORDS_NOT_FREE || outcome == RECORDS_OTHER_STAMP;
    bool is_wanted = request->flags & (JOURNAL_DATA | JOURNAL_STAMP);
    if (is_met && is_wanted && journal_keys_allow(&session->caller, found->key, false))
        answer_journal_run(out, request, word, found, found->content.data != NULL);
    else
        journal_run_refuse(out, request, word);
}

static enum journal_next run_one(struct journal_session *session, const struct journal_request *request,
                                 struct records_command *command, struct builder *out)
{
    struct records_found found;
    command->key = request->key;
    command->to = command->deed == RECORDS_RENAME ? request->other : NO_BYTES;
    if (!records_is_key(command->key) || (command->to.data && !records_is_key(command->to)))
        return journal_run_refuse(out, request, "KEY_FORM");
    if (!journal_keys_allow(&session->caller, command->key, journal_session_is_write(command)) ||
        (command->to.data && !journal_keys_allow(&session->caller, command->to, true)))
        return journal_run_refuse(out, request, "RIGHT");
    if (journal_session_is_write(command) && !journal_keys_hold(&session->caller, command))
        return journal_run_refuse(out, request, "TIMEOUT");
    if (command->is_listened && !journal_listener_has_room(&session->listener, command->key))
        return journal_run_refuse(out, request, "LISTENS");
    enum records_outcome outcome;
    enum journal_next next = journal_session_run(session, command, &outcome, &found);
    if (next != JOURNAL_GO_ON)
        return next == JOURNAL_READ ? journal_session_read_again(session) : next;
    bool is_absent = outcome == RECORDS_NOT_FOUND && command->deed == RECORDS_GET;
    if (command->is_listened && (outcome == RECORDS_OK || is_absent))
        journal_listener_add(&session->listener, command->key, request->identifier, command->is_encrypted,
                             &found);
    if (outcome != RECORDS_OK) {
        refuse_outcome(session, request, outcome, &found, out);
        return JOURNAL_GO_ON;
    }
    bool returns =
        command->deed == RECORDS_GET || command->deed == RECORDS_ADD || command->deed == RECORDS_NOT;
    answer_journal_run(out, request, "", &found, returns && found.key.data);
    return JOURNAL_GO_ON;
}

bool journal_run_report(struct journal_session *session, size_t most, struct builder *out)
{
    struct records_answer answer;
    struct journal_listener *listener = &session->listener;
    bool has_moved = journal_listener_look(listener, session->records);
    if (has_moved || records_state_some_spread(session->records)) {
        if (!journal_session_is_served(session, false, &answer))
            return false;
        if (answer.is_spread)
            journal_listener_give_up(listener);
        else if (has_moved)
            journal_listener_read(listener, session->records, session->caller.ns, answer.is_encrypted);
    }
    if (!journal_listener_has_news(listener))
        return !journal_listener_is_behind(listener);
    if (out->size >= most) /* admission counts a request: not for a listener that cannot be sent anything */
        return false;
    if (!journal_session_is_served(session, true, &answer))
        return false;
    return journal_listener_report(listener, now_us(), most, out) && !journal_listener_is_behind(listener);
}

/* --- many --- */

/* A cursor is the query that goes on: its kind, the last key, and the upper end or the pattern, each key with
 * two bytes of its size.  It opens nothing that the client could not request by itself. */
struct journal_scan {
    enum journal_query query;
    struct bytes from, after, to, pattern;
};

static bool cut_sized(struct bytes *rest, struct bytes *text_r)
{
    size_t size = rest->size < 2 ? SIZE_MAX
                                 : (size_t)((unsigned char)rest->data[0] << 8 | (unsigned char)rest->data[1]);
    if (rest->size < 2 || rest->size - 2 < size)
        return false;
    *text_r = (struct bytes){rest->data + 2, size};
    rest->data += 2 + size;
    rest->size -= 2 + size;
    return true;
}

static bool read_scan(const struct journal_request *request, struct journal_scan *scan)
{
    *scan = (struct journal_scan){.query = journal_query_of(request), .from = BYTES("")};
    if (scan->query == JOURNAL_RANGE) {
        scan->from = request->key;
        scan->to = request->other.size ? request->other : NO_BYTES;
    } else if (scan->query == JOURNAL_PATTERN) {
        scan->pattern = request->key;
    } else {
        struct bytes rest = request->key, more;
        if (!rest.size)
            return false;
        scan->query = (enum journal_query) * rest.data;
        rest.data++;
        rest.size--;
        if (!cut_sized(&rest, &scan->after) || !cut_sized(&rest, &more) || rest.size)
            return false;
        if (scan->query == JOURNAL_PATTERN)
            scan->pattern = more;
        else
            scan->to = more.size ? more : NO_BYTES;
    }
    return (scan->query == JOURNAL_RANGE || scan->query == JOURNAL_PATTERN) && bytes_is_utf8(scan->pattern) &&
           scan->from.size <= RECORDS_KEY_MOST && scan->after.size <= RECORDS_KEY_MOST &&
           scan->to.size <= RECORDS_KEY_MOST && scan->pattern.size <= PATTERN_TEXT_MOST;
}

static void add_sized(struct builder *out, struct bytes text)
{
    const char size[] = {(char)(text.size >> 8), (char)(text.size & 0xff)};
    builder_add(out, size, sizeof size);
    builder_add_bytes(out, text);
}

static void add_cursor(struct journal_answer *answer, const struct journal_scan *scan, struct bytes last)
{
    struct builder cursor = {0};
    const char kind = (char)scan->query;
    builder_add(&cursor, &kind, 1);
    add_sized(&cursor, last);
    add_sized(&cursor, scan->pattern.data ? scan->pattern : scan->to);
    journal_message_add_cursor(answer, builder_bytes(&cursor));
    builder_free(&cursor);
}

/* A page, while its records are passed. */
struct journal_page {
    struct journal_answer answer;
    struct builder *out;
    int64_t most;  /* records */
    bool notes;    /* what is to be read for it, instead of ending there */
    size_t noted;  /* bytes of that */
    bool is_early; /* it ends before this record */
};

static int64_t count_most(const struct journal_request *request)
{
    return request->count && request->count < PAGE_MOST ? request->count
           : request->count                             ? PAGE_MOST
                                                        : PAGE_STANDARD;
}

static bool journal_run_has_room(const struct journal_session *session, const struct journal_page *page)
{
    int64_t noted = page->notes ? (int64_t)session->reading.count : 0;
    return page->answer.count + noted < page->most &&
           page->out->size - page->answer.start + page->noted < OUT_MOST;
}

/* A record for which nothing was done.  True: so the page waits for it.  When the page is nothing but
 * reading, it goes on: all that it needs is read at once. */
static bool pass_by(struct journal_session *session, struct journal_page *page, enum journal_next next)
{
    struct journal_contents *reading = &session->reading;
    if (page->notes && next == JOURNAL_READ && reading->count < JOURNAL_CONTENTS_MOST) {
        journal_contents_want(reading, session->records);
        page->noted += reading->list[reading->count - 1].wanted.size;
        return false;
    }
    page->is_early = true;
    if (page->answer.count || (page->notes && reading->count))
        return false;
    if (next == JOURNAL_READ)
        journal_session_read_again(session);
    page->out->size = page->answer.start;
    return true;
}

static bool lacks_room(enum records_outcome outcome)
{
    return outcome == RECORDS_OUT_OF_MEMORY || outcome == RECORDS_OUT_OF_SHARE;
}

/* Without its value a record would look like an empty one, or like none. */
static bool is_error(enum records_outcome outcome)
{
    return outcome == RECORDS_NOT_READ || outcome == RECORDS_BUSY || lacks_room(outcome);
}

/* Each key has steps of its own: whether it is found does not depend on the keys before it. */
static bool is_match(struct journal_session *session, const struct pattern *pattern, struct bytes key,
                     int64_t *steps)
{
    int64_t left = KEY_STEPS;
    enum pattern_result result = pattern_match(pattern, key, &left);
    *steps -= KEY_STEPS - left;
    session->cost += KEY_STEPS - left;
    return result == PATTERN_MATCHES;
}

/* Ends before a record for which there is no room yet, or whose content is to be read: JOURNAL_SAVE,
 * JOURNAL_READ: it is the first one, or many are to be read for this page. */
static enum journal_next run_scan(struct journal_session *session, const struct journal_request *request,
                                  struct records_command *command, const struct journal_scan *scan,
                                  const struct pattern *pattern, struct builder *out)
{
    int64_t steps = MATCH_STEPS, passed = 0;
    struct journal_page page = {.out = out,
                                .most = count_most(request),
                                .notes = !journal_session_is_write(command) && !session->reading.count};
    char last[2][RECORDS_KEY_MOST]; /* in turn: the one before is the last one of a page that ends early */
    struct bytes after = scan->after, before;
    enum records_outcome outcome = RECORDS_OK, result;
    struct records_found found;
    journal_message_begin(&page.answer, out, request, now_us(), 0, "");
    for (int64_t i = 0;
         passed < PASSED_MOST && steps > 0 && !page.is_early && journal_run_has_room(session, &page); i++) {
        outcome = records_next(session->records, session->caller.ns, command->is_encrypted, scan->from, after,
                               scan->to, &found);
        if (!found.key.data)
            break;
        int64_t keys = outcome == RECORDS_BUSY ? RECORDS_STEPS : 1;
        passed += keys;
        session->cost += keys * PASSED_STEPS;
        before = after;
        memcpy(last[i % 2], found.key.data, found.key.size);
        command->key = after = (struct bytes){last[i % 2], found.key.size};
        if (outcome != RECORDS_OK ||
            !journal_keys_allow(&session->caller, after, journal_session_is_write(command)) ||
            (pattern && !is_match(session, pattern, after, &steps)))
            continue;
        bool is_held = !journal_session_is_write(command) || journal_keys_hold(&session->caller, command);
        enum journal_next next =
            is_held ? journal_session_run(session, command, &result, &found) : JOURNAL_GO_ON;
        if (next != JOURNAL_GO_ON && pass_by(session, &page, next))
            return next;
        page.is_early |= next == JOURNAL_GO_ON && is_held && lacks_room(result) && page.answer.count;
        if (next == JOURNAL_GO_ON && !page.is_early && (!is_held || is_error(result))) {
            out->size = page.answer.start;
            journal_run_refuse(out, request, is_held ? records_outcome_word(result) : "TIMEOUT");
            return JOURNAL_GO_ON;
        }
        if (page.is_early)
            after = before;
        if (result == RECORDS_OK)
            journal_message_add(&page.answer, found.key, (uint8_t)found.type, found.content,
                                found.content.data != NULL);
    }
    /* Nobody could look: an empty page without a cursor would mean that there is nothing more. */
    bool is_blind = outcome == RECORDS_BUSY && !passed;
    if (is_blind || (page.notes && session->reading.count)) {
        out->size = page.answer.start;
        return is_blind ? journal_run_refuse(out, request, "BUSY") : JOURNAL_READ;
    }
    if (outcome != RECORDS_NOT_FOUND && after.data)
        add_cursor(&page.answer, scan, after);
    journal_message_end(&page.answer);
    return JOURNAL_GO_ON;
}

/* A cursor shows the key at which the page ended: only who may read all keys of the namespace has pages. */
static enum journal_next run_many(struct journal_session *session, const struct journal_request *request,
                                  struct records_command *command, struct builder *out)
{
    struct journal_scan scan;
    struct pattern_problem problem;
    const struct pattern *pattern = NULL;
    if (command->deed != RECORDS_GET || !read_scan(request, &scan))
        return journal_run_refuse(out, request, "QUERY");
    if (!journal_keys_allow(&session->caller, BYTES(""), journal_session_is_write(command)))
        return journal_run_refuse(out, request, "RIGHT");
    struct arena *arena = arena_create("journal");
    enum journal_next next = JOURNAL_GO_ON;
    session->cost += (int64_t)scan.pattern.size * PATTERN_BYTE_STEPS;
    if (scan.pattern.data && !pattern_compile(arena, scan.pattern, &pattern, &problem))
        journal_run_refuse(out, request, "QUERY");
    else
        next = run_scan(session, request, command, &scan, pattern, out);
    arena_destroy(arena);
    return next;
}

static enum journal_next journal_run_run(struct journal_session *session,
                                         const struct journal_request *request, struct builder *out)
{
    struct records_command command = {0};
    if (request->function == JOURNAL_NOP)
        return JOURNAL_GO_ON;
    if (request->function == JOURNAL_QUIT)
        return JOURNAL_CLOSE;
    if (request->function == JOURNAL_PING)
        return journal_run_refuse(out, request, "");
    if (request->function == JOURNAL_AUTH)
        return journal_run_enter(session, request, out);
    if (!session->caller.ns.data)
        return journal_run_refuse(out, request, "AUTH");
    if (journal_run_operation(request->function))
        return journal_run_pass(session, request, out);
    const char *word = read_command(session, request, &command);
    if (word)
        return journal_run_refuse(out, request, word);
    enum journal_next next;
    char refusal[JOURNAL_REFUSAL_MOST];
    if (!journal_session_admit(session, journal_session_is_write(&command), &command, &next, refusal))
        return next == JOURNAL_WAIT ? next : journal_run_refuse(out, request, refusal);
    if (session->is_spread && journal_query_of(request) != JOURNAL_KEY) /* no host has all keys */
        return journal_run_refuse(out, request, "UNSUPPORTED");
    return journal_query_of(request) == JOURNAL_KEY ? run_one(session, request, &command, out)
                                                    : run_many(session, request, &command, out);
}

enum journal_next journal_run(struct journal_session *session, const struct journal_request *request,
                              struct builder *out)
{
    size_t before = out->size;
    enum journal_next next = journal_run_run(session, request, out);
    size_t bytes = request->key.size + request->value.size + (out->size - before);
    session->cost += MESSAGE_STEPS + (int64_t)(bytes / STEP_BYTES);
    return next;
}
