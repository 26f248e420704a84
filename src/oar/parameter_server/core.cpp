#include "oar/parameter_server/core.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "oar/base/error.h"
#include "oar/parameter_server/records.h"

namespace oar::parameter_server {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kMostWaitMs = 5000;
constexpr size_t kMostChannels = 1024;

std::string log_path(const std::string& folder, uint64_t number) {
  return (fs::path(folder) / format("log-{}", number)).string();
}

// The numbers of the logs of a folder, growing.
std::vector<uint64_t> logs_of(const std::string& folder) {
  std::vector<uint64_t> numbers;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    uint64_t number = 0;
    if (!name.starts_with("log-")) continue;
    const char *begin = name.data() + 4, *end = name.data() + name.size();
    if (std::from_chars(begin, end, number).ptr == end) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

template <class Field>
auto view(const Field& field) {
  return std::span(field.data(), static_cast<size_t>(field.size()));
}

}  // namespace

class Core::Shared {
 public:
  explicit Shared(Core& core) {
    const std::lock_guard pass(core.turnstile_);
    lock_ = std::shared_lock(core.gate_);
  }

 private:
  std::shared_lock<std::shared_mutex> lock_;
};

class Core::Exclusive {
 public:
  explicit Exclusive(Core& core) : pass_(core.turnstile_), lock_(core.gate_) {}

 private:
  std::lock_guard<std::mutex> pass_;
  std::unique_lock<std::shared_mutex> lock_;
};

Core::Core(ServerOptions options)
    : options_(std::move(options)),
      state_({options_.index, options_.servers}, options_.folder, options_.workers) {
  user_check(options_.servers > 0 && options_.index < options_.servers && options_.workers > 0,
             ErrorKind::InvalidArgument, "a server cannot be number {} of {} for {} workers.",
             options_.index, options_.servers, options_.workers);
  user_check(!options_.folder.empty(), ErrorKind::InvalidArgument,
             "a server needs a folder for its log.\nhint: Pass one of its own.");
  fs::create_directories(options_.folder);
  const std::string lock = (fs::path(options_.folder) / "lock").string();
  lock_file_ = ::open(lock.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  user_check(lock_file_ != -1 && ::flock(lock_file_, LOCK_EX | LOCK_NB) == 0, ErrorKind::Runtime,
             "the folder {} is in use by another server.\nhint: Give each server a folder of its "
             "own.",
             options_.folder);
  recover();
}

Core::~Core() {
  if (lock_file_ != -1) ::close(lock_file_);
}

// ---- The log and the checkpoint ----------------------------------------------------------------

void Core::recover() {
  const std::string checkpoint = (fs::path(options_.folder) / "checkpoint").string();
  if (fs::exists(checkpoint)) position_ = state_.read_checkpoint(checkpoint);
  const std::vector<uint64_t> numbers = logs_of(options_.folder);
  for (const uint64_t number : numbers) {
    replay(log_path(options_.folder, number), number == numbers.back());
  }
  if (numbers.empty()) begin_log(0, position_);
}

void Core::replay(const std::string& path, bool last) {
  RecordReader reader(path);
  std::string content;
  wire::Change change;
  auto found = reader.next(&content);
  for (; found == RecordReader::Found::Record; found = reader.next(&content)) {
    user_check(change.ParseFromString(content), ErrorKind::Runtime,
               "the log {} has a record that this version cannot read.\nhint: Start the version "
               "that wrote it.",
               path);
    if (change.position() <= position_) continue;
    state_.apply(change.request(), change.position());
    position_ = change.position();
  }
  user_check(last || found == RecordReader::Found::End, ErrorKind::Runtime,
             "the log {} ends within a record.\nhint: Restore it from a copy.", path);
  if (last) log_ = std::make_unique<Log>(path, reader.offset());
}

void Core::begin_log(uint64_t size, uint64_t number) {
  log_ = std::make_unique<Log>(log_path(options_.folder, number), size);
}

void Core::checkpoint_in_exclusive() {
  const std::vector<uint64_t> old = logs_of(options_.folder);
  // Two logs with one name would be a log that is cut off.
  const bool is_empty = log_->size() == 0;
  state_.write_checkpoint((fs::path(options_.folder) / "checkpoint").string(), position_);
  if (is_empty) return;
  begin_log(0, position_);
  for (const uint64_t number : old) {
    if (number != position_) fs::remove(log_path(options_.folder, number));
  }
}

void Core::checkpoint() {
  const Exclusive alone(*this);
  checkpoint_in_exclusive();
}

void Core::load(const std::string& name, const std::string& folder) {
  const Exclusive alone(*this);
  state_.load(name, folder);
  checkpoint_in_exclusive();
}

bool Core::wait(Milliseconds time) {
  std::unique_lock lock(stop_mutex_);
  const bool all =
      stops_.wait_for(lock, time, [&] { return state_.stopped() >= options_.workers; });
  // The next training of this folder waits for its own workers.
  if (all) state_.forget_stopped();
  return all;
}

// ---- Changes -----------------------------------------------------------------------------------

void Core::log_and_apply(const wire::Request& request) {
  std::unique_lock disk(disk_order_, std::defer_lock);
  if (state_.writes_to_disk(request)) disk.lock();
  wire::Change change;
  *change.mutable_request() = request;
  std::string record = change.SerializeAsString();
  change.Clear();
  uint64_t position = 0, size = 0;
  {
    const std::lock_guard lock(order_);
    position = position_ + 1;
    change.set_position(position);
    // Two messages, one behind the other, are read as one with the fields of both.
    change.AppendToString(&record);
    size = log_->append(record);
    position_ = position;
  }
  log_->sync(size);
  state_.apply(request, position);
}

void Core::change_once(const wire::Request& request) {
  state_.check(request);
  if (request.has_save()) {
    const SaveMode mode = request.save().delta() ? SaveMode::Delta : SaveMode::Base;
    state_.save(request.table(), request.save().path(), mode);
    if (mode == SaveMode::Delta) return;
  }
  // What can fail for want of memory or disk comes before the log, which must be replayable.
  if (request.has_create()) state_.create(from_wire(request.create()));
  log_and_apply(request);
}

void Core::change(const wire::Request& request) {
  user_check(request.client() != 0 && request.number() != 0, ErrorKind::InvalidArgument,
             "a change came without the number of its client and its own.");
  Changing* own = nullptr;
  {
    const std::lock_guard lock(changing_mutex_);
    std::unique_ptr<Changing>& found = changing_[request.client()];
    if (found == nullptr) found = std::make_unique<Changing>();
    own = found.get();
  }
  const std::lock_guard lock(own->mutex);
  if (request.number() <= state_.last_number(request.client())) return;  // sent again
  if (State::changes_rows_only(request)) {
    const Shared shared(*this);
    change_once(request);
  } else {
    const Exclusive alone(*this);
    change_once(request);
  }
  if (log_->size() > options_.log_bytes) checkpoint();
}

// ---- Rounds ------------------------------------------------------------------------------------

void Core::complete(const wire::Request& request) {
  wire::Request completed;
  *completed.mutable_arrive() = request.arrive();
  const Shared shared(*this);
  log_and_apply(completed);
}

void Core::arrive(const wire::Request& request, wire::Reply* reply) {
  state_.check(request);
  const std::string& channel = request.arrive().channel();
  const uint64_t round = request.arrive().round();
  std::unique_lock lock(rounds_mutex_);
  const uint64_t done = state_.round(channel);
  if (round <= done) return;
  user_check(
      round == done + 1, ErrorKind::InvalidArgument,
      "worker {} comes to round {} of '{}', and the next one is {}.\nhint: Start all workers "
      "together.",
      request.worker(), round, channel.substr(0, 128), done + 1);
  user_check(arrived_.size() < kMostChannels || arrived_.contains(channel),
             ErrorKind::InvalidArgument, "there are more than {} channels.", kMostChannels);
  std::set<uint32_t>& here = arrived_[channel];
  here.insert(request.worker());
  if (here.size() == options_.workers) {
    complete(request);
    arrived_.erase(channel);
    round_ends_.notify_all();
    return;
  }
  const Milliseconds time(std::min(request.arrive().wait_ms(), kMostWaitMs));
  const auto is_over = [&] { return state_.round(channel) >= round; };
  if (round_ends_.wait_for(lock, time, is_over)) return;
  for (uint32_t worker = 0; worker < options_.workers; ++worker) {
    if (!arrived_[channel].contains(worker)) reply->add_missing(worker);
  }
}

void Core::greet(const wire::Request& request, wire::Reply* reply) {
  change(request);
  {
    const std::lock_guard lock(rounds_mutex_);
    for (auto& [_, here] : arrived_) here.erase(request.worker());
  }
  const auto rounds = state_.rounds();
  reply->mutable_rounds()->insert(rounds.begin(), rounds.end());
  reply->set_index(options_.index);
  reply->set_servers(options_.servers);
  reply->set_workers(options_.workers);
}

// ---- Reads -------------------------------------------------------------------------------------

void Core::check_reply_size(uint64_t values) const {
  user_check(
      values * sizeof(float) + 1024 <= options_.most_message_bytes, ErrorKind::InvalidArgument,
      "a reply of {} values would exceed the limit of {} bytes for a message.\nhint: Ask for "
      "fewer at once.",
      values, options_.most_message_bytes);
}

void Core::pull_sparse(const wire::Request& request, wire::Reply* reply) {
  const SparseTable& table = state_.sparse(request.table());
  const auto& keys = request.pull_sparse().keys();
  const uint64_t values = static_cast<uint64_t>(keys.size()) * table.options().width;
  check_reply_size(values);
  reply->mutable_values()->Resize(static_cast<int>(values), 0.0F);
  table.pull(view(keys), reply->mutable_values()->mutable_data());
}

void Core::pull_dense(const wire::Request& request, wire::Reply* reply) {
  const DenseTable& table = state_.dense(request.table());
  const auto chunks = view(request.pull_dense().chunks());
  const uint64_t values = table.values_of(chunks);
  check_reply_size(values);
  reply->mutable_values()->Resize(static_cast<int>(values), 0.0F);
  table.pull(chunks, reply->mutable_values()->mutable_data());
}

void Core::read(const wire::Request& request, wire::Reply* reply) {
  const Shared shared(*this);
  switch (request.what_case()) {
    case wire::Request::kPullDense:
      return pull_dense(request, reply);
    case wire::Request::kPullSparse:
      return pull_sparse(request, reply);
    default:
      throw Error(ErrorKind::InvalidArgument, "the request asks for nothing that is known.",
                  "Use the same version of Oar for servers and workers.");
  }
}

void Core::handle(const wire::Request& request, wire::Reply* reply) {
  switch (request.what_case()) {
    case wire::Request::kHello:
      return greet(request, reply);
    case wire::Request::kCreate:
    case wire::Request::kSetDense:
    case wire::Request::kPushDense:
    case wire::Request::kPushSparse:
    case wire::Request::kSave:
    case wire::Request::kShrink:
      return change(request);
    case wire::Request::kArrive:
      return arrive(request, reply);
    case wire::Request::kLoad:
      return load(request.table(), request.load().path());
    case wire::Request::kCheckpoint:
      return checkpoint();
    case wire::Request::kSize: {
      const Exclusive alone(*this);
      reply->set_exists(state_.tables().contains(request.table()));
      if (!reply->exists()) return;
      const TableSize size = state_.table(request.table()).size();
      reply->set_rows(size.rows);
      reply->set_bytes(size.bytes);
      reply->set_candidates(size.candidates);
      return;
    }
    case wire::Request::kStop: {
      change(request);
      const std::lock_guard lock(stop_mutex_);
      stops_.notify_all();
      return;
    }
    default:
      return read(request, reply);
  }
}

}  // namespace oar::parameter_server
