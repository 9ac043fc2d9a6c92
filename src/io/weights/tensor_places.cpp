#include "src/io/weights/tensor_places.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "src/io/weights/name_table.h"
#include "src/ops/optimizers.h"
#include "um/error.h"

namespace spillway {
namespace {

using Shape = std::vector<std::size_t>;

// Returns the rows of each of the `count` tensors that form an array of this shape; nothing if they
// do not divide evenly. There are as many query rows as a token has numbers.
std::optional<Shape> rows_of_parts(const Shape& shape, std::size_t count) {
  const std::size_t rows = shape.front();
  if (count == 1) return Shape{rows};
  if (count == 2) return rows % 2 == 0 ? std::optional{Shape{rows / 2, rows / 2}} : std::nullopt;
  const std::size_t queries = shape.size() == 1 ? rows / 3 : shape.back();
  if (queries >= rows || (rows - queries) % 2 != 0) return std::nullopt;
  return Shape{queries, (rows - queries) / 2, (rows - queries) / 2};
}

Shape in_form(Shape shape, TensorForm form) {
  if (form == TensorForm::kTransposed) std::ranges::reverse(shape);
  if (form == TensorForm::kInOne) shape.insert(shape.begin(), 1);
  if (form == TensorForm::kInTwo) shape.insert(shape.begin(), 2, 1);
  return shape;
}

// Appends the tensors of array `index`; returns false if `rule` does not apply.
bool add_places(const NameRule& rule, const StoredTensor& array, std::size_t index,
                std::vector<TensorPlace>& places) {
  const auto parts = match_name(rule.ours, array.name);
  if (!parts || array.shape.empty()) return false;
  if (rule.form == TensorForm::kTransposed && array.shape.size() != 2) return false;
  const std::vector<std::string> patterns = each_word_of(rule.theirs);
  const auto rows = rows_of_parts(array.shape, patterns.size());
  if (!rows) return false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    Shape shape = array.shape;
    shape.front() = (*rows)[i];
    const std::size_t count = element_count(shape);
    places.push_back({.name = fill_name(patterns[i], *parts),
                      .shape = in_form(std::move(shape), rule.form),
                      .array = index,
                      .begin = begin,
                      .is_transposed = rule.form == TensorForm::kTransposed});
    begin += count;
  }
  return true;
}

std::optional<std::vector<TensorPlace>> places_of(const NameTable& table,
                                                  std::span<const StoredTensor> arrays) {
  std::vector<TensorPlace> places;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const bool has_rule = std::ranges::any_of(
        table.rules, [&](const NameRule& rule) { return add_places(rule, arrays[i], i, places); });
    if (!has_rule) return std::nullopt;
  }
  return places;
}

constexpr std::string_view kAverage = ".average";

// Returns true for "exp_avg" and other names of optimizer state (Step's StateBlock).
bool is_optimizer_state(std::string_view name) {
  return std::ranges::any_of(optimizers(), [&](const Optimizer& optimizer) {
    return std::visit(
        [&]<class Rule>(const Rule& /*rule*/) {
          return std::ranges::count(Rule::kStates, name, &StateTensor::name) > 0;
        },
        optimizer.defaults);
  });
}

// Splits "conv1.weight" into "conv1" and ".weight".
struct ArrayName {
  explicit ArrayName(const std::string& name)
      : block{name.substr(0, name.rfind('.'))}, suffix{name.substr(block.size())} {}
  std::string block;
  std::string suffix;
};

}  // namespace

std::size_t element_count(std::span<const std::size_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies{});
}

const TensorPlace& NamedTensors::mark(std::span<const StoredTensor> arrays) const {
  const auto found = std::ranges::find_if(
      places, [&](const TensorPlace& place) { return arrays[place.array].name == table.mark; });
  um::expects(found != places.end(), "a network with the array that marks it");
  return *found;
}

std::vector<NamedTensors> named_tensors(std::span<const StoredTensor> arrays) {
  std::vector<NamedTensors> all;
  for (NameTable& table : all_name_tables(arrays)) {
    if (std::ranges::find(arrays, table.mark, &StoredTensor::name) == arrays.end()) continue;
    auto places = places_of(table, arrays);
    if (!places) continue;
    std::set<std::string> names;
    for (const TensorPlace& place : *places) names.insert(place.name);
    if (names.size() < places->size()) continue;  // the library's networks lack some layers
    all.push_back(
        {.table = std::move(table), .places = *std::move(places), .names = std::move(names)});
  }
  return all;
}

void transpose(std::span<const float> from, std::size_t columns, std::span<float> to) {
  um::expects(from.size() == to.size(), "as many numbers transposed");
  const std::size_t rows = columns == 0 ? 0 : from.size() / columns;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      to[column * rows + row] = from[row * columns + column];
    }
  }
}

std::string average_of(const std::string& array) {
  const ArrayName name{array};
  return name.block + std::string{kAverage} + name.suffix;
}

bool is_kept_beside(const std::string& name, const SafetensorsReader& checkpoint) {
  const ArrayName parts{name};
  const std::size_t layer = std::min(parts.block.rfind('.'), parts.block.size());
  const std::string kept = parts.block.substr(layer);
  return (kept == kAverage || (!kept.empty() && is_optimizer_state(kept.substr(1)))) &&
         checkpoint.find(parts.block.substr(0, layer) + parts.suffix).has_value();
}

bool has_averages(const SafetensorsReader& checkpoint) {
  return std::ranges::any_of(checkpoint.tensors(), [&](const StoredTensor& tensor) {
    return checkpoint.find(average_of(tensor.name)).has_value();
  });
}

}  // namespace spillway
