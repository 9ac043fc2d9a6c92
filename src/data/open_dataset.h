#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/data/dataset.h"

namespace spillway {

/// What the network that learns from a data set is made for.
struct DatasetOptions {
  nets::Shape image;  ///< images come resized to this
  std::size_t classes = 0;
  std::size_t batch = 1;                  ///< images a step: there must be as many to learn from
  std::uint64_t seed = 0;                 ///< of drawn images
  nets::Extent labels = nets::square(1);  ///< of an image: one, or one for each pixel
};

/// What a user may type, each form with what it means: "synthetic (generated images), ...".
[[nodiscard]] std::string dataset_forms();

/// Looks at what a user types and at no file. Throws: um::Error for an unknown kind of data set, or
/// when it lacks its folder.
void expect_data_set(std::string_view spec);

/// Opens what a user types: one of dataset_forms(), such as "idx:DIR". Images come resized and
/// standardised.
/// Throws: um::Error for an unknown kind, missing or broken files, labels that the network has no
/// class for, other labels than the network's, or too few images for a batch.
[[nodiscard]] DatasetPair open_dataset(std::string_view spec, const DatasetOptions& options);

}  // namespace spillway
