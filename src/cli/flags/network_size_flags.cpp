#include "src/cli/flags/network_size_flags.h"

#include <CLI/CLI.hpp>
#include <string>

#include "nets/shape.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

CLI::Range class_count() { return {std::size_t{2}, nets::kLargestWidth}; }

}  // namespace

void NetworkSizeFlags::add_to(CLI::App& app, const std::string& group,
                              const std::string& usual_classes) {
  const auto add = [&](const char* name, auto& value, const std::string& help, CLI::Range range) {
    CLI::Option* const option = app.add_option(name, value, help)->check(range);
    if (!group.empty()) option->group(group);
  };
  add("--image-size", image_size, "Height and width of the images (default: the network's)",
      image_side());
  add("--classes", classes, "Number of classes of images (default: " + usual_classes + ")",
      class_count());
  add("--sequence-length", sequence_length, "Tokens of each text (default: the network's)",
      {std::size_t{1}, nets::kLongestSequence});
  add("--vocabulary", vocabulary, "Number of tokens there are (default: the network's)",
      class_count());
}

nets::NetworkOptions NetworkSizeFlags::changes_of(const nets::CatalogueEntry& entry) const {
  const bool is_text = reads_text(entry);
  const auto refuse = [&](bool is_given, const std::string& flag, const std::string& instead) {
    if (!is_given) return;
    throw um::Error{"network " + entry.name + " reads " + (is_text ? "text" : "images") + "; use " +
                    instead + " instead of " + flag};
  };
  refuse(is_text && image_size > 0, "--image-size", "--sequence-length");
  refuse(is_text && classes, "--classes", "--vocabulary");
  refuse(!is_text && sequence_length > 0, "--sequence-length", "--image-size");
  refuse(!is_text && vocabulary, "--vocabulary", "--classes");
  return fitting_changes_of(entry);
}

nets::NetworkOptions NetworkSizeFlags::fitting_changes_of(const nets::CatalogueEntry& entry) const {
  nets::NetworkOptions changes;
  if (reads_text(entry)) {
    if (sequence_length > 0) changes.image = nets::tokens(sequence_length);
    changes.classes = vocabulary;
    return changes;
  }
  if (image_size > 0) {
    changes.image = entry.image;
    changes.image->height = changes.image->width = image_size;
  }
  changes.classes = classes;
  return changes;
}

bool reads_text(const nets::CatalogueEntry& entry) {
  return entry.image.form == nets::Form::kTokens;
}

CLI::Range image_side() { return {std::size_t{1}, nets::kLargestSide}; }

}  // namespace spillway::cli
