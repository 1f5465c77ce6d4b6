#include "serve/worker.h"
