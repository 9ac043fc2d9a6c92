#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/io/safetensors.h"

namespace spillway {

/// The library that defines the names in a file of weights.
enum class WeightSource { kHuggingFace, kTorchvision };

/// Returns "Hugging Face" or "torchvision".
[[nodiscard]] std::string to_string(WeightSource source);

/// The layout of one of our arrays in a file.
enum class TensorForm {
  kSame,
  kTransposed,  ///< (in, out) instead of (out, in)
  kInOne,       ///< (1, ...): one dimension more
  kInTwo        ///< (1, 1, ...): two dimensions more
};

/// Maps our names to a file's, both in the patterns below. A `theirs` with a list of three has
/// queries, keys and values, which our array concatenates. A list of two has the gates and the
/// values that they gate, one half each.
struct NameRule {
  std::string ours;
  std::string theirs;
  TensorForm form = TensorForm::kSame;
};

/// A rule for a name that is the same in both.
[[nodiscard]] inline NameRule same_name(const std::string& name) { return {name, name}; }

/// A tensor with the same numbers as another, which replaces it if it is missing.
struct Tie {
  std::string name;
  std::string other;
};

/// Another spelling of a name, both in the patterns below.
struct OtherSpelling {
  std::string found;
  std::string meant;
};

/// Advice for the user when the extent `dimension` of a tensor differs from the network's.
struct SizeHint {
  std::string name;
  std::size_t dimension = 0;
  std::string advice;  ///< "{}" stands for the extent in the file
};

/// Names that one library gives to the parameters of one kind of network. Their names are those of
/// the whole model, with its head.
struct NameTable {
  WeightSource source = WeightSource::kHuggingFace;
  std::string network;          ///< "GPT-2"
  std::string mark;             ///< one of our arrays that each network of this kind has
  std::string prefix;           ///< files of the model without its head omit it
  std::vector<NameRule> rules;  ///< the first match counts
  std::vector<Tie> ties;
  std::vector<OtherSpelling> spellings;
  std::vector<std::string> passed_over;  ///< patterns of tensors to ignore
  std::vector<SizeHint> hints;
  std::string obstacle;  ///< why this network has no counterpart there; usually empty
};

/// Returns "torchvision's ResNet".
[[nodiscard]] std::string title(const NameTable& table);

/// Returns the tables of names that transformers' save_pretrained() writes, one per kind of
/// network.
[[nodiscard]] std::vector<NameTable> hugging_face_names();

/// Returns the tables of names in torchvision's state_dict(), one per kind of network. VGG's names
/// depend on the layers of `arrays`.
[[nodiscard]] std::vector<NameTable> torchvision_names(std::span<const StoredTensor> arrays);

/// Returns all tables for a network with these arrays: some names depend on them.
[[nodiscard]] std::vector<NameTable> all_name_tables(std::span<const StoredTensor> arrays);

/// The networks that have tables, for messages.
inline constexpr const char* kNetworksWithNames =
    "gpt2..., gpt:..., llama:..., bert-... and vit-... have Hugging Face's, and resnet..., vgg..., "
    "densenet..., googlenet, inception-v3, squeezenet and vit-... have torchvision's";

/// Name patterns: '#' stands for digits and '*' for any characters, at least one each, as in
/// "h.#.ln_#.*". A list in braces, "{q,k}_proj", stands for any one of its words.

/// Returns the parts of `name` that '#' and '*' of `pattern` match, in order. Nothing if it does
/// not match or is longer than any network's name. Requires: a pattern without a list.
[[nodiscard]] std::optional<std::vector<std::string>> match_name(std::string_view pattern,
                                                                 std::string_view name);

/// Returns `pattern` with `parts` in place of its '#' and '*', in order. Requires: at least as many
/// parts as it has.
[[nodiscard]] std::string fill_name(std::string_view pattern, std::span<const std::string> parts);

/// Expands the list of `pattern` into one pattern per word. Returns the pattern itself if it has
/// none.
[[nodiscard]] std::vector<std::string> each_word_of(const std::string& pattern);

}  // namespace spillway
