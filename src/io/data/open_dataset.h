#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nets/network.h"
#include "src/io/data/dataset.h"
#include "src/io/data/image_folder.h"
#include "src/io/data/token_dataset.h"

namespace spillway {

/// What the network that learns from a data set is made for.
struct DatasetOptions {
  nets::Shape image;        ///< images come resized to this; of a text, so many tokens
  std::size_t classes = 0;  ///< of a text, tokens of the vocabulary
  std::size_t batch = 1;    ///< images a step: there must be as many to learn from
  std::uint64_t seed = 0;   ///< of what is drawn: images, places of windows, what is masked
  nets::Extent labels = nets::square(1);  ///< of an image: one, or one for each pixel or token
  Objective objective = Objective::kNextToken;  ///< of a text
  std::string tokenizer;  ///< folder of byte pairs for "text:FILE"; empty: bytes are tokens
  ImageOptions images;    ///< of "images:DIR"
};

/// What `network` is made for, in batches of `batch`.
[[nodiscard]] DatasetOptions dataset_options(const nets::Network& network, std::size_t batch,
                                             std::uint64_t seed);

/// What a user may type, each form with what it means: "synthetic (generated), ...".
[[nodiscard]] std::string dataset_forms();

/// Looks at what a user types and at no file. Throws: um::Error for an unknown kind of data set, or
/// when it lacks its folder or file.
void expect_data_set(std::string_view spec);

/// Opens what a user types: one of dataset_forms(), such as "idx:DIR". Images come resized and
/// standardised.
/// Throws: um::Error for an unknown kind, missing or broken files, images for a network of texts or
/// texts for one of images, labels that the network has no class for, other labels than the
/// network's, or too few images for a batch.
[[nodiscard]] DatasetPair open_dataset(std::string_view spec, const DatasetOptions& options);

/// Whether ImageOptions mean something for what a user types.
[[nodiscard]] bool is_image_folder(std::string_view spec);
/// The classes that the files tell of before they are opened: folders of images. Nothing of other
/// data sets. Throws: as open_dataset() does of them.
[[nodiscard]] std::optional<std::size_t> classes_of(std::string_view spec);

/// Opens `files`, a file of text or two, "TRAIN,TEST": bytes as tokens, or with `tokenizer` the
/// tokens of the byte-pair encoding in that folder. Masks are the last token of the vocabulary,
/// whatever `task` says. Throws: um::Error for missing or broken files, tokens that the network's
/// vocabulary has not, or too few of them.
[[nodiscard]] DatasetPair open_text(std::string_view files, const std::string& tokenizer,
                                    TokenTask task);

/// Opens `files`, likewise, of token numbers. Throws: likewise.
[[nodiscard]] DatasetPair open_tokens(std::string_view files, const TokenTask& task);

}  // namespace spillway
