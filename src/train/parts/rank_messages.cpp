#include "src/train/parts/rank_messages.h"

#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/ranks/agreement.h"
#include "src/ranks/shard_tree.h"
#include "um/error.h"

namespace spillway {
namespace {

// Empty where there is no failure.
std::string sentence_of(const std::exception_ptr& failure) {
  if (failure == nullptr) return {};
  std::string sentence;
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    sentence = error.what();
  } catch (...) {
    // Nothing is known of it.
  }
  return sentence.empty() ? "another rank failed" : sentence;
}

}  // namespace

void throw_on_all(Communicator& communicator, const std::exception_ptr& failure) {
  const std::vector<std::string> sentences = gather_texts(communicator, sentence_of(failure));
  if (failure != nullptr) std::rethrow_exception(failure);
  for (const std::string& sentence : sentences) {
    if (!sentence.empty()) throw um::Error{sentence};
  }
}

void on_first_rank(Communicator& communicator, const std::function<void()>& work,
                   const std::function<void()>& meanwhile) {
  std::exception_ptr failure;
  if (is_first(&communicator)) {
    try {
      work();
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
  }
  if (meanwhile && !is_first(&communicator)) meanwhile();
  throw_on_all(communicator, failure);
}

std::vector<std::vector<std::string>> gather_lists(Communicator& communicator,
                                                   const std::vector<std::string>& own) {
  using nlohmann::json;
  const std::string text = json(own).dump(-1, ' ', false, json::error_handler_t::replace);
  std::vector<std::vector<std::string>> lists;
  for (const std::string& each : gather_texts(communicator, text)) {
    lists.push_back(json::parse(each).get<std::vector<std::string>>());
  }
  return lists;
}

void gather_shards(Communicator& communicator, std::size_t shards, std::size_t each,
                   std::span<std::byte> all) {
  um::expects(all.size() == shards * each, "room for what all shards give");
  const auto of_rank = [&](std::size_t rank) {
    const ShardRange range = shards_of_rank(shards, communicator.ranks(), rank);
    return all.subspan(range.first * each, range.count() * each);
  };
  std::vector<std::span<std::byte>> pieces;
  pieces.reserve(communicator.ranks());
  for (std::size_t rank = 0; rank < communicator.ranks(); ++rank) pieces.push_back(of_rank(rank));
  all_gather(communicator, pieces);
}

}  // namespace spillway
