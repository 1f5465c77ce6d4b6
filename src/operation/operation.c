#include "operation/operation.h"
