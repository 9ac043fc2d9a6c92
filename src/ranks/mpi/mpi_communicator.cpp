#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "src/ranks/communicator.h"
#include "src/ranks/mpi/open_mpi.h"
#include "src/ranks/rank_names.h"
#include "um/error.h"

namespace spillway {
namespace {

// Throws: um::Error with MPI's message unless `code` is MPI_SUCCESS. `what`: "MPI cannot send".
void check_mpi(int code, std::string_view what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw um::Error{std::string{what} + ": " +
                  std::string{text.data(), static_cast<std::size_t>(length)}};
}

// Messages between the ranks of MPI's world. All calls are non-blocking, so that the silent ranks
// are known when the time limit passes. The thread sleeps between polls: ranks of one machine
// share its processors.
//
// Throws: um::Error, see Communicator. Thread safety: one thread at a time; other code that calls
// MPI holds lock().
class MpiMessages {
 public:
  // Requires: MPI is initialised. Collective: all ranks construct theirs together.
  explicit MpiMessages(std::chrono::milliseconds time_limit);
  MpiMessages(const MpiMessages&) = delete;
  MpiMessages& operator=(const MpiMessages&) = delete;
  ~MpiMessages() = default;  // MPI_Finalize frees MPI's objects

  [[nodiscard]] std::size_t rank() const { return rank_; }
  [[nodiscard]] std::size_t ranks() const { return nodes_.size(); }
  [[nodiscard]] const std::vector<std::string>& nodes() const { return nodes_; }
  // Why calls cannot work any more; empty: they can.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock{mutex_}; }

  // See Communicator.
  void exchange(SentPieces sends, ReceivedPieces receives);
  void sum(std::span<float> numbers);

 private:
  // A piece to receive.
  struct Awaited {
    std::size_t from;
    std::span<std::byte> rest;  // not covered by messages that are in flight or here
    bool is_complete = false;   // all messages have been matched
  };

  // Messages in flight, each with its source or destination rank.
  struct Pending {
    std::vector<MPI_Request> requests;
    std::vector<std::size_t> ranks;
    std::vector<Awaited> awaited;

    // Result of the last poll.
    std::vector<int> moved;
    bool has_requests = true;  // some are in flight
  };

  void learn_nodes();
  void refuse_after_failure() const;
  [[noreturn]] void fail(const std::string& sentence);
  // Tag of this call's messages; the last message of a piece has its own.
  [[nodiscard]] int tag(bool is_last) const { return 2 * call_ + (is_last ? 1 : 0); }
  static MPI_Request& add_request(std::size_t rank, Pending& pending);
  void send(std::span<const std::byte> bytes, std::size_t to, Pending& pending);
  [[nodiscard]] bool receive_next(Awaited& piece, Pending& pending);
  // Returns the ranks that were silent for the time limit, in order; empty when all is done.
  std::vector<std::size_t> wait(Pending& pending, std::chrono::milliseconds time_limit);
  [[nodiscard]] bool look(Pending& pending);
  [[nodiscard]] static std::vector<std::size_t> silent_in(const Pending& pending);
  std::vector<std::size_t> move_all(SentPieces sends, ReceivedPieces receives,
                                    std::chrono::milliseconds time_limit);
  [[noreturn]] void fail_in_sum();

  std::chrono::milliseconds time_limit_;
  std::mutex mutex_;  // held during each call of MPI
  MPI_Comm messages_ = MPI_COMM_NULL;
  MPI_Comm sums_ = MPI_COMM_NULL;
  std::size_t rank_ = 0;
  std::vector<std::string> nodes_;  // by rank
  int call_ = 0;
  std::string failure_;
};

// A rank of MPI's world. Its destructor finalises MPI together with all ranks. During an exception
// or after a failure it does not: the launcher then ends the others.
class MpiCommunicator final : public Communicator {
 public:
  // Requires: MPI is initialised. With `leaves_mpi`, the destructor finalises MPI.
  MpiCommunicator(std::unique_ptr<MpiMessages> messages, bool leaves_mpi);
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;
  ~MpiCommunicator() override;

  void exchange(SentPieces sends, ReceivedPieces receives) override;
  void sum(std::span<float> numbers) override;
  [[nodiscard]] std::string library() const override { return size() > 1 ? "mpi" : "none"; }
  [[noreturn]] void abort(std::string_view sentence) override;

 private:
  std::unique_ptr<MpiMessages> messages_;
  bool leaves_mpi_;
  int exceptions_;  // in flight at construction
};

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

// MPI counts with int. Smaller messages also show progress earlier.
constexpr std::size_t kLargestMessage = 64UL << 20U;  // bytes
constexpr int kCalls = 16384;  // tags (MPI has at least 32,767) distinguish this many calls

// Pauses between polls: none at first, then sleeps of growing length.
class Pauses {
 public:
  void restart() { looks_ = 0; }
  void pause() {
    ++looks_;
    if (looks_ <= kWithout) return;
    std::this_thread::sleep_for(std::min((looks_ - kWithout) * kFirst, kLongest));
  }

 private:
  static constexpr int kWithout = 100;  // about ten microseconds in total
  static constexpr microseconds kFirst{10};
  static constexpr microseconds kLongest{100};
  int looks_ = 0;
};

std::string own_node() {
  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  int length = 0;
  check_mpi(MPI_Get_processor_name(name.data(), &length), "MPI does not say which node this is");
  return {name.data(), static_cast<std::size_t>(length)};
}

MPI_Comm copy_of_world() {
  MPI_Comm copy = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &copy), "MPI cannot make a communicator");
  check_mpi(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN), "MPI refuses an error handler");
  return copy;
}

// Returns the next MPI message of the rest of a piece.
template <typename Span>
Span next_message(Span rest) {
  return rest.first(std::min(rest.size(), kLargestMessage));
}

MpiMessages::MpiMessages(std::chrono::milliseconds time_limit)
    : time_limit_{time_limit}, messages_{copy_of_world()}, sums_{copy_of_world()} {
  int rank = 0;
  int ranks = 0;
  check_mpi(MPI_Comm_rank(messages_, &rank), "MPI does not say which rank this is");
  check_mpi(MPI_Comm_size(messages_, &ranks), "MPI does not say how many ranks there are");
  rank_ = static_cast<std::size_t>(rank);
  nodes_.resize(static_cast<std::size_t>(ranks));
  learn_nodes();
}

void MpiMessages::learn_nodes() {
  using Name = std::array<char, MPI_MAX_PROCESSOR_NAME>;
  const std::string node = own_node();
  Name own{};
  std::copy(node.begin(), node.end(), own.begin());
  std::vector<Name> names(ranks());
  std::vector<std::span<std::byte>> receives;
  receives.reserve(names.size());
  for (Name& name : names) receives.emplace_back(std::as_writable_bytes(std::span{name}));
  exchange(std::vector(ranks(), std::as_bytes(std::span<const char>{own})), receives);
  for (std::size_t r = 0; r < ranks(); ++r) {
    nodes_[r] = {names[r].begin(), std::find(names[r].begin(), names[r].end(), '\0')};
  }
}

void MpiMessages::refuse_after_failure() const {
  if (!failure_.empty()) throw um::Error{failure_};
}

void MpiMessages::fail(const std::string& sentence) {
  failure_ = sentence;
  throw um::Error{failure_};
}

MPI_Request& MpiMessages::add_request(std::size_t rank, Pending& pending) {
  pending.ranks.push_back(rank);
  return pending.requests.emplace_back(MPI_REQUEST_NULL);
}

// Sends a piece as messages, at least one.
void MpiMessages::send(std::span<const std::byte> bytes, std::size_t to, Pending& pending) {
  bool is_last = false;
  while (!is_last) {
    const std::span<const std::byte> message = next_message(bytes);
    bytes = bytes.subspan(message.size());
    is_last = bytes.empty();
    MPI_Request& request = add_request(to, pending);
    const auto guard = lock();
    check_mpi(MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_BYTE,
                        static_cast<int>(to), tag(is_last), messages_, &request),
              "MPI cannot send");
  }
}

// Starts to receive the next message of a piece if it has arrived. Messages of one rank arrive in
// order. Probes first: Open MPI 4.1 overruns the buffer when a message is too large for it.
bool MpiMessages::receive_next(Awaited& piece, Pending& pending) {
  const std::span<std::byte> expected = next_message(piece.rest);
  const bool is_last = expected.size() == piece.rest.size();
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status{};
  int has_come = 0;
  const auto guard = lock();
  check_mpi(MPI_Improbe(static_cast<int>(piece.from), MPI_ANY_TAG, messages_, &has_come, &message,
                        &status),
            "MPI cannot receive");
  if (has_come == 0) return false;
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  if (static_cast<std::size_t>(size) != expected.size() || status.MPI_TAG != tag(is_last)) {
    failure_ = "two ranks disagree about the size of a piece";
    um::expects(false, "a message of the size that its receiver expects");
  }
  check_mpi(
      MPI_Imrecv(expected.data(), size, MPI_BYTE, &message, &add_request(piece.from, pending)),
      "MPI cannot receive");
  piece.rest = piece.rest.subspan(expected.size());
  piece.is_complete = is_last;
  return true;
}

// Polls all messages. Returns whether any has progressed since the last poll.
bool MpiMessages::look(Pending& pending) {
  bool has_moved = false;
  for (Awaited& piece : pending.awaited) {
    while (!piece.is_complete && receive_next(piece, pending)) has_moved = true;
  }
  pending.moved.resize(pending.requests.size());
  int count = 0;
  const auto guard = lock();
  check_mpi(MPI_Testsome(static_cast<int>(pending.requests.size()), pending.requests.data(), &count,
                         pending.moved.data(), MPI_STATUSES_IGNORE),
            "a message of MPI's failed");
  pending.has_requests = count != MPI_UNDEFINED;
  return has_moved || (pending.has_requests && count > 0);
}

std::vector<std::size_t> MpiMessages::wait(Pending& pending, std::chrono::milliseconds time_limit) {
  Pauses pauses;
  auto last = Clock::now();
  while (true) {
    const bool has_moved = look(pending);
    if (!pending.has_requests && std::ranges::all_of(pending.awaited, &Awaited::is_complete)) {
      return {};
    }
    if (has_moved) {
      pauses.restart();
      last = Clock::now();
    } else if (Clock::now() - last > time_limit) {
      return silent_in(pending);
    }
    pauses.pause();
  }
}

// Receives that have started cannot be cancelled. Later MPI calls may still write to their memory,
// so only abort() may follow.
std::vector<std::size_t> MpiMessages::silent_in(const Pending& pending) {
  std::vector<std::size_t> silent;
  for (std::size_t i = 0; i < pending.requests.size(); ++i) {
    if (pending.requests[i] != MPI_REQUEST_NULL) silent.push_back(pending.ranks[i]);
  }
  for (const Awaited& piece : pending.awaited) {
    if (!piece.is_complete) silent.push_back(piece.from);
  }
  std::sort(silent.begin(), silent.end());
  silent.erase(std::unique(silent.begin(), silent.end()), silent.end());
  return silent;
}

std::vector<std::size_t> MpiMessages::move_all(SentPieces sends, ReceivedPieces receives,
                                               std::chrono::milliseconds time_limit) {
  Pending pending;
  for (std::size_t i = 1; i < ranks(); ++i) {  // do not begin with the same rank everywhere
    const std::size_t to = (rank_ + i) % ranks();
    const std::size_t from = (rank_ + ranks() - i) % ranks();
    send(sends[to], to, pending);
    pending.awaited.push_back({.from = from, .rest = receives[from]});
  }
  std::vector<std::size_t> silent = wait(pending, time_limit);
  call_ = (call_ + 1) % kCalls;
  return silent;
}

void MpiMessages::exchange(SentPieces sends, ReceivedPieces receives) {
  um::expects(sends.size() == ranks() && receives.size() == ranks(), "a piece for each rank");
  um::expects(sends[rank_].size() == receives[rank_].size(), "what it sends to itself fits");
  refuse_after_failure();
  const std::vector<std::size_t> silent = move_all(sends, receives, time_limit_);
  if (!silent.empty()) fail(silence(silent, nodes_, time_limit_));
  std::copy(sends[rank_].begin(), sends[rank_].end(), receives[rank_].begin());
}

void MpiMessages::sum(std::span<float> numbers) {
  const std::vector<std::span<const std::byte>> nothing(ranks());
  exchange(nothing, std::vector<std::span<std::byte>>(ranks()));  // wait for all ranks
  while (!numbers.empty()) {
    const std::span<float> part =
        numbers.first(std::min(numbers.size(), kLargestMessage / sizeof(float)));
    numbers = numbers.subspan(part.size());
    Pending pending;
    MPI_Request& request = add_request(rank_, pending);
    {
      const auto guard = lock();
      check_mpi(MPI_Iallreduce(MPI_IN_PLACE, part.data(), static_cast<int>(part.size()), MPI_FLOAT,
                               MPI_SUM, sums_, &request),
                "MPI cannot sum");
    }
    if (!wait(pending, time_limit_).empty()) fail_in_sum();
  }
}

// Finds the silent ranks: all ranks stopped waiting at about the same time, so the others answer.
void MpiMessages::fail_in_sum() {
  using namespace std::chrono_literals;
  const auto patience = std::max<std::chrono::milliseconds>(1s, time_limit_ / 4);
  const std::vector<std::span<const std::byte>> nothing(ranks());
  std::vector<std::size_t> silent =
      move_all(nothing, std::vector<std::span<std::byte>>(ranks()), patience);
  if (!silent.empty()) fail(silence(silent, nodes_, time_limit_));
  fail("a sum over all ranks, all of which are there, has not come for the time limit");
}

MpiCommunicator::MpiCommunicator(std::unique_ptr<MpiMessages> messages, bool leaves_mpi)
    : Communicator{messages->nodes(), messages->rank()},
      messages_{std::move(messages)},
      leaves_mpi_{leaves_mpi},
      exceptions_{std::uncaught_exceptions()} {}

// MPI_Finalize waits for all ranks without a time limit.
MpiCommunicator::~MpiCommunicator() {
  if (!leaves_mpi_ || std::uncaught_exceptions() > exceptions_) return;
  if (!messages_->failure().empty()) return;
  try {
    wait_for_all(*this);
    MPI_Finalize();
  } catch (const std::exception& error) {
    fmt::print(stderr, "spillway: {}\n", error.what());
  }
}

void MpiCommunicator::exchange(SentPieces sends, ReceivedPieces receives) {
  messages_->exchange(sends, receives);
}

void MpiCommunicator::sum(std::span<float> numbers) { messages_->sum(numbers); }

void MpiCommunicator::abort(std::string_view sentence) {
  const std::array<std::size_t, 1> own{rank()};
  fmt::print(stderr, "spillway: {} ended: {}\n", rank_names(own, nodes()), um::shortened(sentence));
  const auto guard = messages_->lock();
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  std::_Exit(EXIT_FAILURE);
}

// Restores signal handlers: Open MPI replaces them to print a stack, but page faults of managed
// memory are signals, too.
class KeptSignals {
 public:
  KeptSignals() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &actions_[i]);
  }
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;
  ~KeptSignals() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &actions_[i], nullptr);
  }

 private:
  static constexpr std::array kSignals{SIGABRT, SIGBUS, SIGFPE, SIGSEGV};
  std::array<struct sigaction, kSignals.size()> actions_{};
};

// Initialises MPI. Returns false if it was initialised before.
bool enter() {
  int is_over = 0;
  check_mpi(MPI_Finalized(&is_over), "MPI does not say whether it is over");
  if (is_over != 0) throw um::Error{"this process has left MPI, which can be entered only once"};
  int is_in = 0;
  check_mpi(MPI_Initialized(&is_in), "MPI does not say whether it has begun");
  int level = MPI_THREAD_SINGLE;
  if (is_in != 0) {
    check_mpi(MPI_Query_thread(&level), "MPI does not say what threads may do");
  } else {
    const KeptSignals signals;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level),
              "MPI cannot be entered");
  }
  if (level < MPI_THREAD_SERIALIZED) {
    throw um::Error{
        "this MPI lets only one thread of a process call it, but gradients are exchanged by "
        "another one than the first: use an MPI that was built with MPI_THREAD_SERIALIZED"};
  }
  return is_in == 0;
}

// The plug-in. If the process has already initialised MPI, with a sufficient thread level, it
// leaves the end of MPI to that code.
class Plugin final : public MpiPlugin {
 public:
  [[nodiscard]] std::unique_ptr<Communicator> open(
      const CommunicatorOptions& options, std::optional<std::size_t> launched) const override {
    const bool leaves_mpi = enter();
    int ranks = 0;
    check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &ranks), "MPI does not say how many ranks there are");
    if (ranks == 1 && launched.value_or(1) > 1) {
      throw um::Error{"the launcher started " + std::to_string(*launched) +
                      " processes, but MPI sees this one alone: start them with the mpirun of the "
                      "MPI that spillway was built with, or with srun --mpi=pmix"};
    }
    return std::make_unique<MpiCommunicator>(std::make_unique<MpiMessages>(options.time_limit),
                                             leaves_mpi);
  }
};

}  // namespace

}  // namespace spillway

extern "C" {

[[gnu::visibility("default")]] const char* spillway_mpi_build() { return SPILLWAY_BUILD; }

[[gnu::visibility("default")]] const spillway::MpiPlugin* spillway_mpi_plugin() {
  static const spillway::Plugin plugin;
  return &plugin;
}

}  // extern "C"
