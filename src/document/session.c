#include "document/session.h"
