#pragma once

#include "prefetch/files/json.h"

namespace spillway {

/// Checks that a file of "spillway-bench" has what a report reads, in the types it expects; members
/// that the report does not know may be there. Throws: um::Error that names the place.
void check_bench(const prefetch::JsonView& root);

}  // namespace spillway
