/* cmd_host: `stampctl host`: the hosts that hold records together (sql/0025_hosts.sql). */
#include "control/control.h"

#include <stdio.h>
#include <string.h>

#include "control/message.h"
#include "control/ns/ns_registry.h"
#include "control/record.h"

/* A function of the database that returns why it has done nothing; null: it is done. */
static bool host_change(struct control *control, const char *what, const char *sql,
                        const struct pg_params *params)
{
    struct pg *z;
    struct pg_result *row;
    if (!ns_registry_open(control, &z) || !control_query(control, z, what, sql, params, &row))
        return false;
    struct bytes refusal = pg_get_text(row, 0, 0);
    return refusal.data ? message_refuse("%s: %.*s", what, (int)refusal.size, refusal.data) : true;
}

static int host_add(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "host add", "ADDRESS ENDPOINT FINGERPRINT", "Let a host hold records together with the others.",
        "ADDRESS is the host's cluster_address, as site.rack.host, with as many levels as those of the "
        "others: a key that begins with @1: is searched among the hosts that differ in the last level "
        "only.\nENDPOINT is where the others reach it, as 192.0.2.1:7412.\nFINGERPRINT is that of its key: "
        "stamp-journal writes it to the log when it starts.\n");
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control)};
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    bool is_done = host_change(control, words[0], "select host_add($1, $2, $3)",
                               PG_PARAMS(control->arena, PG_TEXT(bytes_of(words[0])),
                                         PG_TEXT(bytes_of(words[1])), PG_TEXT(bytes_of(words[2]))));
    return is_done ? CONTROL_DONE : CONTROL_FAILED;
}

static int host_remove(struct control *control, int argc, char **argv)
{
    bool is_lost = false;
    static const struct command command =
        COMMAND("host remove", "ADDRESS", "Let a host pass on the records that it has, and go.",
                "It is done when `stampctl host list` does not show the host any more.\n");
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control),
        OPTION_FLAG("lost", &is_lost, "It does not come back: records that it alone has are lost.")};
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    bool is_done = host_change(control, words[0], "select host_remove($1, $2::int = 1)",
                               PG_PARAMS(control->arena, PG_TEXT(bytes_of(words[0])), PG_I32(is_lost)));
    return is_done ? CONTROL_DONE : CONTROL_FAILED;
}

static int host_terms(struct control *control, int argc, char **argv)
{
    int64_t copies = -1, ttl_s = 0;
    static const struct command command =
        COMMAND("host terms", "", "Set or show what all hosts share: copies, and the longest time to live.",
                "They change only while no host takes part.\n");
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control),
        OPTION_NUMBER("copies", "N", &copies, 0, 7, "Copies of each record, beside the record itself."),
        OPTION_NUMBER("ttl", "SECONDS", &ttl_s, 1, 31536000, "The longest time to live of a record.")};
    struct pg *z;
    struct pg_result *row;
    if (!control_begin(control, &command, lines, COUNT_OF(lines), argc, argv))
        return control->status;
    bool is_change = copies >= 0 || ttl_s;
    if (is_change &&
        !host_change(control, "terms", "select host_terms(nullif($1::bigint, -1), nullif($2::bigint, 0))",
                     PG_PARAMS(control->arena, PG_I64(copies), PG_I64(ttl_s))))
        return CONTROL_FAILED;
    if (!ns_registry_open(control, &z) ||
        !control_query(control, z, "terms", "select copies, ttl_s from host_list where one", NULL, &row))
        return CONTROL_FAILED;
    printf("copies %lld, ttl %lld s\n", (long long)pg_get_i64(row, 0, 0), (long long)pg_get_i64(row, 0, 1));
    return CONTROL_DONE;
}

/* --- the list --- */

enum {
    ADDRESS,
    ENDPOINT,
    FINGERPRINT,
    STATE,
    IS_EXHAUSTIVE,
    UNSURE_MS,
    COUNTS /* as count_names has them */
};
static const char *const count_names[] = {
    "records",        "bytes", "memory_bytes", "not_exhaustive_keys", "not_found_keys",
    "missing_copies", "sent",  "received",     "content_bytes"};
enum { RECORDS, BYTES_OF, MISSING = 5 };

static void print_host(const struct pg_result *rows, int row, bool is_json)
{
    struct record record = {0};
    struct bytes address = pg_get_text(rows, row, ADDRESS), endpoint = pg_get_text(rows, row, ENDPOINT),
                 state = pg_get_text(rows, row, STATE);
    bool is_exhaustive = pg_get_bool(rows, row, IS_EXHAUSTIVE);
    if (!is_json) {
        char knows[32] = "all";
        int64_t unsure_ms = pg_get_i64(rows, row, UNSURE_MS);
        if (!is_exhaustive && unsure_ms > 0)
            snprintf(knows, sizeof knows, "in %llds", (long long)(unsure_ms + 999) / 1000);
        else if (!is_exhaustive)
            snprintf(knows, sizeof knows, "not all");
        printf("%-32.*s  %-22.*s  %-7.*s  %-9s  %10lld  %10.1f  %7lld\n", (int)address.size, address.data,
               (int)endpoint.size, endpoint.data, (int)state.size, state.data, knows,
               (long long)pg_get_i64(rows, row, COUNTS + RECORDS),
               (double)pg_get_i64(rows, row, COUNTS + BYTES_OF) / 1e6,
               (long long)pg_get_i64(rows, row, COUNTS + MISSING));
        return;
    }
    record_add_text(&record, "address", address);
    record_add_text(&record, "endpoint", endpoint);
    record_add_text(&record, "fingerprint", pg_get_text(rows, row, FINGERPRINT));
    record_add_text(&record, "state", state);
    record_add_bool(&record, "exhaustive", is_exhaustive);
    record_add_i64(&record, "unsure_ms", pg_get_i64(rows, row, UNSURE_MS));
    for (int i = 0; i < (int)COUNT_OF(count_names); i++)
        record_add_i64(&record, count_names[i], pg_get_i64(rows, row, COUNTS + i));
    record_print(&record);
}

static int host_show(struct control *control, int argc, char **argv)
{
    bool is_json = false;
    struct pg *z;
    struct pg_result *rows;
    static const struct command command = COMMAND(
        "host list", "", "List the hosts that hold records together.",
        "STATE is member, leaving, or away: it takes no part now.\nKNOWS is all when the host can say that a "
        "key is absent; in 30s: it can then at the latest, and before if the others have passed on what they "
        "have.\n"
        "MISSING counts its records of which a copy is missing.\n");
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control),
                                        RECORD_JSON_LINE(&is_json)};
    if (!control_begin(control, &command, lines, COUNT_OF(lines), argc, argv))
        return control->status;
    if (!ns_registry_open(control, &z) ||
        !control_query(
            control, z, "hosts",
            "select address, endpoint, fingerprint, case when number is null then 'away' when "
            "is_leaving then 'leaving' else 'member' end, is_exhaustive, unsure_ms, records, bytes, memory, "
            "doubtful, absent, missing, sent, received, content_bytes from host "
            "order by address",
            NULL, &rows))
        return CONTROL_FAILED;
    if (!is_json)
        printf("%-32s  %-22s  %-7s  %-9s  %10s  %10s  %7s\n", "ADDRESS", "ENDPOINT", "STATE", "KNOWS",
               "RECORDS", "MB", "MISSING");
    for (int row = 0; row < pg_rows(rows); row++)
        print_host(rows, row, is_json);
    return CONTROL_DONE;
}

int control_host(struct control *control, int argc, char **argv)
{
    static const struct choice choices[] = {
        {"add", "Let a host hold records together with the others.", host_add},
        {"list", "List the hosts.", host_show},
        {"remove", "Let a host pass on what it has, and go.", host_remove},
        {"terms", "Set or show copies, and the longest time to live.", host_terms},
    };
    return options_choose("host", "The hosts that hold the records of spread namespaces together.\n", choices,
                          COUNT_OF(choices), control, argc, argv);
}
