#include "src/io/weights/weight_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "src/io/weights/model_files.h"
#include "src/io/weights/name_table.h"
#include "src/io/weights/tensor_places.h"
#include "um/error.h"
#include "um/text/wording.h"

namespace spillway {
namespace {

constexpr std::size_t kNoTensor = std::numeric_limits<std::size_t>::max();

// Returns "fc" for "fc.weight".
std::string layer_of(const std::string& array) { return array.substr(0, array.rfind('.')); }

std::string respelt(const NameTable& table, const std::string& name) {
  for (const OtherSpelling& spelling : table.spellings) {
    if (const auto parts = match_name(spelling.found, name)) {
      return fill_name(spelling.meant, *parts);
    }
  }
  return name;
}

bool is_known(const NamedTensors& named, const std::string& name) {
  return named.names.contains(name) ||
         std::ranges::any_of(
             named.table.passed_over,
             [&](const std::string& pattern) { return match_name(pattern, name).has_value(); }) ||
         std::ranges::find(named.table.ties, name, &Tie::name) != named.table.ties.end();
}

// Returns the table's name for the tensor `name` of a file.
std::string name_of_table(const NamedTensors& named, const std::string& name, bool is_bare) {
  if (is_bare) {
    std::string whole = respelt(named.table, named.table.prefix + name);
    if (is_known(named, whole)) return whole;
  }
  return respelt(named.table, name);
}

std::string advice_for(const NameTable& table, const TensorPlace& place,
                       const std::vector<std::size_t>& found) {
  for (const SizeHint& hint : table.hints) {
    if (hint.name != place.name || found.size() != place.shape.size()) continue;
    const std::size_t extent = found[hint.dimension];
    if (extent == place.shape[hint.dimension]) continue;
    return "; " + fmt::format(fmt::runtime(hint.advice), extent);
  }
  return "";
}

NamedTensors choose_names(std::span<const StoredTensor> arrays, const std::string& network,
                          WeightSource source) {
  const std::vector<NamedTensors> all = named_tensors(arrays);
  if (all.empty()) throw without_names(network);
  for (const NamedTensors& named : all) {
    if (named.table.source != source) continue;
    if (named.table.obstacle.empty()) return named;
    throw other_network_there(network, named.table);
  }
  throw um::Error{"network " + network + " has no names of " + to_string(source) +
                  "'s; it has those of " + title(all.front().table)};
}

// Returns the array `name`, or its average if that is wanted and exists.
std::size_t find_array(const SafetensorsReader& checkpoint, const std::string& name,
                       ExportedState state) {
  std::optional<std::size_t> found;
  if (state == ExportedState::kAverages) found = checkpoint.find(average_of(name));
  if (!found) found = checkpoint.find(name);
  return found.value();
}

}  // namespace

WeightFile::WeightFile(const std::filesystem::path& path, NamedNetwork network, bool has_new_head)
    : path_{path}, network_{std::move(network)}, file_{path}, has_new_head_{has_new_head} {
  for (std::size_t i = 0; i < network_.arrays.size(); ++i)
    arrays_.emplace(network_.arrays[i].name, i);
  choose_names();
  find_places();
  expect_nothing_else();
  expect_ties();
  expect_finite();
}

std::string WeightFile::description() const { return title(named_.table); }

void WeightFile::choose_names() {
  const std::vector<NamedTensors> all = named_tensors(network_.arrays);
  if (all.empty()) throw without_names(network_.name);
  for (const NamedTensors& named : all) {
    const bool has_bare_names = !named.table.prefix.empty();
    if (!take_names(named, false) && !(has_bare_names && take_names(named, true))) continue;
    named_ = named;
    if (named_.table.obstacle.empty()) return;
    throw other_network_there(network_.name, named_.table);
  }
  throw of_another_network(file_, path_, network_.name, all.front());
}

// Returns whether the file has these names; `is_bare`: without the table's prefix.
bool WeightFile::take_names(const NamedTensors& named, bool is_bare) {
  by_name_.clear();
  std::string twice;
  for (std::size_t i = 0; i < file_.tensors().size(); ++i) {
    const std::string& name = file_.tensors()[i].name;
    const auto [at, is_new] = by_name_.emplace(name_of_table(named, name, is_bare), i);
    if (is_new || !twice.empty()) continue;
    twice = um::quoted(file_.tensors()[at->second].name) + " and " + um::quoted(name);
  }
  if (!by_name_.contains(named.mark(network_.arrays).name)) return false;
  if (twice.empty()) return true;
  throw um::Error{"tensors " + twice + " of " + path_.string() + " are the same one's names"};
}

bool WeightFile::is_of_new_head(const TensorPlace& place) const {
  return has_new_head_ &&
         layer_of(network_.arrays[place.array].name) == layer_of(network_.arrays.back().name);
}

void WeightFile::find_places() {
  for (const TensorPlace& place : named_.places) {
    auto found = by_name_.find(place.name);
    const auto tie = std::ranges::find(named_.table.ties, place.name, &Tie::name);
    if (found == by_name_.end() && tie != named_.table.ties.end()) {
      found = by_name_.find(tie->other);
    }
    if (is_of_new_head(place) &&
        (found == by_name_.end() || file_.tensors()[found->second].shape != place.shape)) {
      drawn_layer_ = layer_of(network_.arrays[place.array].name);
      tensors_.push_back(kNoTensor);
      continue;
    }
    if (found == by_name_.end()) {
      throw um::Error{path_.string() + " has no tensor " + um::quoted(place.name) +
                      ", which network " + network_.name + " needs" + advice_on_parts(path_)};
    }
    const StoredTensor& tensor = file_.tensors()[found->second];
    if (tensor.shape != place.shape) {
      throw um::Error{"tensor " + um::quoted(tensor.name) + " of " + path_.string() + " is " +
                      shape_text(tensor.shape) + ", but network " + network_.name + " has " +
                      shape_text(place.shape) + " there" +
                      advice_for(named_.table, place, tensor.shape)};
    }
    tensors_.push_back(found->second);
  }
}

void WeightFile::expect_nothing_else() const {
  for (const auto& [name, index] : by_name_) {
    if (is_known(named_, name)) continue;
    throw um::Error{path_.string() + " has a tensor " + um::quoted(file_.tensors()[index].name) +
                    ", which network " + network_.name + " does not have"};
  }
}

// Checks tied tensors: the network has one array where the file may have two.
void WeightFile::expect_ties() const {
  for (const Tie& tie : named_.table.ties) {
    const auto one = by_name_.find(tie.name);
    const auto other = by_name_.find(tie.other);
    if (one == by_name_.end() || other == by_name_.end() || named_.names.contains(tie.name))
      continue;
    const auto& [a, b] = std::pair{one->second, other->second};
    if (file_.tensors()[a].shape == file_.tensors()[b].shape && values(a) == values(b)) continue;
    throw um::Error{"tensors " + um::quoted(file_.tensors()[a].name) + " and " +
                    um::quoted(file_.tensors()[b].name) + " of " + path_.string() +
                    " differ, but network " + network_.name + " has one for both"};
  }
}

void WeightFile::expect_finite() const {
  for (const std::size_t tensor : tensors_) {
    if (tensor == kNoTensor || is_finite(values(tensor))) continue;
    throw um::Error{"tensor " + um::quoted(file_.tensors()[tensor].name) + " of " + path_.string() +
                    " " + kNotFinite};
  }
}

std::vector<float> WeightFile::values(std::size_t tensor) const {
  std::vector<float> numbers(element_count(file_.tensors()[tensor].shape));
  file_.read(tensor, numbers);
  return numbers;
}

void WeightFile::read(const std::string& name, std::span<float> numbers) const {
  if (!drawn_layer_.empty() && layer_of(name) == drawn_layer_) return;
  const auto array = arrays_.find(name);
  um::expects(array != arrays_.end(), "an array of the network");
  const std::vector<TensorPlace>& places = named_.places;
  const auto first = std::ranges::lower_bound(places, array->second, {}, &TensorPlace::array);
  for (auto at = first; at != places.end() && at->array == array->second; ++at) {
    const TensorPlace& place = *at;
    const std::size_t tensor = tensors_[static_cast<std::size_t>(at - places.begin())];
    const std::span<float> part = numbers.subspan(place.begin, element_count(place.shape));
    if (place.is_transposed) {
      transpose(values(tensor), place.shape[1], part);
    } else {
      file_.read(tensor, part);
    }
  }
}

ExportedWeights export_weights(const SafetensorsReader& checkpoint, const std::string& network,
                               const ExportOptions& options, const std::filesystem::path& file) {
  std::vector<StoredTensor> arrays = checkpoint.tensors();
  std::erase_if(
      arrays, [&](const StoredTensor& tensor) { return is_kept_beside(tensor.name, checkpoint); });
  const NamedTensors named = choose_names(arrays, network, options.source);
  std::vector<StoredTensor> tensors;
  for (const TensorPlace& place : named.places) {
    tensors.push_back({.name = place.name, .shape = place.shape});
  }
  SafetensorsWriter writer{file, tensors, {{"format", "pt"}}};  // transformers need it
  std::vector<float> array;
  for (const TensorPlace& place : named.places) {
    if (place.begin == 0) {  // the first part of the array
      const std::size_t index = find_array(checkpoint, arrays[place.array].name, options.state);
      array.resize(element_count(arrays[place.array].shape));
      checkpoint.read(index, array);
    }
    const std::span<const float> part =
        std::span{array}.subspan(place.begin, element_count(place.shape));
    if (place.is_transposed) {
      std::vector<float> turned(part.size());
      transpose(part, place.shape[0], turned);
      writer.append(turned);
    } else {
      writer.append(part);
    }
  }
  writer.commit();
  return {.title = title(named.table), .tensors = tensors.size()};
}

}  // namespace spillway
