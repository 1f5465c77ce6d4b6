#include "document/statements.h"
