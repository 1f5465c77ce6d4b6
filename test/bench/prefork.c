/* prefork: an empty FastCGI responder as libfcgi's examples show it: a loop of FCGX_Accept_r in each process.
 */
#include "test/bench/responder.h"

#include <fcgiapp.h>

static void serve(int listener, const struct responder_answer *answer)
{
    FCGX_Request request;
    if (FCGX_Init() || FCGX_InitRequest(&request, listener, 0))
        return;
    while (FCGX_Accept_r(&request) == 0) {
        FCGX_PutStr(answer->head.data, (int)answer->head.size, request.out);
        FCGX_PutStr(answer->body.data, (int)answer->body.size, request.out);
        FCGX_Finish_r(&request);
    }
}

int main(int argc, char **argv)
{
    return responder_main(argc, argv, true, serve);
}
