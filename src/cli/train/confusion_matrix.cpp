#include "src/cli/train/confusion_matrix.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <string>

#include "src/cli/flags/output_path.h"
#include "um/error.h"

namespace spillway::cli {

void expect_confusion_matrix_of(const nets::Network& network) {
  if (!network.reads_text() && network.labels() == nets::square(1)) return;
  throw um::Error{"--confusion is of images with one label each, and a sample of network " +
                  network.name + " has several; leave it out"};
}

void write_confusion_matrix(std::span<const std::uint64_t> confusion, const std::string& path) {
  const auto classes =
      static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(confusion.size()))));
  std::string text = "label";
  for (std::size_t c = 0; c < classes; ++c) text += fmt::format(",{}", c);
  text += '\n';
  for (std::size_t label = 0; label < classes; ++label) {
    const auto row = confusion.subspan(label * classes, classes);
    text += fmt::format("{},{}\n", label, fmt::join(row, ","));
  }
  write_text(text, path);
}

}  // namespace spillway::cli
