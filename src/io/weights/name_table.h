#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/io/safetensors.h"

namespace spillway {

/// The library whose names a file of weights has.
enum class WeightSource { kHuggingFace, kTorchvision };

/// "Hugging Face", "torchvision"
[[nodiscard]] std::string to_string(WeightSource source);

/// How a file has an array of ours.
enum class TensorForm {
  kSame,
  kTransposed,  ///< (in, out) of our (out, in)
  kInOne,       ///< (1, ...): one dimension more
  kInTwo        ///< (1, 1, ...)
};

/// Names of ours and of a file, by name_pattern.h. A file has a `theirs` with a list of three as
/// the queries, keys and values that our array has one after the other; a list of two are gates and
/// what they let through, one half each.
struct NameRule {
  std::string ours;
  std::string theirs;
  TensorForm form = TensorForm::kSame;
};

/// A rule of names that both have.
[[nodiscard]] inline NameRule same_name(const std::string& name) { return {name, name}; }

/// A tensor that has the numbers of another. Where it is missing, that one stands for it.
struct Tie {
  std::string name;
  std::string other;
};

/// Another spelling of a name, by name_pattern.h.
struct OtherSpelling {
  std::string found;
  std::string meant;
};

/// What the user may do about a tensor whose extent `dimension` is not the network's.
struct SizeHint {
  std::string name;
  std::size_t dimension = 0;
  std::string advice;  ///< "{}" stands for the extent in the file
};

/// What files of one library call the parameters of one kind of network. All names of theirs are
/// those of the whole model.
struct NameTable {
  WeightSource source = WeightSource::kHuggingFace;
  std::string network;          ///< "GPT-2"
  std::string mark;             ///< an array of ours that each network of this kind has
  std::string prefix;           ///< that files of the model without its head leave out
  std::vector<NameRule> rules;  ///< the first that matches counts
  std::vector<Tie> ties;
  std::vector<OtherSpelling> spellings;
  std::vector<std::string> passed_over;  ///< by name_pattern.h: what a file may have beside
  std::vector<SizeHint> hints;
  std::string obstacle;  ///< why this very network has no counterpart there; mostly empty
};

/// "torchvision's ResNet"
[[nodiscard]] std::string title(const NameTable& table);

/// All tables there are, for a network with these arrays: names of some depend on them.
[[nodiscard]] std::vector<NameTable> all_name_tables(std::span<const StoredTensor> arrays);

/// Which networks there are tables of, for sentences.
inline constexpr const char* kNetworksWithNames =
    "gpt2..., gpt:..., llama:..., bert-... and vit-... have Hugging Face's, and resnet..., vgg..., "
    "densenet..., googlenet, inception-v3, squeezenet and vit-... have torchvision's";

/// Names of one form: '#' stands for digits and '*' for any characters, at least one of each, as in
/// "h.#.ln_#.*". Of a list in braces, "{q,k}_proj", names have one of its words.

/// What stands for the '#' and '*' of `pattern`, which has no list, in `name`, in order; nothing
/// where the name has another form, or is longer than any name of a network.
[[nodiscard]] std::optional<std::vector<std::string>> match_name(std::string_view pattern,
                                                                 std::string_view name);

/// `pattern` with `parts` for its '#' and '*', in order. Requires: as many as it has, or more.
[[nodiscard]] std::string fill_name(std::string_view pattern, std::span<const std::string> parts);

/// The patterns of which `pattern` is one, with each word of its list; itself where it has none.
[[nodiscard]] std::vector<std::string> each_word_of(const std::string& pattern);

}  // namespace spillway
