#include "src/ranks/collectives.h"

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "src/ranks/sum_tree.h"
#include "um/error.h"

namespace spillway {
namespace {

constexpr char kEnd = '\0';  // of a text in a list

std::string concatenated(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text + kEnd;
  return all;
}

std::vector<std::string> separated(std::string_view all) {
  std::vector<std::string> texts;
  while (!all.empty()) {
    const std::size_t end = all.find(kEnd);
    texts.emplace_back(all.substr(0, end));
    all.remove_prefix(end + 1);
  }
  return texts;
}

// Returns an empty text for no failure.
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

std::vector<std::string> all_gather_texts(Communicator& communicator, std::string_view text) {
  const auto sizes = all_gather_values(communicator, std::uint64_t{text.size()});
  std::vector<std::string> texts(communicator.size());
  std::vector<std::span<std::byte>> pieces(texts.size());
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    texts[rank].resize(sizes[rank]);
    pieces[rank] = std::as_writable_bytes(std::span{texts[rank]});
  }
  std::copy(text.begin(), text.end(), texts[communicator.rank()].begin());
  all_gather(communicator, pieces);
  return texts;
}

std::vector<std::vector<std::string>> all_gather_lists(Communicator& communicator,
                                                       const std::vector<std::string>& own) {
  std::vector<std::vector<std::string>> lists;
  for (const std::string& each : all_gather_texts(communicator, concatenated(own))) {
    lists.push_back(separated(each));
  }
  return lists;
}

void all_gather_micro_batches(Communicator& communicator, std::size_t micro_batches,
                              std::size_t each, std::span<std::byte> all) {
  um::expects(all.size() == micro_batches * each, "room for the results of all micro-batches");
  std::vector<std::span<std::byte>> pieces;
  pieces.reserve(communicator.size());
  for (std::size_t rank = 0; rank < communicator.size(); ++rank) {
    const MicroBatchRange range = micro_batches_of_rank(micro_batches, communicator.size(), rank);
    pieces.push_back(all.subspan(range.first * each, range.count() * each));
  }
  all_gather(communicator, pieces);
}

void broadcast(Communicator& communicator, std::string& text) {
  std::uint64_t size = text.size();
  broadcast(communicator, size);
  text.resize(size);
  communicator.broadcast(std::as_writable_bytes(std::span{text}), 0);
}

void broadcast(Communicator& communicator, std::vector<std::string>& texts) {
  std::string all = concatenated(texts);
  broadcast(communicator, all);
  texts = separated(all);
}

void throw_on_all(Communicator& communicator, const std::exception_ptr& failure) {
  const std::vector<std::string> sentences = all_gather_texts(communicator, sentence_of(failure));
  if (failure != nullptr) std::rethrow_exception(failure);
  for (const std::string& sentence : sentences) {
    if (!sentence.empty()) throw um::Error{sentence};
  }
}

void on_rank_zero(Communicator& communicator, const std::function<void()>& work,
                  const std::function<void()>& meanwhile) {
  std::exception_ptr failure;
  if (communicator.rank() == 0) {
    try {
      work();
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
  } else if (meanwhile) {
    meanwhile();
  }
  throw_on_all(communicator, failure);
}

}  // namespace spillway
