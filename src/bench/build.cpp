#include "src/bench/build.h"

#include "src/bench/commit.h"  // made by write_commit.cmake

namespace spillway {

std::string build_version() { return SPILLWAY_VERSION; }

std::string build_commit() { return kBuildCommit; }

}  // namespace spillway
