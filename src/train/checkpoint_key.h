#pragma once

#include <cstdint>
#include <string>

#include "nets/network.h"
#include "src/train/checkpoint.h"

namespace spillway {

/// A data set as the user named it, and what it is known by.
struct IdentifiedData {
  std::string name;
  std::string sha256;  ///< content_sha256()
};

[[nodiscard]] CheckpointKey make_key(const nets::Network& network, IdentifiedData data,
                                     std::uint64_t batch, std::uint64_t seed);

}  // namespace spillway
