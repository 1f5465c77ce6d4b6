#include "operation/sync.h"
