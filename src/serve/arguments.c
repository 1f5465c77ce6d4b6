#include "serve/arguments.h"
