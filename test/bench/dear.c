/* dear: makes each answer of lone a little dearer, as a change could that nobody looks at. */
#include "base/builder.h"
#include "http/response.h"

enum { ROUNDS = 300 }; /* some 600 instructions: a thirtieth of a cached read */

void __real_response_compose(const struct response_form *form, struct reply *reply, struct builder *head);
void __wrap_response_compose(const struct response_form *form, struct reply *reply, struct builder *head);

void __wrap_response_compose(const struct response_form *form, struct reply *reply, struct builder *head)
{
    for (volatile int round = 0; round < ROUNDS; round++)
        ;
    __real_response_compose(form, reply, head);
}
