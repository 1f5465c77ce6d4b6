/* stamp-spool: puts requests into a spool, and shows what is there (stamp-spool(1)). */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "line_input.h"
#include "spool/stampd_spool.h"
#include "spool_print.h"

#define FOLDER_DEFAULT "/var/spool/stampd"
#define STAMP_MOST     INT64_C(991231235959999)
enum {
    STATUS_DONE,
    STATUS_FAILED,
    STATUS_USAGE,
    STATUS_UNKNOWN,
    LIST_MOST = 1000,
    SEGMENT_LEAST = 128,
    LINES_MOST = 1000 /* that are put together */
};

struct wish {
    const char *folder;
    bool is_written, is_dead, has_lines;
    bool is_many; /* of retry: those that the code and the time choose */
    const char *code;
    int64_t since_ms;
    struct stampd_spool_limits limits;
    struct stampd_spool_request request;
    int64_t most;
    char **words;
    int count;
};

static int stamp_spool_complain(const char *what, int error)
{
    const char *words =
        error == EBADMSG     ? "it is damaged"
        : error == EDQUOT    ? "the spool is full (limit_bytes)"
        : error == EPERM     ? "everybody may write to the folder"
        : error == ETIMEDOUT ? "a process that does not run holds a lock of the spool; nothing was done"
        : error == ENOTSUP   ? "the spool has the format of an earlier version: forward it with that "
                               "version, then create it again"
                             : strerror(error);
    fprintf(stderr, "stamp-spool: %s: %s\n", what, words);
    return STATUS_FAILED;
}

static void stamp_spool_print_help(void)
{
    puts("Usage: stamp-spool create [options]\n"
         "       stamp-spool put [options] NAMESPACE OPERATION [PARAM]\n"
         "       stamp-spool put --lines [options] NAMESPACE OPERATION\n"
         "       stamp-spool list [options]\n"
         "       stamp-spool show [options] NUMBER\n"
         "       stamp-spool drop [options] NUMBER\n"
         "       stamp-spool retry [options] NUMBER\n"
         "       stamp-spool retry [options] --all | --code CODE | --since TIME\n"
         "Hands requests over to a durable spool, from which stamp-forward sends them to stampd.\n"
         "\n"
         "  -s, --spool FOLDER     The spool (default: $STAMPD_SPOOL, else " FOLDER_DEFAULT ").\n"
         "  -d, --dead             list, show, drop: the records that were refused for good.\n"
         "  -n, --limit NUMBER     list: at most so many records (default: 1000; 0: the summary only).\n"
         "\n"
         "Of put, which returns when the request is on disk and prints its number; PARAM is a JSON object, "
         "or\n"
         "- to read it from standard input:\n"
         "  -l, --lines            Put one request for each line of standard input, its PARAM; many share a\n"
         "                         wait for the disk, and their numbers are printed then.\n"
         "      --resource NAME    Of an operation at most one task waits for a resource.\n"
         "      --domain NAME      Tasks of a domain run one at a time, in order.\n"
         "      --strict           In the domain, in the order in which they were put.\n"
         "      --priority NUMBER  0 to 255, smaller is sooner (default: 20).\n"
         "      --start STAMP      Not before: yymmddhhmmssmmm, UTC.\n"
         "      --info TEXT        Words by which administrators find the task.\n"
         "      --traceparent TEXT, --tracestate TEXT  Headers of the W3C's Trace Context, for the task.\n"
         "      --written          Return when the kernel has it: a failure of power may lose it.\n"
         "\n"
         "Of retry, which prints the new numbers of the records that it puts again:\n"
         "      --all              All that were refused for good.\n"
         "      --code CODE        Those whose reason begins with this code.\n"
         "      --since TIME       Those that were put since: yyyy-mm-dd[Thh:mm[:ss]], UTC.\n"
         "\n"
         "Of create:\n"
         "      --segment-bytes NUMBER, --limit-bytes NUMBER  Of a file; of all (default: 4 MiB, 1 GiB).\n"
         "\n"
         "      --version          Show the version and exit.\n"
         "  -h, --help             Show this and exit." BUG_LINE);
}

/* --- commands --- */

static int read_next(struct stampd_spool *spool, bool is_dead, uint64_t after,
                     struct stampd_spool_record *record, const char **reason)
{
    *reason = NULL;
    return is_dead ? stampd_spool_next_dead(spool, after, record, reason)
                   : stampd_spool_next(spool, after, record);
}

static int stamp_spool_list(struct stampd_spool *spool, const struct wish *wish)
{
    struct stampd_spool_state state;
    struct stampd_spool_record record;
    const char *reason;
    uint64_t after = 0;
    int error = stampd_spool_read_state(spool, &state);
    if (error)
        return stamp_spool_complain(wish->folder, error);
    printf("{\"id\":\"");
    spool_print_series(state.id);
    printf("\",\"waiting\":%" PRIu64 ",\"dead\":%" PRIu64 ",\"oldest_ms\":%" PRId64 ",\"last\":%" PRIu64
           ",\"bytes\":%" PRIu64 ",\"limit_bytes\":%" PRIu64 ",\"forwarder\":%s}\n",
           state.waiting, state.dead, state.oldest_ms, state.last, state.bytes, state.limit_bytes,
           state.is_forwarded ? "true" : "false");
    for (int64_t i = 0; i < wish->most; i++) {
        error = read_next(spool, wish->is_dead, after, &record, &reason);
        if (error == EAGAIN)
            break;
        if (error == EBADMSG)
            spool_print_damage(&record, reason);
        else if (error)
            return stamp_spool_complain(wish->folder, error);
        else
            spool_print_record(&record, reason, false);
        after = record.sequence;
    }
    return STATUS_DONE;
}

static int stamp_spool_read_number(const char *text, uint64_t *number_r)
{
    char *end;
    errno = 0;
    *number_r = strtoull(text, &end, 10);
    return errno || end == text || *end || *text == '-' || !*number_r ? EINVAL : 0;
}

/* The record that the first word names; 0, EBADMSG: it is damaged, or ENOENT. */
static int stamp_spool_find(struct stampd_spool *spool, const struct wish *wish, bool is_dead,
                            struct stampd_spool_record *record, const char **reason)
{
    uint64_t number;
    if (stamp_spool_read_number(wish->words[0], &number))
        return ENOENT;
    int error = read_next(spool, is_dead, number - 1, record, reason);
    bool is_it =
        error == EBADMSG ? record->first <= number && number <= record->sequence : record->sequence == number;
    return error == EAGAIN || ((!error || error == EBADMSG) && !is_it) ? ENOENT : error;
}

static int refuse_number(const struct wish *wish, int error)
{
    if (error != ENOENT)
        return stamp_spool_complain(wish->words[0], error);
    fprintf(stderr, "stamp-spool: %s: no record has this number\n", wish->words[0]);
    return STATUS_FAILED;
}

static int stamp_spool_show(struct stampd_spool *spool, const struct wish *wish)
{
    struct stampd_spool_record record;
    const char *reason;
    int error = stamp_spool_find(spool, wish, wish->is_dead, &record, &reason);
    if (error && error != EBADMSG)
        return refuse_number(wish, error);
    if (error)
        spool_print_damage(&record, reason);
    else
        spool_print_record(&record, reason, true);
    return STATUS_DONE;
}

static int stamp_spool_drop(struct stampd_spool *spool, const struct wish *wish)
{
    struct stampd_spool_record record;
    const char *reason;
    int error = stamp_spool_find(spool, wish, wish->is_dead, &record, &reason);
    if (error && error != EBADMSG)
        return refuse_number(wish, error);
    const struct stampd_spool_range range = {error ? record.first : record.sequence, record.sequence};
    error = wish->is_dead ? stampd_spool_drop_dead(spool, record.sequence)
                          : stampd_spool_acknowledge(spool, &range, 1);
    return error ? stamp_spool_complain(wish->words[0], error) : STATUS_DONE;
}

/* After EIO the record may be there. */
static int complain_of_put(const char *what, int error)
{
    if (error != EIO)
        return stamp_spool_complain(what, error);
    fprintf(stderr,
            "stamp-spool: %s: it is not known whether the request was stored: the disk has failed, or a "
            "process that synchronises does not run\n",
            what);
    return STATUS_UNKNOWN;
}

/* Put first: after a death between the two it is there twice, never not at all. */
static int put_again(struct stampd_spool *spool, const struct stampd_spool_record *record)
{
    char name[24];
    uint64_t sequence, number = record->sequence;
    snprintf(name, sizeof name, "%" PRIu64, number);
    int error = stampd_spool_put(spool, &record->request, &sequence);
    if (error)
        return complain_of_put(name, error);
    error = stampd_spool_drop_dead(spool, number);
    if (error)
        return stamp_spool_complain(name, error);
    printf("%" PRIu64 "\n", sequence);
    return STATUS_DONE;
}

static bool is_wished(const struct wish *wish, const struct stampd_spool_record *record, const char *reason)
{
    size_t size = wish->code ? strlen(wish->code) : 0;
    bool has_code = !wish->code || (strncmp(reason, wish->code, size) == 0 && reason[size] == ':');
    return has_code && record->time_ms >= wish->since_ms;
}

/* In their order, without those that a forwarder makes meanwhile of what is put again. */
static int retry_many(struct stampd_spool *spool, const struct wish *wish)
{
    struct stampd_spool_state state;
    struct stampd_spool_record record;
    const char *reason;
    int error = stampd_spool_read_state(spool, &state), status = STATUS_DONE;
    for (uint64_t after = 0; !error && status == STATUS_DONE; after = record.sequence) {
        error = stampd_spool_next_dead(spool, after, &record, &reason);
        if (record.sequence > state.last)
            break;
        if (error == EBADMSG) {
            fprintf(stderr, "stamp-spool: retry: %" PRIu64 " is damaged and stays\n", record.sequence);
            error = 0;
        } else if (!error && is_wished(wish, &record, reason)) {
            status = put_again(spool, &record);
        }
    }
    return error && error != EAGAIN ? stamp_spool_complain(wish->folder, error) : status;
}

static int retry(struct stampd_spool *spool, const struct wish *wish)
{
    struct stampd_spool_record record;
    const char *reason;
    if (!wish->count)
        return retry_many(spool, wish);
    int error = stamp_spool_find(spool, wish, true, &record, &reason);
    return error ? refuse_number(wish, error) : put_again(spool, &record);
}

/* Of one that stampd_spool_put has refused: EINVAL, or EMSGSIZE for what is too long. */
static int complain_of(const char *command, const struct stampd_spool_request *request, int error)
{
    const struct {
        const char *name, *text;
    } texts[] = {{"NAMESPACE", request->ns},
                 {"OPERATION", request->operation},
                 {"--resource", request->resource},
                 {"--domain", request->domain},
                 {"--info", request->info},
                 {"--traceparent", request->traceparent},
                 {"--tracestate", request->tracestate}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *text = texts[i].text ? texts[i].text : "-";
        if (*text && strlen(text) <= STAMPD_SPOOL_TEXT_MOST)
            continue;
        fprintf(stderr, "stamp-spool: %s: %s: a text of 1 to %d bytes is expected\n", command, texts[i].name,
                STAMPD_SPOOL_TEXT_MOST);
        return STATUS_FAILED;
    }
    if (request->is_strict && !request->domain)
        fprintf(stderr, "stamp-spool: %s: --strict needs a --domain\n", command);
    else if (error == EMSGSIZE)
        fprintf(stderr, "stamp-spool: %s: PARAM is longer than %d bytes\n", command, STAMPD_SPOOL_PARAM_MOST);
    else
        fprintf(stderr, "stamp-spool: %s: PARAM is not a JSON object\n", command);
    return STATUS_FAILED;
}

static char *read_input(size_t *size_r)
{
    char *text = malloc(STAMPD_SPOOL_PARAM_MOST + 1);
    *size_r = text ? fread(text, 1, STAMPD_SPOOL_PARAM_MOST + 1, stdin) : 0;
    return text;
}

static int refuse_put(const char *command, const struct stampd_spool_request *request, int error)
{
    return error == EINVAL || error == EMSGSIZE ? complain_of(command, request, error)
                                                : complain_of_put(command, error);
}

/* Of the first line that is not stored; after a failure of the disk, of all that may be. */
static int refuse_lines(const struct stampd_spool_request *request, uint64_t first, uint64_t last, int error)
{
    char place[96];
    if (error == EIO)
        snprintf(place, sizeof place, "put: lines %" PRIu64 " to %" PRIu64 " may be stored, or not", first,
                 last);
    else
        snprintf(place, sizeof place, "put: line %" PRIu64, first);
    return refuse_put(place, request, error);
}

/* Puts these lines with one wait, and prints the numbers of those that are stored. */
static int put_together(struct stampd_spool *spool, const struct wish *wish,
                        const struct stampd_spool_request *requests, size_t count, uint64_t line)
{
    struct stampd_spool_range stored;
    int error = stampd_spool_append(spool, requests, count, &stored);
    size_t done = (size_t)(stored.last + 1 - stored.first);
    if (!wish->is_written && stampd_spool_wait(spool, &stored))
        return refuse_lines(requests, line, line + (error == EIO ? count : done) - 1, EIO);
    for (uint64_t number = stored.first; number <= stored.last; number++)
        printf("%" PRIu64 "\n", number);
    if (fflush(stdout))
        return stamp_spool_complain("standard output", errno);
    return error ? refuse_lines(&requests[done], line + done, line + count - 1, error) : STATUS_DONE;
}

static int put_lines(struct stampd_spool *spool, const struct wish *wish, struct stampd_spool_request request)
{
    struct line_input input;
    struct stampd_spool_request *requests = calloc(LINES_MOST, sizeof *requests);
    int error = line_input_open(&input, STDIN_FILENO, STAMPD_SPOOL_PARAM_MOST),
        status = error || !requests ? stamp_spool_complain("put", ENOMEM) : STATUS_DONE;
    for (uint64_t line = 1; status == STATUS_DONE;) {
        size_t count = 0;
        while (count < LINES_MOST && line_input_take(&input, &request.param, &request.param_size))
            requests[count++] = request;
        if (count)
            status = put_together(spool, wish, requests, count, line);
        else if (!line_input_read(&input))
            break;
        line += count;
    }
    if (status == STATUS_DONE && input.error)
        status = stamp_spool_complain("standard input", input.error);
    line_input_close(&input);
    free(requests);
    return status;
}

static int stamp_spool_put(struct stampd_spool *spool, const struct wish *wish)
{
    struct stampd_spool_request request = wish->request;
    uint64_t sequence;
    char *input = NULL;
    request.ns = wish->words[0];
    request.operation = wish->words[1];
    if (wish->has_lines)
        return put_lines(spool, wish, request);
    if (wish->count > 2 && strcmp(wish->words[2], "-") == 0) {
        request.param = input = read_input(&request.param_size);
    } else if (wish->count > 2) {
        request.param = wish->words[2];
        request.param_size = strlen(request.param);
    }
    int error = stampd_spool_put(spool, &request, &sequence);
    free(input);
    if (error)
        return refuse_put("put", &request, error);
    printf("%" PRIu64 "\n", sequence);
    return STATUS_DONE;
}

/* --- options --- */

enum {
    OPTION_RESOURCE = 256,
    OPTION_DOMAIN,
    OPTION_STRICT,
    OPTION_PRIORITY,
    OPTION_START,
    OPTION_INFO,
    OPTION_TRACEPARENT,
    OPTION_TRACESTATE,
    OPTION_WRITTEN,
    OPTION_SEGMENT,
    OPTION_LIMIT,
    OPTION_ALL,
    OPTION_CODE,
    OPTION_SINCE,
    OPTION_VERSION
};
static const struct option known[] = {
    {"spool", required_argument, NULL, 's'},
    {"dead", no_argument, NULL, 'd'},
    {"limit", required_argument, NULL, 'n'},
    {"lines", no_argument, NULL, 'l'},
    {"resource", required_argument, NULL, OPTION_RESOURCE},
    {"domain", required_argument, NULL, OPTION_DOMAIN},
    {"strict", no_argument, NULL, OPTION_STRICT},
    {"priority", required_argument, NULL, OPTION_PRIORITY},
    {"start", required_argument, NULL, OPTION_START},
    {"info", required_argument, NULL, OPTION_INFO},
    {"traceparent", required_argument, NULL, OPTION_TRACEPARENT},
    {"tracestate", required_argument, NULL, OPTION_TRACESTATE},
    {"written", no_argument, NULL, OPTION_WRITTEN},
    {"segment-bytes", required_argument, NULL, OPTION_SEGMENT},
    {"limit-bytes", required_argument, NULL, OPTION_LIMIT},
    {"all", no_argument, NULL, OPTION_ALL},
    {"code", required_argument, NULL, OPTION_CODE},
    {"since", required_argument, NULL, OPTION_SINCE},
    {"version", no_argument, NULL, OPTION_VERSION},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static bool set_number(const char *name, const char *text, int64_t least, int64_t most, int64_t *number_r)
{
    char *end;
    errno = 0;
    *number_r = strtoll(text, &end, 10);
    if (!errno && end != text && !*end && *number_r >= least && *number_r <= most)
        return true;
    fprintf(stderr, "stamp-spool: --%s: a number from %" PRId64 " to %" PRId64 " is expected\n", name, least,
            most);
    return false;
}

static bool set_time(struct wish *wish, const char *text)
{
    static const char *const forms[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tm time = {0};
        const char *end = strptime(text, forms[i], &time);
        if (!end || *end)
            continue;
        wish->since_ms = (int64_t)timegm(&time) * 1000;
        return true;
    }
    fputs("stamp-spool: --since: yyyy-mm-dd, yyyy-mm-ddThh:mm or yyyy-mm-ddThh:mm:ss is expected\n", stderr);
    return false;
}

/* False: it is wrong. */
static bool set_option(struct wish *wish, int option, const char *value)
{
    int64_t number;
    switch (option) {
    case OPTION_PRIORITY:
        if (!set_number("priority", value, 0, 255, &number))
            return false;
        wish->request.priority = (int)number;
        return true;
    case OPTION_START:
        return set_number("start", value, 0, STAMP_MOST, &wish->request.start);
    case OPTION_SEGMENT:
        return set_number("segment-bytes", value, SEGMENT_LEAST, INT64_MAX, &number) &&
               (wish->limits.segment_bytes = (uint64_t)number);
    case OPTION_LIMIT:
        return set_number("limit-bytes", value, SEGMENT_LEAST, INT64_MAX, &number) &&
               (wish->limits.limit_bytes = (uint64_t)number);
    case 'n':
        return set_number("limit", value, 0, INT64_MAX, &wish->most);
    case OPTION_ALL:
        wish->is_many = true;
        return true;
    case OPTION_CODE:
        wish->is_many = true;
        wish->code = value;
        return true;
    case OPTION_SINCE:
        wish->is_many = true;
        return set_time(wish, value);
    case OPTION_RESOURCE:
        wish->request.resource = value;
        return true;
    case OPTION_DOMAIN:
        wish->request.domain = value;
        return true;
    case OPTION_INFO:
        wish->request.info = value;
        return true;
    case OPTION_TRACEPARENT:
        wish->request.traceparent = value;
        return true;
    case OPTION_TRACESTATE:
        wish->request.tracestate = value;
        return true;
    case OPTION_STRICT:
        wish->request.is_strict = 1;
        return true;
    case OPTION_WRITTEN:
        wish->is_written = true;
        return true;
    case 's':
        wish->folder = value;
        return true;
    case 'd':
        wish->is_dead = true;
        return true;
    case 'l':
        wish->has_lines = true;
        return true;
    default: /* getopt has reported the error */
        return false;
    }
}

static int stamp_spool_run(const struct wish *wish,
                           int (*command)(struct stampd_spool *, const struct wish *))
{
    struct stampd_spool *spool;
    int error = stampd_spool_open(wish->folder,
                                  wish->is_written ? STAMPD_SPOOL_WRITTEN : STAMPD_SPOOL_DURABLE, &spool);
    if (error == ENOENT)
        fprintf(stderr, "stamp-spool: %s: it is no spool (stamp-spool create makes one)\n", wish->folder);
    if (error)
        return error == ENOENT ? STATUS_FAILED : stamp_spool_complain(wish->folder, error);
    int status = command(spool, wish);
    stampd_spool_close(spool);
    if (fflush(stdout))
        status = stamp_spool_complain("standard output", errno);
    return status;
}

static int choose(const char *name, struct wish *wish)
{
    static const struct {
        const char *name;
        int least, most;
        int (*run)(struct stampd_spool *, const struct wish *);
    } commands[] = {{"put", 2, 3, stamp_spool_put},   {"list", 0, 0, stamp_spool_list},
                    {"show", 1, 1, stamp_spool_show}, {"drop", 1, 1, stamp_spool_drop},
                    {"retry", 0, 1, retry},           {"create", 0, 0, NULL}};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(name, commands[i].name) != 0)
            continue;
        if (wish->count < commands[i].least || wish->count > commands[i].most - wish->has_lines)
            break;
        if (wish->is_many ? commands[i].run != retry || wish->count
                          : commands[i].run == retry && !wish->count)
            break;
        if (commands[i].run)
            return stamp_spool_run(wish, commands[i].run);
        int error = stampd_spool_create(wish->folder, &wish->limits);
        if (error == EINVAL) {
            fprintf(stderr, "stamp-spool: create: --limit-bytes is less than --segment-bytes\n");
            return STATUS_USAGE;
        }
        return error ? stamp_spool_complain(wish->folder, error) : STATUS_DONE;
    }
    fprintf(stderr, "stamp-spool: wrong usage (--help)\n");
    return STATUS_USAGE;
}

int main(int argc, char **argv)
{
    const char *folder = getenv("STAMPD_SPOOL");
    struct wish wish = {
        .folder = folder ? folder : FOLDER_DEFAULT, .request = STAMPD_SPOOL_REQUEST, .most = LIST_MOST};
    for (int option; (option = getopt_long(argc, argv, "s:dn:lh", known, NULL)) != -1;) {
        if (option == OPTION_VERSION || option == 'h') {
            if (option == 'h')
                stamp_spool_print_help();
            else
                puts("stamp-spool " PACKAGE_VERSION);
            return fflush(stdout) ? STATUS_FAILED : STATUS_DONE;
        }
        if (!set_option(&wish, option, optarg))
            return STATUS_USAGE;
    }
    const char *name = optind < argc ? argv[optind] : "";
    wish.words = argv + optind + 1;
    wish.count = argc - optind - 1;
    return choose(name, &wish);
}
