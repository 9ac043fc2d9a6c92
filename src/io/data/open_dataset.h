#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "nets/network.h"
#include "src/io/data/dataset.h"
#include "src/io/data/image_folder.h"
#include "src/io/data/token_dataset.h"

namespace spillway {

/// The requirements of the network that learns from a data set.
struct DatasetOptions {
  nets::Shape image;        ///< images are resized to this; a text has `height` tokens
  std::size_t classes = 0;  ///< for a text, tokens of the vocabulary
  std::size_t batch = 1;    ///< images a step; training needs at least as many
  std::uint64_t seed = 0;   ///< for random images, window positions and masks
  nets::Extent labels = nets::square(1);  ///< labels of an image: one, or one per pixel or token
  Objective objective = Objective::kNextToken;  ///< for a text
  std::string tokenizer;  ///< folder of byte pairs for "text:FILE"; empty: bytes are tokens
  ImageOptions images;    ///< for "images:DIR"
};

/// Returns the requirements of `network` with batches of `batch`.
[[nodiscard]] DatasetOptions dataset_options(const nets::Network& network, std::size_t batch,
                                             std::uint64_t seed);

/// Lists the forms of a data set that a user may type, with meanings: "synthetic (generated), ...".
[[nodiscard]] std::string dataset_forms();

/// Checks what a user typed without looking at files. Throws: um::Error for an unknown kind of data
/// set, or when its folder or file is missing from the text.
void expect_data_set(std::string_view spec);

/// Opens the data set that a user typed: one of dataset_forms(), such as "idx:DIR". Images are
/// resized and standardised.
/// Throws: um::Error for an unknown kind, missing or broken files, too few images for a batch,
/// images for a network of texts (or the reverse), more classes than the network's, or another
/// number of labels per image.
[[nodiscard]] DatasetPair open_dataset(std::string_view spec, const DatasetOptions& options);

/// Returns whether ImageOptions apply to what a user typed.
[[nodiscard]] bool is_image_folder(std::string_view spec);
/// Number of classes of a folder of images, found without opening its files. Nothing for other data
/// sets. Throws: as open_dataset() does for classes.
[[nodiscard]] std::optional<std::size_t> classes_of(std::string_view spec);

/// Opens `files`, one text file or two, "TRAIN,TEST". Tokens are bytes, or with `tokenizer` the
/// byte-pair encoding of that folder. The mask is the last token of the vocabulary, whatever `task`
/// says. Throws: um::Error for missing or broken files, tokens outside the network's vocabulary, or
/// too few tokens.
[[nodiscard]] DatasetPair open_text(std::string_view files, const std::string& tokenizer,
                                    TokenTask task);

/// Opens `files` of token numbers, one or two as in open_text(). Throws: as open_text().
[[nodiscard]] DatasetPair open_tokens(std::string_view files, const TokenTask& task);

/// Opens the four files of MNIST's format in `folder`, plain or packed with gzip (.gz). Images are
/// grey and all of one size. Packed files are unpacked into memory.
/// `classes` is the network's.
/// Throws: um::Error that names the missing or wrong file and says what is wrong.
[[nodiscard]] DatasetPair open_idx(const std::filesystem::path& folder, std::size_t classes);

/// Opens the binary version of CIFAR-10 (Krizhevsky, 2009): data_batch_1.bin to data_batch_5.bin
/// and test_batch.bin in `folder`. `classes` is the network's, at least ten. Throws: um::Error that
/// names the missing or wrong file and says what is wrong.
[[nodiscard]] DatasetPair open_cifar10(const std::filesystem::path& folder, std::size_t classes);

}  // namespace spillway
