#include "document/stamps.h"
