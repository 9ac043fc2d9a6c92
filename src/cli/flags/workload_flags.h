#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "nets/network.h"
#include "src/cli/flags/cli11.h"
#include "src/cli/flags/optimizer_flags.h"
#include "src/io/onnx/import_onnx.h"
#include "src/program/step.h"
#include "src/train/checkpoint/state.h"

namespace spillway::cli {

/// A network that a user names.
struct OpenedNetwork {
  nets::CatalogueEntry entry;
  /// What of an ONNX file is not in the entry: its trained numbers. Null of other networks. Shared
  /// with whoever takes these from it.
  std::shared_ptr<const ImportedNetwork> imported;
};

/// A built-in network, or that of a network file or of an ONNX file, which is read once. Throws:
/// um::Error as nets::open_network(), read_onnx() and import_onnx() do.
[[nodiscard]] OpenedNetwork open_named_network(const std::string& name);

/// The trained numbers of an ONNX file; with `has_new_head` without those of the last layer where
/// they are of another number of classes. What is returned throws as fill_array() does. Requires:
/// it is an ONNX file's.
[[nodiscard]] TensorSource onnx_weights(const OpenedNetwork& network, bool has_new_head);

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
[[nodiscard]] CLI::Validator image_side();

/// The flags that say what is computed: --net, --batch, --optimizer and what changes the
/// network.
struct WorkloadFlags {
  std::string net;
  std::size_t batch = 0;
  NetworkSizeFlags sizes;  ///< 10 classes by default, but a file's or a vocabulary's own
  bool auxiliary_heads = false;
  std::optional<float> dropout;  ///< default: the network's
  std::string convolution_algorithm = "auto";
  std::string attention = "auto";
  OptimizerFlags optimizer;
  double average_decay = 0;         ///< 0: there is no average
  std::vector<std::string> frozen;  ///< patterns of layers' names
  float label_smoothing = 0;

  void add_to(CLI::App& app);

  /// Builds it, or reads it from its file. Throws: um::Error when that is not possible, or the
  /// image too small.
  [[nodiscard]] nets::Network network() const;
  /// The same of what open_named_network() has read of --net. Throws: likewise.
  [[nodiscard]] nets::Network network(const nets::CatalogueEntry& entry) const;
  [[nodiscard]] StepOptions step() const;
  /// --label-smoothing, which neither plans nor times depend on.
  void add_smoothing_to(CLI::App& app, const char* group);
};

/// Throws: um::Error when `name` is a file's, to which --aux-heads does not apply.
void expect_built_in(const std::string& name);

/// A check of CLI11's: the name of a network. A file passes unread: a broken one is no bad usage.
[[nodiscard]] std::string check_network(const std::string& name);

}  // namespace spillway::cli
