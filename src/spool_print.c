/* spool_print: what stamp-spool prints about records: JSON, a line each. */
#include "spool_print.h"

#include <inttypes.h>
#include <stdio.h>

static void print_text(const char *text)
{
    putchar('"');
    for (const unsigned char *byte = (const unsigned char *)text; *byte; byte++)
        if (*byte == '"' || *byte == '\\')
            printf("\\%c", *byte);
        else if (*byte < ' ' || *byte == 127)
            printf("\\u%04x", *byte);
        else
            putchar(*byte);
    putchar('"');
}

static void print_member(const char *name, const char *text)
{
    if (!text)
        return;
    printf(",\"%s\":", name);
    print_text(text);
}

void spool_print_series(const unsigned char *series)
{
    for (int i = 0; i < STAMPD_SPOOL_ID_BYTES; i++)
        printf("%02x", series[i]);
}

void spool_print_record(const struct stampd_spool_record *record, const char *reason, bool has_param)
{
    const struct stampd_spool_request *request = &record->request;
    printf("{\"number\":%" PRIu64 ",\"series\":\"", record->sequence);
    spool_print_series(record->series);
    printf("\",\"put\":%" PRId64, record->time_ms);
    print_member("ns", request->ns);
    print_member("op", request->operation);
    print_member("resource", request->resource);
    print_member("domain", request->domain);
    print_member("info", request->info);
    printf(",\"priority\":%d", request->priority);
    if (request->start)
        printf(",\"start\":%" PRId64, request->start);
    if (request->is_strict)
        printf(",\"order\":\"strict\"");
    print_member("traceparent", request->traceparent);
    print_member("tracestate", request->tracestate);
    print_member("reason", reason);
    printf(",\"bytes\":%zu", record->body_size);
    if (has_param)
        printf(",\"param\":%.*s", request->param ? (int)request->param_size : 2,
               request->param ? request->param : "{}");
    puts("}");
}

void spool_print_damage(const struct stampd_spool_record *record, const char *reason)
{
    printf("{\"number\":%" PRIu64 ",\"damaged\":true,\"from\":%" PRIu64, record->sequence, record->first);
    print_member("reason", reason && *reason ? reason : NULL);
    printf(",\"bytes\":%zu}\n", record->body_size);
}
