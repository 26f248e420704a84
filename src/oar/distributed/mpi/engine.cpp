// The engine MPI. Calls are begun and then tested until they are done, so that every wait has a time-out.
#define OMPI_SKIP_MPICXX 1  // the bindings of C++ would need another library
#include "oar/distributed/engine.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace oar::distributed {
namespace {

// MPI counts in int. Longer messages are cut; a piece is large enough that its start costs nothing.
constexpr size_t kPiece = size_t{1} << 28;

void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  throw std::runtime_error(std::string(call) +
                           " failed: " + std::string(text.data(), static_cast<size_t>(length)));
}

void start_mpi() {
  static std::once_flag once;
  std::call_once(once, [] {
    int started = 0, ended = 0;
    MPI_Finalized(&ended);
    if (ended != 0) throw std::runtime_error("MPI has been shut down in this process");
    MPI_Initialized(&started);
    int level = MPI_THREAD_SINGLE;
    if (started != 0) {
      MPI_Query_thread(&level);
    } else {
      check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
      std::atexit([] {
        int done = 0;
        MPI_Finalized(&done);
        if (done == 0) MPI_Finalize();
      });
    }
    if (level < MPI_THREAD_MULTIPLE)
      throw std::runtime_error(
          "this MPI cannot be called by several threads (MPI_THREAD_MULTIPLE)");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  });
}

void wait_for(MPI_Request* request, Milliseconds timeout) {
  const auto begin = std::chrono::steady_clock::now();
  for (int looks = 0;; ++looks) {
    int done = 0;
    check(MPI_Test(request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) return;
    if (looks < 1000) continue;
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (waited >= timeout) throw std::runtime_error("MPI has not finished within the time-out");
    if (waited < Milliseconds(1))
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

// MPI calls a function without a context, from any thread that is inside MPI, so the type of the elements tells what combines
// them: there is one for each function.
class Types {
 public:
  MPI_Datatype of(const Reduction& how) {
    const std::lock_guard lock(mutex_);
    const auto [place, is_new] = types_.try_emplace(how.combine, MPI_DATATYPE_NULL);
    if (is_new) {
      check(MPI_Type_contiguous(static_cast<int>(how.element_size), MPI_BYTE, &place->second),
            "MPI_Type_contiguous");
      check(MPI_Type_commit(&place->second), "MPI_Type_commit");
      functions_[place->second] = how.combine;
    }
    return place->second;
  }
  Combine function(MPI_Datatype type) {
    const std::lock_guard lock(mutex_);
    return functions_.at(type);
  }
  static Types& all() {
    static Types& types = *new Types;
    return types;
  }

 private:
  std::mutex mutex_;
  std::map<Combine, MPI_Datatype> types_;
  std::map<MPI_Datatype, Combine> functions_;
};

void combine_elements(void* in, void* sum, int* count, MPI_Datatype* type) {
  Types::all().function (*type)(sum, in, sum, static_cast<size_t>(*count));
}

MPI_Op operation() {
  static const MPI_Op op = [] {
    MPI_Op made = MPI_OP_NULL;
    check(MPI_Op_create(combine_elements, 0, &made), "MPI_Op_create");  // 0: in the order of ranks
    return made;
  }();
  return op;
}

class Message final : public Transfer {
 public:
  explicit Message(std::vector<MPI_Request> requests) : requests_(std::move(requests)) {}
  ~Message() override {
    for (MPI_Request& request : requests_) {
      if (request == MPI_REQUEST_NULL) continue;
      MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
  }
  void wait(Milliseconds timeout) override {
    for (MPI_Request& request : requests_) wait_for(&request, timeout);
  }

 private:
  std::vector<MPI_Request> requests_;
};

class MpiBackend final : public Backend {
 public:
  explicit MpiBackend(const BackendOptions& options) : size_(options.size), rank_(options.rank) {
    start_mpi();
    MPI_Group world = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
    check(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
    check(MPI_Group_incl(world, options.size, options.world_ranks.data(), &members),
          "MPI_Group_incl");
    // Members call this in the same order; the tag keeps apart groups that are made at the same time.
    const int tag = static_cast<int>(std::hash<std::string>()(options.name) % 32749);
    check(MPI_Comm_create_group(MPI_COMM_WORLD, members, tag, &collectives_),
          "MPI_Comm_create_group");
    check(MPI_Comm_dup(collectives_, &messages_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(collectives_, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(messages_, MPI_ERRORS_RETURN);
    MPI_Group_free(&world);
    MPI_Group_free(&members);
  }

  void broadcast(void* data, size_t bytes, int root, Milliseconds timeout) override {
    in_pieces(bytes, 1, [&](size_t offset, int count) {
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Ibcast(part(data, offset), count, MPI_BYTE, root, collectives_, &request),
            "MPI_Ibcast");
      wait_for(&request, timeout);
    });
  }

  void reduce(const void* in, void* out, size_t count, const Reduction& how, int root,
              Milliseconds timeout) override {
    in_pieces(count, how.element_size, [&](size_t offset, int pieces) {
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Ireduce(part(in, offset), part(out, offset), pieces, Types::all().of(how),
                        operation(), root, collectives_, &request),
            "MPI_Ireduce");
      wait_for(&request, timeout);
    });
  }

  void all_reduce(void* data, size_t count, const Reduction& how, Milliseconds timeout) override {
    in_pieces(count, how.element_size, [&](size_t offset, int pieces) {
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Iallreduce(MPI_IN_PLACE, part(data, offset), pieces, Types::all().of(how),
                           operation(), collectives_, &request),
            "MPI_Iallreduce");
      wait_for(&request, timeout);
    });
  }

  void all_gather(const void* in, void* out, size_t bytes, Milliseconds timeout) override {
    const std::vector<size_t> same(static_cast<size_t>(size_), bytes);
    exchange([&](int /*to*/) { return part(in, 0); }, same, out, same, timeout);
  }

  void reduce_scatter(void* in, void* out, size_t count, const Reduction& how,
                      Milliseconds timeout) override {
    if (count * how.element_size > kPiece) {  // its pieces would have to be interleaved
      all_reduce(in, count * static_cast<size_t>(size_), how, timeout);
      const size_t bytes = count * how.element_size;
      std::memcpy(out, part(in, static_cast<size_t>(rank_) * bytes), bytes);
      return;
    }
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ireduce_scatter_block(in, out, static_cast<int>(count), Types::all().of(how),
                                    operation(), collectives_, &request),
          "MPI_Ireduce_scatter_block");
    wait_for(&request, timeout);
  }

  void all_to_all(const void* in, std::span<const size_t> in_bytes, void* out,
                  std::span<const size_t> out_bytes, Milliseconds timeout) override {
    std::vector<size_t> offsets(in_bytes.size(), 0);
    for (size_t i = 1; i < offsets.size(); ++i) offsets[i] = offsets[i - 1] + in_bytes[i - 1];
    exchange([&](int to) { return part(in, offsets[static_cast<size_t>(to)]); }, in_bytes, out,
             out_bytes, timeout);
  }

  void gather(const void* in, void* out, size_t bytes, int root, Milliseconds timeout) override {
    std::vector<size_t> sent(static_cast<size_t>(size_), 0), received(sent);
    sent[static_cast<size_t>(root)] = bytes;
    if (rank_ == root) std::fill(received.begin(), received.end(), bytes);
    exchange([&](int /*to*/) { return part(in, 0); }, sent, out, received, timeout);
  }

  void scatter(const void* in, void* out, size_t bytes, int root, Milliseconds timeout) override {
    std::vector<size_t> sent(static_cast<size_t>(size_), 0), received(sent);
    received[static_cast<size_t>(root)] = bytes;
    if (rank_ == root) std::fill(sent.begin(), sent.end(), bytes);
    exchange([&](int to) { return part(in, static_cast<size_t>(to) * bytes); }, sent, out, received,
             timeout);
  }

  void barrier(Milliseconds timeout) override {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibarrier(collectives_, &request), "MPI_Ibarrier");
    wait_for(&request, timeout);
  }

  std::unique_ptr<Transfer> send(const void* data, size_t bytes, int to, uint32_t tag) override {
    return std::make_unique<Message>(sends(data, bytes, to, tag, messages_));
  }
  std::unique_ptr<Transfer> receive(void* data, size_t bytes, int from, uint32_t tag) override {
    return std::make_unique<Message>(receives(data, bytes, from, tag, messages_));
  }

  // MPI has no way back from a failed call: the launcher of MPI ends the job.
  void abort() override {}

 private:
  template <class F>
  static void in_pieces(size_t count, size_t element_size, F&& f) {
    const size_t most = kPiece / element_size;
    for (size_t begin = 0; begin < count; begin += most)
      f(begin * element_size, static_cast<int>(std::min(most, count - begin)));
  }

  static int tag_of(uint32_t tag) { return static_cast<int>(tag & 0x7fff); }

  static std::vector<MPI_Request> sends(const void* data, size_t bytes, int to, uint32_t tag,
                                        MPI_Comm among) {
    std::vector<MPI_Request> requests;
    in_pieces(bytes, 1, [&](size_t offset, int count) {
      check(MPI_Isend(part(data, offset), count, MPI_BYTE, to, tag_of(tag), among,
                      &requests.emplace_back()),
            "MPI_Isend");
    });
    return requests;
  }
  static std::vector<MPI_Request> receives(void* data, size_t bytes, int from, uint32_t tag,
                                           MPI_Comm among) {
    std::vector<MPI_Request> requests;
    in_pieces(bytes, 1, [&](size_t offset, int count) {
      check(MPI_Irecv(part(data, offset), count, MPI_BYTE, from, tag_of(tag), among,
                      &requests.emplace_back()),
            "MPI_Irecv");
    });
    return requests;
  }

  // Parts of any size between all ranks.
  template <class PartFor>
  void exchange(PartFor&& part_for, std::span<const size_t> in_bytes, void* out,
                std::span<const size_t> out_bytes, Milliseconds timeout) {
    std::vector<std::unique_ptr<Message>> messages;
    size_t offset = 0;
    for (int peer = 0; peer < size_; ++peer) {
      const size_t bytes = out_bytes[static_cast<size_t>(peer)];
      if (bytes > 0 && peer == rank_)
        std::memcpy(part(out, offset), part_for(rank_), bytes);
      else if (bytes > 0)
        messages.push_back(
            std::make_unique<Message>(receives(part(out, offset), bytes, peer, 0, collectives_)));
      offset += bytes;
    }
    for (int peer = 0; peer < size_; ++peer) {
      const size_t bytes = in_bytes[static_cast<size_t>(peer)];
      if (bytes > 0 && peer != rank_)
        messages.push_back(
            std::make_unique<Message>(sends(part_for(peer), bytes, peer, 0, collectives_)));
    }
    for (const auto& message : messages) message->wait(timeout);
  }

  int size_, rank_;
  MPI_Comm collectives_ = MPI_COMM_NULL, messages_ = MPI_COMM_NULL;
};

}  // namespace
}  // namespace oar::distributed

OAR_ENGINE_API oar::distributed::Backend* oar_backend_create(
    const oar::distributed::BackendOptions& options, char** why) {
  using namespace oar::distributed;
  return made_or_why([&]() -> Backend* { return new MpiBackend(options); }, why);
}
