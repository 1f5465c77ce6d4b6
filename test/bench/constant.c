/* constant: stampd whose answer is always the same bytes, those of the file named in STAMPD_BENCH_ANSWER.
 *
 * The anchor of the benchmarks: main, master, worker, FastCGI and the composing of the head are stampd's own,
 * from the same library; what lies between is replaced when the program is linked (--wrap).  `constant` has
 * no request_read and no route_run: nothing is parsed, looked up or computed.  `parsed` keeps
 * request_read, so that what parsing costs is seen. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "operation/worker_context.h"
#include "operation/reply.h"
#include "serve/route.h"
#include "http/request.h"
#include "http/request_id.h"

enum fault __wrap_request_read(const struct settings *settings, struct arena *arena,
                               const struct request_source *source, struct builder *body,
                               struct request *request_r, struct reply *reply);
void __wrap_route_run(struct worker_context *worker_context, struct call *call, struct reply *reply);

static struct bytes answer;

/* Before main: still with the rights of who started it. */
__attribute__((constructor)) static void read_answer(void)
{
    const char *path = getenv("STAMPD_BENCH_ANSWER");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    struct stat status = {0};
    char *data = fd >= 0 && !fstat(fd, &status) ? malloc((size_t)status.st_size + 1) : NULL;
    if (!data || read(fd, data, (size_t)status.st_size) != status.st_size) {
        fprintf(stderr, "constant: STAMPD_BENCH_ANSWER must name a file that can be read\n");
        exit(EXIT_FAILURE);
    }
    close(fd);
    answer = (struct bytes){data, (size_t)status.st_size};
}

/* The head is to have as many bytes as stampd's, so what stands in it is taken; the body is taken off the
 * wire. */
enum fault __wrap_request_read(const struct settings *settings, struct arena *arena,
                               const struct request_source *source, struct builder *body,
                               struct request *request_r, struct reply *reply UNUSED)
{
    struct bytes token = source->parameter(source->context, BYTES("STAMPD_TOKEN"));
    int64_t size = 0;
    request_r->form = (struct response_form){
        .request_id = token.size ? request_id_make(arena, token) : NULL,
        .build = settings->build,
    };
    request_r->call = (struct call){
        .arena = arena,
        .route = CALL_OPERATION,
        .request_id = request_r->form.request_id,
        .deadline_ms = clock_monotonic_ms() + settings->limit_operation_s * 1000,
    };
    return source->read_body(source->context, (size_t)settings->limit_body_bytes, body, &size);
}

void __wrap_route_run(struct worker_context *worker_context UNUSED, struct call *call UNUSED,
                      struct reply *reply)
{
    reply->fault = FAULT_NONE;
    reply->argument_count = 0;
    reply->detail = NULL;
    reply->mime = "application/json";
    builder_add_bytes(reply->body, answer);
}
