#include "src/data/dataset.h"

#include <vector>

#include "src/files/file_digest.h"
#include "src/files/sha256.h"

namespace spillway {

std::string Dataset::content_sha256() const {
  Sha256 digest;
  std::vector<float> pixels(image().elements());
  std::vector<std::int32_t> numbers(labels_each(*this));
  for (std::size_t i = 0; i < size(); ++i) {
    read(i, pixels);
    labels(i, numbers);
    digest.update(std::as_bytes(std::span{pixels}));
    digest.update(std::as_bytes(std::span{numbers}));
  }
  return digest.hex();
}

std::string content_sha256(const DatasetPair& data) {
  return sha256_of("train " + data.train->content_sha256() + ", test " +
                   data.test->content_sha256());
}

}  // namespace spillway
