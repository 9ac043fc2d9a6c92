#include "src/train/checkpoint_key.h"

#include <utility>

#include "nets/text/network_file.h"
#include "src/io/file_digest.h"

namespace spillway {

CheckpointKey make_key(const nets::Network& network, IdentifiedData data, std::uint64_t batch,
                       std::uint64_t seed) {
  return {.network = network.name + ' ' + nets::to_string(network.input()) + ", " +
                     std::to_string(network.classes()) + " classes",
          .layers = sha256_of(nets::layers_text(network)),
          .data = std::move(data.name),
          .data_sha256 = std::move(data.sha256),
          .batch = batch,
          .seed = seed};
}

}  // namespace spillway
