/* resp_run: the table of commands, and those that are about the connection. */
#include "journal/resp/resp_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "journal/resp/resp_records.h"
#include "journal/resp/resp_scan.h"
#include "journal/resp/resp_sums.h"

/* What costs how many steps: journal_turns.h. */
enum { REQUEST_STEPS = 100, WORD_STEPS = 5, STEP_BYTES = 16 };
enum { STRANGER_WORDS = 16, STRANGER_BYTES = 1024, ARGUMENTS_SHOWN = 128 };
/* Programs decide by it what a server can do. */
#define REDIS_VERSION "7.0.0"

enum {
    OF_STRANGERS = 1 << 0, /* also before a right key */
    OF_LISTENERS = 1 << 1, /* also of a connection of version 2 that listens */
    WRITES = 1 << 2,
    READS = 1 << 3
};

/* As COMMAND of Redis shows it. */
struct resp_command {
    const char *name;
    resp_function *run;
    int arity; /* words; below 0: at least so many */
    unsigned flags;
    int first, last, step; /* the keys among them */
};

static resp_function run_auth, run_hello, run_select, run_ping, run_echo, run_quit, run_client, run_command,
    run_info;

static const struct resp_command commands[] = {
    {"get", resp_records_get, 2, READS, 1, 1, 1},
    {"set", resp_records_set, -3, WRITES, 1, 1, 1},
    {"incr", resp_sums_add, 2, WRITES, 1, 1, 1},
    {"auth", run_auth, -2, OF_STRANGERS, 0, 0, 0},
    {"client", run_client, -2, OF_STRANGERS, 0, 0, 0},
    {"command", run_command, -1, 0, 0, 0, 0},
    {"decr", resp_sums_add, 2, WRITES, 1, 1, 1},
    {"decrby", resp_sums_add, 3, WRITES, 1, 1, 1},
    {"del", resp_records_del, -2, WRITES, 1, -1, 1},
    {"echo", run_echo, 2, 0, 0, 0, 0},
    {"exists", resp_records_exists, -2, READS, 1, -1, 1},
    {"expire", resp_records_expire, -3, WRITES, 1, 1, 1},
    {"expireat", resp_records_expire, -3, WRITES, 1, 1, 1},
    {"getset", resp_records_getset, 3, WRITES, 1, 1, 1},
    {"hello", run_hello, -1, OF_STRANGERS, 0, 0, 0},
    {"incrby", resp_sums_add, 3, WRITES, 1, 1, 1},
    {"incrbyfloat", resp_sums_add_float, 3, WRITES, 1, 1, 1},
    {"info", run_info, -1, 0, 0, 0, 0},
    {"mget", resp_records_mget, -2, READS, 1, -1, 1},
    {"mset", resp_records_mset, -3, WRITES, 1, -1, 2},
    {"persist", resp_records_persist, 2, WRITES, 1, 1, 1},
    {"pexpire", resp_records_expire, -3, WRITES, 1, 1, 1},
    {"pexpireat", resp_records_expire, -3, WRITES, 1, 1, 1},
    {"ping", run_ping, -1, OF_LISTENERS, 0, 0, 0},
    {"psetex", resp_records_setex, 4, WRITES, 1, 1, 1},
    {"psubscribe", resp_listener_subscribe, -2, OF_LISTENERS, 0, 0, 0},
    {"pttl", resp_records_ttl, 2, READS, 1, 1, 1},
    {"punsubscribe", resp_listener_unsubscribe, -1, OF_LISTENERS, 0, 0, 0},
    {"quit", run_quit, -1, OF_STRANGERS | OF_LISTENERS, 0, 0, 0},
    {"rename", resp_records_rename, 3, WRITES, 1, 2, 1},
    {"scan", resp_scan, -2, READS, 0, 0, 0},
    {"select", run_select, 2, 0, 0, 0, 0},
    {"setex", resp_records_setex, 4, WRITES, 1, 1, 1},
    {"setnx", resp_records_setnx, 3, WRITES, 1, 1, 1},
    {"subscribe", resp_listener_subscribe, -2, OF_LISTENERS, 0, 0, 0},
    {"ttl", resp_records_ttl, 2, READS, 1, 1, 1},
    {"type", resp_records_type, 2, READS, 1, 1, 1},
    {"unlink", resp_records_del, -2, WRITES, 1, -1, 1},
    {"unsubscribe", resp_listener_unsubscribe, -1, OF_LISTENERS, 0, 0, 0},
};

static const struct resp_command *find_command(struct bytes word)
{
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        if (word.size && (word.data[0] | 0x20) == commands[i].name[0] && resp_is(word, commands[i].name))
            return &commands[i];
    return NULL;
}

/* --- refusals --- */

static enum journal_next refuse_name(const struct journal_session *session, struct builder *out)
{
    char text[RESP_REFUSAL_MOST];
    struct bytes word = resp_session_word(session, 0);
    int size = snprintf(text, sizeof text, "ERR unknown command '%.*s', with args beginning with: ",
                        (int)(word.size < ARGUMENTS_SHOWN ? word.size : ARGUMENTS_SHOWN), word.data);
    for (size_t i = 1; i < resp_session_count(session) && size < RESP_REFUSAL_MOST - ARGUMENTS_SHOWN - 8;
         i++) {
        word = resp_session_word(session, i);
        size += snprintf(text + size, sizeof text - (size_t)size, "'%.*s' ",
                         (int)(word.size < ARGUMENTS_SHOWN ? word.size : ARGUMENTS_SHOWN), word.data);
    }
    return resp_session_refuse(out, text);
}

static enum journal_next refuse_word(struct builder *out, const char *form, struct bytes word)
{
    char text[RESP_REFUSAL_MOST], name[ARGUMENTS_SHOWN + 1];
    size_t size = word.size < ARGUMENTS_SHOWN ? word.size : ARGUMENTS_SHOWN;
    memcpy(name, word.data, size);
    name[size] = 0;
    const char *place = strchr(form, '%');
    snprintf(text, sizeof text, "%.*s%s%s", (int)(place - form), form, name, place + 1);
    return resp_session_refuse(out, text);
}

static enum journal_next refuse_arity(struct builder *out, const char *name)
{
    return refuse_word(out, "ERR wrong number of arguments for '%' command", bytes_of(name));
}

/* --- who is there --- */

static enum journal_next refuse_key(struct builder *out)
{
    resp_add_error(out, "WRONGPASS the file of keys has no such key for this namespace");
    return JOURNAL_CLOSE;
}

/* Without a namespace: the one with the number 0, or the first one of the key. */
static bool enter(struct journal_session *session, struct bytes ns, struct bytes key)
{
    if (!ns.data) {
        session->caller = (struct journal_caller){0};
        ns = resp_session_namespace(session, BYTES("0"));
        struct journal_caller caller;
        if (!ns.data || !journal_keys_enter(session->keys, ns, key, &caller))
            ns = journal_keys_first(session->keys, key);
    }
    resp_listener_free(session->resp);
    return ns.data ? journal_session_enter(session, ns, key) : journal_session_enter(session, BYTES(""), key);
}

static enum journal_next run_auth(struct journal_session *session, struct builder *out)
{
    size_t count = resp_session_count(session);
    if (count > 3)
        return resp_session_refuse(out, "ERR syntax error");
    struct bytes ns = count == 3 ? resp_session_word(session, 1) : NO_BYTES;
    if (!enter(session, ns, resp_session_word(session, count - 1)))
        return refuse_key(out);
    resp_add_simple(out, "OK");
    return JOURNAL_GO_ON;
}

/* A name as Redis takes it: visible ASCII. */
static bool is_name(struct bytes text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] < '!' || text.data[i] > '~')
            return false;
    return text.size <= RESP_NAME_MOST;
}

static void set_name(char name_r[RESP_NAME_MOST + 1], struct bytes text)
{
    memcpy(name_r, text.data, text.size);
    name_r[text.size] = 0;
}

static void add_pair(struct builder *out, const char *name, struct bytes text)
{
    resp_add_bulk(out, bytes_of(name));
    resp_add_bulk(out, text);
}

static void reply_hello(const struct resp_session *resp, struct builder *out)
{
    resp_add_map(out, resp->version, 7);
    add_pair(out, "server", BYTES("redis"));
    add_pair(out, "version", BYTES(REDIS_VERSION));
    resp_add_bulk(out, BYTES("proto"));
    resp_add_integer(out, resp->version);
    resp_add_bulk(out, BYTES("id"));
    resp_add_integer(out, (int64_t)resp->id);
    add_pair(out, "mode", BYTES("standalone"));
    add_pair(out, "role", BYTES("master"));
    resp_add_bulk(out, BYTES("modules"));
    resp_add_array(out, 0);
}

/* HELLO [version [AUTH namespace key] [SETNAME name]] */
static enum journal_next run_hello(struct journal_session *session, struct builder *out)
{
    struct resp_session *resp = session->resp;
    int64_t version = resp->version;
    struct bytes name = NO_BYTES;
    size_t count = resp_session_count(session), auth = 0;
    if (count > 1 &&
        (!resp_to_integer(resp_session_word(session, 1), &version) || version < 2 || version > 3))
        return resp_session_refuse(out, "NOPROTO unsupported protocol version");
    for (size_t i = 2; i < count; i++) {
        struct bytes word = resp_session_word(session, i);
        if (resp_is(word, "auth") && i + 2 < count) {
            auth = i + 1;
            i += 2;
        } else if (resp_is(word, "setname") && i + 1 < count && is_name(resp_session_word(session, i + 1))) {
            name = resp_session_word(session, ++i);
        } else {
            return refuse_word(out, "ERR Syntax error in HELLO option '%'", word);
        }
    }
    if (auth && !enter(session, resp_session_word(session, auth), resp_session_word(session, auth + 1)))
        return refuse_key(out);
    if (!session->caller.ns.data)
        return resp_session_refuse(
            out, "NOAUTH HELLO must be called with the client already authenticated, otherwise "
                 "the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the "
                 "client and select the RESP protocol version at the same time");
    if (name.data)
        set_name(resp->name, name);
    resp->version = (int)version;
    reply_hello(resp, out);
    return JOURNAL_GO_ON;
}

static enum journal_next run_select(struct journal_session *session, struct builder *out)
{
    struct bytes ns = resp_session_namespace(session, resp_session_word(session, 1));
    bool is_same = ns.data && bytes_equal(ns, session->caller.ns);
    if (!ns.data)
        return resp_session_refuse(out, "ERR DB index is out of range");
    if (!is_same && !journal_keys_enter_other(&session->caller, ns))
        return resp_session_refuse(out, "NOPERM the file of keys has no such key for this namespace");
    if (!is_same)
        resp_listener_free(session->resp);
    resp_add_simple(out, "OK");
    return JOURNAL_GO_ON;
}

/* --- small ones --- */

static enum journal_next run_ping(struct journal_session *session, struct builder *out)
{
    const struct resp_session *resp = session->resp;
    size_t count = resp_session_count(session);
    if (count > 2)
        return refuse_arity(out, "ping");
    struct bytes text = count == 2 ? resp_session_word(session, 1) : BYTES("");
    if (resp->version == 2 && resp->subscription_count) {
        resp_add_array(out, 2);
        add_pair(out, "pong", text);
    } else if (count == 2) {
        resp_add_bulk(out, text);
    } else {
        resp_add_simple(out, "PONG");
    }
    return JOURNAL_GO_ON;
}

static enum journal_next run_echo(struct journal_session *session, struct builder *out)
{
    resp_add_bulk(out, resp_session_word(session, 1));
    return JOURNAL_GO_ON;
}

static enum journal_next run_quit(struct journal_session *session UNUSED, struct builder *out)
{
    resp_add_simple(out, "OK");
    return JOURNAL_CLOSE;
}

/* Clients look here for whether the server is still loading. */
static enum journal_next run_info(struct journal_session *session UNUSED, struct builder *out)
{
    resp_add_bulk(
        out,
        BYTES("# Server\r\nredis_version:" REDIS_VERSION
              "\r\nredis_mode:standalone\r\n# Persistence\r\nloading:0\r\n# Replication\r\nrole:master\r\n"));
    return JOURNAL_GO_ON;
}

/* --- CLIENT --- */

static enum journal_next show_client(const struct journal_session *session, struct builder *out)
{
    const struct resp_session *resp = session->resp;
    char text[RESP_REFUSAL_MOST];
    size_t patterns = 0;
    for (size_t i = 0; i < resp->subscription_count; i++)
        patterns += resp->subscriptions[i].is_pattern;
    int size = snprintf(text, sizeof text,
                        "id=%llu name=%s db=%d sub=%zu psub=%zu resp=%d lib-name=%s lib-ver=%s user=%.*s\n",
                        (unsigned long long)resp->id, resp->name, resp_session_database(session),
                        resp->subscription_count - patterns, patterns, resp->version, resp->library,
                        resp->library_version, (int)session->caller.ns.size,
                        session->caller.ns.data ? session->caller.ns.data : "");
    resp_add_bulk(out, (struct bytes){text, (size_t)size});
    return JOURNAL_GO_ON;
}

static enum journal_next name_client(char name_r[RESP_NAME_MOST + 1], struct bytes name, struct builder *out)
{
    if (!is_name(name))
        return resp_session_refuse(out,
                                   "ERR a name has at most 64 characters, without spaces and special ones");
    set_name(name_r, name);
    resp_add_simple(out, "OK");
    return JOURNAL_GO_ON;
}

static enum journal_next run_client(struct journal_session *session, struct builder *out)
{
    struct resp_session *resp = session->resp;
    struct bytes word = resp_session_word(session, 1);
    size_t count = resp_session_count(session);
    if (resp_is(word, "setname") && count == 3)
        return name_client(resp->name, resp_session_word(session, 2), out);
    if (resp_is(word, "setinfo") && count == 4 && resp_is(resp_session_word(session, 2), "lib-name"))
        return name_client(resp->library, resp_session_word(session, 3), out);
    if (resp_is(word, "setinfo") && count == 4 && resp_is(resp_session_word(session, 2), "lib-ver"))
        return name_client(resp->library_version, resp_session_word(session, 3), out);
    if (!session->caller.ns.data)
        return resp_session_refuse(out, "NOAUTH Authentication required.");
    if (resp_is(word, "getname") && count == 2 && !*resp->name)
        return resp_session_reply_null(session, out);
    if (resp_is(word, "getname") && count == 2)
        resp_add_bulk(out, bytes_of(resp->name));
    else if (resp_is(word, "id") && count == 2)
        resp_add_integer(out, (int64_t)resp->id);
    else if (resp_is(word, "info") && count == 2)
        return show_client(session, out);
    else
        return refuse_word(out, "ERR unknown subcommand or wrong number of arguments for 'client|%'", word);
    return JOURNAL_GO_ON;
}

/* --- COMMAND --- */

static void describe_command(const struct resp_command *command, const struct resp_session *resp,
                             struct builder *out)
{
    static const struct {
        unsigned flag;
        const char *word;
    } words[] = {{WRITES, "write"}, {READS, "readonly"}, {OF_STRANGERS, "no-auth"}, {OF_LISTENERS, "pubsub"}};
    size_t count = 0;
    if (!command) {
        resp_add_null(out, resp->version);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(words); i++)
        count += (command->flags & words[i].flag) != 0;
    resp_add_array(out, 6);
    resp_add_bulk(out, bytes_of(command->name));
    resp_add_integer(out, command->arity);
    resp_add_array(out, count);
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (command->flags & words[i].flag)
            resp_add_simple(out, words[i].word);
    resp_add_integer(out, command->first);
    resp_add_integer(out, command->last);
    resp_add_integer(out, command->step);
}

/* COMMAND, COMMAND COUNT, LIST, INFO, and DOCS, which are empty: the page has them. */
static enum journal_next run_command(struct journal_session *session, struct builder *out)
{
    const struct resp_session *resp = session->resp;
    size_t count = resp_session_count(session);
    struct bytes word = count > 1 ? resp_session_word(session, 1) : BYTES("info");
    bool is_list = resp_is(word, "list") && count == 2;
    if (resp_is(word, "count") && count == 2) {
        resp_add_integer(out, COUNT_OF(commands));
    } else if (resp_is(word, "docs")) {
        resp_add_map(out, resp->version, 0);
    } else if (resp_is(word, "info") && count > 2) {
        resp_add_array(out, count - 2);
        for (size_t i = 2; i < count; i++)
            describe_command(find_command(resp_session_word(session, i)), resp, out);
    } else if (is_list || resp_is(word, "info")) {
        resp_add_array(out, COUNT_OF(commands));
        for (size_t i = 0; i < COUNT_OF(commands); i++)
            if (is_list)
                resp_add_bulk(out, bytes_of(commands[i].name));
            else
                describe_command(&commands[i], resp, out);
    } else {
        return refuse_word(out, "ERR unknown subcommand or wrong number of arguments for 'command|%'", word);
    }
    return JOURNAL_GO_ON;
}

/* --- requests --- */

struct resp_session *resp_run_open(void)
{
    static uint64_t last_id;
    struct resp_session *resp = calloc(1, sizeof *resp);
    if (!resp)
        log_fatal("out of memory accepting a connection");
    resp->version = 2;
    resp->id = ++last_id;
    resp_next(&resp->reader);
    return resp;
}

void resp_run_close(struct resp_session *resp)
{
    if (!resp)
        return;
    resp_listener_free(resp);
    resp_free(&resp->reader);
    free(resp);
}

/* What browsers send, whoever makes them: a page must not reach the daemon through them. */
static bool is_of_browser(const struct resp_reader *reader)
{
    return reader->is_line && reader->count &&
           (resp_is(resp_word(reader, 0), "post") || resp_is(resp_word(reader, 0), "host:"));
}

enum resp_reading resp_run_read(struct journal_session *session, struct bytes bytes, size_t *used_r,
                                struct builder *out)
{
    struct resp_reader *reader = &session->resp->reader;
    size_t word = (size_t)session->settings->limit_content_bytes;
    struct resp_limits limits = {RESP_WORDS_MOST, word, word + RESP_EXTRA_BYTES};
    char text[RESP_REFUSAL_MOST];
    if (!session->caller.ns.data)
        limits = (struct resp_limits){STRANGER_WORDS, STRANGER_BYTES, STRANGER_BYTES * 2};
    enum resp_reading reading = resp_read(reader, bytes, &limits);
    *used_r = reading == RESP_WHOLE ? reader->at : 0;
    if (reading == RESP_WHOLE && is_of_browser(reader))
        return RESP_MALFORMED;
    if (reading == RESP_MALFORMED) {
        snprintf(text, sizeof text, "ERR Protocol error: %s", reader->problem);
        resp_add_error(out, text);
    }
    return reading;
}

static enum journal_next resp_run_run(struct journal_session *session, struct builder *out)
{
    const struct resp_session *resp = session->resp;
    int count = (int)resp_session_count(session);
    const struct resp_command *command = count ? find_command(resp_session_word(session, 0)) : NULL;
    if (!count)
        return JOURNAL_GO_ON;
    if (!session->caller.ns.data && !(command && command->flags & OF_STRANGERS))
        return resp_session_refuse(out, "NOAUTH Authentication required.");
    if (!command)
        return refuse_name(session, out);
    if (command->arity > 0 ? count != command->arity : count < -command->arity)
        return refuse_arity(out, command->name);
    if (resp->version == 2 && resp->subscription_count && !(command->flags & OF_LISTENERS))
        return refuse_word(
            out,
            "ERR Can't execute '%': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / PING / QUIT are allowed in "
            "this context",
            bytes_of(command->name));
    return command->run(session, out);
}

enum journal_next resp_run(struct journal_session *session, struct builder *out)
{
    struct resp_reader *reader = &session->resp->reader;
    size_t before = out->size;
    enum journal_next next = resp_run_run(session, out);
    size_t parts = session->resp->done ? session->resp->done : 1; /* what was read is paid for once */
    size_t words = parts > 1 ? 0 : reader->count, bytes = parts > 1 ? 0 : reader->at;
    session->cost +=
        REQUEST_STEPS + (int64_t)(words * WORD_STEPS + (bytes + out->size - before) / STEP_BYTES);
    return next;
}

bool resp_run_is_secret(const struct journal_session *session)
{
    const struct resp_reader *reader = &session->resp->reader;
    return reader->count > 1 &&
           (resp_is(resp_word(reader, 0), "auth") || resp_is(resp_word(reader, 0), "hello"));
}

size_t resp_run_memory(const struct resp_session *resp)
{
    return resp ? sizeof *resp + resp->reader.capacity * sizeof *resp->reader.places +
                      resp->reader.line.capacity
                : 0;
}
