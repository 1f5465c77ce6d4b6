#include "operation/registry.h"
