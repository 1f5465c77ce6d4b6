#include "document/cache.h"
