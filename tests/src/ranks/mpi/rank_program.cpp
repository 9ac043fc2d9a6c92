// One rank of a small program of several, which tests start with mpirun:
//   rank_program WORK TIME_LIMIT_MS [NUMBER]
// Prints its results on standard output. Prints an error and exits with 1 if it fails.
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "src/io/file_digest.h"
#include "src/ranks/collectives.h"
#include "src/ranks/mpi/open_mpi.h"
#include "src/ranks/tree_reduction.h"
#include "src/run/interconnect_profiler.h"
#include "tests/src/ranks/communicator_contract.h"
#include "tests/src/ranks/micro_batch_numbers.h"
#include "um/error.h"
#include "um/host/copy_space.h"

namespace spillway::testing {
namespace {

using Work = void (*)(Communicator&, std::size_t number);

// Prints one line on standard output, only on rank 0.
void say(const Communicator& communicator, const std::string& text) {
  if (communicator.rank() == 0) std::cout << text + "\n" << std::flush;
}

void keep_the_contract(Communicator& communicator, std::size_t) {
  for (const Promise& promise : communicator_contract()) {
    promise.check(communicator);
    wait_for_all(communicator);
    say(communicator, promise.name);
  }
}

// Runs the contract in another thread than the first, as gradients are exchanged.
void contract_in_a_thread(Communicator& communicator, std::size_t number) {
  std::exception_ptr error;
  std::thread thread{[&] {
    try {
      keep_the_contract(communicator, number);
    } catch (...) {
      error = std::current_exception();
    }
  }};
  thread.join();
  if (error) std::rethrow_exception(error);
}

// Prints the digest of the sum of `number` micro-batches.
void digest(Communicator& communicator, std::size_t number) {
  constexpr std::size_t kNumbers = 10'007;
  const TreeReduction reduction{communicator, number};
  const auto own = range_sums(reduction.tree(), reduction.own_micro_batches(), kNumbers);
  const std::vector<std::span<const float>> nodes(own.begin(), own.end());
  std::vector<std::byte> scratch(reduction.scratch_size(kNumbers).count());
  std::vector<float> sum(kNumbers);
  reduction.all_reduce(nodes, sum, scratch);
  Sha256 digest_of_sum;
  digest_of_sum.update(std::as_bytes(std::span{sum}));
  say(communicator, digest_of_sum.hex());
}

// Sends `number` bytes to the next rank, which checks every page.
void large_message(Communicator& communicator, std::size_t number) {
  std::vector<std::byte> sent(number, static_cast<std::byte>(communicator.rank() + 1));
  std::vector<std::byte> received(number);
  const std::size_t ranks = communicator.size();
  const std::size_t before = (communicator.rank() + ranks - 1) % ranks;
  std::vector<std::span<const std::byte>> sends(ranks);
  std::vector<std::span<std::byte>> receives(ranks);
  sends[(communicator.rank() + 1) % ranks] = sent;
  receives[before] = received;
  communicator.exchange(sends, receives);
  for (std::size_t i = 0; i < number; i += 4093) {
    if (received[i] != static_cast<std::byte>(before + 1)) throw std::runtime_error{"wrong bytes"};
  }
  say(communicator, "received");
}

// Prints the shortest of `number` times of both ways to sum 25 MiB, run in turn, in microseconds.
void both_sums(Communicator& communicator, std::size_t number) {
  std::vector<float> numbers(25UL * 1024 * 256);
  const TreeReduction reduction{communicator, communicator.size()};
  const std::vector<std::span<const float>> nodes = {numbers};
  std::vector<std::byte> scratch(reduction.scratch_size(numbers.size()).count());
  const auto time = [&](const auto& work) {
    wait_for_all(communicator);
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() -
                                                                 start);
  };
  auto by_tree = std::chrono::microseconds::max();
  auto fast = by_tree;
  for (std::size_t i = 0; i < number; ++i) {
    by_tree = std::min(by_tree, time([&] { reduction.all_reduce(nodes, numbers, scratch); }));
    fast = std::min(fast, time([&] { reduction.fast_all_reduce(nodes, numbers); }));
  }
  say(communicator,
      "tree " + std::to_string(by_tree.count()) + ", fast " + std::to_string(fast.count()));
}

// Prints microseconds and megabytes per second.
void interconnect(Communicator& communicator, std::size_t) {
  um::HostMemory memory;
  const RankMemory between{communicator, communicator, memory};
  for (const AllReduceTime& time : time_all_reduces(between)) {
    say(communicator, std::to_string(time.size.count()) +
                          " bytes: " + std::to_string(time.time.count() / 1000) + " us");
  }
  const prefetch::Interconnect measured = measure_interconnect(between);
  say(communicator, std::to_string(measured.latency.count() / 1000) + " us, " +
                        std::to_string(measured.bandwidth.bytes_per_second() / 1e6) + " MB/s");
}

// Meets the other ranks `number` times; each rank is late once in a while.
void rounds(Communicator& communicator, std::size_t number) {
  for (std::size_t i = 0; i < number; ++i) {
    const std::size_t late = i % (communicator.size() + 1);
    if (late == communicator.rank()) std::this_thread::sleep_for(std::chrono::milliseconds{5});
    const auto values = all_gather_values(communicator, i * 1000 + communicator.rank());
    for (std::size_t r = 0; r < values.size(); ++r) {
      if (values[r] != i * 1000 + r) throw std::logic_error{"a value of another round"};
    }
  }
  say(communicator, "met");
}

// Rank `number` never arrives.
void hang(Communicator& communicator, std::size_t number) {
  while (communicator.rank() == number) std::this_thread::sleep_for(std::chrono::hours{1});
  wait_for_all(communicator);
}

void hang_before_sum(Communicator& communicator, std::size_t number) {
  while (communicator.rank() == number) std::this_thread::sleep_for(std::chrono::hours{1});
  std::vector<float> numbers(1000);
  communicator.sum(numbers);
}

void die(Communicator& communicator, std::size_t number) {
  wait_for_all(communicator);
  if (communicator.rank() == number) std::raise(SIGKILL);
  wait_for_all(communicator);
}

// Rank `number` throws an exception without abort().
void throw_alone(Communicator& communicator, std::size_t number) {
  if (communicator.rank() == number) throw std::logic_error{"not told to the others"};
  wait_for_all(communicator);
}

void give_up(Communicator& communicator, std::size_t number) {
  if (communicator.rank() == number) communicator.abort("the disk is full");
  wait_for_all(communicator);
}

// Aborts while another thread of this rank waits for the others, which never arrive.
void give_up_beside(Communicator& communicator, std::size_t number) {
  while (communicator.rank() != number) std::this_thread::sleep_for(std::chrono::hours{1});
  std::thread thread{[&] { wait_for_all(communicator); }};
  std::this_thread::sleep_for(std::chrono::milliseconds{100});
  communicator.abort("the disk is full");
}

// Rank 1 sends `sent` bytes in each of `calls` calls; rank 0 expects `expected` in one.
void send_unlike(Communicator& communicator, std::size_t sent, std::size_t calls,
                 std::size_t expected) {
  const bool is_receiver = communicator.rank() == 0;
  const std::vector<std::byte> outgoing(is_receiver ? 0 : sent);
  std::vector<std::byte> incoming(is_receiver ? expected : 0);
  std::vector<std::span<const std::byte>> sends(2);
  std::vector<std::span<std::byte>> receives(2);
  sends[is_receiver ? 1 : 0] = outgoing;
  receives[is_receiver ? 1 : 0] = incoming;
  try {
    for (std::size_t call = 0; call < (is_receiver ? 1 : calls); ++call) {
      communicator.exchange(sends, receives);
    }
  } catch (const um::ContractError& error) {
    communicator.abort(error.what());
  }
  if (is_receiver) communicator.abort("it took another size");
  wait_for_all(communicator);
}

constexpr std::size_t kFull = 64UL << 20U;  // bytes of one MPI message

// `number` selects both sizes. Some sizes fill messages exactly.
void disagree(Communicator& communicator, std::size_t number) {
  constexpr std::array<std::array<std::size_t, 2>, 6> kSentAndExpected{
      {{100, 50}, {50, 100}, {kFull + 8, 8}, {8, kFull + 8}, {kFull, 2 * kFull}, {2 * kFull, 0}}};
  const auto [sent, expected] = kSentAndExpected.at(number);
  send_unlike(communicator, sent, 1, expected);
}

void disagree_on_calls(Communicator& communicator, std::size_t) {
  send_unlike(communicator, kFull, 2, 2 * kFull);
}

void fault_handlers(Communicator& communicator, std::size_t) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_DFL) throw std::runtime_error{"MPI has taken a signal"};
  }
  say(communicator, "as they were");
}

Work work_of(const std::string& name) {
  if (name == "contract") return keep_the_contract;
  if (name == "contract_in_a_thread") return contract_in_a_thread;
  if (name == "digest") return digest;
  if (name == "large_message") return large_message;
  if (name == "both_sums") return both_sums;
  if (name == "interconnect") return interconnect;
  if (name == "rounds") return rounds;
  if (name == "hang") return hang;
  if (name == "hang_before_sum") return hang_before_sum;
  if (name == "die") return die;
  if (name == "throw_alone") return throw_alone;
  if (name == "give_up") return give_up;
  if (name == "give_up_beside") return give_up_beside;
  if (name == "disagree") return disagree;
  if (name == "disagree_on_calls") return disagree_on_calls;
  if (name == "fault_handlers") return fault_handlers;
  throw std::invalid_argument{"no such work: " + name};
}

void run(const std::vector<std::string>& arguments) {
  const std::unique_ptr<Communicator> communicator =
      open_mpi({.time_limit = std::chrono::milliseconds{std::stol(arguments.at(2))}});
  const Work work = work_of(arguments.at(1));
  try {
    work(*communicator, arguments.size() > 3 ? std::stoul(arguments[3]) : 0);
  } catch (const um::Error& error) {
    communicator->abort(error.what());
  }
}

}  // namespace
}  // namespace spillway::testing

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  try {
    std::cout << (spillway::started_with_ranks() ? "" : "started alone\n");
    spillway::testing::run(arguments);
  } catch (const std::exception& error) {
    std::cerr << "rank_program: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
