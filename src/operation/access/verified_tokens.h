/* verified_tokens: tokens of OpenID providers that a worker has verified, and the keys of their issuers.
 *
 * A token is verified once by each worker.  It is remembered by its SHA-256 until it ends, as long as the
 * configuration of the namespace and the keys of the issuer are of the same versions, which the shared
 * segment proves at each request.  Both tables have a constant size; only valid tokens are remembered, so a
 * stranger cannot evict them. */
#ifndef STAMPD_OPERATION_ACCESS_VERIFIED_TOKENS_H
#define STAMPD_OPERATION_ACCESS_VERIFIED_TOKENS_H

#include "operation/call.h"
#include "operation/access/external_token.h"
#include "operation/worker_context.h"

struct verified_tokens;

struct verified_tokens *verified_tokens_create(void) __attribute__((returns_nonnull));
void verified_tokens_destroy(struct verified_tokens *tokens); /* NULL is allowed */

/* Verifies the token in the namespace of the call, whose accounts are known.  The proof's issuer is valid as
 * long as they are. */
MUST_USE enum fault verified_tokens_check(struct worker_context *worker_context, struct call *call, int ns,
                                          struct bytes text, enum token_verdict *verdict_r,
                                          struct external_proof *proof_r);

#endif
