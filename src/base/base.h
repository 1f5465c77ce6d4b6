/* base: attributes and small helpers that every file may use. */
#ifndef STAMPD_BASE_BASE_H
#define STAMPD_BASE_BASE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The caller must use the result. */
#define MUST_USE __attribute__((warn_unused_result))
/* The compiler checks arguments as for printf. */
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
#define NORETURN                 __attribute__((noreturn))
#define UNUSED                   __attribute__((unused))
/* For functions whose call overhead shows in a profile. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Is this a build with AddressSanitizer?  It maps memory of its own and guards each allocation. */
#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_SANITIZED true
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED false
#endif

#ifdef NDEBUG
#error "asserts stay on in production"
#endif

#endif
