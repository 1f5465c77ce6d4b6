/* wrong: a module that is refused, for the reason that the compiler is told: -DWRONG_<reason>. */
#include <stampd.h>

static enum stampd_outcome work(struct stampd_call *call)
{
    return stampd_result_json(call, stampd_bytes("1", 1));
}

#ifdef WRONG_START
static enum stampd_outcome fail(void)
{
    stampd_log(STAMPD_ERROR, "no heart to start");
    return STAMPD_FAULT;
}
#endif

#ifdef WRONG_OPERATION
#define OPERATION "put"
#else
#define OPERATION "Wrong"
#endif
static const struct stampd_operation operations[] = {{.name = OPERATION, .work = work}, {.name = NULL}};

#ifdef WRONG_SYMBOL
const struct stampd_module wrong_module = {
#else
const struct stampd_module stampd_module = {
#endif
#ifdef WRONG_ABI
    .abi = STAMPD_ABI + 1000,
#else
    .abi = STAMPD_ABI,
#endif
    .name = "wrong",
    .version = "1.0",
    .operations = operations,
#ifdef WRONG_START
    .worker_start = fail,
#endif
};

#ifdef WRONG_CALL
void stampd_no_such_function(void);
void (*const wrong_call)(void) = stampd_no_such_function;
#endif
