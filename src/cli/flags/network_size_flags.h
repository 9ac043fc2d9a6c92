#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "nets/families/network_catalogue.h"
#include "src/cli/flags/cli11.h"

namespace spillway::cli {

/// The flags that change what a network reads and what it tells apart: --image-size and --classes
/// of images, --sequence-length and --vocabulary of texts.
struct NetworkSizeFlags {
  std::size_t image_size = 0;             ///< 0: the network's own
  std::size_t sequence_length = 0;        ///< 0: the network's own
  std::optional<std::size_t> classes;     ///< of images
  std::optional<std::size_t> vocabulary;  ///< of texts

  /// In a group of this name, which may be empty: in none. `usual_classes` says what
  /// --classes is by default.
  void add_to(CLI::App& app, const std::string& group, const std::string& usual_classes);

  /// What they change of a network. Throws: um::Error for those of images where it reads text, and
  /// the other way round.
  [[nodiscard]] nets::NetworkOptions changes_of(const nets::CatalogueEntry& entry) const;
  /// Likewise; those that do not apply are passed over.
  [[nodiscard]] nets::NetworkOptions fitting_changes_of(const nets::CatalogueEntry& entry) const;
};

/// Whether a network reads text: tokens, and not images.
[[nodiscard]] bool reads_text(const nets::CatalogueEntry& entry);

/// A check of CLI11's: a side of an image.
[[nodiscard]] CLI::Range image_side();

}  // namespace spillway::cli
