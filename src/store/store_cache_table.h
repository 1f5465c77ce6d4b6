/* What a session caches beside its connection: CACHE(NAME). */
/* clang-format off */
CACHE(schema)
CACHE(sealing)
CACHE(searches)
/* clang-format on */
