#include "src/train/parts/first_rank.h"

#include <exception>
#include <string>

#include "src/ranks/gather_texts.h"
#include "um/error.h"

namespace spillway {

void on_first_rank(Communicator& communicator, const std::function<void()>& work,
                   const std::function<void()>& meanwhile) {
  std::exception_ptr failure;
  std::string sentence;
  if (is_first(&communicator)) {
    try {
      work();
    } catch (const std::exception& error) {
      failure = std::current_exception();
      sentence = error.what();
      if (sentence.empty()) sentence = "the first rank failed";
    }
  }
  if (meanwhile && !is_first(&communicator)) meanwhile();
  const std::string first = gather_texts(communicator, sentence).front();
  if (failure != nullptr) std::rethrow_exception(failure);
  if (!first.empty()) throw um::Error{first};
}

}  // namespace spillway
