#include "oar/distributed/process_group.h"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "oar/base/error.h"
#include "oar/base/flags.h"
#include "oar/base/interrupt.h"
#include "oar/base/log.h"
#include "oar/distributed/engines.h"
#include "oar/distributed/missing.h"
#include "oar/distributed/run_request.h"
#include "oar/distributed/stores.h"

namespace oar::distributed {
namespace {

constexpr const char* kReduceNames[] = {"sum", "max", "min", "prod", "avg"};
constexpr const char* kNames[] = {"broadcast",      "reduce",   "all_reduce", "all_gather",
                                  "reduce_scatter", "alltoall", "gather",     "scatter",
                                  "barrier",        "send",     "recv"};

using Clock = std::chrono::steady_clock;

// A call in the queue, or one whose failure is known at once.
class QueuedTask final : public Task {
 public:
  explicit QueuedTask(Request request) : request_(std::move(request)) {}

  bool is_done() override {
    const std::lock_guard lock(mutex_);
    return done_;
  }

  void wait(std::optional<Milliseconds> timeout) override {
    const Clock::time_point begin = Clock::now();
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, Milliseconds(50), [&] { return done_; })) {
      lock.unlock();
      poll_interrupt();
      user_check(
          !timeout || Clock::now() - begin < *timeout, ErrorKind::Runtime,
          "[{}] the result has not come within {} ms; the call goes on.\nhint: Wait again, or "
          "longer.",
          name_of(request_.what), timeout->count());
      lock.lock();
    }
    if (failure_) std::rethrow_exception(failure_);
  }

  void end(std::exception_ptr failure = nullptr) {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
      failure_ = std::move(failure);
      request_.keeps.clear();
    }
    ended_.notify_all();
  }

  Request& request() { return request_; }

 private:
  Request request_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;
  std::exception_ptr failure_;
};

class EngineGroup;

// A message: the engine moves it while others run. Whoever asks for its end starts a thread that waits for it: an engine's own
// wait cannot be interrupted, and breaks the group after a time-out.
class MessageTask final : public Task {
 public:
  MessageTask(std::shared_ptr<EngineGroup> group, Request request,
              std::shared_ptr<Transfer> transfer)
      : group_(std::move(group)),
        end_(std::make_shared<QueuedTask>(std::move(request))),
        transfer_(std::move(transfer)) {}
  // The message goes on, and its memory lives until it has arrived.
  ~MessageTask() override { watch(); }
  bool is_done() override {
    watch();
    return end_->is_done();
  }
  void wait(std::optional<Milliseconds> timeout) override {
    watch();
    end_->wait(timeout);
  }

 private:
  void watch();

  std::shared_ptr<EngineGroup> group_;
  std::shared_ptr<QueuedTask> end_;
  std::shared_ptr<Transfer> transfer_;
  std::once_flag watched_;
};

class EngineGroup final : public ProcessGroup, public std::enable_shared_from_this<EngineGroup> {
 public:
  explicit EngineGroup(GroupOptions options) : options_(std::move(options)) {
    for (size_t i = 0; i < options_.ranks.size(); ++i)
      if (options_.ranks[i] == options_.rank) rank_ = static_cast<int>(i);
    internal_check(rank_ >= 0, "process {} is not in group {}", options_.rank, options_.name);
    if (size() == 1) return;
    BackendOptions wanted;
    wanted.rank = rank_;
    wanted.size = size();
    wanted.world_ranks = options_.ranks;
    wanted.name = options_.name;
    wanted.timeout = options_.timeout;
    if (options_.store) {
      store_ = part_of(options_.store, options_.name + "/");
      meet(*store_, options_, rank_);
      wanted.store = part_of(store_, "engine/");
      wanted.host = options_.store->own_address();
    }
    backend_ = connect(options_.backend, wanted);
    worker_ = std::thread([this] { work(); });
  }

  ~EngineGroup() override { EngineGroup::close(); }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(options_.ranks.size()); }
  const GroupOptions& options() const override { return options_; }

  std::shared_ptr<Task> start(Request request) override {
    check_request(request, size());
    const bool is_message = request.what == Collective::Send || request.what == Collective::Receive;
    user_check(!is_message || request.peer != rank_, ErrorKind::InvalidArgument,
               "[{}] process {} cannot exchange messages with itself.\nhint: Pass another process.",
               name_of(request.what), options_.rank);
    if (is_message) return begin_message(std::move(request));
    auto task = std::make_shared<QueuedTask>(std::move(request));
    if (size() == 1) {
      run_alone(task->request());
      task->end();
      return task;
    }
    {
      const std::lock_guard lock(mutex_);
      check_usable();
      queue_.push_back(task);
    }
    changed_.notify_one();
    return task;
  }

  void close() override {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
      closed_ = true;
      if (failure_.empty()) failure_ = "the group was closed";
    }
    changed_.notify_all();
    // What is under way must not keep us. An idle engine closes its connections when it is destroyed.
    if (running_ || messages_ > 0) abort_once();
    if (worker_.joinable()) worker_.join();
  }

  void run_message(const Request& request, Transfer& transfer) {
    try {
      transfer.wait(options_.timeout);
    } catch (const std::exception& e) {
      --messages_;
      throw_failure(request, e, options_.timeout);
    }
    --messages_;
  }

  // Ends the group, and throws an Error that says who is missing.
  [[noreturn]] void throw_failure(const Request& request, const std::exception& why,
                                  Milliseconds waited) {
    const std::string what = describe(request);
    std::string text;
    {
      const std::lock_guard lock(mutex_);
      text = failure_;
    }
    if (text.empty()) {
      const Failure failure{what, waited, why.what(), calls_};
      announce(store_.get(), rank_, failure);
      abort_once();  // the others must not wait for their own time-outs before they say so, too
      text = request.what == Collective::Send || request.what == Collective::Receive
                 ? explain_message(options_, options_.ranks[static_cast<size_t>(request.peer)],
                                   failure)
                 : explain(store_.get(), options_, failure);
      const std::lock_guard lock(mutex_);
      failure_ = text;
    }
    fail(ErrorKind::Runtime, "[{}] {}", name_of(request.what), text);
  }

 private:
  void check_usable() const {
    user_check(failure_.empty(), ErrorKind::Runtime, "group {} cannot be used any more: {}",
               options_.name, failure_);
  }

  std::shared_ptr<Task> begin_message(Request request) {
    {
      const std::lock_guard lock(mutex_);
      check_usable();
    }
    const Memory memory = request.what == Collective::Send ? request.in.at(0) : request.out.at(0);
    if (memory.bytes == 0) {
      auto task = std::make_shared<QueuedTask>(std::move(request));
      task->end();
      return task;
    }
    std::shared_ptr<Transfer> transfer;
    try {
      transfer = request.what == Collective::Send
                     ? backend_->send(memory.data, memory.bytes, request.peer, request.tag)
                     : backend_->receive(memory.data, memory.bytes, request.peer, request.tag);
    } catch (const std::exception& e) {
      throw_failure(request, e, Milliseconds(0));
    }
    ++messages_;
    return std::make_shared<MessageTask>(shared_from_this(), std::move(request),
                                         std::move(transfer));
  }

  void work() {
    for (;;) {
      std::shared_ptr<QueuedTask> task;
      {
        std::unique_lock lock(mutex_);
        running_ = false;
        changed_.wait(lock, [&] { return closed_ || !queue_.empty(); });
        if (queue_.empty()) return;
        task = std::move(queue_.front());
        queue_.pop_front();
        running_ = true;
        ++calls_;
      }
      try {
        run(task->request());
        task->end();
      } catch (...) {
        task->end(std::current_exception());
      }
    }
  }

  void run(const Request& request) {
    {
      const std::lock_guard lock(mutex_);
      check_usable();
    }
    const Clock::time_point begin = Clock::now();
    try {
      static const FlagHandle<bool> check("check_collectives");
      if (calls_ <= kComparedFirst || check.get()) check_agreement(request);
      run_request(*backend_, request, rank_, size(), options_.timeout);
    } catch (const Error&) {
      throw;  // of ours: it says enough
    } catch (const std::exception& e) {
      throw_failure(request, e, std::chrono::duration_cast<Milliseconds>(Clock::now() - begin));
    }
  }

  // So many calls of a group are always compared: most mistakes show in the first step.
  static constexpr int64_t kComparedFirst = 100;

  // All ranks tell all others what they are about to do.
  void check_agreement(const Request& request) {
    constexpr size_t kLength = 256;
    std::string own = describe_for_check(request);
    own.resize(kLength);
    std::string all(kLength * static_cast<size_t>(size()), '\0');
    backend_->all_gather(own.data(), all.data(), kLength, options_.timeout);
    std::vector<std::string> calls;
    for (size_t i = 0; i < static_cast<size_t>(size()); ++i)
      calls.emplace_back(all.c_str() + i * kLength);
    const std::string problem = disagreement(options_, calls);
    if (problem.empty()) return;
    {
      const std::lock_guard lock(mutex_);
      failure_ = problem;
    }
    fail(ErrorKind::Runtime, "[{}] {}", name_of(request.what), problem);
  }

  void abort_once() {
    const std::lock_guard lock(backend_mutex_);
    if (std::exchange(aborted_, true) || !backend_) return;
    try {
      backend_->abort();
    } catch (const std::exception& e) {
      log_debug("the connections of group {} are broken already: {}", options_.name, e.what());
    }
  }

  GroupOptions options_;
  int rank_ = -1;
  std::shared_ptr<Store> store_;
  std::mutex backend_mutex_;
  std::unique_ptr<Backend> backend_;
  bool aborted_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<QueuedTask>> queue_;
  std::string failure_;  // why the group cannot be used any more
  bool closed_ = false;
  std::atomic<bool> running_ = false;
  std::atomic<int64_t> calls_ = 0;
  std::atomic<int> messages_ = 0;  // under way
  std::thread worker_;
};

void MessageTask::watch() {
  std::call_once(watched_, [this] {
    std::thread([group = std::move(group_), end = end_, transfer = std::move(transfer_)]() mutable {
      try {
        group->run_message(end->request(), *transfer);
        end->end();
      } catch (...) {
        end->end(std::current_exception());
      }
    }).detach();
  });
}

}  // namespace

ReduceOp reduce_op_of(std::string_view name, const char* what) {
  for (size_t i = 0; i < std::size(kReduceNames); ++i)
    if (name == kReduceNames[i]) return static_cast<ReduceOp>(i);
  fail(ErrorKind::InvalidArgument, "[{}] op is '{}', which is none of sum, max, min, prod, avg.",
       what, name);
}

const char* name_of(ReduceOp op) { return kReduceNames[static_cast<size_t>(op)]; }

const char* name_of(Collective what) { return kNames[static_cast<size_t>(what)]; }

Collective collective_of(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (name == kNames[i]) return static_cast<Collective>(i);
  fail(ErrorKind::Internal, "there is no collective {}", name);
}

std::shared_ptr<ProcessGroup> ProcessGroup::make(GroupOptions options) {
  return std::make_shared<EngineGroup>(std::move(options));
}

}  // namespace oar::distributed
