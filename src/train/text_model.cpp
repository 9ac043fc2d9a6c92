#include "src/train/text_model.h"

#include "nets/text/network_file.h"
#include "src/io/text/byte_pairs.h"

namespace spillway {

std::optional<KeptTextModel> text_model_of(const nets::Network& network,
                                           const std::string& tokenizer) {
  if (!network.reads_text()) return std::nullopt;
  return KeptTextModel{
      .network = nets::to_text(network),
      .byte_pairs = tokenizer.empty() ? std::string{} : read_byte_pairs(tokenizer).sha256};
}

}  // namespace spillway
