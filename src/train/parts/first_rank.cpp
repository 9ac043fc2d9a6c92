#include "src/train/parts/first_rank.h"

#include <exception>
#include <string>
#include <vector>

#include "src/ranks/gather_texts.h"
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

}  // namespace spillway
